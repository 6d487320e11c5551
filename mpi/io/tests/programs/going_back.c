/* A job that is about to end goes on, or ends otherwise. going_back FILE HOW: exec: a program that is not there, and every write afterwards is
 * quick; limited: rank 0 may write nothing, and aborts; blocked: a signal that the program waits for; atexit: MPI ends in an exit
 * handler that was registered before MPI began */
#define _GNU_SOURCE
#include "common.h"
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* Bytes of another home than the first ones. */
#define FAR ((MPI_Offset)68 << 20)

static void put(MPI_File file, MPI_Offset at, const char *text) {
    OK(MPI_File_write_at(file, at, text, strlen(text), MPI_BYTE, MPI_STATUS_IGNORE));
}

static void go_on(MPI_File file) {
    double begin = MPI_Wtime();
    if (rank == ranks - 1) CHECK(execv("/nowhere", (char *[]){"nowhere", NULL}) == -1 && errno == ENOENT);
    MPI_Barrier(MPI_COMM_WORLD);
    put(file, 100 * rank, "again");
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(MPI_Wtime() - begin < 5);
}

static void limit(MPI_File file) {
    struct rlimit none = {0, 0};
    put(file, rank * FAR, rank == 0 ? "begin" : "far away");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        puts("written");
        fflush(stdout);
        CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setrlimit(RLIMIT_FSIZE, &none) == 0);
        MPI_Abort(MPI_COMM_WORLD, 7);
    }
    for (;;) sleep(1);
}

static void wait_for_blocked(MPI_File file) {
    sigset_t set;
    struct timespec long_time = {10, 0};
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    put(file, 100 * rank, "bytes");
    CHECK(kill(getpid(), SIGTERM) == 0);
    EQUAL(sigtimedwait(&set, NULL, &long_time), SIGTERM);
    CHECK(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
}

static MPI_File left;

static void end_mpi(void) {
    OK(MPI_File_close(&left));
    finish();
}

int main(int argc, char **argv) {
    MPI_File file;
    CHECK(argc == 3);
    if (strcmp(argv[2], "atexit") == 0) CHECK(atexit(end_mpi) == 0);
    start(&argc, &argv);
    file = opened(argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR);
    if (strcmp(argv[2], "limited") == 0) limit(file);
    if (strcmp(argv[2], "exec") == 0) go_on(file);
    if (strcmp(argv[2], "blocked") == 0) wait_for_blocked(file);
    if (strcmp(argv[2], "atexit") == 0) {
        left = file;
        return 0;
    }
    OK(MPI_File_close(&file));
    finish();
    return 0;
}
