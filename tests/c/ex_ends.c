/* GASNet-EX: the last calls of a thread in the destructor of a key, and of the program in a function of atexit.
 * Implicit operations from before are synced, others are begun, and a message is prepared. */
#include <pthread.h>

#include "ex_check.h"

static struct ex_job job;
static uint64_t values[3];

static char *place_at(int at) { return ex_base(job.tm, (job.me + 1) % job.ranks) + 64 * job.me + 8 * at; }

static void put(int at) {
    CHECK(gex_RMA_PutNBI(job.tm, (job.me + 1) % job.ranks, place_at(at), &values[at], 8, GEX_EVENT_DEFER, 0) == 0);
}

static void cancel_one(void) {
    gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestMedium(job.tm, (job.me + 1) % job.ranks, NULL, 1, 8, NULL, 0, 0);
    CHECK(gex_AM_SrcDescAddr(sd) != NULL);
    gex_AM_CancelRequestMedium(sd, 0);
}

/* The operation of `at` was begun before. */
static void end_with(int at) {
    uint64_t is = 0;
    gex_NBI_Wait(GEX_EC_ALL, 0);
    CHECK(gex_RMA_GetBlocking(job.tm, &is, (job.me + 1) % job.ranks, place_at(at), 8, 0) == 0);
    CHECK_EQ(is, values[at]);
    put(at);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    cancel_one();
}

static void at_exit(void) { end_with(0); }

#if GASNET_PAR
static pthread_key_t key;
static volatile int ended;

static void at_end(void *place) {
    end_with((int)(uintptr_t)place);
    ++ended;
}

static void *work(void *place) {
    CHECK(pthread_setspecific(key, place) == 0);
    put((int)(uintptr_t)place);
    cancel_one();
    return NULL;
}

static void end_threads(void) {
    pthread_t threads[2];
    CHECK(pthread_key_create(&key, at_end) == 0);
    /* One after the other, since both threads are counted. */
    for (int i = 0; i < 2; ++i) {
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(i + 1)) == 0);
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK_EQ(ended, 2);
}
#else
static void end_threads(void) {}
#endif

int main(void) {
    job = ex_start();
    ex_attach(&job, 2, NULL, 0);
    CHECK(atexit(at_exit) == 0);
    for (int i = 0; i < 3; ++i) values[i] = 100 * job.me + (unsigned)i + 7;
    ex_barrier(&job);
    end_threads();
    ex_barrier(&job);
    put(0);
    cancel_one();
    return 0;
}
