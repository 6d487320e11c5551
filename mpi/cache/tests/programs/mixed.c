/* Rank 0 starts itself again with the library of the first argument preloaded, in the mode of the second. Rank 1 lacks
 * it. Windows and their gets work, and rank 0 caches. */
#include "common.h"
#include <unistd.h>

enum { LONGS = 64 };

static void preload(char **argv) {
    const char *hydra = getenv("PMI_RANK"), *openmpi = getenv("OMPI_COMM_WORLD_RANK"), *own = hydra ? hydra : openmpi;
    if (own == NULL || strcmp(own, "0") != 0 || getenv("LD_PRELOAD") != NULL) return;
    setenv("LD_PRELOAD", argv[1], 1);
    setenv("VGASNET_MPI_CACHE", argv[2], 1);
    execv("/proc/self/exe", argv);
    abort();
}

int main(int argc, char **argv) {
    long *memory, seven = 7;
    const char *mode = argv[2];
    preload(argv);
    start(&argc, &argv);
    MPI_Win win = make_window(&memory, LONGS, NULL);
    int other = 1 - rank, caches = rank == 0 && (strcmp(mode, "always") == 0 || strcmp(mode, "phase") == 0);
    MPI_Win_lock_all(0, win);
    for (int round = 0; round < 3; ++round) {
        tool_gets = 0;
        for (int at = 0; at < LONGS; ++at) {
            long value = -1;
            MPI_Get(&value, 1, MPI_LONG, other, at, 1, MPI_LONG, win);
            MPI_Win_flush(other, win);
            EQUAL(value, 1000 * other + at);
        }
        EQUAL(tool_gets, caches && round > 0 ? 0 : LONGS);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    /* The library does not know the other's unit. Bytes of the first element lie 8 behind its displacement. A longer
     * get has the bytes of a shorter one, and a put drops both. */
    if (rank == 0) {
        long four[4];
        MPI_Get(four, 4, MPI_LONG, 1, 0, 4, MPI_LONG, win);
        MPI_Win_flush(1, win);
        EQUAL(four[3], 1003);
        MPI_Put(&seven, 1, MPI_LONG, 1, 2, 1, MPI_LONG, win);
        MPI_Win_flush(1, win);
        MPI_Get(four, 4, MPI_LONG, 1, 0, 4, MPI_LONG, win);
        MPI_Win_flush(1, win);
        EQUAL(four[2], 7);
        EQUAL(four[3], 1003);
        MPI_Get(four, 2, MPI_LONG, 1, 2, 2, MPI_LONG, win);
        MPI_Win_flush(1, win);
        EQUAL(four[0], 7);
        EQUAL(four[1], 1003);
    }
    MPI_Win_unlock_all(win);
    if (strcmp(mode, "checked") == 0) {
        /* What one rank tells the other by any means is seen. */
        MPI_Win_lock_all(0, win);
        for (long round = 0; round < 50; ++round) {
            if (rank == 1) {
                memory[5] = round;
                MPI_Win_sync(win);
            }
            MPI_Barrier(MPI_COMM_WORLD);
            if (rank == 0) {
                long values[2] = {-1, -1};
                for (int i = 0; i < 2; ++i) MPI_Get(&values[i], 1, MPI_LONG, 1, 5, 1, MPI_LONG, win);
                MPI_Win_flush(1, win);
                EQUAL(values[0], round);
                EQUAL(values[1], round);
            }
            MPI_Barrier(MPI_COMM_WORLD);
        }
        MPI_Win_unlock_all(win);
    }
    MPI_Win_free(&win);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
