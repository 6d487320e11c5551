/* Modes checked and told: a rank that has waited for the request of a get may have been told of writes, whether the
 * get hit, missed or was not cached. */
#include "common.h"

static long *memory;
static MPI_Win win;

/* Larger than any cached get. */
enum { MANY = 9000 };
static long large[MANY];

/* Buffer of a get that is complete at the next flush, or at the end. */
static long between;

/* Gets a long by request, alone or as part of a get too large to be cached. */
static long get_and_wait(int is_cached) {
    int count = is_cached ? 1 : MANY;
    MPI_Request request;
    MPI_Rget(large, count, MPI_LONG, 1, 0, count, MPI_LONG, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return large[0];
}

/* Rank 1 writes and tells. */
static void write_and_tell(long value) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        memory[0] = value;
        MPI_Win_sync(win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    win = make_window(&memory, MANY, argv[1]);
    MPI_Win_lock_all(0, win);
    for (long round = 1; round < 60; ++round) {
        if (rank == 0) {
            long plain = -1;
            MPI_Request hit;
            get_and_wait(1);
            /* The second one hits. In some rounds other gets are between it and its wait. */
            MPI_Rget(&plain, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win, &hit);
            if (round % 3 == 1) MPI_Get(&between, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win);
            MPI_Wait(&hit, MPI_STATUS_IGNORE);
            if (round % 3 == 2) get_and_wait(0);
        }
        write_and_tell(round);
        if (rank == 0) {
            long again = -1;
            if (round % 2 == 0) again = get_and_wait(round % 4 == 0);
            else {
                MPI_Get(&again, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win);
                MPI_Win_flush(1, win);
            }
            EQUAL(again, round);
        }
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
