/* The cost that the library adds to a get of an uncached window: alone, and beside a cached one. PMPI_Get is MPI's own.
 * In the order of rounds each follows itself and the other. Prints the difference of the minima, and MPI's minimum, in
 * nanoseconds. */
#define _POSIX_C_SOURCE 200809L
#include "common.h"
#include <time.h>

enum { ROUNDS = 200, GETS = 2000 };

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

static double get_ns(int (*get)(void *, int, MPI_Datatype, int, MPI_Aint, int, MPI_Datatype, MPI_Win), MPI_Win win) {
    long value[GETS];
    double begin = now_ns(), end;
    for (int i = 0; i < GETS; ++i) get(&value[i], 1, MPI_LONG, rank, i % 64, 1, MPI_LONG, win);
    end = now_ns();
    MPI_Win_flush(rank, win);
    for (int i = 0; i < GETS; ++i) EQUAL(value[i], 1000 * rank + i % 64);
    return (end - begin) / GETS;
}

static void print_added(const char *when, MPI_Win win) {
    double with = 1e9, without = 1e9;
    for (int round = 0; round < ROUNDS; ++round) {
        int is_own = round % 4 == 1 || round % 4 == 2;
        double ns = get_ns(is_own ? PMPI_Get : MPI_Get, win), *least = is_own ? &without : &with;
        if (ns < *least) *least = ns;
    }
    if (rank == 0) printf("%s %.1f %.1f\n", when, with - without, without);
}

int main(int argc, char **argv) {
    long *memory, *others, value;
    start(&argc, &argv);
    MPI_Win win = make_window(&memory, 64, "off");
    MPI_Win_lock_all(0, win);
    print_added("alone", win);
    MPI_Win cached = make_window(&others, 64, "always");
    MPI_Win_lock_all(0, cached);
    MPI_Get(&value, 1, MPI_LONG, (rank + 1) % ranks, 3, 1, MPI_LONG, cached);
    MPI_Win_flush_all(cached);
    print_added("beside", win);
    MPI_Win_unlock_all(cached);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&cached);
    MPI_Win_free(&win);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
