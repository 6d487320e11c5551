/* Uncached gets go to MPI unchanged, and bring the right bytes. */
#include "common.h"

static long *memory;
static MPI_Win win;
static int other;

/* The same get twice: the second one also goes to MPI if it is not cached. */
static void twice(void *to, int count, MPI_Datatype type, int target, int at, int target_count, MPI_Datatype target_type, int calls) {
    tool_gets = 0;
    for (int i = 0; i < 2; ++i) {
        MPI_Get(to, count, type, target, at, target_count, target_type, win);
        if (target != MPI_PROC_NULL) MPI_Win_flush(target, win);
    }
    EQUAL(tool_gets, calls);
}

static void others(void) {
    long value = -1, *shared;
    MPI_Win of_shared, dynamic;
    MPI_Comm node;
    MPI_Aint place;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Win_allocate_shared(64, 8, MPI_INFO_NULL, node, &shared, &of_shared);
    shared[0] = 10 + rank;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic);
    MPI_Win_attach(dynamic, memory, 64);
    MPI_Get_address(memory, &place);
    MPI_Aint places[2];
    MPI_Allgather(&place, 1, MPI_AINT, places, 1, MPI_AINT, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, of_shared);
    MPI_Win_lock_all(0, dynamic);
    MPI_Win_sync(of_shared);
    MPI_Barrier(MPI_COMM_WORLD);
    tool_gets = 0;
    for (int i = 0; i < 2; ++i) {
        MPI_Get(&value, 1, MPI_LONG, other, 0, 1, MPI_LONG, of_shared);
        MPI_Win_flush(other, of_shared);
        EQUAL(value, 10 + other);
        MPI_Get(&value, 1, MPI_LONG, other, places[other] + 8, 1, MPI_LONG, dynamic);
        MPI_Win_flush(other, dynamic);
        EQUAL(value, 1000 * other + 1);
    }
    EQUAL(tool_gets, 4);
    MPI_Win_unlock_all(dynamic);
    MPI_Win_unlock_all(of_shared);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_detach(dynamic, memory);
    MPI_Win_free(&dynamic);
    MPI_Win_free(&of_shared);
    MPI_Comm_free(&node);
}

int main(int argc, char **argv) {
    enum { LONGS = 20000 };
    static long many[LONGS];
    MPI_Datatype spread, pair, holed;
    start(&argc, &argv);
    other = 1 - rank;
    win = make_window(&memory, LONGS, argv[1]);
    MPI_Win_lock_all(0, win);
    long value = -1;
    twice(&value, 1, MPI_LONG, rank, 3, 1, MPI_LONG, 2);
    EQUAL(value, 1000 * rank + 3);
    value = -1;
    twice(&value, 1, MPI_LONG, MPI_PROC_NULL, 3, 1, MPI_LONG, 2);
    EQUAL(value, -1);
    twice(many, LONGS, MPI_LONG, other, 0, LONGS, MPI_LONG, 2);
    EQUAL(many[LONGS - 1], 1000 * other + LONGS - 1);
    MPI_Type_vector(4, 1, 2, MPI_LONG, &spread);
    MPI_Type_commit(&spread);
    twice(many, 4, MPI_LONG, other, 10, 1, spread, 2);
    EQUAL(many[3], 1000 * other + 16);
    many[0] = many[2] = -1;
    twice(many, 1, spread, other, 20, 4, MPI_LONG, 2);
    EQUAL(many[2], 1000 * other + 21);
    /* A type without gaps is cached: two elements of two longs. */
    MPI_Type_contiguous(2, MPI_LONG, &pair);
    MPI_Type_commit(&pair);
    twice(many, 2, pair, other, 30, 4, MPI_LONG, 1);
    EQUAL(many[3], 1000 * other + 33);
    /* A type with a longer extent is not. */
    MPI_Type_create_resized(MPI_LONG, 0, 2 * sizeof(long), &holed);
    MPI_Type_commit(&holed);
    twice(many, 2, MPI_LONG, other, 40, 2, holed, 2);
    EQUAL(many[1], 1000 * other + 42);
    twice(many, 0, MPI_LONG, other, 40, 0, MPI_LONG, 2);
    MPI_Type_free(&spread);
    MPI_Type_free(&pair);
    MPI_Type_free(&holed);
    others();
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
