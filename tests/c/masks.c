/* Threads that block every signal, handlers that block every signal, and handlers on an alternate stack: the segment
 * works there, too. masks PART: see main. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#include "local.h"
#include "timer.h"

/* This program tests the old functions. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* The ways to block all signals. */
#define WAYS 7

static vgasnet_node_t me;
static size_t pages;
static volatile sig_atomic_t handled, is_jumping;
static unsigned char *stack;
static size_t stack_bytes;
static sigjmp_buf back;

static void use_segment(uint64_t seed) {
    uint64_t state = mixed(26, me, seed);
    for (size_t i = 0; i < 2 * pages; ++i) {
        void *place = at(me, (size_t)random_below(&state, pages) * page_bytes() + 8 * (size_t)seed);
        uint64_t word = random_word(&state);
        store_word(place, word);
        CHECK_EQ(load_word(place), word);
    }
}

static void attach(void) {
    pages = 3 * pool_pages();
    start(NULL, NULL, pages * page_bytes());
    me = vgasnet_mynode();
}

/* Blocks all signals in one of the possible ways. */
static void block_all(int way) {
    sigset_t all;
    sigfillset(&all);
    if (way == 0) CHECK(pthread_sigmask(SIG_BLOCK, &all, NULL) == 0);
    if (way == 1) CHECK(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
    if (way == 2) CHECK(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
    if (way == 3) CHECK(sigprocmask(SIG_SETMASK, &all, NULL) == 0);
    if (way == 4) CHECK(sigsetmask(~0) == 0);
    if (way == 5) CHECK(sigblock(~0) == 0);
    for (int one = 1; way == 6 && one < 32; ++one) CHECK(sighold(one) == 0);
}

static void unblock_all(void) {
    sigset_t none;
    sigemptyset(&none);
    CHECK(pthread_sigmask(SIG_SETMASK, &none, NULL) == 0);
}

static void on_signal(int signal) {
    (void)signal;
    ++handled;
    use_segment((uint64_t)handled % 4);
}

/* Blocked signals stay blocked, if they can be blocked. */
static void check_still_blocked(void) {
    sig_atomic_t before = handled;
    sigset_t pending, now;
    CHECK(raise(SIGUSR1) == 0);
    use_segment(5);
    CHECK(handled == before);
    CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1) == 1);
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &now) == 0);
    CHECK(sigismember(&now, SIGUSR1) == 1 && sigismember(&now, SIGALRM) == 1 && sigismember(&now, SIGTERM) == 1);
    unblock_all();
    CHECK(handled == before + 1);
}

static void *inherit(void *argument) {
    use_segment(6);
    check_still_blocked();
    return argument;
}

static void *block(void *argument) {
    int way = *(int *)argument;
    block_all(way);
    use_segment(7);
    check_still_blocked();
    return NULL;
}

static void in_thread(void *(*work)(void *), void *argument) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, work, argument) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void old_functions(void) {
    struct sigaction now;
    sigset_t blocked;
    const int first = 1 << (SIGUSR1 - 1), second = 1 << (SIGUSR2 - 1);
    CHECK(sighold(SIGUSR1) == 0 && sigblock(0) == first && sigsetmask(second) == first);
    CHECK(sigrelse(SIGUSR2) == 0 && pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0);
    CHECK(sigismember(&blocked, SIGUSR1) == 0 && sigismember(&blocked, SIGUSR2) == 0);
    CHECK(sigignore(SIGUSR2) == 0 && raise(SIGUSR2) == 0);
    CHECK(sigaction(SIGUSR2, NULL, &now) == 0 && now.sa_handler == SIG_IGN);
    CHECK(sighold(0) == -1 && errno == EINVAL && sigrelse(65) == -1 && sigignore(SIGKILL) == -1 && errno == EINVAL);
}

static void threads(void) {
    attach();
    signal(SIGUSR1, on_signal);
    for (int way = 0; way < WAYS; ++way) {
        in_thread(block, &way);
        block_all(way);
        use_segment(8);
        in_thread(inherit, NULL);
        check_still_blocked();
    }
    old_functions();
}

/* All signals are blocked before the library starts. */
static void before_attach(void) {
    block_all(1);
    attach();
    signal(SIGUSR1, on_signal);
    use_segment(9);
    in_thread(inherit, NULL);
    check_still_blocked();
}

/* Handlers that use the segment and block every signal while they run. */
static void handlers(void) {
    struct sigaction action;
    attach();
    memset(&action, 0, sizeof action);
    sigfillset(&action.sa_mask);
    action.sa_handler = on_signal;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (int i = 0; i < 20; ++i) {
        use_segment(10);
        CHECK(raise(SIGUSR1) == 0);
        CHECK(handled == i + 1);
    }
}

