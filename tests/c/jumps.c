/* Handlers that leave loads and stores that wait for their pages by siglongjmp. Such an access has happened or not,
 * and leaves nothing behind for which another thread could wait. */
#define _DEFAULT_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

#include "local.h"
#include "timer.h"

#define JUMPS 200

static vgasnet_node_t me;
static size_t pages;
static uint64_t *model, state;
static sigjmp_buf back;
static volatile sig_atomic_t jumps, may_jump;
static int is_over;
/* The access under way: a word, and its value after the store. */
static volatile size_t page_under_way;
static volatile uint64_t word_under_way;

static void on_tick(int signal) {
    (void)signal;
    if (!may_jump) return;
    may_jump = 0;
    ++jumps;
    siglongjmp(back, 1);
}

/* Each page has a word across its border to the next one, so accesses need two pages. */
static unsigned char *word_at(size_t page) { return (unsigned char *)at(me, (page + 1) * page_bytes() - 3); }

/* For ever: ticks end it. */
static void use_words(void) {
    for (;;) {
        uint64_t is;
        page_under_way = (size_t)random_below(&state, pages - 1);
        word_under_way = random_word(&state);
        may_jump = 1;
        copy_piece(&is, word_at(page_under_way), sizeof is);
        may_jump = 0;
        CHECK_EQ(is, model[page_under_way]);
        is = word_under_way;
        may_jump = 1;
        copy_piece(word_at(page_under_way), &is, sizeof is);
        may_jump = 0;
        model[page_under_way] = is;
    }
}

/* A thread that starts with all signals blocked, with its own words. */
static void *use_others(void *argument) {
    uint64_t seed = mixed(32, me, 1), *words = (uint64_t *)allocate(pages * sizeof *words);
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        size_t page = (size_t)random_below(&seed, pages - 1);
        CHECK(memcmp(word_at(page) - 8, &words[page], 8) == 0);
        words[page] = random_word(&seed);
        copy_piece(word_at(page) - 8, &words[page], 8);
    }
    free(words);
    return argument;
}

/* Handlers run each instruction that misses a page in a single step. A division by zero is left in the middle of it. */
static void on_division(int signal) {
    (void)signal;
    siglongjmp(back, 1);
}

static void on_request(int signal) {
    (void)signal;
#if defined(__x86_64__)
    uint64_t low = 1, high = 0;
    __asm__ volatile("divq %2" : "+a"(low), "+d"(high) : "m"(*(uint64_t *)at(me, page_under_way * page_bytes())) : "cc");
    CHECK(0);
#else
    siglongjmp(back, 1);
#endif
}

/* A thread of its own for each page: nobody takes up a step that it left behind. */
static void *divide_once(void *argument) {
    if (sigsetjmp(back, 1) == 0) CHECK(raise(SIGUSR1) == 0);
    return argument;
}

static void divide(void) {
    pthread_t thread;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_division;
    CHECK(sigaction(SIGFPE, &action, NULL) == 0);
    action.sa_handler = on_request;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (page_under_way = 0; page_under_way < pages; ++page_under_way) {
        CHECK(pthread_create(&thread, NULL, divide_once, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
}

int main(int argc, char **argv) {
    struct sigaction action;
    pthread_t other;
    sigset_t all, none;
    pages = 4 * pool_pages();
    start(&argc, &argv, pages * page_bytes());
    me = vgasnet_mynode(), state = mixed(32, me, 0);
    model = (uint64_t *)allocate(pages * sizeof *model);
    divide();
    memset(&action, 0, sizeof action);
    action.sa_handler = on_tick;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    sigfillset(&all);
    CHECK(pthread_sigmask(SIG_BLOCK, &all, &none) == 0);
    CHECK(pthread_create(&other, NULL, use_others, NULL) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &none, NULL) == 0);
    set_timer(1000);
    if (sigsetjmp(back, 1) != 0) {
        uint64_t is;
        copy_piece(&is, word_at(page_under_way), sizeof is);
        CHECK(is == model[page_under_way] || is == word_under_way);
        model[page_under_way] = is;
    }
    if (jumps < JUMPS) use_words();
    set_timer(0);
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    CHECK(pthread_join(other, NULL) == 0);
    for (size_t page = 0; page + 1 < pages; ++page)
        CHECK(memcmp(word_at(page), &model[page], sizeof model[page]) == 0);
    /* Accesses that were left leave no page pinned: as many pages as ever can be pinned. */
    size_t most = least(pool_pages() * 3 / 4, pool_pages() - 4);
    CHECK(vgasnet_pin(at(me, 0), most * page_bytes(), VGASNET_PIN_WRITE) == VGASNET_OK);
    for (size_t page = 0; page + 1 < pages; ++page) CHECK(memcmp(word_at(page), &model[page], 8) == 0);
    CHECK(vgasnet_unpin(at(me, 0), most * page_bytes()) == VGASNET_OK);
    return finish();
}
