/* Single steps with a SIGTRAP of another code, since a virtual machine may lose the code. A child traces the thread
 * of the rank and changes the code. It does not trace the first thread, which the library checks for a debugger:
 * under a debugger there are no single steps. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local.h"

#define ROUNDS 20

static vgasnet_node_t me;
static size_t pages;
static volatile sig_atomic_t round_number;

/* Codes changed by the tracer, in memory shared by both processes. */
static volatile uint64_t *changed;

static void *word(size_t page) { return at(me, page * page_bytes() + 8); }

/* The library steps through every miss in a signal handler. */
static void on_signal(int signal) {
    (void)signal;
    for (size_t page = 0; page < pages; ++page) store_word(word(page), page + (uint64_t)round_number);
}

/* Returns the signal delivered to the rank after a stop. */
static int pass_on(pid_t thread, int status) {
    siginfo_t info;
    /* A stop without a signal. */
    if (status >> 16 != 0) return 0;
    if (WSTOPSIG(status) == SIGTRAP) {
        CHECK(ptrace(PTRACE_GETSIGINFO, thread, NULL, &info) == 0);
        if (info.si_code == TRAP_TRACE) {
            info.si_code = TRAP_BRKPT;
            CHECK(ptrace(PTRACE_SETSIGINFO, thread, NULL, &info) == 0);
            ++*changed;
        }
    }
    return WSTOPSIG(status);
}

/* Traces a thread of the rank, until one of the two ends. */
static void trace(pid_t thread, int told) {
    int status;
    CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    char may_trace = ptrace(PTRACE_SEIZE, thread, NULL, NULL) == 0;
    CHECK(write(told, &may_trace, 1) == 1);
    while (may_trace && waitpid(thread, &status, 0) == thread && WIFSTOPPED(status))
        CHECK(ptrace(PTRACE_CONT, thread, NULL, (void *)(intptr_t)pass_on(thread, status)) == 0);
    _exit(0);
}

/* Starts the tracer. Returns 0 if the system permits none. */
static pid_t start_tracer(void) {
    int ends[2];
    char may_trace;
    pid_t thread = (pid_t)syscall(SYS_gettid);
    CHECK(pipe(ends) == 0);
    /* Fails on systems that let any child trace its parent. */
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    pid_t tracer = fork();
    CHECK(tracer >= 0);
    if (tracer == 0) trace(thread, ends[1]);
    CHECK(close(ends[1]) == 0);
    CHECK(read(ends[0], &may_trace, 1) == 1);
    if (may_trace) return tracer;
    CHECK(waitpid(tracer, NULL, 0) == tracer);
    printf("the system allows no tracing\n");
    return 0;
}

static void play(void) {
    for (round_number = 1; round_number <= ROUNDS; ++round_number) {
        CHECK(raise(SIGUSR1) == 0);
        for (size_t page = 0; page < pages; ++page)
            CHECK_EQ(load_word(word(page)), page + (uint64_t)round_number);
    }
}

static void *traced_thread(void *unused) {
    (void)unused;
    pid_t tracer = start_tracer();
    play();
    if (tracer != 0) {
        CHECK(*changed > 0);
        CHECK(kill(tracer, SIGKILL) == 0 && waitpid(tracer, NULL, 0) == tracer);
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t thread;
    changed = (uint64_t *)mmap(NULL, sizeof *changed, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(changed != MAP_FAILED);
    pages = 3 * pool_pages();
    start(&argc, &argv, pages * page_bytes());
    me = vgasnet_mynode();
    CHECK(signal(SIGUSR1, on_signal) != SIG_ERR);
    CHECK(pthread_create(&thread, NULL, traced_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
    return finish();
}
