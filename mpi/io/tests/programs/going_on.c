/* Each rank writes records, one after another, and notes how many writes have returned in a file that is mapped. Rank 0
 * ends by a signal once all have written some. going_on FILE COUNTS SIGNAL */
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
    CHECK(argc == 4);
    int counted = open(argv[2], O_CREAT | O_RDWR, 0600);
    CHECK(counted >= 0 && ftruncate(counted, ranks * sizeof(uint64_t)) == 0);
    volatile uint64_t *counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, counted, 0);
    CHECK(counts != MAP_FAILED);
    file = opened(argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Barrier(MPI_COMM_WORLD);
    for (uint64_t record = 0;; ++record) {
        uint64_t value = record + 1;
        OK(MPI_File_write_at(file, (record * ranks + rank) * sizeof value, &value, sizeof value, MPI_BYTE, MPI_STATUS_IGNORE));
        counts[rank] = record + 1;
        if (rank == 0 && record % 64 == 0 && have_all_written(counts)) raise(atoi(argv[3]));
    }
}
