/* A polling client whose yields take as long as next to a computing thread. It yields every time, since the other
 * thread may be a rank, and does not sleep. For two ranks. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { TRIES = 100, WAITED_MS = 400, FLAGS = VGASNET_COLL_LOCAL | VGASNET_COLL_IN_NOSYNC | VGASNET_COLL_OUT_NOSYNC };

/* For this thread, while it polls or waits. */
static __thread int is_waiting;
static __thread long yields;

static int64_t now_us(void) {
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Replaces the C library's function. */
int sched_yield(void) {
    int64_t begin = now_us();
    if (!is_waiting) return (int)syscall(SYS_sched_yield);
    ++yields;
    while (now_us() - begin < 1000) continue;
    return 0;
}

/* The sleeps of this thread. */
static long sleeps(void) {
    struct rusage used;
    CHECK(getrusage(RUSAGE_THREAD, &used) == 0);
    return used.ru_nvcsw;
}

static void try_in_vain(vgasnet_coll_handle_t handle) {
    long before = sleeps();
    is_waiting = 1;
    for (int i = 0; i < TRIES; ++i) CHECK(vgasnet_coll_try_sync(handle) == VGASNET_ERR_NOT_READY);
    is_waiting = 0;
    CHECK(yields >= TRIES && sleeps() - before < TRIES / 4);
}

/* The other rank comes late. */
static void wait_for_it(void) {
    long before = yields;
    vgasnet_barrier_notify(0, VGASNET_BARRIERFLAG_ANONYMOUS);
    is_waiting = 1;
    CHECK(vgasnet_barrier_wait(0, VGASNET_BARRIERFLAG_ANONYMOUS) == VGASNET_OK);
    is_waiting = 0;
    CHECK(yields - before >= WAITED_MS / 10);
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
        wait_for_it();
        vgasnet_coll_wait_sync(handle);
    } else {
        word = 7;
        barrier();
        usleep(1000 * WAITED_MS);
        barrier();
        vgasnet_coll_broadcast(VGASNET_TEAM_ALL, &word, 1, &word, sizeof word, FLAGS);
    }
    CHECK_EQ(word, 7);
    return finish();
}
