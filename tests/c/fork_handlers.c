/* Handlers of pthread_atfork that end a thread before each fork and start it again, as libraries with threads of their
 * own do. They are registered before the library is called. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define FORKS 40

static pthread_t worker, busy;
static sem_t may_end;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int is_on, is_over;

static void *work(void *unused) {
    while (sem_wait(&may_end) != 0) {}
    return unused;
}

static void *nothing(void *unused) { return unused; }

static void start_worker(void) { CHECK(pthread_create(&worker, NULL, work, NULL) == 0); }

static void before(void) {
    pthread_t other;
    if (!is_on) return;
    CHECK(sem_post(&may_end) == 0 && pthread_join(worker, NULL) == 0);
    CHECK(pthread_create(&other, NULL, nothing, NULL) == 0 && pthread_join(other, NULL) == 0);
    CHECK(pthread_mutex_lock(&mutex) == 0);
}

static void after(void) {
    if (!is_on) return;
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    start_worker();
}

__attribute__((constructor)) static void ask(void) { pthread_atfork(before, after, after); }

/* Creates threads and misses pages under the mutex that the handlers take. */
static void *use_library(void *unused) {
    const size_t pages = 4 * pool_bytes() / page_bytes();
    for (size_t page = 0; !__atomic_load_n(&is_over, __ATOMIC_ACQUIRE); page = (page + 1) % pages) {
        pthread_t other;
        CHECK(pthread_mutex_lock(&mutex) == 0);
        ++*(volatile uint64_t *)at(vgasnet_mynode(), page * page_bytes());
        CHECK(pthread_create(&other, NULL, nothing, NULL) == 0 && pthread_join(other, NULL) == 0);
        CHECK(pthread_mutex_unlock(&mutex) == 0);
    }
    return unused;
}

int main(int argc, char **argv) {
    start(&argc, &argv, 4 * pool_bytes());
    barrier();
    CHECK(sem_init(&may_end, 0, 0) == 0);
    start_worker();
    CHECK(pthread_create(&busy, NULL, use_library, NULL) == 0);
    is_on = 1;
    for (int i = 0; i < FORKS; ++i) {
        int status = 1;
        pid_t child = fork();
        if (child == 0) {
            pthread_cond_t condition;
            _exit(pthread_cond_init(&condition, NULL) == 0 && pthread_cond_destroy(&condition) == 0 ? 0 : 1);
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        CHECK(status == 0);
    }
    is_on = 0;
    __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
    CHECK(sem_post(&may_end) == 0 && pthread_join(worker, NULL) == 0 && pthread_join(busy, NULL) == 0);
    return finish();
}
