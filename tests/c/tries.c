/* Tries that find nothing, in a thread that spins as the client has asked, beside one that computes on the same processor: the thread
 * does not sleep. For two ranks. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include "check.h"

/* After so many yields that give up a slice there are hundreds of tries without one. */
enum { TRIES = 400, FLAGS = VGASNET_COLL_LOCAL | VGASNET_COLL_IN_NOSYNC | VGASNET_COLL_OUT_NOSYNC };

static int is_over;

static void *compute(void *none) {
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) continue;
    return none;
}

/* How often this thread has slept. */
static long sleeps(void) {
    struct rusage used;
    CHECK(getrusage(RUSAGE_THREAD, &used) == 0);
    return used.ru_nvcsw;
}

static void try_in_vain(vgasnet_coll_handle_t handle) {
    pthread_t busy;
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    /* What this thread starts then stays here, too. */
    CHECK(sched_setaffinity(0, sizeof here, &here) == 0);
    CHECK(pthread_create(&busy, NULL, compute, NULL) == 0);
    long before = sleeps();
    for (int i = 0; i < TRIES; ++i) CHECK(vgasnet_coll_try_sync(handle) == VGASNET_ERR_NOT_READY);
    CHECK(sleeps() - before < TRIES / 4);
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    CHECK(pthread_join(busy, NULL) == 0);
}

int main(int argc, char **argv) {
    uint64_t word = 0;
    start(&argc, &argv, page_bytes());
    vgasnet_coll_init(NULL, 0, NULL, 0, 0);
    CHECK(vgasnet_nodes() == 2 && vgasnet_set_waitmode(VGASNET_WAIT_SPIN) == VGASNET_OK);
    if (vgasnet_mynode() == 0) {
        vgasnet_coll_handle_t handle = vgasnet_coll_broadcast_nb(VGASNET_TEAM_ALL, &word, 1, &word, sizeof word, FLAGS);
        try_in_vain(handle);
        barrier();
        vgasnet_coll_wait_sync(handle);
    } else {
        word = 7;
        barrier();
        vgasnet_coll_broadcast(VGASNET_TEAM_ALL, &word, 1, &word, sizeof word, FLAGS);
    }
    CHECK_EQ(word, 7);
    return finish();
}
