/* Threads get from one window concurrently, each with its own flushes, and check the values. */
#include "common.h"
#include <pthread.h>

/* Where MPI's threads wait for each other on busy cores, all rounds take minutes. */
enum { THREADS = 4, LONGS = 4096, ROUNDS = 3000, SECONDS_MAX = 10 };

static MPI_Win win;
static int other;
static const char *mode;

static void *work(void *argument) {
    unsigned seed = 1 + (unsigned)(long)argument;
    long buffer[16];
    double end = MPI_Wtime() + SECONDS_MAX;
    for (int round = 0; round < ROUNDS && MPI_Wtime() < end; ++round) {
        int at = rand_r(&seed) % 64 * 32, count = 1 + rand_r(&seed) % 15, how = rand_r(&seed) % 8;
        memset(buffer, 0xff, sizeof buffer);
        MPI_Request request = MPI_REQUEST_NULL;
        if (how == 0) {
            MPI_Rget(buffer, count, MPI_LONG, other, at, count, MPI_LONG, win, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Get(buffer, count, MPI_LONG, other, at, count, MPI_LONG, win);
            if (how == 1) MPI_Win_flush_all(win); else if (how == 2) MPI_Win_flush_local(other, win); else MPI_Win_flush(other, win);
        }
        for (int i = 0; i < count; ++i) EQUAL(buffer[i], 1000L * other + at + i);
        if (how == 3 && strcmp(mode, "always") != 0) {
            /* A place used by this thread only. */
            long mine = 64 * 32 + (long)argument * 8, value = round, back = -1;
            MPI_Put(&value, 1, MPI_LONG, other, mine, 1, MPI_LONG, win);
            MPI_Win_flush(other, win);
            MPI_Get(&back, 1, MPI_LONG, other, mine, 1, MPI_LONG, win);
            MPI_Win_flush(other, win);
            EQUAL(back, round);
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    int provided;
    long *memory;
    pthread_t threads[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    other = 1 - rank;
    mode = argv[1];
    CHECK(provided == MPI_THREAD_MULTIPLE);
    win = make_window(&memory, LONGS, mode);
    MPI_Win_lock_all(0, win);
    for (long i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
