/* Latency of MPI_Get and MPI_Win_flush for each size from 1 byte to 64 KiB, on rank 0 of two: for the first get of
 * bytes and for later ones. Prints "size first-us again-us", medians, for each size. vgasnet-bench compiles and runs
 * this program. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POWERS 17
#define PLACES 64
#define ROUNDS 5
#define STRIDE 65536

static double us_each[PLACES * ROUNDS];

static int compare(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(size_t count) {
    qsort(us_each, count, sizeof *us_each, compare);
    return us_each[count / 2];
}

/* Gets bytes of each place and stores the duration of each get. */
static void get_all(MPI_Win window, int power, size_t first, double *to) {
    static char bytes[STRIDE];
    for (int place = 0; place < PLACES; ++place) {
        MPI_Aint at = (MPI_Aint)place * STRIDE;
        bytes[0] = 0;
        double began = MPI_Wtime();
        MPI_Get(bytes, 1 << power, MPI_BYTE, 1, at, 1 << power, MPI_BYTE, window);
        MPI_Win_flush(1, window);
        to[first + (size_t)place] = 1e6 * (MPI_Wtime() - began);
        if (bytes[0] != (char)(place + 1)) {
            fprintf(stderr, "a get has other bytes than were written\n");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
}

int main(int argc, char **argv) {
    MPI_Win window;
    char *memory;
    int me;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    /* MPI could share memory it has allocated on one host, and turn a get into a copy. */
    memory = (char *)malloc((size_t)PLACES * STRIDE);
    if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Win_create(memory, (MPI_Aint)PLACES * STRIDE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    for (int place = 0; place < PLACES; ++place) memset(memory + (size_t)place * STRIDE, place + 1, STRIDE);
    MPI_Win_lock_all(0, window);
    MPI_Win_sync(window);
    MPI_Barrier(MPI_COMM_WORLD);
    /* Sizes ascend: a shorter get after a longer one would hit the longer one's bytes. */
    for (int power = 0; me == 0 && power < POWERS; ++power) {
        get_all(window, power, 0, us_each);
        double first = median(PLACES);
        for (size_t round = 0; round < ROUNDS; ++round) get_all(window, power, round * PLACES, us_each);
        printf("%d %.4f %.4f\n", 1 << power, first, median((size_t)ROUNDS * PLACES));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    free(memory);
    MPI_Finalize();
    return 0;
}
