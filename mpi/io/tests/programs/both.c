/* A program that repeatedly reads a table of other ranks by MPI_Get, and writes its findings to a file. both FILE */
#include "common.h"

enum { CELLS = 64, TIMES = 20 };

int main(int argc, char **argv) {
    MPI_File file;
    MPI_Win win;
    long *table, found[CELLS], sum = 0;
    int other;
    start(&argc, &argv);
    CHECK(argc == 2);
    other = (rank + 1) % ranks;
    MPI_Win_allocate(CELLS * sizeof *table, sizeof *table, MPI_INFO_NULL, MPI_COMM_WORLD, &table, &win);
    for (int i = 0; i < CELLS; ++i) table[i] = 1000 * rank + i;
    MPI_Barrier(MPI_COMM_WORLD);
    file = opened(argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Win_lock_all(0, win);
    for (int time = 0; time < TIMES; ++time) {
        MPI_Request requests[2];
        MPI_Status statuses[2];
        MPI_Get(found, CELLS, MPI_LONG, other, 0, CELLS, MPI_LONG, win);
        MPI_Win_flush(other, win);
        OK(MPI_File_iwrite_at(file, (MPI_Offset)(rank * TIMES + time) * sizeof found, found, CELLS, MPI_LONG, &requests[0]));
        OK(MPI_File_iread_at(file, (MPI_Offset)rank * TIMES * sizeof found, &sum, 0, MPI_LONG, &requests[1]));
        OK(MPI_Waitall(2, requests, statuses));
    }
    MPI_Win_unlock_all(win);
    settle(file);
    for (int time = 0; time < TIMES; ++time) {
        OK(MPI_File_read_at(file, (MPI_Offset)(other * TIMES + time) * sizeof found, found, CELLS, MPI_LONG, MPI_STATUS_IGNORE));
        for (int i = 0; i < CELLS; ++i) EQUAL(found[i], 1000 * ((other + 1) % ranks) + i);
    }
    OK(MPI_File_close(&file));
    MPI_Win_free(&win);
    finish();
    return 0;
}
