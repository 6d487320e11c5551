/* A job ends in the middle: all ranks have written, and none has synced. abandoned FILE HOW: abort, segv, term,
 * self, exit; handled: exit after faults mended by the program's own handler; sig and a number: a signal; pipe: a write
 * to a pipe without readers; error: an error of MPI; _exit, _Exit, quick_exit, or in-handler: _exit in a handler; again and a
 * number: a handler that sends the signal again, with its default action; sysv or sigset and a number: the same by the other functions of C;
 * default: the default action is set later; back: another handler for a while; exec; close: a signal within MPI_File_close; timer: _exit
 * while a timer interrupts; overflow: of the stack; own and a number: raise, with code behind it; itself: kill, with code behind it; lacks-abort,
 * lacks-_exit, lacks-segv: rank 0 has not opened the file */
#define _GNU_SOURCE
#include "common.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

static char *guarded;
static volatile sig_atomic_t faults;
static int is_handled;

static void mend(int signal) {
    (void)signal;
    ++faults;
    mprotect(guarded, 4096, PROT_READ | PROT_WRITE);
}

static void clean_up(int number) {
    signal(number, SIG_DFL);
    raise(number);
}

static void clean_up_sysv(int number) {
    sysv_signal(number, SIG_DFL);
    raise(number);
}

static void clean_up_sigset(int number) {
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    sigset(number, SIG_DFL);
    raise(number);
}

static void handle(int number, void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler};
    CHECK(sigaction(number, &action, NULL) == 0);
}

static void tick(int signal) {
    (void)signal;
}

static void end_among_ticks(void) {
    struct itimerval often = {{0, 100}, {0, 100}};
    handle(SIGALRM, tick);
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    _exit(7);
}

static int deeper(volatile char *above) {
    volatile char here[4096];
    here[0] = *above;
    return *above == 0 ? 0 : deeper(here) + here[0];
}

/* By MPI_COMM_WORLD, or without rank 0. */
static MPI_File opened_by(const char *how, const char *path) {
    MPI_Comm others;
    MPI_File file = MPI_FILE_NULL;
    if (strncmp(how, "lacks", 5) != 0) return opened(path, MPI_MODE_CREATE | MPI_MODE_RDWR);
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &others));
    if (rank > 0) OK(MPI_File_open(others, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    return file;
}

static void leave(int signal) {
    (void)signal;
    _exit(7);
}

static void write_to_nobody(void) {
    int ends[2];
    CHECK(pipe(ends) == 0 && close(ends[0]) == 0);
    CHECK(write(ends[1], "", 1) == 1);
}

/* MPI has handlers for some signals, which then end nothing. */
static void end_by(int number) {
    if (is_handled) exit(7);
    CHECK(raise(number) == 0);
}

static void fault_often(void) {
    struct sigaction now;
    for (int i = 0; i < 3; ++i) {
        CHECK(sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_handler == mend);
        CHECK(mprotect(guarded, 4096, PROT_NONE) == 0);
        *(volatile char *)guarded = 1;
        EQUAL(faults, i + 1);
    }
}

int main(int argc, char **argv) {
    MPI_File file;
    char bytes[100];
    start(&argc, &argv);
    CHECK(argc == 3);
    if (strcmp(argv[2], "handled") == 0) {
        guarded = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(guarded != MAP_FAILED && signal(SIGSEGV, mend) != SIG_ERR);
    }
    if (strncmp(argv[2], "sig", 3) == 0 && argv[2][3] != 's') {
        struct sigaction now;
        CHECK(sigaction(atoi(argv[2] + 3), NULL, &now) == 0);
        is_handled = now.sa_handler != SIG_DFL;
    }
    if (strncmp(argv[2], "again", 5) == 0) CHECK(signal(atoi(argv[2] + 5), clean_up) != SIG_ERR);
    if (strncmp(argv[2], "sysv", 4) == 0) handle(atoi(argv[2] + 4), clean_up_sysv);
    if (strncmp(argv[2], "sigset", 6) == 0) handle(atoi(argv[2] + 6), clean_up_sigset);
    file = opened_by(argv[2], argv[1]);
    memset(bytes, 'a' + rank, sizeof bytes);
    if (file != MPI_FILE_NULL) OK(MPI_File_write_at(file, 100 * rank, bytes, 100, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        puts("written");
        fflush(stdout);
        if (strcmp(argv[2], "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 7);
        if (strcmp(argv[2], "segv") == 0) *(volatile int *)8 = 1;
        if (strcmp(argv[2], "term") == 0) kill(getpid(), SIGTERM);
        if (strcmp(argv[2], "self") == 0) abort();
        if (strncmp(argv[2], "sigset", 6) == 0) CHECK(raise(atoi(argv[2] + 6)) == 0);
        if (strncmp(argv[2], "sig", 3) == 0) end_by(atoi(argv[2] + 3));
        if (strncmp(argv[2], "sysv", 4) == 0) CHECK(raise(atoi(argv[2] + 4)) == 0);
        if (strncmp(argv[2], "own", 3) == 0 && raise(atoi(argv[2] + 3)) == 0) puts("behind"), fflush(stdout);
        if (strcmp(argv[2], "itself") == 0 && kill(getpid(), SIGTERM) == 0) puts("behind"), fflush(stdout);
        if (strcmp(argv[2], "close") == 0) alarm(1), MPI_File_close(&file);
        if (strcmp(argv[2], "timer") == 0) end_among_ticks();
        if (strcmp(argv[2], "overflow") == 0) return deeper(bytes);
        if (strcmp(argv[2], "lacks-abort") == 0) MPI_Abort(MPI_COMM_WORLD, 7);
        if (strcmp(argv[2], "lacks-_exit") == 0) _exit(7);
        if (strcmp(argv[2], "lacks-segv") == 0) *(volatile int *)8 = 1;
        if (strcmp(argv[2], "pipe") == 0) write_to_nobody();
        if (strcmp(argv[2], "error") == 0) MPI_Send(bytes, 1, MPI_BYTE, ranks + 5, 0, MPI_COMM_WORLD);
        if (strcmp(argv[2], "_exit") == 0) _exit(7);
        if (strcmp(argv[2], "_Exit") == 0) _Exit(7);
        if (strcmp(argv[2], "quick_exit") == 0) quick_exit(7);
        if (strcmp(argv[2], "in-handler") == 0) CHECK(signal(SIGUSR1, leave) != SIG_ERR && raise(SIGUSR1) == 0);
        if (strcmp(argv[2], "handled") == 0) fault_often();
        if (strcmp(argv[2], "again11") == 0) *(volatile int *)8 = 1;
        if (strncmp(argv[2], "again", 5) == 0) CHECK(raise(atoi(argv[2] + 5)) == 0);
        if (strcmp(argv[2], "default") == 0) {
            struct sigaction now;
            CHECK(signal(SIGTERM, SIG_DFL) == SIG_DFL && sigaction(SIGTERM, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
            CHECK(raise(SIGTERM) == 0);
        }
        if (strcmp(argv[2], "back") == 0) {
            struct sigaction before, mine = {.sa_handler = mend};
            CHECK(sigaction(SIGSEGV, &mine, &before) == 0 && sigaction(SIGSEGV, &before, NULL) == 0);
            *(volatile int *)8 = 1;
        }
        if (strcmp(argv[2], "exec") == 0) execv("/bin/false", (char *[]){"false", NULL});
        if (strcmp(argv[2], "exit") == 0 || strcmp(argv[2], "handled") == 0) exit(7);
    }
    /* The other ranks continue elsewhere. */
    for (;;) sleep(1);
}
