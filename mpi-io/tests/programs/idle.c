/* Open files that nobody uses take hardly any processor time. argv[1] begins their paths, argv[2] says how many there are. Each rank prints
 * the processor time, in microseconds, of a second in which it sleeps. */
#include "common.h"
#include <time.h>

enum { MAX = 400 };
static MPI_File files[MAX];

static long spent_us(void) {
    struct timespec spent;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    return spent.tv_sec * 1000000L + spent.tv_nsec / 1000;
}

int main(int argc, char **argv) {
    char path[4096];
    const struct timespec second = {1, 0};
    start(&argc, &argv);
    int count = atoi(argv[2]);
    CHECK(count <= MAX);
    for (int i = 0; i < count; ++i) {
        snprintf(path, sizeof path, "%s%d", argv[1], i);
        OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &files[i]));
        CHECK(is_cached(files[i]));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    nanosleep(&second, NULL);
    long before = spent_us();
    nanosleep(&second, NULL);
    printf("rank %d: %ld us\n", rank, spent_us() - before);
    fflush(stdout);
    for (int i = 0; i < count; ++i) OK(MPI_File_close(&files[i]));
    finish();
    return 0;
}
