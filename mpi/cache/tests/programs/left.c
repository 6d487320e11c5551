/* The gets of a window are left to MPI for a while, since the cache makes them slower, and then served by the cache again.
 * With argument flush or fence, gets left to MPI are in flight to the buffers of the first gets by the cache, and epochs
 * end so. With argument write, rank 0 writes to a copied place meanwhile. Rank 0 gets from rank 1. The tool answers, so
 * the times do not depend on rank 1. */
#include "common.h"

enum { PAIRS = 1 << 19, COPIED = 1021, FRESH = 2 * PAIRS, LONGS = FRESH + (1 << 19), HALF = 16, GET_NS = 500 };

static MPI_Win win;
static int is_fenced;

static void ask(long *to, int at, int count) {
    MPI_Get(to, count, MPI_LONG, 1, at, count, MPI_LONG, win);
}

static void complete(void) {
    if (is_fenced) MPI_Win_fence(0, win);
    else MPI_Win_flush(1, win);
}

/* Gets slower by the cache: half of them find their first half in a copy, and the tool makes parts slow. Returns whether
 * the cache has served some. */
static int run_batch(void) {
    static long values[HALF][2];
    static int first = COPIED;
    int before = tool_parts;
    for (int count = 1; count <= 2; ++count) {
        for (int i = 0; i < HALF; ++i) ask(values[i], first + 2 * i, count);
        complete();
    }
    for (int i = 0; i < HALF; ++i) EQUAL(values[i][1], 1000 + first + 2 * i + 1);
    if (tool_parts == before) return 0;
    /* There are no copies of other places yet. */
    first = first + 4 * HALF < FRESH ? first + 2 * HALF : COPIED;
    return 1;
}

/* Until the cache has lost. The blocks by MPI that decide have 64 gets and a half batch at most. */
static void make_left(void) {
    static long values[COPIED];
    for (int gets = 0; gets < 1 << 16; gets += COPIED) {
        for (int i = 0; i < COPIED; ++i) ask(&values[i], i, 1);
        complete();
    }
    int batches = 0;
    while (batches < 8) batches = run_batch() ? 0 : batches + 1;
}

/* Gets of two ranges bring the right bytes. The library measures both ways in turns, so one of two rounds is served by the
 * cache. */
static void check_places(int first, int second) {
    static long values[2][COPIED];
    for (int round = 0; round < 2; ++round) {
        for (int i = 0; i < COPIED; ++i) ask(&values[0][i], first + i, 1), ask(&values[1][i], second + i, 1);
        complete();
        for (int i = 0; i < COPIED; ++i) {
            EQUAL(values[0][i], 1000 + first + i);
            EQUAL(values[1][i], 1000 + second + i);
        }
    }
}

/* Gets of copied places are left to MPI, which the tool holds back. Gets of fresh places follow into the same buffers.
 * Somewhere among them the cache begins again. From then on gets of copied places do not reach MPI. */
static void use_buffers_twice(void) {
    static long buffers[COPIED];
    int fresh = FRESH, before = FRESH, is_left = 1;
    tool_get_ns = 200;
    while (is_left) {
        before = fresh;
        fresh = fresh + 2 * COPIED < LONGS ? fresh + COPIED : FRESH;
        tool_gets = 0;
        tool_holds = 1;
        for (int i = 0; i < COPIED; ++i) ask(&buffers[i], i, 1);
        tool_holds = 0;
        for (int i = 0; i < COPIED; ++i) ask(&buffers[i], fresh + i, 1);
        is_left = tool_gets == 2 * COPIED;
        complete();
    }
    /* All gets of fresh places reach MPI, so this is found one round late if it was among them. */
    check_places(before, fresh);
    tool_get_ns = GET_NS;
}

/* Gets leave copies again. The cache does not serve all rounds, since the library measures. */
static void expect_copies(void) {
    static long buffers[COPIED];
    int least = COPIED;
    for (int round = 0; round < 4; ++round) {
        tool_gets = 0;
        for (int i = 0; i < COPIED; ++i) ask(&buffers[i], LONGS - COPIED + i, 1);
        complete();
        if (tool_gets < least) least = tool_gets;
    }
    CHECK(least < COPIED / 2);
}

static void write_meanwhile(void) {
    long seven = 7, value = -1;
    tool_instant_target = TOOL_NOBODY;
    MPI_Put(&seven, 1, MPI_LONG, 1, 5, 1, MPI_LONG, win);
    complete();
    tool_instant_target = 1;
    tool_get_ns = 200;
    while (!run_batch()) continue;
    tool_instant_target = TOOL_NOBODY;
    ask(&value, 5, 1);
    complete();
    EQUAL(value, 7);
}

int main(int argc, char **argv) {
    long *memory;
    start(&argc, &argv);
    is_fenced = strcmp(argv[2], "fence") == 0;
    win = make_window(&memory, LONGS, argv[1]);
    if (is_fenced) MPI_Win_fence(0, win);
    else MPI_Win_lock_all(0, win);
    /* Blocks of gets are short, so that few of them wait for a processor: the library compares their times. */
    tool_get_ns = GET_NS;
    tool_part_ns = 2000;
    if (rank == 0) {
        tool_instant_target = 1;
        make_left();
        if (strcmp(argv[2], "write") == 0) write_meanwhile();
        else use_buffers_twice(), expect_copies();
        tool_instant_target = TOOL_NOBODY;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_fenced) MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    else MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
