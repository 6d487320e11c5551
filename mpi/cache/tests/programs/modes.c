/* Modes: by info, by CLaMPI's key and function, by the environment. The arguments are a key, a value, and the
 * expectation after the owner has changed its memory: hits ("kept"), none ("fetched"), or none only after
 * CLAMPI_Invalidate or a new info ("phase"). */
#include "common.h"

int CLAMPI_Invalidate(MPI_Win win);
#pragma weak CLAMPI_Invalidate

static int other;

static long get(MPI_Win win) {
    long value = -1;
    MPI_Win_lock_all(0, win);
    MPI_Get(&value, 1, MPI_LONG, other, 5, 1, MPI_LONG, win);
    MPI_Win_unlock_all(win);
    return value;
}

static MPI_Info info_of(const char *key, const char *value) {
    MPI_Info info;
    MPI_Info_create(&info);
    if (strcmp(key, "-") != 0) MPI_Info_set(info, key, value);
    return info;
}

int main(int argc, char **argv) {
    long *memory, first;
    MPI_Win win;
    start(&argc, &argv);
    other = 1 - rank;
    const char *key = argv[1], *value = argv[2], *expected = argv[3];
    MPI_Info info = info_of(key, value);
    MPI_Win_allocate(64, 8, info, MPI_COMM_WORLD, &memory, &win);
    for (int i = 0; i < 8; ++i) memory[i] = 1000L * rank + i;
    MPI_Barrier(MPI_COMM_WORLD);
    first = get(win);
    EQUAL(first, 1000L * other + 5);
    change(memory, 8, 100);
    EQUAL(get(win), strcmp(expected, "fetched") == 0 ? first + 100 : first);
    if (strcmp(expected, "phase") == 0) {
        CLAMPI_Invalidate(win);
        EQUAL(get(win), first + 100);
        change(memory, 8, 100);
        EQUAL(get(win), first + 100);
        /* The same mode again ends the phase, for programs without the function. */
        MPI_Win_set_info(win, info);
        EQUAL(get(win), first + 200);
        change(memory, 8, 100);
        MPI_Info off = info_of("vgasnet_cache", "off");
        MPI_Win_set_info(win, off);
        EQUAL(get(win), first + 300);
        change(memory, 8, 100);
        EQUAL(get(win), first + 400);
        MPI_Win_set_info(win, info);
        EQUAL(get(win), first + 400);
        change(memory, 8, 100);
        EQUAL(get(win), first + 400);
        MPI_Info_free(&off);
    }
    MPI_Info_free(&info);
    MPI_Win_free(&win);
    MPI_Finalize();
    if (rank == 0) printf("done\n");
    return 0;
}
