/* The calls of a language's runtime on GASNet-EX, in the order of Chapel's: both interfaces mixed, the whole segment as
 * the heap with the stacks of all tasks in it, tasks begun by messages of three sizes, transfers by messages where an
 * address is in no segment, a thread that polls, barriers that yield, and a shutdown by messages. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <gasnet.h>
#include <gasnet_coll.h>
#include <gasnet_tools.h>
#include <gasnet_vis.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"

#define WORKERS 3
#define STACK_BYTES (256 << 10)
#define SMALL 96
#define LARGE 3000
#define LIMIT 100000
#define ROUNDS 40

enum { FORK = 128, FORK_LARGE, FORK_NB, FORK_NB_LARGE, FORK_FAST, SIGNAL, SIGNAL_LONG, BCAST, FREE, SHUTDOWN, REPLY_PUT, COPY };

static gex_Client_t client;
static gex_EP_t ep;
static gex_TM_t tm;
static gex_Segment_t segment;
static gasnet_seginfo_t *segments;
static gasnet_node_t me, ranks, next;

#define LOW(address) ((gasnet_handlerarg_t)(uint32_t)(uintptr_t)(address))
#define HIGH(address) ((gasnet_handlerarg_t)(uint32_t)((uint64_t)(uintptr_t)(address) >> 32))
static void *joined(gasnet_handlerarg_t low, gasnet_handlerarg_t high) {
    return (void *)(uintptr_t)((uint64_t)(uint32_t)low | (uint64_t)(uint32_t)high << 32);
}

/* What a request waits for. It lies on the stack of a task, so in the segment. */
struct done {
    uint32_t count, target;
    volatile int flag;
};

static void signal_done(struct done *done) {
    if (__atomic_add_fetch(&done->count, 1, __ATOMIC_SEQ_CST) == done->target) done->flag = 1;
}

static void wait_done(struct done *done) {
    while (!done->flag) {
        CHECK(gasnet_AMPoll() == GASNET_OK);
        sched_yield();
    }
}

/* A task as it travels. */
struct bundle {
    gasnet_node_t caller;
    struct done *ack;
    int is_large, ends_caller_copy;
    void *arguments;
    size_t len;
    unsigned char bytes[];
};

/* The queue of tasks. Its locks are in the segment, as all of the heap. */
struct queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct entry {
        struct bundle *bundle;
        struct entry *next;
    } *first;
    int is_over;
};
static struct queue *queue;
static uint64_t tasks_run, sums;

static unsigned char byte_of(gasnet_node_t caller, size_t at) { return (unsigned char)(caller * 37 + at * 11 + 5); }

static void check_arguments(gasnet_node_t caller, const unsigned char *bytes, size_t len) {
    uint64_t sum = 0;
    for (size_t i = 0; i < len; ++i) {
        CHECK_EQ(bytes[i], byte_of(caller, i));
        sum += bytes[i];
    }
    __atomic_fetch_add(&sums, sum, __ATOMIC_RELAXED);
    __atomic_fetch_add(&tasks_run, 1, __ATOMIC_RELAXED);
}

static int is_gettable(gasnet_node_t node, const void *address, size_t len) {
    uintptr_t offset = (uintptr_t)address - (uintptr_t)segments[node].addr;
    return offset < segments[node].size && len <= segments[node].size - offset;
}

static void run_task(struct bundle *bundle) {
    unsigned char *arguments = bundle->bytes;
    if (bundle->is_large) {
        arguments = (unsigned char *)malloc(bundle->len);
        CHECK(is_gettable(bundle->caller, bundle->arguments, bundle->len));
        gex_RMA_GetBlocking(tm, arguments, bundle->caller, bundle->arguments, bundle->len, 0);
    }
    if (bundle->ends_caller_copy)
        CHECK(gasnet_AMRequestShort2(bundle->caller, FREE, LOW(bundle->arguments), HIGH(bundle->arguments)) == GASNET_OK);
    check_arguments(bundle->caller, arguments, bundle->len);
    if (bundle->ack) CHECK(gasnet_AMRequestShort2(bundle->caller, SIGNAL, LOW(bundle->ack), HIGH(bundle->ack)) == GASNET_OK);
    if (bundle->is_large) free(arguments);
    free(bundle);
}

