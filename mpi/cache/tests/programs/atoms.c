/* MPI_Get_accumulate with MPI_NO_OP is a get with atomic reads of its elements. Modes always and phase. */
#include "common.h"

static long *memory;
static MPI_Win win;
static int other;

static void read_atomically(void *to, int at, int count, MPI_Datatype type) {
    MPI_Get_accumulate(NULL, 0, type, to, count, type, other, at, count, type, MPI_NO_OP, win);
}

/* As read_atomically, completed. Checks the number of calls that reach MPI. */
static long value_of(int at, int calls) {
    long value = -1;
    tool_atoms = 0;
    read_atomically(&value, at, 1, MPI_LONG);
    MPI_Win_flush(other, win);
    EQUAL(tool_atoms, calls);
    return value;
}

int main(int argc, char **argv) {
    long one = 1, value = -1, again = -1, many[4];
    int half = -1;
    MPI_Request request;
    start(&argc, &argv);
    other = 1 - rank;
    win = make_window(&memory, 64, argv[1]);
    MPI_Win_lock_all(0, win);
    long first = 1000L * other;
    EQUAL(value_of(3, 1), first + 3);
    EQUAL(value_of(3, 0), first + 3);
    /* By request, first uncached and then cached. */
    for (int twice = 0; twice < 2; ++twice) {
        value = -1;
        MPI_Rget_accumulate(NULL, 0, MPI_LONG, &value, 1, MPI_LONG, other, 4, 1, MPI_LONG, MPI_NO_OP, win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        EQUAL(value, first + 4);
    }
    EQUAL(value_of(4, 0), first + 4);
    /* Two gets of an epoch share an operation. */
    tool_atoms = 0;
    read_atomically(&value, 5, 1, MPI_LONG);
    read_atomically(&again, 5, 1, MPI_LONG);
    MPI_Win_flush(other, win);
    EQUAL(tool_atoms, 1);
    EQUAL(value, first + 5);
    EQUAL(again, first + 5);
    /* Bytes read by a get may be torn, and so may bytes read by smaller elements. */
    MPI_Get(&value, 1, MPI_LONG, other, 6, 1, MPI_LONG, win);
    MPI_Win_flush(other, win);
    EQUAL(value_of(6, 1), first + 6);
    read_atomically(&half, 7, 1, MPI_INT);
    MPI_Win_flush(other, win);
    EQUAL(half, first + 7);
    EQUAL(value_of(7, 1), first + 7);
    /* Several elements are read as a whole. */
    tool_gets = 0;
    read_atomically(many, 3, 4, MPI_LONG);
    MPI_Win_flush(other, win);
    for (int i = 0; i < 4; ++i) EQUAL(many[i], first + 3 + i);
    EQUAL(tool_gets, 0);
    /* The rank's own writes drop the entry. */
    MPI_Accumulate(&one, 1, MPI_LONG, other, 5, 1, MPI_LONG, MPI_SUM, win);
    MPI_Win_flush(other, win);
    EQUAL(value_of(5, 1), first + 6);
    MPI_Get_accumulate(&one, 1, MPI_LONG, &value, 1, MPI_LONG, other, 5, 1, MPI_LONG, MPI_SUM, win);
    MPI_Win_flush(other, win);
    EQUAL(value, first + 6);
    EQUAL(value_of(5, 1), first + 7);
    EQUAL(value_of(5, 0), first + 7);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
