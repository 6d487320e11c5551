/* A job that ends in the middle: all ranks have written, and none has synced. abandoned FILE HOW: abort, segv, term, self, exit */
#include "common.h"
#include <signal.h>
#include <unistd.h>

int main(int argc, char **argv) {
    MPI_File file;
    char bytes[100];
    start(&argc, &argv);
    CHECK(argc == 3);
    file = opened(argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR);
    memset(bytes, 'a' + rank, sizeof bytes);
    OK(MPI_File_write_at(file, 100 * rank, bytes, 100, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        puts("written");
        fflush(stdout);
        if (strcmp(argv[2], "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 7);
        if (strcmp(argv[2], "segv") == 0) *(volatile int *)8 = 1;
        if (strcmp(argv[2], "term") == 0) kill(getpid(), SIGTERM);
        if (strcmp(argv[2], "self") == 0) abort();
        if (strcmp(argv[2], "exit") == 0) exit(7);
    }
    /* The others are somewhere else. */
    for (;;) sleep(1);
}