static struct bundle *next_task(void) {
    struct bundle *bundle = NULL;
    CHECK(pthread_mutex_lock(&queue->lock) == 0);
    while (queue->first == NULL && !queue->is_over) CHECK(pthread_cond_wait(&queue->filled, &queue->lock) == 0);
    if (queue->first != NULL) {
        struct entry *entry = queue->first;
        queue->first = entry->next;
        bundle = entry->bundle;
        free(entry);
    }
    CHECK(pthread_mutex_unlock(&queue->lock) == 0);
    return bundle;
}

static void *work(void *unused) {
    struct bundle *bundle;
    (void)unused;
    CHECK(is_gettable(me, &bundle, sizeof bundle));
    while ((bundle = next_task()) != NULL) run_task(bundle);
    return NULL;
}

static void enqueue(const void *bytes, size_t len) {
    struct entry *entry = (struct entry *)malloc(sizeof *entry);
    entry->bundle = (struct bundle *)malloc(len);
    memcpy(entry->bundle, bytes, len);
    CHECK(pthread_mutex_lock(&queue->lock) == 0);
    entry->next = queue->first;
    queue->first = entry;
    CHECK(pthread_cond_signal(&queue->filled) == 0);
    CHECK(pthread_mutex_unlock(&queue->lock) == 0);
}

/* Handlers. */
static void am_fork(gasnet_token_t token, void *bytes, size_t len) {
    (void)token;
    enqueue(bytes, len);
}
static void am_fork_fast(gasnet_token_t token, void *bytes, size_t len) {
    struct bundle *bundle = (struct bundle *)bytes;
    CHECK_EQ(len, sizeof *bundle + bundle->len);
    check_arguments(bundle->caller, bundle->bytes, bundle->len);
    CHECK(gasnet_AMReplyShort2(token, SIGNAL, LOW(bundle->ack), HIGH(bundle->ack)) == GASNET_OK);
}
static void am_signal(gasnet_token_t token, gasnet_handlerarg_t low, gasnet_handlerarg_t high) {
    (void)token;
    signal_done((struct done *)joined(low, high));
}
static void am_signal_long(gasnet_token_t token, void *bytes, size_t len, gasnet_handlerarg_t low, gasnet_handlerarg_t high) {
    (void)bytes, (void)len;
    am_signal(token, low, high);
}
static unsigned char broadcast[LIMIT];
static void am_bcast(gasnet_token_t token, void *bytes, size_t len) {
    struct bundle *bundle = (struct bundle *)bytes;
    size_t offset = (size_t)(uintptr_t)bundle->arguments;
    CHECK(len == sizeof *bundle + bundle->len && offset + bundle->len <= LIMIT);
    memcpy(broadcast + offset, bundle->bytes, bundle->len);
    CHECK(gasnet_AMReplyShort2(token, SIGNAL, LOW(bundle->ack), HIGH(bundle->ack)) == GASNET_OK);
}
static int freed;
static void am_free(gasnet_token_t token, gasnet_handlerarg_t low, gasnet_handlerarg_t high) {
    (void)token;
    (void)joined(low, high);
    __atomic_fetch_add(&freed, 1, __ATOMIC_RELEASE);
}
static volatile int is_shut_down;
static void am_shutdown(gasnet_token_t token) {
    (void)token;
    is_shut_down = 1;
}
struct transfer {
    struct done *ack;
    void *to, *from;
    size_t len;
};
static void am_reply_put(gasnet_token_t token, void *bytes, size_t len) {
    struct transfer *transfer = (struct transfer *)bytes;
    CHECK_EQ(len, sizeof *transfer);
    CHECK(gasnet_AMReplyLong2(token, SIGNAL_LONG, transfer->from, transfer->len, transfer->to, LOW(transfer->ack),
                              HIGH(transfer->ack)) == GASNET_OK);
}
static void am_copy(gasnet_token_t token, void *bytes, size_t len, gasnet_handlerarg_t ack_low, gasnet_handlerarg_t ack_high,
                    gasnet_handlerarg_t low, gasnet_handlerarg_t high) {
    memcpy(joined(low, high), bytes, len);
    CHECK(gasnet_AMReplyShort2(token, SIGNAL, ack_low, ack_high) == GASNET_OK);
}

