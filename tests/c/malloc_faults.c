/* Loads and stores that miss while malloc's locks are taken, with one arena for all threads: in signal handlers that
 * interrupt malloc and free, and in ordinary code under a lock of the client. The thread that fetches the page must
 * not need a lock of the faulting thread.
 *   malloc_faults [ordinary]
 * ordinary: without handlers. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <malloc.h>
#include <pthread.h>
#include <signal.h>

#include "local.h"
#include "timer.h"

#define TICKS 400
#define BLOCKS 64
#define ROUNDS 3000

static vgasnet_node_t me;
static size_t pages;
static volatile sig_atomic_t ticks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *count_at(size_t kind, uint64_t number) {
    return at(me, (number * 7 % pages) * page_bytes() + 8 * kind);
}

/* Counts in a page outside of the pool: each page is used only once in a round. */
static void count(size_t kind, uint64_t number) {
    void *word = count_at(kind, number);
    store_word(word, load_word(word) + 1);
}

static void on_tick(int signal) {
    (void)signal;
    count(0, (uint64_t)ticks);
    ++ticks;
}

/* Allocates and frees, with blocks of all sizes alive, so that malloc uses its arena and not the thread's cache. */
static void churn(uint64_t *state, void **blocks) {
    size_t at = (size_t)random_below(state, BLOCKS);
    free(blocks[at]);
    blocks[at] = malloc(1 + (size_t)random_below(state, 60000));
    CHECK(blocks[at] != NULL);
    *(char *)blocks[at] = 1;
}

static void *churn_in_thread(void *argument) {
    uint64_t state = mixed(5, me, 1);
    void *blocks[BLOCKS] = {0};
    for (int round = 0; round < 20 * ROUNDS; ++round) churn(&state, blocks);
    for (int at = 0; at < BLOCKS; ++at) free(blocks[at]);
    return argument;
}

int main(int argc, char **argv) {
    pthread_t other_thread;
    sigset_t alarm;
    void *blocks[BLOCKS] = {0};
    CHECK(mallopt(M_ARENA_MAX, 1) == 1);
    pages = 3 * pool_pages();
    start(&argc, &argv, pages * page_bytes());
    me = vgasnet_mynode();
    uint64_t state = mixed(5, me, 0), rounds = 0;
    int has_handlers = argc < 2;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    CHECK(pthread_sigmask(SIG_BLOCK, &alarm, NULL) == 0);
    CHECK(pthread_create(&other_thread, NULL, churn_in_thread, NULL) == 0);
    CHECK(pthread_sigmask(SIG_UNBLOCK, &alarm, NULL) == 0);
    if (has_handlers) {
        CHECK(signal(SIGALRM, on_tick) != SIG_ERR);
        set_timer(1000);
    }
    while (rounds < ROUNDS || (has_handlers && ticks < TICKS)) {
        churn(&state, blocks);
        if (rounds % 8 == 0) {
            CHECK(pthread_mutex_lock(&lock) == 0);
            count(1, rounds / 8);
            CHECK(pthread_mutex_unlock(&lock) == 0);
        }
        ++rounds;
    }
    if (has_handlers) set_timer(0);
    CHECK(pthread_join(other_thread, NULL) == 0);
    for (uint64_t page = 0; page < pages; ++page) {
        uint64_t counted = 0;
        for (uint64_t number = 0; number < (uint64_t)ticks; ++number) counted += number * 7 % pages == page;
        CHECK_EQ(load_word(at(me, page * page_bytes())), counted);
        counted = 0;
        for (uint64_t number = 0; number < (rounds + 7) / 8; ++number) counted += number * 7 % pages == page;
        CHECK_EQ(load_word(at(me, page * page_bytes() + 8)), counted);
    }
    for (int at = 0; at < BLOCKS; ++at) free(blocks[at]);
    barrier();
    return finish();
}
