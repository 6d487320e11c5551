/* Stacks in the segment: of contexts and of threads, evicted and used again. stacks PART */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "check.h"

#define STACKS 4
#define ROUNDS 6
#define ROOM 1500

static vgasnet_node_t me, ranks;
static size_t stack_len, sweep_start, sweep_len;

static char *stack(int number) { return (char *)at(me, (uintptr_t)number * stack_len); }

/* Stores to more pages than the pool has. */
static void evict_stacks(uint64_t mark) {
    for (size_t offset = 0; offset < sweep_len; offset += page_bytes())
        *(volatile uint64_t *)at(me, sweep_start + offset + mark % 64 * 8) = mark;
}

/* Gets, puts and misses of the library from this stack. */
static void call_library(uint64_t mark) {
    unsigned char bytes[700], back[700];
    vgasnet_node_t to = (vgasnet_node_t)(mark % ranks);
    /* Each stack has a place of its own at each rank. */
    size_t number = ((uintptr_t)bytes - (uintptr_t)stack(0)) / stack_len;
    char *place = (char *)at(to, sweep_start + sweep_len + (me * STACKS + number) * sizeof bytes);
    memset(bytes, (int)(mark % 255 + 1), sizeof bytes);
    vgasnet_put(to, place, bytes, sizeof bytes);
    vgasnet_get(back, to, place, sizeof back);
    check_bytes(back, bytes, sizeof bytes, "own bytes");
    vgasnet_handle_t handle = vgasnet_get_nb(back, to, place, sizeof back);
    vgasnet_wait_syncnb(handle);
    CHECK_EQ(back[699], bytes[699]);
    CHECK_EQ(vgasnet_AMPoll(), VGASNET_OK);
}

static uint64_t dive(size_t depth, uint64_t mark) {
    volatile uint64_t room[ROOM / 8];
    uint64_t sum;
    for (size_t i = 0; i < ROOM / 8; ++i) room[i] = mark + i;
    if (depth > 0) {
        sum = dive(depth - 1, mark + 1000);
    } else {
        evict_stacks(mark);
        call_library(mark);
        sum = 0;
    }
    for (size_t i = 0; i < ROOM / 8; ++i) CHECK_EQ(room[i], mark + i);
    return sum + mark;
}

static void use_stack(uint64_t mark) {
    /* A frame may be three times as large, with what is inlined. */
    size_t depth = stack_len / 4 / ROOM;
    CHECK_EQ(dive(depth, mark), (depth + 1) * mark + 1000 * (depth * (depth + 1) / 2));
}

static void is_on_stack(int number) {
    char here;
    CHECK((uintptr_t)&here - (uintptr_t)stack(number) < stack_len);
}

/* Contexts that take turns. In part "moving" each round is run by a thread of its own. */
static ucontext_t scheduler, contexts[STACKS];
static int current;

static void run_context(int number) {
    for (uint64_t round = 0; round < ROUNDS; ++round) {
        is_on_stack(number);
        use_stack(mixed(me, (uint64_t)number, round) >> 20);
        CHECK(swapcontext(&contexts[number], &scheduler) == 0);
    }
    CHECK(0);
}

static void make_context(int number, void (*run)(int)) {
    CHECK(getcontext(&contexts[number]) == 0);
    contexts[number].uc_stack.ss_sp = stack(number);
    contexts[number].uc_stack.ss_size = stack_len;
    contexts[number].uc_link = NULL;
    makecontext(&contexts[number], (void (*)(void))run, 1, number);
}

static void make_contexts(void) {
    for (int i = 0; i < STACKS; ++i) make_context(i, run_context);
}

static void *run_contexts(void *rounds) {
    for (uintptr_t round = 0; round < (uintptr_t)rounds; ++round)
        for (current = 0; current < STACKS; ++current) CHECK(swapcontext(&scheduler, &contexts[current]) == 0);
    return NULL;
}

static void moving(void) {
    make_contexts();
    for (int i = 0; i < ROUNDS; ++i) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, run_contexts, (void *)(uintptr_t)1) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
}

