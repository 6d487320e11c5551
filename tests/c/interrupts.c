/* Signal handlers that count in the segment, on unmapped pages, whatever they interrupt: gets and puts that miss,
 * loads and stores, barriers.
 *   interrupts FLAGS MASK
 * FLAGS is restart, none, or sigset for the function of this name. MASK is all or none. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "local.h"
#include "timer.h"

/* Minimum numbers of handled signals: sent by another thread, and by a timer. */
#define SENT 320
#define TICKS 160
#define ROUNDS_MIN 60
/* Signals counted in one page before the next page: a handler that missed every time would leave the main thread no
 * time between ticks. */
#define TURN 16

/* This program tests sigset. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static vgasnet_node_t me, ranks;
static size_t pages;
static pthread_t main_thread;
static volatile sig_atomic_t ticks;
/* Read by another thread. */
static volatile sig_atomic_t received;

/* The place of the count of signal `number` of a kind. Pages rotate. */
static size_t page_of(sig_atomic_t number) { return (size_t)number / TURN * 7 % pages; }

/* These words are used only in this function. */
static void *count_at(size_t kind, size_t page) {
    return at(me, page * page_bytes() + page_bytes() / 2 + 8 * kind);
}

static void count(size_t kind, sig_atomic_t number) {
    void *word = count_at(kind, page_of(number));
    CHECK(pthread_equal(pthread_self(), main_thread));
    store_word(word, load_word(word) + 1);
}

static void on_tick(int signal) {
    (void)signal;
    count(0, ticks++);
}

static void on_sent(int signal) {
    (void)signal;
    count(1, received);
    __atomic_store_n(&received, received + 1, __ATOMIC_RELAXED);
}

/* Sends one signal after the other, each after the previous one has been handled. This thread itself takes none. */
static void *send(void *argument) {
    sigset_t all;
    sigfillset(&all);
    CHECK(pthread_sigmask(SIG_BLOCK, &all, NULL) == 0);
    for (sig_atomic_t sent = 0; sent < SENT; ++sent) {
        CHECK(pthread_kill(main_thread, SIGUSR1) == 0);
        while (__atomic_load_n(&received, __ATOMIC_RELAXED) == sent) sched_yield();
    }
    return argument;
}

static void install(int signal, void (*handler)(int), const char *flags, const char *mask) {
    struct sigaction action;
    if (strcmp(flags, "sigset") == 0) {
        CHECK(sigset(signal, SIG_HOLD) == SIG_DFL);
        CHECK(sigset(signal, handler) == SIG_HOLD);
        CHECK(sigset(signal, handler) == handler);
        return;
    }
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = strcmp(flags, "restart") == 0 ? SA_RESTART : 0;
    if (strcmp(mask, "all") == 0) sigfillset(&action.sa_mask);
    /* Without the full mask, the handlers interrupt each other. */
    if (strcmp(mask, "all") != 0) sigemptyset(&action.sa_mask);
    CHECK(sigaction(signal, &action, NULL) == 0);
}

/* Words of this rank in every page of every segment count the rounds. */
static void play_round(uint64_t *state, uint64_t *model, uint64_t round) {
    for (int i = 0; i < 4; ++i) {
        vgasnet_node_t target = (vgasnet_node_t)random_below(state, ranks);
        size_t page = (size_t)random_below(state, pages);
        void *word = at(target, page * page_bytes() + 8 * me);
        uint64_t *should = &model[target * pages + page], is;
        if (target == me && i % 2 == 0) {
            is = load_word(word);
            store_word(word, round);
        } else if (i < 2) {
            is = vgasnet_get_val(target, word, sizeof is);
            vgasnet_put_val(target, word, round, sizeof round);
        } else {
            vgasnet_wait_syncnb(vgasnet_get_nb_bulk(&is, target, word, sizeof is));
            vgasnet_wait_syncnb(vgasnet_put_nb(target, word, &round, sizeof round));
        }
        CHECK_EQ(is, *should);
        *should = round;
    }
    if (round % 20 == 0 && round <= ROUNDS_MIN) barrier();
}

static void check_counts(size_t kind, sig_atomic_t total) {
    uint64_t *counts = (uint64_t *)allocate(pages * sizeof *counts);
    for (sig_atomic_t number = 0; number < total; ++number) ++counts[page_of(number)];
    for (size_t page = 0; page < pages; ++page) CHECK_EQ(load_word(count_at(kind, page)), counts[page]);
    free(counts);
}

int main(int argc, char **argv) {
    pthread_t sender;
    if (argc < 3) return 1;
    pages = 3 * pool_pages();
    start(&argc, &argv, pages * page_bytes());
    me = vgasnet_mynode(), ranks = vgasnet_nodes(), main_thread = pthread_self();
    uint64_t state = mixed(27, me, 0), *model = (uint64_t *)allocate(ranks * pages * sizeof *model);
    install(SIGALRM, on_tick, argv[1], argv[2]);
    install(SIGUSR1, on_sent, argv[1], argv[2]);
    CHECK(pthread_create(&sender, NULL, send, NULL) == 0);
    while (received == 0) sched_yield();
    set_timer(1000);
    for (uint64_t round = 1; round <= ROUNDS_MIN || received < SENT || ticks < TICKS; ++round)
        play_round(&state, model, round);
    set_timer(0);
    CHECK(pthread_join(sender, NULL) == 0);
    check_counts(0, ticks);
    check_counts(1, received);
    barrier();
    for (vgasnet_node_t target = 0; target < ranks; ++target)
        for (size_t page = 0; page < pages; ++page) {
            uint64_t word = vgasnet_get_val(target, at(target, page * page_bytes() + 8 * me), 8);
            CHECK_EQ(word, model[target * pages + page]);
        }
    return finish();
}