#define HANDLER(index, function, flags, arguments) {index, (gex_AM_Fn_t)function, flags, arguments, NULL, #function}
#define MEDIUM (GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_MEDIUM)
static gex_AM_Entry_t handlers[] = {
    HANDLER(FORK, am_fork, MEDIUM, 0),
    HANDLER(FORK_LARGE, am_fork, MEDIUM, 0),
    HANDLER(FORK_NB, am_fork, MEDIUM, 0),
    HANDLER(FORK_NB_LARGE, am_fork, MEDIUM, 0),
    HANDLER(FORK_FAST, am_fork_fast, MEDIUM, 0),
    HANDLER(SIGNAL, am_signal, GEX_FLAG_AM_REQREP | GEX_FLAG_AM_SHORT, 2),
    HANDLER(SIGNAL_LONG, am_signal_long, GEX_FLAG_AM_REPLY | GEX_FLAG_AM_LONG, 2),
    HANDLER(BCAST, am_bcast, MEDIUM, 0),
    HANDLER(FREE, am_free, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_SHORT, 2),
    HANDLER(SHUTDOWN, am_shutdown, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_SHORT, 0),
    HANDLER(REPLY_PUT, am_reply_put, MEDIUM, 0),
    HANDLER(COPY, am_copy, MEDIUM, 4),
};

/* The heap: queue, stacks, then the array. */
static char *stack_of(int task) { return (char *)segments[me].addr + GASNET_PAGESIZE + (size_t)task * STACK_BYTES; }
static uint64_t *array_of(gasnet_node_t node) {
    return (uint64_t *)((char *)segments[node].addr + GASNET_PAGESIZE + (size_t)(WORKERS + 2) * STACK_BYTES);
}
static size_t array_len;
static uint64_t value_of(gasnet_node_t node, size_t at) { return (uint64_t)(node + 1) * 1000003 + at * 7; }

static pthread_t begin(int task, void *(*function)(void *)) {
    pthread_attr_t attributes;
    pthread_t thread;
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstack(&attributes, stack_of(task), STACK_BYTES) == 0);
    CHECK(pthread_create(&thread, &attributes, function, NULL) == 0);
    CHECK(pthread_attr_destroy(&attributes) == 0);
    return thread;
}

static volatile int polls, polling_ends;
static void *poll_always(void *unused) {
    (void)unused;
    for (polls = 1; !polling_ends; sched_yield()) CHECK(gasnet_AMPoll() == GASNET_OK);
    polls = 0;
    return NULL;
}

static void yielding_barrier(int id) {
    int answer;
    gasnet_barrier_notify(id, 0);
    while ((answer = gasnet_barrier_try(id, 0)) == GASNET_ERR_NOT_READY) sched_yield();
    CHECK(answer == GASNET_OK);
}

/* Tasks on the next rank, with arguments of three sizes. */
static void fork_at(int index, size_t len, int is_large, int ends_caller_copy, int is_blocking) {
    struct done done = {0, 1, 0};
    unsigned char bytes[sizeof(struct bundle) + LARGE], *arguments = bytes + sizeof(struct bundle);
    struct bundle *bundle = (struct bundle *)bytes;
    /* The next rank gets a large one from this stack, or from a copy that it says is no longer needed. */
    unsigned char copy[LIMIT];
    for (size_t i = 0; i < len; ++i) (is_large ? copy : arguments)[i] = byte_of(me, i);
    bundle->caller = me;
    bundle->ack = is_blocking ? &done : NULL;
    bundle->is_large = is_large;
    bundle->ends_caller_copy = ends_caller_copy;
    bundle->arguments = is_large ? copy : NULL;
    bundle->len = len;
    int before = __atomic_load_n(&freed, __ATOMIC_ACQUIRE);
    CHECK(gasnet_AMRequestMedium0(next, index, bundle, sizeof *bundle + (is_large ? 0 : len)) == GASNET_OK);
    if (is_blocking) wait_done(&done);
    while (ends_caller_copy && __atomic_load_n(&freed, __ATOMIC_ACQUIRE) == before) sched_yield();
}

static void fork_tasks(void) {
    for (int i = 0; i < ROUNDS; ++i) {
        fork_at(FORK_FAST, SMALL, 0, 0, 1);
        fork_at(FORK, SMALL, 0, 0, 1);
        fork_at(FORK, LARGE, 0, 0, 1);
        fork_at(FORK_LARGE, LIMIT, 1, 0, 1);
        fork_at(FORK_NB, SMALL, 0, 0, 0);
        fork_at(FORK_NB_LARGE, LIMIT, 1, 1, 0);
    }
}