/* Threads with stacks in the segment. */
struct worker {
    int number;
    int is_detached;
    int ended, cleaned, of_key;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_ended = PTHREAD_COND_INITIALIZER;
static int detached;
static pthread_key_t key;

static void clean(void *worker) { ((struct worker *)worker)->cleaned++; }

static void note_key(void *worker) { ((struct worker *)worker)->of_key++; }

/* Ends the thread at the end of a list of frames. */
static void leave(size_t depth, struct worker *worker) {
    pthread_cleanup_push(clean, worker);
    if (depth == 0) pthread_exit(worker);
    if (worker->ended) leave(depth - 1, worker);
    pthread_cleanup_pop(0);
}

static void *work(void *argument) {
    struct worker *worker = (struct worker *)argument;
    sigset_t blocked;
    is_on_stack(worker->number);
    CHECK(pthread_setspecific(key, worker) == 0);
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 && sigismember(&blocked, SIGUSR2));
    for (uint64_t round = 0; round < ROUNDS; ++round) use_stack(mixed(me, (uint64_t)worker->number, round) >> 20);
    CHECK(pthread_mutex_lock(&lock) == 0);
    worker->ended = 1;
    detached -= worker->is_detached;
    CHECK(pthread_cond_signal(&has_ended) == 0);
    CHECK(pthread_mutex_unlock(&lock) == 0);
    if (worker->number % 2 == 1) leave(8, worker);
    return worker;
}

static void threads(void) {
    struct worker workers[STACKS];
    pthread_t all[STACKS];
    pthread_attr_t attributes;
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    CHECK(pthread_key_create(&key, note_key) == 0);
    CHECK(pthread_sigmask(SIG_BLOCK, &blocked, NULL) == 0);
    memset(workers, 0, sizeof workers);
    for (int i = 0; i < STACKS; ++i) {
        workers[i].number = i;
        workers[i].is_detached = i == STACKS - 1;
        detached += workers[i].is_detached;
        CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstack(&attributes, stack(i), stack_len) == 0);
        if (workers[i].is_detached) CHECK(pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0);
        evict_stacks((uint64_t)i);
        CHECK(pthread_create(&all[i], &attributes, work, &workers[i]) == 0);
        CHECK(pthread_attr_destroy(&attributes) == 0);
    }
    for (int i = 0; i < STACKS; ++i) {
        void *result = NULL;
        if (workers[i].is_detached) continue;
        CHECK(pthread_join(all[i], &result) == 0 && result == &workers[i] && workers[i].ended);
        CHECK(workers[i].of_key == 1 && workers[i].cleaned == (i % 2 == 1 ? 9 : 0));
    }
    CHECK(pthread_mutex_lock(&lock) == 0);
    while (detached > 0) CHECK(pthread_cond_wait(&has_ended, &lock) == 0);
    CHECK(pthread_mutex_unlock(&lock) == 0);
}

/* Signals with handlers of the program arrive on stacks that are evicted meanwhile. */
static volatile sig_atomic_t handled;
static int is_over;

static void handle(int signal_number) {
    volatile unsigned char room[4000];
    for (size_t i = 0; i < sizeof room; ++i) room[i] = (unsigned char)signal_number;
    ++handled;
}

