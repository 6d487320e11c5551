/* R6: places are displacements times the target's unit, in 64 bits. */
#define _GNU_SOURCE
#include "common.h"
#include <sys/mman.h>

int main(int argc, char **argv) {
    /* Each rank has another unit. */
    static const int units[3] = {1, 8, 64};
    size_t bytes = (size_t)5 << 30;
    MPI_Win win;
    MPI_Info info;
    start(&argc, &argv);
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED);
    long unit = units[rank];
    *(long *)memory = 10 + rank;
    *(long *)(memory + 64) = 20 + rank;
    *(long *)(memory + ((size_t)1 << 32)) = 30 + rank;
    *(long *)(memory + ((size_t)1 << 32) + 64) = 40 + rank;
    MPI_Info_create(&info);
    MPI_Info_set(info, "vgasnet_cache", argv[1]);
    MPI_Win_create(memory, bytes, unit, info, MPI_COMM_WORLD, &win);
    MPI_Info_free(&info);
    MPI_Win_lock_all(0, win);
    for (int round = 0; round < 2; ++round) {
        for (int target = 0; target < 3; ++target) {
            long value[4];
            MPI_Aint far = ((MPI_Aint)1 << 32) / units[target], step = 64 / units[target];
            MPI_Get(&value[0], 1, MPI_LONG, target, 0, 1, MPI_LONG, win);
            MPI_Get(&value[1], 1, MPI_LONG, target, step, 1, MPI_LONG, win);
            MPI_Get(&value[2], 1, MPI_LONG, target, far, 1, MPI_LONG, win);
            MPI_Get(&value[3], 1, MPI_LONG, target, far + step, 1, MPI_LONG, win);
            MPI_Win_flush(target, win);
            for (int i = 0; i < 4; ++i) EQUAL(value[i], 10 * (i + 1) + target);
        }
        if (round == 0) tool_gets = 0;
    }
    EQUAL(tool_gets, 4);
    MPI_Barrier(MPI_COMM_WORLD);
    /* A put overwrites bytes that a get has cached. */
    if (rank == 0) {
        long value = -1, seven = 7;
        MPI_Put(&seven, 1, MPI_LONG, 2, 1, 1, MPI_LONG, win);
        MPI_Win_flush(2, win);
        MPI_Get(&value, 1, MPI_LONG, 2, 1, 1, MPI_LONG, win);
        MPI_Win_flush(2, win);
        EQUAL(value, 7);
        /* The tail of a longer get: its first bytes are cached, the others begin within a unit. */
        long both[2];
        memset(both, 0, sizeof both);
        MPI_Get(both, 2, MPI_LONG, 2, 1, 2, MPI_LONG, win);
        MPI_Win_flush(2, win);
        EQUAL(both[0], 7);
        EQUAL(both[1], 0);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
