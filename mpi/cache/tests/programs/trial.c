/* One way of the gets is slow: with argument words the cache's, with gets MPI's. The library finds out and takes the
 * other. Rank 0 gets. */
#include "common.h"

enum { PLACES = 1 << 14, BATCH = 16 };

static MPI_Win win;

/* Gets of a batch and its flush. Copies are used again only if gets are slow. */
static void get_batch(int first, int batch) {
    long values[BATCH];
    for (int i = 0; i < batch; ++i) MPI_Get(&values[i], 1, MPI_LONG, 1, first + i, 1, MPI_LONG, win);
    MPI_Win_flush(1, win);
    for (int i = 0; i < batch; ++i) EQUAL(values[i], 1000 + first + i);
}

int main(int argc, char **argv) {
    long *memory;
    start(&argc, &argv);
    win = make_window(&memory, PLACES, argv[1]);
    MPI_Win_lock_all(0, win);
    if (rank == 0 && strcmp(argv[2], "words") == 0) {
        tool_word_ns = 200000;
        for (int at = 0; at < PLACES; at += 4) {
            if (at == PLACES / 4 * 3) tool_words = 0;
            get_batch(at, 4);
        }
        /* Trials may read some. */
        CHECK(tool_words < PLACES / 4 / 4 / 4);
    }
    if (rank == 0 && strcmp(argv[2], "gets") == 0) {
        tool_get_ns = 100000;
        int rounds = strcmp(argv[1], "told") == 0 ? 2048 : 8192;
        for (int round = 0; round < rounds; ++round) {
            if (round == rounds / 4) tool_gets = 0;
            get_batch(round % 4 * BATCH, BATCH);
        }
        /* Trials may ask MPI for some. */
        CHECK(tool_gets < rounds * BATCH / 8);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
