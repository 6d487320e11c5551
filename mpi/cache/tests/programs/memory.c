/* No memory is left when the first get is to be kept. Mode always. */
#include "common.h"
#include <sys/resource.h>
#include <unistd.h>

/* Limits the process's address space to its current size or, if not `is_limited`, to the maximum. */
static void limit(int is_limited) {
    struct rlimit limit;
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%lu", &pages) == 1);
    fclose(file);
    CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
    limit.rlim_cur = is_limited ? pages * (rlim_t)sysconf(_SC_PAGESIZE) : limit.rlim_max;
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
}

int main(int argc, char **argv) {
    long *memory, value = -1;
    start(&argc, &argv);
    MPI_Win win = make_window(&memory, 64, argv[1]);
    MPI_Win_lock_all(0, win);
    limit(1);
    MPI_Get(&value, 1, MPI_LONG, 1 - rank, 1, 1, MPI_LONG, win);
    limit(0);
    MPI_Win_flush(1 - rank, win);
    EQUAL(value, 1000 * (1 - rank) + 1);
    tool_gets = 0;
    for (int i = 0; i < 2; ++i) {
        MPI_Get(&value, 1, MPI_LONG, 1 - rank, i, 1, MPI_LONG, win);
        MPI_Win_flush(1 - rank, win);
        EQUAL(value, 1000 * (1 - rank) + i);
    }
    EQUAL(tool_gets, 2);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
