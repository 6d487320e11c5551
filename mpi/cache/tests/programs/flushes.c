/* A thread only flushes, while another gets, flushes and overwrites its buffer at once: kept bytes are the received
 * ones. */
#include "common.h"
#include <pthread.h>

enum { LONGS = 8192, BLOCKS = 900 };

static MPI_Win win;
static int is_over;

static void *flush(void *argument) {
    while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) MPI_Win_flush(1 - rank, win);
    return argument;
}

int main(int argc, char **argv) {
    int provided;
    long *memory, *buffer = malloc(LONGS * sizeof(long));
    pthread_t thread;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK(provided == MPI_THREAD_MULTIPLE && buffer != NULL);
    win = make_window(&memory, LONGS + BLOCKS, argv[1]);
    MPI_Win_lock_all(0, win);
    pthread_create(&thread, NULL, flush, NULL);
    for (int twice = 0; twice < 2; ++twice) {
        for (int at = 0; at < BLOCKS; ++at) {
            MPI_Get(buffer, LONGS, MPI_LONG, 1 - rank, at, LONGS, MPI_LONG, win);
            MPI_Win_flush(1 - rank, win);
            for (int i = 0; i < LONGS; ++i) EQUAL(buffer[i], 1000L * (1 - rank) + at + i);
            memset(buffer, 0xff, LONGS * sizeof(long));
        }
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    free(buffer);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
