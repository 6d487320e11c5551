/* Page misses next to a thread that drives and sleeps, while no event arrives to wake it. The faulting thread must
 * fetch the page, without another rank or the SSD. Rank 1 keeps rank 0's main thread in a barrier until its other
 * thread has finished. For two ranks of one machine. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "local.h"

static size_t pages;

/* Whether the main thread sleeps in the system. */
static int main_sleeps(void) {
    char path[64], text[512], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
    FILE *file = fopen(path, "r");
    CHECK(file != NULL && fgets(text, sizeof text, file) != NULL);
    fclose(file);
    CHECK(sscanf(strrchr(text, ')') + 1, " %c", &state) == 1);
    return state == 'S';
}

static void *touch_all(void *pid) {
    for (size_t page = 0; page < pages; ++page) {
        while (!main_sleeps()) sched_yield();
        store_word(at(0, page * page_bytes()), page + 1);
    }
    for (size_t page = 0; page < pages; ++page) CHECK(load_word(at(0, page * page_bytes())) == page + 1);
    CHECK(kill(*(pid_t *)pid, SIGUSR1) == 0);
    return NULL;
}

int main(int argc, char **argv) {
    sigset_t over;
    pthread_t other_thread;
    int signal;
    uint64_t own = (uint64_t)getpid();
    sigemptyset(&over);
    sigaddset(&over, SIGUSR1);
    CHECK(pthread_sigmask(SIG_BLOCK, &over, NULL) == 0);
    pages = 3 * pool_pages();
    start(&argc, &argv, (pages + 1) * page_bytes());
    CHECK(vgasnet_nodes() == 2 && vgasnet_set_waitmode(VGASNET_WAIT_BLOCK) == VGASNET_OK);
    void *place = at(0, pages * page_bytes());
    if (vgasnet_mynode() == 1) vgasnet_put(0, place, &own, sizeof own);
    barrier();
    pid_t other = vgasnet_mynode() == 0 ? (pid_t)load_word(place) : 0;
    if (vgasnet_mynode() == 0)
        CHECK(pthread_create(&other_thread, NULL, touch_all, &other) == 0);
    else
        CHECK(sigwait(&over, &signal) == 0);
    barrier();
    if (vgasnet_mynode() == 0) CHECK(pthread_join(other_thread, NULL) == 0);
    return finish();
}
