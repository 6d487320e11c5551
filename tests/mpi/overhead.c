/* The time of calls with ordinary buffers, compared with MPI's own functions in the same run. Prints the ratio. */
#include <time.h>

#include "check_mpi.h"

#define CALLS 20000
#define ROUNDS 9

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* The shortest time of a call, in ns. */
static double least(int (*call)(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int, int, MPI_Comm,
                                MPI_Status *)) {
    double least = 1e9;
    int round, i, in = 1, out;
    for (round = 0; round < ROUNDS; ++round) {
        double begin = now(), took;
        for (i = 0; i < CALLS; ++i)
            call(&in, 1, MPI_INT, 0, 1, &out, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        took = (now() - begin) / CALLS * 1e9;
        if (took < least) least = took;
    }
    return least;
}

int main(int argc, char **argv) {
    double own, theirs;
    MPI_Init(&argc, &argv);
    start(&argc, &argv, 1 << 20);
    own = least(MPI_Sendrecv);
    theirs = least(PMPI_Sendrecv);
    printf("MPI_Sendrecv: %.0f ns, %.3f times what PMPI_Sendrecv takes\n", own, own / theirs);
    barrier();
    MPI_Finalize();
    return 0;
}
