/* R1, R2, R3: hits, saved flushes, and the filing of gets. Modes always and phase. */
#include "common.h"

static long *memory;
static MPI_Win win;

static void get(long *to, int target, int at, int count) {
    MPI_Get(to, count, MPI_LONG, target, at, count, MPI_LONG, win);
}

/* R1: the bytes of a hit are present when the call returns. */
static void hits_have_their_bytes(void) {
    long first[8], again[8], shorter[3];
    get(first, 1 - rank, 0, 8);
    MPI_Win_flush(1 - rank, win);
    EQUAL(first[7], 1000 * (1 - rank) + 7);
    change(memory, 8, 100);
    tool_gets = 0;
    memset(again, 0, sizeof again);
    get(again, 1 - rank, 0, 8);
    CHECK(memcmp(first, again, sizeof first) == 0);
    get(shorter, 1 - rank, 0, 3);
    CHECK(memcmp(first, shorter, sizeof shorter) == 0);
    EQUAL(tool_gets, 0);
    /* Fetches the tail only. */
    long longer[10];
    get(longer, 1 - rank, 0, 10);
    MPI_Win_flush(1 - rank, win);
    EQUAL(longer[7], first[7]);
    EQUAL(longer[9], 1000 * (1 - rank) + 9);
    EQUAL(tool_gets, 1);
}

/* R2: a flush with nothing in flight calls nothing, and every other flush calls MPI. */
static void flushes_are_saved(void) {
    long value;
    MPI_Win_flush(1 - rank, win);
    tool_flushes = 0;
    get(&value, 1 - rank, 0, 1);
    MPI_Win_flush(1 - rank, win);
    MPI_Win_flush_local(1 - rank, win);
    MPI_Win_flush_all(win);
    MPI_Win_flush_local_all(win);
    EQUAL(tool_flushes, 0);
    get(&value, 1 - rank, 30, 1);
    MPI_Win_flush_local(1 - rank, win);
    EQUAL(tool_flushes, 1);
    /* A complete get needs no flush at the target. */
    MPI_Win_flush(1 - rank, win);
    MPI_Win_flush_all(win);
    EQUAL(tool_flushes, 1);
    /* A put that is complete here may be in flight. */
    value = 1000 * (1 - rank) + 31;
    MPI_Put(&value, 1, MPI_LONG, 1 - rank, 31, 1, MPI_LONG, win);
    MPI_Win_flush_local(1 - rank, win);
    EQUAL(tool_flushes, 2);
    MPI_Win_flush_local(1 - rank, win);
    EQUAL(tool_flushes, 2);
    MPI_Win_flush(1 - rank, win);
    EQUAL(tool_flushes, 3);
    MPI_Put(&value, 1, MPI_LONG, 1 - rank, 31, 1, MPI_LONG, win);
    MPI_Win_flush_local_all(win);
    EQUAL(tool_flushes, 4);
    MPI_Win_flush_local_all(win);
    EQUAL(tool_flushes, 4);
    MPI_Win_flush_all(win);
    EQUAL(tool_flushes, 5);
    MPI_Win_flush_all(win);
    MPI_Win_flush(1 - rank, win);
    EQUAL(tool_flushes, 5);
}

/* R3: a completion files the gets it completes, from their buffers at that time. */
static void what_is_complete_is_filed(void) {
    int other = 1 - rank;
    long of_other = -1, joined = -1, of_next = -1;
    MPI_Win second;
    long *more;
    /* A second window stands for a second target: two ranks suffice. */
    second = make_window(&more, 8, "always");
    MPI_Win_lock_all(0, second);
    tool_gets = 0;
    get(&of_other, other, 40, 1);
    MPI_Get(&of_next, 1, MPI_LONG, other, 4, 1, MPI_LONG, second);
    MPI_Win_flush(other, second);
    of_next = -2;
    /* The first window's get is in flight: a get of the same bytes joins, and has nothing yet. */
    get(&joined, other, 40, 1);
    EQUAL(joined, -1);
    MPI_Get(&of_next, 1, MPI_LONG, other, 4, 1, MPI_LONG, second);
    EQUAL(of_next, 1000 * other + 4);
    EQUAL(tool_gets, 2);
    MPI_Win_flush(other, win);
    EQUAL(of_other, 1000 * other + 40);
    EQUAL(joined, 1000 * other + 40);
    of_other = -2;
    get(&joined, other, 40, 1);
    EQUAL(joined, 1000 * other + 40);
    EQUAL(tool_gets, 2);
    MPI_Win_unlock_all(second);
    MPI_Win_free(&second);
}

/* R3: the content of overlapping buffers is unknown. */
static void overlapping_buffers_are_not_filed(void) {
    int other = 1 - rank;
    long buffer[4], joined, value;
    get(buffer, other, 50, 2);
    get(&joined, other, 50, 1);
    get(buffer + 1, other, 52, 2);
    MPI_Win_flush(other, win);
    EQUAL(joined, 1000 * other + 50);
    tool_gets = 0;
    get(&value, other, 50, 1);
    MPI_Win_flush(other, win);
    EQUAL(value, 1000 * other + 50);
    get(&value, other, 52, 1);
    MPI_Win_flush(other, win);
    EQUAL(value, 1000 * other + 52);
    EQUAL(tool_gets, 2);
    /* A hit writes the buffer of a get in flight. */
    get(buffer, other, 54, 2);
    get(buffer + 1, other, 50, 1);
    MPI_Win_flush(other, win);
    tool_gets = 0;
    get(buffer, other, 54, 2);
    MPI_Win_flush(other, win);
    EQUAL(tool_gets, 1);
    EQUAL(buffer[1], 1000 * other + 55);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    win = make_window(&memory, 64, argv[1]);
    MPI_Win_lock_all(0, win);
    hits_have_their_bytes();
    flushes_are_saved();
    what_is_complete_is_filed();
    overlapping_buffers_are_not_filed();
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
