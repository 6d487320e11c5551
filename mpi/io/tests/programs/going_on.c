/* Each rank writes records, one after another, and notes how many writes have returned in a file that is mapped. Rank 0
 * ends by a signal once all have written some. going_on FILE COUNTS SIGNAL [later], with later by requests */
#define _GNU_SOURCE
#include "common.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BEFORE = 500 };

static int have_all_written(const volatile uint64_t *counts) {
    for (int i = 0; i < ranks; ++i)
        if (counts[i] < BEFORE) return 0;
    return 1;
}

int main(int argc, char **argv) {
    MPI_File file;
    start(&argc, &argv);
    CHECK(argc == 4 || argc == 5);
    int counted = open(argv[2], O_CREAT | O_RDWR, 0600);
    CHECK(counted >= 0 && ftruncate(counted, ranks * sizeof(uint64_t)) == 0);
    volatile uint64_t *counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, counted, 0);
    CHECK(counts != MAP_FAILED);
    file = opened(argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Barrier(MPI_COMM_WORLD);
    for (uint64_t record = 0;; ++record) {
        uint64_t value = record + 1;
        MPI_Offset at = (record * ranks + rank) * sizeof value;
        if (argc == 5) {
            MPI_Request request;
            OK(MPI_File_iwrite_at(file, at, &value, sizeof value, MPI_BYTE, &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_File_write_at(file, at, &value, sizeof value, MPI_BYTE, MPI_STATUS_IGNORE));
        }
        counts[rank] = record + 1;
        if (rank == 0 && record % 64 == 0 && have_all_written(counts)) raise(atoi(argv[3]));
    }
}