static void broadcast_private(void) {
    const size_t room = gasnet_AMMaxMedium() - sizeof(struct bundle);
    const uint32_t pieces = (uint32_t)((LIMIT + room - 1) / room);
    struct done *done = (struct done *)calloc(ranks, sizeof *done);
    struct bundle *bundle = (struct bundle *)malloc(gasnet_AMMaxMedium());
    for (gasnet_node_t node = 0; node < ranks; ++node) done[node].target = pieces;
    for (size_t offset = 0; offset < LIMIT; offset += room) {
        bundle->len = LIMIT - offset < room ? LIMIT - offset : room;
        bundle->arguments = (void *)(uintptr_t)offset;
        for (size_t i = 0; i < bundle->len; ++i) bundle->bytes[i] = byte_of(77, offset + i);
        for (gasnet_node_t node = 0; node < ranks; ++node) {
            if (node == me) continue;
            bundle->ack = &done[node];
            CHECK(gasnet_AMRequestMedium0(node, BCAST, bundle, sizeof *bundle + bundle->len) == GASNET_OK);
        }
    }
    for (gasnet_node_t node = 0; node < ranks; ++node)
        if (node != me) GASNET_BLOCKUNTIL(done[node].flag);
    free(bundle);
    free(done);
}

/* Puts to and gets from memory of the next rank that is in no segment: the same static variable there. */
static uint64_t outside[20000], told[20000];

static void transfer_by_messages(void) {
    const size_t most = gasnet_AMMaxMedium(), bytes = sizeof outside;
    uint64_t *there = array_of(me) + array_len - 20000;
    for (size_t i = 0; i < 20000; ++i) told[i] = value_of(me, i);
    for (size_t start = 0; start < bytes; start += most) {
        struct done done = {0, 1, 0};
        size_t len = bytes - start < most ? bytes - start : most;
        char *to = (char *)outside + start;
        CHECK(gasnet_AMRequestMedium4(next, COPY, (char *)told + start, len, LOW(&done), HIGH(&done), LOW(to), HIGH(to)) ==
              GASNET_OK);
        wait_done(&done);
    }
    for (size_t start = 0; start < bytes; start += gasnet_AMMaxLongReply()) {
        struct done done = {0, 1, 0};
        size_t len = bytes - start < gasnet_AMMaxLongReply() ? bytes - start : gasnet_AMMaxLongReply();
        struct transfer transfer = {&done, (char *)there + start, (char *)outside + start, len};
        CHECK(gasnet_AMRequestMedium0(next, REPLY_PUT, &transfer, sizeof transfer) == GASNET_OK);
        wait_done(&done);
    }
    for (size_t i = 0; i < 20000; ++i) CHECK_EQ(there[i], value_of(me, i));
}

/* The array is several pools. The next rank's is read and written in the ways of Chapel's gets and puts. */
static void transfer(void) {
    const size_t len = array_len - 20000, step = len / 64;
    for (size_t i = 0; i < len; ++i) array_of(me)[i] = value_of(me, i);
    yielding_barrier('f');
    for (size_t i = 0; i < 64; ++i) {
        uint64_t row[8 * 4], back[8 * 4];
        gex_Event_t events[3];
        uint64_t *there = array_of(next) + i * step;
        const ptrdiff_t near[1] = {4 * sizeof(uint64_t)}, far[1] = {32 * sizeof(uint64_t)};
        const size_t count[1] = {8};
        gex_RMA_GetBlocking(tm, row, next, there, sizeof row, 0);
        for (size_t k = 0; k < 32; ++k) CHECK_EQ(row[k], value_of(next, i * step + k));
        CHECK(gex_VIS_StridedGetBlocking(tm, back, near, next, there, far, near[0], count, 1, 0) == GASNET_OK);
        for (size_t k = 0; k < 32; ++k) CHECK_EQ(back[k], value_of(next, i * step + k / 4 * 32 + k % 4));
        for (size_t k = 0; k < 32; ++k) back[k] ^= 1;
        CHECK(gex_VIS_StridedPutBlocking(tm, next, there, far, back, near, near[0], count, 1, 0) == GASNET_OK);
        memset(row, 0, sizeof row);
        events[0] = gex_RMA_GetNB(tm, row, next, there, 16 * sizeof row[0], 0);
        events[1] = gex_RMA_GetNB(tm, row + 16, next, there + 16, 16 * sizeof row[0], 0);
        events[2] = gex_RMA_PutNB(tm, next, there + 300, back, sizeof back, GEX_EVENT_DEFER, 0);
        while (events[0] != GEX_EVENT_INVALID || events[1] != GEX_EVENT_INVALID || events[2] != GEX_EVENT_INVALID)
            if (gex_Event_TestSome(events, 3, 0) != GASNET_OK) gex_Event_WaitSome(events, 3, 0);
        for (size_t k = 0; k < 32; ++k) CHECK_EQ(row[k], value_of(next, i * step + k) ^ (k < 4));
        gex_RMA_PutBlocking(tm, next, there + 400, row, sizeof row, 0);
    }
    yielding_barrier('p');
    for (size_t i = 0; i < 64; ++i) {
        const uint64_t *here = array_of(me) + i * step;
        for (size_t k = 0; k < 32; ++k) {
            CHECK_EQ(here[k / 4 * 32 + k % 4], value_of(me, i * step + k / 4 * 32 + k % 4) ^ 1);
            CHECK_EQ(here[300 + k], value_of(me, i * step + k / 4 * 32 + k % 4) ^ 1);
            CHECK_EQ(here[400 + k], value_of(me, i * step + k) ^ (k < 4));
        }
    }
}

