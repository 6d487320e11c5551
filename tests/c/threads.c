/* Several threads of each rank at once, with all kinds of operations, on pages used by all threads. */
#include <pthread.h>

#include "check.h"

#define THREADS 4
#define OPERATIONS 80
#define TALLIES 100

static vgasnet_node_t me, ranks;
static size_t area_bytes;

struct worker {
    uint64_t number;
    uint64_t state;
    unsigned char *model, *got;
};

/* Areas of all threads of all ranks are adjacent in every segment. */
static void *area(const struct worker *worker, vgasnet_node_t target, size_t offset) {
    return at(target, (uintptr_t)(me * THREADS + worker->number) * area_bytes + offset);
}

/* Bytes of all threads of all ranks are adjacent, after the areas. */
static void *tally(const struct worker *worker, vgasnet_node_t target) {
    return at(target, (uintptr_t)ranks * THREADS * area_bytes + me * THREADS + worker->number);
}

static void put_one(struct worker *worker, vgasnet_node_t target, size_t offset, size_t len) {
    void *there = area(worker, target, offset);
    unsigned char *from = worker->model + offset;
    vgasnet_handle_t handles[2] = {VGASNET_INVALID_HANDLE, VGASNET_INVALID_HANDLE};
    random_bytes(&worker->state, from, len);
    switch (random_below(&worker->state, 5)) {
    case 0:
        vgasnet_put(target, there, from, len);
        return;
    case 1:
        handles[1] = vgasnet_put_nb_bulk(target, there, from, len);
        vgasnet_wait_syncnb_some(handles, 2);
        CHECK(handles[1] == VGASNET_INVALID_HANDLE);
        return;
    case 2:
        handles[0] = vgasnet_put_nb(target, there, from, len);
        while (vgasnet_try_syncnb_all(handles, 2) == VGASNET_ERR_NOT_READY) {}
        return;
    case 3:
        vgasnet_put_nbi(target, there, from, len);
        while (vgasnet_try_syncnbi_puts() == VGASNET_ERR_NOT_READY) {}
        return;
    default:
        vgasnet_begin_nbi_accessregion();
        vgasnet_put_nbi_bulk(target, there, from, len);
        vgasnet_memset_nbi(target, area(worker, target, area_bytes - 1), 9, 1);
        vgasnet_wait_syncnb(vgasnet_end_nbi_accessregion());
        worker->model[area_bytes - 1] = 9;
    }
}

static void get_one(struct worker *worker, vgasnet_node_t target, size_t offset, size_t len) {
    void *there = area(worker, target, offset);
    vgasnet_handle_t handle;
    switch (random_below(&worker->state, 3)) {
    case 0:
        vgasnet_get_bulk(worker->got, target, there, len);
        break;
    case 1:
        handle = vgasnet_get_nb(worker->got, target, there, len);
        vgasnet_wait_syncnb_all(&handle, 1);
        break;
    default:
        vgasnet_get_nbi_bulk(worker->got, target, there, len);
        vgasnet_wait_syncnbi_all();
    }
    check_bytes(worker->got, worker->model + offset, len, "thread");
}

static void on_one_target(struct worker *worker, vgasnet_node_t target) {
    vgasnet_get(worker->model, target, area(worker, target, 0), area_bytes);
    for (int i = 0; i < OPERATIONS; ++i) {
        size_t len = random_length(&worker->state, area_bytes - 1);
        size_t offset = (size_t)random_below(&worker->state, area_bytes - len);
        if (random_below(&worker->state, 2) == 0) {
            put_one(worker, target, offset, len);
        } else {
            get_one(worker, target, offset, len);
        }
    }
    vgasnet_get(worker->got, target, area(worker, target, 0), area_bytes);
    check_bytes(worker->got, worker->model, area_bytes, "thread's area");
}

static void *work(void *argument) {
    struct worker *worker = (struct worker *)argument;
    for (vgasnet_node_t i = 0; i < ranks; ++i)
        on_one_target(worker, (vgasnet_node_t)((me + worker->number + i) % ranks));
    for (uint64_t count = 0; count < TALLIES; ++count) {
        vgasnet_node_t target = (vgasnet_node_t)(count % ranks);
        uint64_t before = count / ranks;
        vgasnet_valget_handle_t handle = vgasnet_get_nb_val(target, tally(worker, target), 1);
        CHECK_EQ(vgasnet_wait_syncnb_valget(handle), before & 0xff);
        vgasnet_put_val(target, tally(worker, target), before + 1, 1);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (vgasnet_init(&argc, &argv) != VGASNET_OK) return 1;
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    area_bytes = page_bytes() / 2 + 999;
    CHECK(vgasnet_attach(NULL, 0, (uintptr_t)ranks * THREADS * (area_bytes + 1), 0) == VGASNET_OK);
    (void)at(0, 0);
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    for (uint64_t i = 0; i < THREADS; ++i) {
        workers[i].number = i;
        workers[i].state = mixed(9, me, i);
        workers[i].model = (unsigned char *)allocate(area_bytes);
        workers[i].got = (unsigned char *)allocate(area_bytes);
        CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (int i = 0; i < THREADS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
    return finish();
}
