/* Small transfers of all kinds at random places of segments many times the pool, between loads, stores, pins, advice
 * and puts of whole pages. Bytes of several users are adjacent in each page. In each phase one rank computes. */
#include <pthread.h>
#include <sched.h>

#include "windows.h"

#define PHASES 4
#define OPERATIONS 500
#define PENDING 5

static vgasnet_node_t me, ranks;
static size_t segment_bytes;

/* A started operation, and the bytes of a get. */
typedef struct {
    Operation operation;
    vgasnet_handle_t handle;
    vgasnet_valget_handle_t value;
    unsigned char *got;
} Pending;

typedef struct {
    unsigned user;
    uint64_t phase;
    size_t count;
    Pending pending[PENDING];
} Worker;

static uint64_t state_of(unsigned user, uint64_t phase) { return mixed(72, user, phase); }

/* With one rank, no rank computes. */
static int computes(vgasnet_node_t rank, uint64_t phase) { return ranks > 1 && phase % ranks == rank; }

/* Checks the user's own bytes of a get. */
static void check_own(const Operation *operation, unsigned user, const unsigned char *got) {
    const Window *window = operation->window;
    for (size_t i = 0; i < operation->count; ++i, got += operation->len) {
        size_t begin = operation->offset + i * operation->stride, more;
        for (size_t done = 0; done < operation->len; done += more) {
            unsigned owner = owner_of(window, begin + done, &more);
            more = least(more, operation->len - done);
            if (owner == user) check_bytes(got + done, window->model + begin + done, more, "own bytes");
        }
    }
}

static void sync(Worker *worker) {
    for (size_t i = 0; i < worker->count; ++i) vgasnet_wait_syncnb(worker->pending[i].handle);
    vgasnet_wait_syncnbi_all();
    for (size_t i = 0; i < worker->count; ++i) {
        Pending *pending = &worker->pending[i];
        if (pending->value != NULL) {
            uint64_t value = vgasnet_wait_syncnb_valget(pending->value);
            memcpy(pending->got, &value, pending->operation.len);
        }
        if (!is_write(&pending->operation)) check_own(&pending->operation, worker->user, pending->got);
    }
    worker->count = 0;
}

static vgasnet_handle_t put_plain(const Operation *operation) {
    vgasnet_node_t target = operation->window->target;
    unsigned char *to = (unsigned char *)there(operation->window, operation->offset);
    unsigned char *from = operation->window->model + operation->offset;
    switch (operation->form) {
    case 0: vgasnet_put(target, to, from, operation->len); break;
    case 1: return vgasnet_put_nb(target, to, from, operation->len);
    case 2: return vgasnet_put_nb_bulk(target, to, from, operation->len);
    case 3: vgasnet_put_nbi(target, to, from, operation->len); break;
    default: vgasnet_put_nbi_bulk(target, to, from, operation->len);
    }
    return VGASNET_INVALID_HANDLE;
}

static vgasnet_handle_t get_plain(const Operation *operation, unsigned char *to) {
    vgasnet_node_t target = operation->window->target;
    void *from = there(operation->window, operation->offset);
    switch (operation->form) {
    case 0: vgasnet_get(to, target, from, operation->len); break;
    case 1: return vgasnet_get_nb(to, target, from, operation->len);
    case 2: return vgasnet_get_nb_bulk(to, target, from, operation->len);
    case 3: vgasnet_get_nbi(to, target, from, operation->len); break;
    default: vgasnet_get_nbi_bulk(to, target, from, operation->len);
    }
    return VGASNET_INVALID_HANDLE;
}

static vgasnet_handle_t set(const Operation *operation) {
    vgasnet_node_t target = operation->window->target;
    void *to = there(operation->window, operation->offset);
    int byte = (int)(operation->seed & 0xff);
    if (operation->form == 1) return vgasnet_memset_nb(target, to, byte, operation->len);
    if (operation->form == 2) vgasnet_memset_nbi(target, to, byte, operation->len);
    else vgasnet_memset(target, to, byte, operation->len);
    return VGASNET_INVALID_HANDLE;
}

