/* R5: the rank's own writing operations drop the entries they overlap, and nothing else. All modes. */
#include "common.h"

static long *memory;
static MPI_Win win;
static int other;

static long get(int at) {
    long value = -1;
    MPI_Get(&value, 1, MPI_LONG, other, at, 1, MPI_LONG, win);
    MPI_Win_flush(other, win);
    return value;
}

enum { WRITERS = 10 };

/* Raises the value at `at` by 7. */
static void write_to(int writer, int at, long before) {
    long value = before + 7, seven = 7, result, lines[2] = {before + 7, before + 8};
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Datatype spread;
    switch (writer) {
    case 0: MPI_Put(&value, 1, MPI_LONG, other, at, 1, MPI_LONG, win); break;
    case 1: MPI_Rput(&value, 1, MPI_LONG, other, at, 1, MPI_LONG, win, &request); break;
    case 2: MPI_Accumulate(&seven, 1, MPI_LONG, other, at, 1, MPI_LONG, MPI_SUM, win); break;
    case 3: MPI_Raccumulate(&seven, 1, MPI_LONG, other, at, 1, MPI_LONG, MPI_SUM, win, &request); break;
    case 4: MPI_Get_accumulate(&seven, 1, MPI_LONG, &result, 1, MPI_LONG, other, at, 1, MPI_LONG, MPI_SUM, win); break;
    case 5: MPI_Rget_accumulate(&seven, 1, MPI_LONG, &result, 1, MPI_LONG, other, at, 1, MPI_LONG, MPI_SUM, win, &request); break;
    case 6: MPI_Fetch_and_op(&seven, &result, MPI_LONG, other, at, MPI_SUM, win); break;
    case 7: MPI_Compare_and_swap(&value, &before, &result, MPI_LONG, other, at, win); break;
    case 8: /* The first of two longs. */
        MPI_Put(&lines[0], 1, MPI_LONG, other, at, 1, MPI_LONG, win);
        break;
    case 9: /* This element and the next but one. */
        MPI_Type_vector(2, 1, 2, MPI_LONG, &spread);
        MPI_Type_commit(&spread);
        lines[1] = 1000L * other + at + 2;
        MPI_Put(lines, 2, MPI_LONG, other, at, 1, spread, win);
        MPI_Type_free(&spread);
        break;
    }
    if (request != MPI_REQUEST_NULL) MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_flush(other, win);
}

int main(int argc, char **argv) {
    long value;
    int is_kept = strcmp(argv[1], "phase") == 0 || strcmp(argv[1], "always") == 0;
    start(&argc, &argv);
    other = 1 - rank;
    win = make_window(&memory, 256, argv[1]);
    MPI_Win_lock_all(0, win);
    for (int writer = 0; writer < WRITERS; ++writer) {
        int at = 8 * writer + 8;
        long before = 1000L * other + at;
        EQUAL(get(at), before);
        EQUAL(get(at + 1), before + 1);
        write_to(writer, at, before);
        EQUAL(get(at), before + 7);
        /* The neighbour was not written. In mode told the word covers all memory of the rank, and in mode checked
         * nothing is kept. */
        tool_gets = 0;
        EQUAL(get(at + 1), before + 1);
        if (is_kept && writer != 9) EQUAL(tool_gets, 0);
    }
    /* A longer entry is overlapped at its end. */
    long many[8], one = -5;
    MPI_Get(many, 8, MPI_LONG, other, 200, 8, MPI_LONG, win);
    MPI_Win_flush(other, win);
    MPI_Put(&one, 1, MPI_LONG, other, 207, 1, MPI_LONG, win);
    MPI_Win_flush(other, win);
    MPI_Get(many, 8, MPI_LONG, other, 200, 8, MPI_LONG, win);
    MPI_Win_flush(other, win);
    EQUAL(many[7], -5);
    /* A get is in flight when its bytes are written: it is not kept. */
    MPI_Get(&value, 1, MPI_LONG, other, 220, 1, MPI_LONG, win);
    MPI_Put(&one, 1, MPI_LONG, other, 220, 1, MPI_LONG, win);
    MPI_Win_flush(other, win);
    EQUAL(get(220), -5);
    /* A get after a put in flight may bring either value. */
    one = -6;
    MPI_Put(&one, 1, MPI_LONG, other, 220, 1, MPI_LONG, win);
    MPI_Get(&value, 1, MPI_LONG, other, 220, 1, MPI_LONG, win);
    MPI_Win_flush(other, win);
    tool_gets = 0;
    EQUAL(get(220), -6);
    EQUAL(tool_gets, 1);
    /* Atomic reads drop nothing. */
    if (is_kept) {
        MPI_Fetch_and_op(NULL, &value, MPI_LONG, other, 220, MPI_NO_OP, win);
        MPI_Win_flush(other, win);
        EQUAL(value, -6);
        tool_gets = 0;
        EQUAL(get(220), -6);
        EQUAL(tool_gets, 0);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