/* A signal to the process waits for a client thread while all of them block it: the library's threads run no handler
 * of the client. */
static void only_client_threads(void) {
    attach();
    signal(SIGUSR1, on_signal);
    block_all(1);
    CHECK(kill(getpid(), SIGUSR1) == 0);
    /* Wakes the helper thread again and again. */
    for (int i = 0; i < 20; ++i) use_segment(11);
    barrier();
    CHECK(handled == 0);
    unblock_all();
    CHECK(handled == 1);
}

/* Handlers that run in a blocking call with most signals blocked. */
static void waiting(void) {
    sigset_t most;
    attach();
    signal(SIGUSR1, on_signal);
    CHECK(sigfillset(&most) == 0 && pthread_sigmask(SIG_SETMASK, &most, NULL) == 0);
    CHECK(sigdelset(&most, SIGUSR1) == 0);
    for (int i = 0; i < 10; i += 2) {
        CHECK(raise(SIGUSR1) == 0 && handled == i);
        CHECK(sigsuspend(&most) == -1 && errno == EINTR && handled == i + 1);
        CHECK(raise(SIGUSR1) == 0 && handled == i + 1);
        CHECK(ppoll(NULL, 0, NULL, &most) == -1 && errno == EINTR && handled == i + 2);
    }
}

static void on_overflow(int signal, siginfo_t *info, void *context) {
    unsigned char here = 0;
    (void)signal, (void)info, (void)context;
    CHECK((uintptr_t)&here - (uintptr_t)stack < stack_bytes);
    use_segment(12);
    siglongjmp(back, 1);
}

/* Never returns: each call needs some of the stack. */
static int overflow(const volatile unsigned char *outer, unsigned depth) {
    volatile unsigned char some[4096];
    some[depth % sizeof some] = outer[depth % 16];
    return is_jumping ? 0 : overflow(some, depth + 1) + some[0];
}

/* A handler on an alternate stack, when the thread's own stack is full. */
static void own_stack(void) {
    struct sigaction action;
    stack_t own;
    attach();
    stack_bytes = 64 << 10, stack = (unsigned char *)allocate(stack_bytes);
    memset(&own, 0, sizeof own);
    own.ss_sp = stack, own.ss_size = stack_bytes;
    CHECK(sigaltstack(&own, NULL) == 0);
    memset(&action, 0, sizeof action);
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    action.sa_sigaction = on_overflow;
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    for (int i = 0; i < 3; ++i) {
        use_segment(13);
        if (sigsetjmp(back, 1) == 0) {
            overflow(stack, 0);
            CHECK(!"an overflow of the stack");
        }
    }
}

static void *use(void *argument) {
    for (uint64_t i = 14; i < 18; ++i) use_segment(i);
    return argument;
}

/* Threads with the smallest possible stacks. */
static void small_stacks(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    attach();
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN)) == 0);
    /* One at a time: they use the same words. */
    for (int i = 0; i < 4; ++i) {
        CHECK(pthread_create(&thread, &attributes, use, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    CHECK(pthread_attr_destroy(&attributes) == 0);
}

static void on_quit(int signal) {
    (void)signal;
    ++handled;
}

/* Asks for a handler. So does the library's handler of SIGINT, which leads to the handler of SIGQUIT. */
static void on_tick(int signal) {
    struct sigaction now;
    (void)signal;
    CHECK(sigaction(SIGWINCH, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
    CHECK(raise(SIGINT) == 0);
}

static void change_while_ticking(void) {
    enum { TICKS = 100 };
    struct sigaction now;
    handled = 0;
    signal(SIGALRM, on_tick);
    signal(SIGQUIT, on_quit);
    set_timer(1000);
    while (handled < TICKS) CHECK(sigaction(SIGWINCH, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
    set_timer(0);
}

/* Handlers that interrupt changes of handlers, and make changes themselves. */
static void changes(void) {
    CHECK(vgasnet_init(NULL, NULL) == VGASNET_OK);
    change_while_ticking();
    CHECK(vgasnet_attach(NULL, 0, page_bytes(), 0) == VGASNET_OK);
    change_while_ticking();
}

int main(int argc, char **argv) {
    if (argc < 2) return 1;
    if (strcmp(argv[1], "threads") == 0) threads();
    if (strcmp(argv[1], "before-attach") == 0) before_attach();
    if (strcmp(argv[1], "handlers") == 0) handlers();
    if (strcmp(argv[1], "only-client-threads") == 0) only_client_threads();
    if (strcmp(argv[1], "own-stack") == 0) own_stack();
    if (strcmp(argv[1], "small-stacks") == 0) small_stacks();
    if (strcmp(argv[1], "waiting") == 0) waiting();
    if (strcmp(argv[1], "changes") == 0) changes();
    return finish();
}