static vgasnet_handle_t put_value(const Operation *operation) {
    vgasnet_node_t target = operation->window->target;
    void *to = there(operation->window, operation->offset);
    uint64_t value = 0;
    memcpy(&value, operation->window->model + operation->offset, operation->len);
    if (operation->form == 1) return vgasnet_put_nb_val(target, to, value, operation->len);
    if (operation->form == 2) vgasnet_put_nbi_val(target, to, value, operation->len);
    else vgasnet_put_val(target, to, value, operation->len);
    return VGASNET_INVALID_HANDLE;
}

static void get_value(Pending *pending) {
    const Operation *operation = &pending->operation;
    vgasnet_node_t target = operation->window->target;
    void *from = there(operation->window, operation->offset);
    if (operation->form == 1) {
        pending->value = vgasnet_get_nb_val(target, from, operation->len);
        return;
    }
    uint64_t value = vgasnet_get_val(target, from, operation->len);
    memcpy(pending->got, &value, operation->len);
}

/* A range in each of several stripes. */
static vgasnet_handle_t strided(const Operation *operation, unsigned char *got) {
    vgasnet_node_t target = operation->window->target;
    void *far = there(operation->window, operation->offset), *near = operation->window->model + operation->offset;
    size_t count[2] = {operation->len, operation->count}, stride = operation->stride, dense = operation->len;
    int is_put = operation->kind == PUT_STRIDED;
    if (operation->form == 1 && is_put) return vgasnet_puts_nb_bulk(target, far, &stride, near, &stride, count, 1);
    if (operation->form == 1) return vgasnet_gets_nb_bulk(got, &dense, target, far, &stride, count, 1);
    if (is_put) vgasnet_puts_nbi_bulk(target, far, &stride, near, &stride, count, 1);
    else vgasnet_gets_nbi_bulk(got, &dense, target, far, &stride, count, 1);
    return VGASNET_INVALID_HANDLE;
}

static vgasnet_handle_t vector(const Operation *operation, unsigned char *got) {
    vgasnet_memvec_t far[32], near[32];
    vgasnet_node_t target = operation->window->target;
    size_t count = operation->count;
    int is_put = operation->kind == PUT_VECTOR;
    for (size_t i = 0; i < count; ++i) {
        size_t offset = operation->offset + i * operation->stride;
        far[i].addr = there(operation->window, offset);
        near[i].addr = is_put ? operation->window->model + offset : got + i * operation->len;
        far[i].len = near[i].len = operation->len;
    }
    if (operation->form == 1 && is_put) return vgasnet_putv_nb_bulk(target, count, far, count, near);
    if (operation->form == 1) return vgasnet_getv_nb_bulk(count, near, target, count, far);
    if (is_put) vgasnet_putv_bulk(target, count, far, count, near);
    else vgasnet_getv_bulk(count, near, target, count, far);
    return VGASNET_INVALID_HANDLE;
}

/* Stores or loads, in pages pinned if this leaves enough of the pool. */
static void by_pointer(const Operation *operation, unsigned char *got) {
    void *there_now = there(operation->window, operation->offset);
    int is_store = operation->kind == STORE, mode = is_store ? VGASNET_PIN_WRITE : VGASNET_PIN_READ;
    size_t touched = operation->len / page_bytes() + 2;
    int pins = operation->form < 2 && USERS_PER_RANK * touched + 4 <= pool_pages();
    if (pins) CHECK(vgasnet_pin(there_now, operation->len, mode) == VGASNET_OK);
    if (is_store) memcpy(there_now, operation->window->model + operation->offset, operation->len);
    else memcpy(got, there_now, operation->len);
    if (pins) CHECK(vgasnet_unpin(there_now, operation->len) == VGASNET_OK);
}

static void begin(Worker *worker, const Operation *operation) {
    for (size_t i = 0; i < worker->count; ++i)
        if (worker->pending[i].operation.window == operation->window) sync(worker);
    Pending *pending = &worker->pending[worker->count++];
    unsigned char *got = pending->got;
    pending->operation = *operation, pending->handle = VGASNET_INVALID_HANDLE, pending->value = NULL;
    if (is_write(operation)) apply(operation);
    switch (operation->kind) {
    case PUT: pending->handle = put_plain(operation); break;
    case SET: pending->handle = set(operation); break;
    case PUT_VALUE: pending->handle = put_value(operation); break;
    case PUT_STRIDED: case GET_STRIDED: pending->handle = strided(operation, got); break;
    case PUT_VECTOR: case GET_VECTOR: pending->handle = vector(operation, got); break;
    case STORE: case LOAD: by_pointer(operation, got); break;
    case GET: pending->handle = get_plain(operation, got); break;
    case GET_VALUE: get_value(pending); break;
    case ADVISE:
        --worker->count;
        CHECK(vgasnet_advise(there(operation->window, operation->offset), operation->len,
                             operation->form < 4 ? VGASNET_ADVISE_DONTNEED : VGASNET_ADVISE_WILLNEED) == VGASNET_OK);
    }
    if (worker->count == PENDING || (worker->count > 0 && operation->seed % 4 == 0)) sync(worker);
}

