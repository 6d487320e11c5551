/* Ends of ranks, and the program's exit handlers. exits PART [STATUS] */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#include "check.h"

static int status;
static const char *part;
static volatile int hangs, calls_again, has_no_threads;

/* Replaces the C library's function, and fails as for a user at the limit of threads. */
int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *argument) {
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    void *found = dlsym(RTLD_NEXT, "pthread_create");
    if (has_no_threads || found == NULL) return EAGAIN;
    memcpy(&create, &found, sizeof create);
    return create(thread, how, run, argument);
}

/* Output stays in the buffer until the process exits. */
static void say(const char *what) { printf("rank %u: %s\n", vgasnet_mynode(), what); }

static void early_handler(void) { say("early handler"); }

static void late_handler(void) {
    say("late handler");
    if (calls_again) vgasnet_exit(status);
    while (hangs) pause();
}

__attribute__((destructor)) static void at_last(void) {
    /* In one piece, even if the output has no buffer. */
    if (part != NULL) fputs("destructor\n", stdout);
}

static void *in_thread(void *argument) {
    vgasnet_exit(status);
    return argument;
}

static void in_signal_handler(int signal) {
    (void)signal;
    vgasnet_exit(status);
}

static sigjmp_buf back;

static void jump_out(int signal) {
    (void)signal;
    siglongjmp(back, 1);
}

static void in_handler(vgasnet_token_t token) {
    (void)token;
    vgasnet_exit(status);
}

static int is_part(const char *name) { return strcmp(part, name) == 0; }

static void ends(void) {
    pthread_t thread;
    has_no_threads = is_part("no-threads");
    if (is_part("main") || is_part("nested") || is_part("hangs") || has_no_threads) vgasnet_exit(status);
    if (is_part("thread") && pthread_create(&thread, NULL, in_thread, NULL) == 0) pthread_join(thread, NULL);
    if (is_part("signal")) {
        signal(SIGUSR1, in_signal_handler);
        raise(SIGUSR1);
    }
    if (is_part("message")) vgasnet_AMRequestShort0(vgasnet_mynode(), 200);
    if (is_part("jump")) {
        signal(SIGUSR1, jump_out);
        if (sigsetjmp(back, 1) == 0) raise(SIGUSR1);
        vgasnet_exit(status);
    }
    if (is_part("_exit")) _exit(0);
}

/* The first rank ends the job, and the program runs on at the others until this rank has ended. */
static int desert(void) {
    pid_t first = getpid();
    if (vgasnet_mynode() == 0) vgasnet_put(0, at(0, 0), &first, sizeof first);
    barrier();
    vgasnet_get(&first, 0, at(0, 0), sizeof first);
    barrier();
    if (vgasnet_mynode() == 0) vgasnet_exit(0);
    while (kill(first, 0) == 0) usleep(1000);
    return 0;
}

int main(int argc, char **argv) {
    vgasnet_handlerentry_t table[] = {{200, (void (*)(void))in_handler}};
    CHECK(argc > 1);
    status = argc > 2 ? atoi(argv[2]) : 0;
    CHECK(atexit(early_handler) == 0);
    CHECK(vgasnet_init(&argc, &argv) == VGASNET_OK);
    CHECK(vgasnet_attach(table, 1, page_bytes(), 0) == VGASNET_OK);
    CHECK(atexit(late_handler) == 0);
    barrier();
    hangs = strcmp(argv[1], "hangs") == 0, calls_again = strcmp(argv[1], "nested") == 0;
    part = argv[1];
    if (is_part("deserted")) return desert();
    /* Some ranks are still in their handlers when others end. */
    if (is_part("libc") && vgasnet_mynode() > 0) usleep(50000);
    if (is_part("libc")) exit(status);
    /* With status 0 all ranks leave. Otherwise the last one ends the job. */
    if ((status == 0 && !is_part("_exit")) || vgasnet_mynode() == vgasnet_nodes() - 1) ends();
    barrier();
    return 9;
}
