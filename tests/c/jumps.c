/* Handlers that leave loads and stores waiting for pages by siglongjmp. Such an access has happened or not, and
 * leaves nothing behind for other threads to wait for. */
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
/* The access in progress: a word, and its value after the store. */
static volatile size_t current_page;
static volatile uint64_t current_word;

static void on_tick(int signal) {
    (void)signal;
    if (!may_jump) return;
    may_jump = 0;
    ++jumps;
    siglongjmp(back, 1);
}

/* Each page has a word across its border to the next page, so accesses need two pages. */
static unsigned char *word_at(size_t page) { return (unsigned char *)at(me, (page + 1) * page_bytes() - 3); }

/* Ends only by a tick. */
static void use_words(void) {
    for (;;) {
        uint64_t is;
        current_page = (size_t)random_below(&state, pages - 1);
        current_word = random_word(&state);
        may_jump = 1;
        copy_piece(&is, word_at(current_page), sizeof is);
        may_jump = 0;
        CHECK_EQ(is, model[current_page]);
        is = current_word;
        may_jump = 1;
        copy_piece(word_at(current_page), &is, sizeof is);
        may_jump = 0;
        model[current_page] = is;
    }
}

/* A thread that starts with all signals blocked, and uses its own words. */
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

/* Handlers execute each missing instruction in a single step. A division by zero leaves it in the middle. */
static void on_division(int signal) {
    (void)signal;
    siglongjmp(back, 1);
}

static void on_request(int signal) {
    (void)signal;
#if defined(__x86_64__)
    uint64_t low = 1, high = 0;
    __asm__ volatile("divq %2" : "+a"(low), "+d"(high) : "m"(*(uint64_t *)at(me, current_page * page_bytes())) : "cc");
    CHECK(0);
#else
    siglongjmp(back, 1);
#endif
}

/* Each page gets a thread of its own, so no thread takes up an abandoned step. */
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
    for (current_page = 0; current_page < pages; ++current_page) {
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
        copy_piece(&is, word_at(current_page), sizeof is);
        CHECK(is == model[current_page] || is == current_word);
        model[current_page] = is;
    }
    if (jumps < JUMPS) use_words();
    set_timer(0);
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    CHECK(pthread_join(other, NULL) == 0);
    for (size_t page = 0; page + 1 < pages; ++page)
        CHECK(memcmp(word_at(page), &model[page], sizeof model[page]) == 0);
    /* Abandoned accesses leave no page pinned: the usual number of pages can be pinned. */
    size_t most = least(pool_pages() * 3 / 4, pool_pages() - 4);
    CHECK(vgasnet_pin(at(me, 0), most * page_bytes(), VGASNET_PIN_WRITE) == VGASNET_OK);
    for (size_t page = 0; page + 1 < pages; ++page) CHECK(memcmp(word_at(page), &model[page], 8) == 0);
    CHECK(vgasnet_unpin(at(me, 0), most * page_bytes()) == VGASNET_OK);
    return finish();
}
