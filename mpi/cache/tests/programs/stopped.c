/* Mode told: rank 0 writes to rank 1, whose word cannot be raised. Rank 2 has copies, is told by a message, and reads
 * the new bytes. */
#include "common.h"

static MPI_Win win;

static long get(void) {
    long value = -1;
    MPI_Get(&value, 1, MPI_LONG, 1, 3, 1, MPI_LONG, win);
    MPI_Win_flush(1, win);
    return value;
}

int main(int argc, char **argv) {
    long *memory, value;
    start(&argc, &argv);
    win = make_window(&memory, 8, argv[1]);
    MPI_Win_lock_all(0, win);
    for (long round = 0; round < 4; ++round) {
        if (rank == 2) {
            value = get();
            EQUAL(get(), value);
            EQUAL(value, round == 0 ? 1003 : round - 1);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            /* From the second round on. */
            tool_refused_target = round > 0 ? 1 : -1;
            MPI_Put(&round, 1, MPI_LONG, 1, 3, 1, MPI_LONG, win);
            MPI_Win_flush(1, win);
            tool_refused_target = -1;
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 2) EQUAL(get(), round);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    /* The next window is cached. */
    win = make_window(&memory, 8, argv[1]);
    MPI_Win_lock_all(0, win);
    if (rank == 2) {
        get();
        tool_gets = 0;
        EQUAL(get(), 1003);
        EQUAL(tool_gets, 0);
    }
    /* An unlock tells of the rank's own stores. */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
