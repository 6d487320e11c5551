/* Several threads of each rank on random pages of a small pool. They load and store, call functions of the C
 * library, and get and put, also with a local side in the own segment. Each thread has its own stripes of bytes in
 * every page of every segment. Stripes of all threads of all ranks are adjacent. */
#include <pthread.h>

#include "local.h"

#define THREADS 6
#define OPERATIONS 1000
/* Bytes of a stripe: no multiple of a length moved by one instruction. */
#define STRIPE 23
/* Stripes of one thread in a page. */
#define STRIPES 8

static vgasnet_node_t me, ranks;
static size_t pages;

struct worker {
    size_t number;
    uint64_t state;
    /* The bytes of the stripes. */
    unsigned char *model;
};

/* A stripe in the segment and in the model. */
struct stripe {
    vgasnet_node_t target;
    unsigned char *place, *model;
};

static struct stripe any_stripe(struct worker *worker, vgasnet_node_t target) {
    struct stripe stripe;
    size_t page = (size_t)random_below(&worker->state, pages);
    size_t row = (size_t)random_below(&worker->state, STRIPES);
    size_t row_bytes = page_bytes() / STRIPES;
    size_t offset = page * page_bytes() + row * row_bytes + (me * THREADS + worker->number) * STRIPE;
    stripe.target = target;
    stripe.place = (unsigned char *)at(target, offset);
    stripe.model = worker->model + ((target * pages + page) * STRIPES + row) * STRIPE;
    return stripe;
}

/* An access to a stripe of the own segment, by instructions or by the C library. */
static void touch(struct worker *worker, struct stripe stripe) {
    unsigned char bytes[STRIPE];
    size_t len = 1 + (size_t)random_below(&worker->state, PIECE_MAX);
    size_t offset = (size_t)random_below(&worker->state, STRIPE - len + 1);
    switch (random_below(&worker->state, 5)) {
    case 0:
        memset(stripe.place, (int)len, STRIPE);
        memset(stripe.model, (int)len, STRIPE);
        return;
    case 1:
        memcpy(bytes, stripe.place, STRIPE);
        check_bytes(bytes, stripe.model, STRIPE, "stripe");
        return;
    case 2:
        copy_piece(bytes, stripe.place + offset, len);
        check_bytes(bytes, stripe.model + offset, len, "piece of a stripe");
        return;
    default:
        random_bytes(&worker->state, stripe.model + offset, len);
        copy_piece(stripe.place + offset, stripe.model + offset, len);
    }
}

/* From a stripe of the own segment to any stripe of this thread. */
static void put(struct worker *worker, struct stripe from, struct stripe to) {
    vgasnet_handle_t handle = VGASNET_INVALID_HANDLE;
    switch (random_below(&worker->state, 4)) {
    case 0:
        vgasnet_put(to.target, to.place, from.place, STRIPE);
        break;
    case 1:
        handle = vgasnet_put_nb(to.target, to.place, from.place, STRIPE);
        break;
    case 2:
        handle = vgasnet_put_nb_bulk(to.target, to.place, from.place, STRIPE);
        break;
    default:
        vgasnet_put_nbi(to.target, to.place, from.place, STRIPE);
    }
    memmove(to.model, from.model, STRIPE);
    vgasnet_wait_syncnb(handle);
    vgasnet_wait_syncnbi_puts();
}

/* From any stripe of this thread to one of the own segment. */
static void get(struct worker *worker, struct stripe from, struct stripe to) {
    vgasnet_handle_t handle = VGASNET_INVALID_HANDLE;
    switch (random_below(&worker->state, 3)) {
    case 0:
        vgasnet_get_bulk(to.place, from.target, from.place, STRIPE);
        break;
    case 1:
        handle = vgasnet_get_nb(to.place, from.target, from.place, STRIPE);
        break;
    default:
        vgasnet_get_nbi_bulk(to.place, from.target, from.place, STRIPE);
    }
    memmove(to.model, from.model, STRIPE);
    vgasnet_wait_syncnbi_gets();
    vgasnet_wait_syncnb(handle);
    check_bytes(to.place, to.model, STRIPE, "got into a stripe");
}

/* A counter shared by all threads of the rank, in each page, after the first row of stripes. */
static uint64_t *tally(size_t page) { return (uint64_t *)at(me, page * page_bytes() + page_bytes() / STRIPES - 8); }

static void *work(void *argument) {
    struct worker *worker = (struct worker *)argument;
    for (int i = 0; i < OPERATIONS; ++i) {
        vgasnet_node_t target = (vgasnet_node_t)random_below(&worker->state, ranks);
        struct stripe own = any_stripe(worker, me), any = any_stripe(worker, target);
        uint64_t choice = random_below(&worker->state, 16);
        if (choice < 2) put(worker, own, any);
        if (choice >= 2 && choice < 4) get(worker, any, own);
        if (choice >= 4) touch(worker, own);
        __sync_fetch_and_add(tally((size_t)i % pages), 1);
    }
    for (int i = 0; i < 100; ++i) {
        struct stripe own = any_stripe(worker, me);
        check_bytes(own.place, own.model, STRIPE, "stripe in the end");
    }
    return NULL;
}

int main(int argc, char **argv) {
    pages = 3 * pool_pages();
    start(&argc, &argv, pages * page_bytes());
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    CHECK(ranks * THREADS * STRIPE + 8 <= page_bytes() / STRIPES);
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    for (size_t i = 0; i < THREADS; ++i) {
        workers[i].number = i;
        workers[i].state = mixed(23, me, i);
        workers[i].model = (unsigned char *)allocate(ranks * pages * STRIPES * STRIPE);
        CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (size_t i = 0; i < THREADS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
    for (size_t page = 0; page < pages; ++page)
        CHECK_EQ(*tally(page), THREADS * (OPERATIONS / pages + (page < OPERATIONS % pages)));
    return finish();
}
