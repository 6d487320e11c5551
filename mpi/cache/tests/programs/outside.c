/* Programs outside a mode's promise (docs/reference/cached-gets.md). Rank 0 reads memory of rank 1, the memory
 * changes, rank 0 learns of it, and reads again. Prints how many of the second values are old. */
#include "common.h"

enum { PLACES = 50 };

static long *memory;
static MPI_Win win;

static long get(int place) {
    long value = -1;
    MPI_Get(&value, 1, MPI_LONG, 1, place, 1, MPI_LONG, win);
    MPI_Win_flush(1, win);
    return value;
}

static void message(int from) {
    int token = 0;
    if (rank == from) MPI_Send(&token, 1, MPI_INT, 1 - from, 0, MPI_COMM_WORLD);
    if (rank != from) MPI_Recv(&token, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Rank 1 stores, and tells by a message. */
static long by_message(int place) {
    message(0);
    if (rank == 1) memory[place] = -5;
    message(1);
    return rank == 0 ? get(place) : 0;
}

/* Rank 1 receives into its window. */
static long by_receive(int place) {
    long value = -5;
    if (rank == 0) MPI_Send(&value, 1, MPI_LONG, 1, 1, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(&memory[place], 1, MPI_LONG, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    message(1);
    return rank == 0 ? get(place) : 0;
}

/* Rank 0 writes through another window of the same memory. */
static long by_window(int place) {
    static MPI_Win other = MPI_WIN_NULL;
    long value = -5;
    if (other == MPI_WIN_NULL) {
        MPI_Win_create(memory, PLACES * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &other);
        MPI_Win_lock_all(0, other);
        if (rank == 0) get(place);
    }
    if (rank == 0) {
        MPI_Put(&value, 1, MPI_LONG, 1, place, 1, MPI_LONG, other);
        MPI_Win_flush(1, other);
    }
    if (place == PLACES - 1) MPI_Win_unlock_all(other), MPI_Win_free(&other);
    return rank == 0 ? get(place) : 0;
}

/* Rank 1 stores and sets a flag in shared memory, while rank 0's first get is incomplete. */
static long by_flag(int place) {
    static MPI_Win of_flags = MPI_WIN_NULL;
    static int *flags;
    MPI_Aint bytes;
    int unit;
    long first = -1, second = -1;
    if (of_flags == MPI_WIN_NULL) {
        MPI_Win_allocate_shared(rank == 0 ? 2 * PLACES * sizeof(int) : 0, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &flags, &of_flags);
        MPI_Win_shared_query(of_flags, 0, &bytes, &unit, &flags);
        memset(flags, 0, rank == 0 ? 2 * PLACES * sizeof(int) : 0);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    int *is_in_flight = &flags[2 * place], *is_stored = &flags[2 * place + 1];
    if (rank == 0) {
        MPI_Get(&first, 1, MPI_LONG, 1, place, 1, MPI_LONG, win);
        __atomic_store_n(is_in_flight, 1, __ATOMIC_RELEASE);
        while (!__atomic_load_n(is_stored, __ATOMIC_ACQUIRE)) continue;
        MPI_Get(&second, 1, MPI_LONG, 1, place, 1, MPI_LONG, win);
        MPI_Win_flush(1, win);
    } else {
        /* Some MPIs serve gets only while the target is in a call. */
        for (int flag; !__atomic_load_n(is_in_flight, __ATOMIC_ACQUIRE);)
            MPI_Iprobe(0, 2, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        memory[place] = -5;
        __atomic_store_n(is_stored, 1, __ATOMIC_RELEASE);
    }
    if (place == PLACES - 1) MPI_Win_free(&of_flags);
    return second;
}

/* Rank 0 gets the old value from a window that is not cached, and meanwhile the new one into the same buffer. The tool has
 * the first one come last. */
static long by_buffer(int place) {
    static MPI_Win plain = MPI_WIN_NULL;
    static long *old;
    long buffer = -1;
    if (plain == MPI_WIN_NULL) {
        plain = make_window(&old, PLACES, "off");
        MPI_Win_lock_all(0, plain);
    }
    message(0);
    if (rank == 1) {
        memory[place] = -5;
        MPI_Win_sync(win);
    }
    message(1);
    if (rank == 0) {
        tool_holds = 1;
        MPI_Get(&buffer, 1, MPI_LONG, 1, place, 1, MPI_LONG, plain);
        tool_holds = 0;
        MPI_Get(&buffer, 1, MPI_LONG, 1, place, 1, MPI_LONG, win);
        MPI_Win_flush(1, plain);
        MPI_Win_flush(1, win);
    }
    if (place == PLACES - 1) MPI_Win_unlock_all(plain), MPI_Win_free(&plain);
    return rank == 0 ? get(place) : 0;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        long (*read_again)(int place);
    } ways[] = {{"message", by_message}, {"receive", by_receive}, {"window", by_window}, {"flag", by_flag}, {"buffer", by_buffer}};
    int old = 0, found = 0;
    start(&argc, &argv);
    win = make_window(&memory, PLACES, argv[1]);
    MPI_Win_lock_all(0, win);
    for (unsigned way = 0; way < sizeof ways / sizeof *ways; ++way) {
        if (strcmp(ways[way].name, argv[2]) != 0) continue;
        found = 1;
        for (int place = 0; place < PLACES; ++place) {
            if (rank == 0 && ways[way].read_again != by_flag) EQUAL(get(place), 1000 + place);
            long value = ways[way].read_again(place);
            if (rank == 0) CHECK(value == -5 || value == 1000 + place);
            old += value == 1000 + place;
        }
    }
    CHECK(found);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    if (rank == 0) printf("done: %d of %d are old\n", old, PLACES);
    if (rank != 0) printf("done\n");
    return 0;
}