static void *main_task(void *unused) {
    (void)unused;
    if (me == 0) broadcast_private();
    yielding_barrier('b');
    for (size_t i = 0; me != 0 && i < LIMIT; ++i) CHECK_EQ(broadcast[i], byte_of(77, i));
    fork_tasks();
    transfer();
    transfer_by_messages();
    yielding_barrier('e');
    return NULL;
}

static void initialise(int *argc, char ***argv, size_t heap_len) {
    gex_Rank_t on_host, my_index;
    CHECK(gex_Client_Init(&client, &ep, &tm, "locales", argc, argv, GEX_FLAG_USES_GASNET1) == GASNET_OK);
    me = gasnet_mynode();
    ranks = gasnet_nodes();
    next = (me + 1) % ranks;
    gex_System_QueryHostInfo(NULL, &on_host, &my_index);
    CHECK(on_host >= 1 && on_host <= ranks && my_index < on_host);
    CHECK(gasnet_getMaxLocalSegmentSize() >= heap_len);
    CHECK(gex_Segment_Attach(&segment, tm, gasnet_getMaxLocalSegmentSize()) == GASNET_OK);
    CHECK(gex_EP_RegisterHandlers(ep, handlers, sizeof handlers / sizeof handlers[0]) == GASNET_OK);
    segments = (gasnet_seginfo_t *)malloc(ranks * sizeof *segments);
    CHECK(gasnet_getSegmentInfo(segments, (int)ranks) == GASNET_OK);
    CHECK(gasnet_set_waitmode(GASNET_WAIT_BLOCK) == GASNET_OK);
    queue = (struct queue *)segments[me].addr;
    CHECK(pthread_mutex_init(&queue->lock, NULL) == 0 && pthread_cond_init(&queue->filled, NULL) == 0);
    queue->first = NULL;
    queue->is_over = 0;
    /* No message comes before its handler is registered. */
    yielding_barrier('i');
}

int main(int argc, char **argv) {
    pthread_t workers[WORKERS], of_main, poller;
    CHECK(argc > 1);
    const size_t heap_len = (size_t)strtoull(argv[1], NULL, 10);
    initialise(&argc, &argv, heap_len);
    array_len = (heap_len - GASNET_PAGESIZE - (size_t)(WORKERS + 2) * STACK_BYTES) / sizeof(uint64_t);
    poller = begin(WORKERS + 1, poll_always);
    while (!polls) sched_yield();
    for (int i = 0; i < WORKERS; ++i) workers[i] = begin(i, work);
    of_main = begin(WORKERS, main_task);
    CHECK(pthread_join(of_main, NULL) == 0);
    if (me == 0)
        for (gasnet_node_t node = 1; node < ranks; ++node) CHECK(gasnet_AMRequestShort0(node, SHUTDOWN) == GASNET_OK);
    while (me != 0 && !is_shut_down) sched_yield();
    yielding_barrier('s');
    polling_ends = 1;
    CHECK(pthread_join(poller, NULL) == 0);
    CHECK(pthread_mutex_lock(&queue->lock) == 0);
    queue->is_over = 1;
    CHECK(pthread_cond_broadcast(&queue->filled) == 0);
    CHECK(pthread_mutex_unlock(&queue->lock) == 0);
    for (int i = 0; i < WORKERS; ++i) CHECK(pthread_join(workers[i], NULL) == 0);
    CHECK_EQ(tasks_run, 6 * ROUNDS);
    yielding_barrier('x');
    gasnet_exit(0);
    return 0;
}