static void *work(void *argument) {
    Worker *worker = (Worker *)argument;
    uint64_t state = state_of(worker->user, worker->phase);
    for (int i = 0; i < OPERATIONS; ++i) {
        Operation operation = draw_operation(&state, worker->user);
        begin(worker, &operation);
    }
    sync(worker);
    return NULL;
}

/* A word after all windows counts the finished ranks. Its rank computes until then, without calls into the library. */
static void *flag(vgasnet_node_t rank) { return at(rank, segment_bytes); }

static void compute(uint64_t phase) {
    uint64_t earlier = phase / ranks;
    while (load_word(flag(me)) < (earlier + 1) * (ranks - 1)) sched_yield();
}

static void run_phase(Worker *workers, uint64_t phase) {
    pthread_t threads[USERS_PER_RANK];
    for (unsigned i = 0; i < USERS_PER_RANK; ++i) {
        workers[i].phase = phase;
        CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (unsigned i = 0; i < USERS_PER_RANK; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
    vgasnet_node_t other = (vgasnet_node_t)(phase % ranks);
    if (ranks > 1) vgasnet_atomic_fetch_add_u64(other, flag(other), 1);
}

/* Repeats other ranks' operations in the model. */
static void note_others(uint64_t phase) {
    for (unsigned user = 0; user < users; ++user) {
        vgasnet_node_t rank = user / USERS_PER_RANK;
        uint64_t state = state_of(user, phase);
        if (rank == me || computes(rank, phase)) continue;
        for (int i = 0; i < OPERATIONS; ++i) {
            Operation operation = draw_operation(&state, user);
            if (is_write(&operation)) apply(&operation);
        }
    }
}

/* Gets of all users' bytes in some windows, short and long. */
static void check_all(uint64_t phase, unsigned char *got) {
    uint64_t state = mixed(73, me, phase);
    for (unsigned i = 0; i < window_count; ++i) {
        const Window *window = &windows[i];
        int gets = i % ranks == (me + phase) % ranks ? 6 : 1;
        for (int j = 0; j < gets; ++j) {
            size_t len = 1 + random_length(&state, least(window->len, SHORT_MAX) - 1);
            size_t offset = (size_t)random_below(&state, window->len - len + 1);
            vgasnet_get(got, window->target, there(window, offset), len);
            check_bytes(got, window->model + offset, len, "bytes of all");
        }
    }
}

/* Checks all bytes of this rank's share of the windows. */
static void check_whole(unsigned char *got) {
    for (unsigned i = me; i < window_count; i += ranks)
        for (size_t offset = 0; offset < windows[i].len; offset += SHORT_MAX) {
            size_t len = least(windows[i].len - offset, SHORT_MAX);
            vgasnet_get_bulk(got, windows[i].target, there(&windows[i], offset), len);
            check_bytes(got, windows[i].model + offset, len, "bytes in the end");
        }
}

int main(int argc, char **argv) {
    segment_bytes = (pool_pages() < 8 ? 16 : 8) * pool_bytes();
    start(&argc, &argv, segment_bytes + page_bytes());
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    lay_windows(ranks, segment_bytes);
    Worker workers[USERS_PER_RANK];
    for (unsigned i = 0; i < USERS_PER_RANK; ++i) {
        workers[i].user = me * USERS_PER_RANK + i, workers[i].count = 0;
        for (int j = 0; j < PENDING; ++j) workers[i].pending[j].got = (unsigned char *)allocate(32 * SHORT_MAX);
    }
    for (uint64_t phase = 0; phase < PHASES; ++phase) {
        if (computes(me, phase)) compute(phase);
        else run_phase(workers, phase);
        note_others(phase);
        barrier();
        check_all(phase, workers[0].pending[0].got);
        barrier();
    }
    check_whole(workers[0].pending[0].got);
    return finish();
}
