/* A child that lives on does not keep a file from being opened again, and one that exits has no part in it. forked
 * FILE [dies]: rank 0 ends by a signal that nothing precedes, and its child lives on for another job */
#include "common.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child that exits normally. Its stderr is a pipe that shows its output, or cannot be written. */
static void exits(int is_full) {
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        if (is_full) CHECK(dup2(open("/dev/full", O_WRONLY), 2) == 2);
        exit(3);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    EQUAL(WEXITSTATUS(status), 3);
}

static void die(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && fork() == 0) {
        struct stat about;
        /* Leaves the launcher's process group, its pipes and its sockets. */
        setsid();
        for (int end = 0; end < 1024; ++end)
            if (fstat(end, &about) == 0 && !S_ISREG(about.st_mode)) close(end);
        sleep(20);
        _exit(0);
    }
    if (rank == 0) raise(SIGKILL);
    for (;;) sleep(1);
}

int main(int argc, char **argv) {
    MPI_File file;
    int ends[2];
    char byte;
    pid_t child;
    start(&argc, &argv);
    CHECK(argc >= 2 && pipe(ends) == 0);
    file = opened(argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR);
    if (argc > 2) die();
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(ends[1]);
        /* Waits until its parent has closed the other end, or has died. */
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    exits(0);
    exits(1);
    OK(MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
    file = opened(argv[1], MPI_MODE_RDWR);
    OK(MPI_File_close(&file));
    close(ends[1]);
    CHECK(waitpid(child, NULL, 0) == child);
    finish();
    return 0;
}