static void *send_signals(void *to) {
    const struct timespec pause = {0, 200000};
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        int error = pthread_kill(*(pthread_t *)to, SIGUSR1);
        CHECK(error == 0 || error == EAGAIN);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void signals(void) {
    struct sigaction action;
    pthread_t own = pthread_self(), sender;
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    action.sa_flags = SA_RESTART;
    make_contexts();
    run_contexts((void *)(uintptr_t)1);
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    CHECK(pthread_create(&sender, NULL, send_signals, &own) == 0);
    while (handled < 20) evict_stacks((uint64_t)handled);
    run_contexts((void *)(uintptr_t)(ROUNDS - 1));
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    CHECK(pthread_join(sender, NULL) == 0);
    CHECK(sigaction(SIGUSR1, NULL, &action) == 0 && action.sa_handler == handle && !(action.sa_flags & SA_ONSTACK));
}

/* The alternate stack of the program stays. */
static void own_stack(void) {
    stack_t own, now;
    memset(&own, 0, sizeof own);
    own.ss_size = 64 << 10;
    own.ss_sp = allocate(own.ss_size);
    CHECK(sigaltstack(&own, NULL) == 0);
    make_contexts();
    run_contexts((void *)(uintptr_t)ROUNDS);
    CHECK(sigaltstack(NULL, &now) == 0 && now.ss_sp == own.ss_sp && now.ss_size == own.ss_size);
}

/* A thread that takes its alternate stack away has the library's again, and may have one in the segment. */
static void other_stacks(void) {
    stack_t off, given, now, before;
    memset(&off, 0, sizeof off);
    off.ss_flags = SS_DISABLE;
    CHECK(sigaltstack(&off, &before) == 0);
    CHECK(sigaltstack(&off, &before) == 0 && (before.ss_flags & SS_DISABLE) != 0);
    make_contexts();
    run_contexts((void *)(uintptr_t)ROUNDS);
    memset(&given, 0, sizeof given);
    given.ss_sp = at(me, sweep_start);
    given.ss_size = 64 << 10;
    CHECK(sigaltstack(&given, NULL) == 0);
    CHECK(sigaltstack(NULL, &now) == 0 && now.ss_sp == given.ss_sp && now.ss_size == given.ss_size);
    make_contexts();
    run_contexts((void *)(uintptr_t)ROUNDS);
    CHECK(sigaltstack(&off, &before) == 0 && before.ss_sp == given.ss_sp);
}

static int run_in_c11(void *unused) {
    (void)unused;
    make_contexts();
    run_contexts((void *)(uintptr_t)ROUNDS);
    return -7;
}

/* Threads of C11 have alternate stacks, too. */
static void c11_threads(void) {
    thrd_t thread;
    int answer = 0;
    CHECK(thrd_create(&thread, run_in_c11, NULL) == thrd_success);
    CHECK(thrd_join(thread, &answer) == thrd_success);
    CHECK(answer == -7);
}

static void never_return(int signal_number) {
    (void)signal_number;
    for (;;) pause();
}

/* A child that is forked on a stack in the segment ends, whatever the program's handler does. */
static void fork_here(int number) {
    int status = 0;
    is_on_stack(number);
    pid_t child = fork();
    if (child == 0) _exit(0);
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    CHECK(swapcontext(&contexts[number], &scheduler) == 0);
}

static void forked(void) {
    CHECK(signal(SIGSEGV, never_return) != SIG_ERR);
    make_context(0, fork_here);
    CHECK(swapcontext(&scheduler, &contexts[0]) == 0);
}

/* Other ranks put to a variable of this stack while it waits in the library. */
static void wait_for_neighbour(int number) {
    volatile uint64_t told = 0;
    volatile uint64_t *address = &told;
    is_on_stack(number);
    *(volatile uint64_t **)at(me, sweep_start + sweep_len - 8) = address;
    barrier();
    vgasnet_node_t next = (me + 1) % ranks;
    uint64_t *place = NULL;
    vgasnet_get(&place, next, at(next, sweep_start + sweep_len - 8), sizeof place);
    evict_stacks(7);
    uint64_t value = 1000 + me;
    vgasnet_put(next, place, &value, sizeof value);
    VGASNET_BLOCKUNTIL(*address != 0);
    CHECK_EQ(*address, 1000 + (me + ranks - 1) % ranks);
    barrier();
    CHECK(swapcontext(&contexts[number], &scheduler) == 0);
}

static void remote(void) {
    for (int i = 0; i < ROUNDS; ++i) {
        make_context(0, wait_for_neighbour);
        CHECK(swapcontext(&scheduler, &contexts[0]) == 0);
    }
}

int main(int argc, char **argv) {
    const size_t pages = (pool_bytes() / page_bytes() + 2) * page_bytes();
    stack_len = ((256 << 10) + page_bytes() - 1) / page_bytes() * page_bytes();
    sweep_start = STACKS * stack_len;
    sweep_len = pages;
    if (vgasnet_init(&argc, &argv) != VGASNET_OK) return 1;
    CHECK(argc > 1);
    me = vgasnet_mynode();
    ranks = vgasnet_nodes();
    size_t places = (size_t)ranks * STACKS * 700;
    CHECK(vgasnet_attach(NULL, 0, sweep_start + sweep_len + (places / page_bytes() + 1) * page_bytes(), 0) == VGASNET_OK);
    (void)at(0, 0);
    barrier();
    if (strcmp(argv[1], "contexts") == 0) {
        make_contexts();
        run_contexts((void *)(uintptr_t)ROUNDS);
    } else if (strcmp(argv[1], "moving") == 0)
        moving();
    else if (strcmp(argv[1], "threads") == 0)
        threads();
    else if (strcmp(argv[1], "signals") == 0)
        signals();
    else if (strcmp(argv[1], "own") == 0)
        own_stack();
    else if (strcmp(argv[1], "others") == 0)
        other_stacks();
    else if (strcmp(argv[1], "c11") == 0)
        c11_threads();
    else if (strcmp(argv[1], "forked") == 0)
        forked();
    else if (strcmp(argv[1], "remote") == 0)
        remote();
    else
        CHECK(0);
    return finish();
}
