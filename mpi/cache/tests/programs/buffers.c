/* Two operations bring bytes to one buffer at once. Nobody knows which of them the buffer has in the end, but copies have
 * the right bytes. Rank 0 caches gets from rank 2. The other operation is not cached: with argument near a get from rank
 * 1, which is near, else several kinds. */
#include "common.h"

enum { LONGS = 20000, FIRST = 1000 };

static MPI_Win win;
static MPI_Datatype spread;
static long many[LONGS], *const buffer = &many[2];
static MPI_Request request;

static long get(int target, int at) {
    long value = -1;
    MPI_Get(&value, 1, MPI_LONG, target, at, 1, MPI_LONG, win);
    MPI_Win_flush(target, win);
    return value;
}

enum { LONG_GET, SPREAD_GET, OWN_GET, FETCH, FETCH_ONLY, ALL_HELD, REQUEST = ALL_HELD, SWAP, FETCH_MANY, FETCH_REQUEST, KINDS };

static void ask(int kind) {
    long one = 1, zero = 0;
    switch (kind) {
    case LONG_GET: MPI_Get(many, LONGS, MPI_LONG, 1, 0, LONGS, MPI_LONG, win); break;
    case SPREAD_GET: MPI_Get(many, 2, spread, 1, 0, 2, MPI_LONG, win); break;
    case OWN_GET: MPI_Get(buffer, 1, MPI_LONG, 0, 7, 1, MPI_LONG, win); break;
    case FETCH: MPI_Fetch_and_op(&many[9], buffer, MPI_LONG, 1, 7, MPI_SUM, win); break;
    case FETCH_ONLY: MPI_Fetch_and_op(&many[9], buffer, MPI_LONG, 1, 7, MPI_NO_OP, win); break;
    case REQUEST: MPI_Rget(many, 2, spread, 1, 0, 2, MPI_LONG, win, &request); break;
    case SWAP: MPI_Compare_and_swap(&one, &zero, buffer, MPI_LONG, 1, 7, win); break;
    case FETCH_MANY: MPI_Get_accumulate(&zero, 1, MPI_LONG, buffer, 1, MPI_LONG, 1, 7, 1, MPI_LONG, MPI_SUM, win); break;
    case FETCH_REQUEST: MPI_Rget_accumulate(&zero, 1, MPI_LONG, buffer, 1, MPI_LONG, 1, 7, 1, MPI_LONG, MPI_SUM, win, &request); break;
    default: MPI_Get(buffer, 1, MPI_LONG, 1, 7, 1, MPI_LONG, win);
    }
    /* Local arguments stay until here. */
    if (kind > REQUEST && kind < KINDS) MPI_Win_flush_local(1, win);
}

/* The place is not in the cache yet. */
static void cached(int at) {
    MPI_Get(buffer, 1, MPI_LONG, 2, at, 1, MPI_LONG, win);
}

static void complete(void) {
    if (request != MPI_REQUEST_NULL) MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_flush_all(win);
}

static void use_twice(int kind) {
    static int at = FIRST;
    int is_held = kind < ALL_HELD || kind == KINDS;
    for (int is_first = 0; is_first < 2; ++is_first) {
        ++at;
        if (!is_first) cached(at);
        /* It comes last. */
        tool_holds = is_held;
        ask(kind);
        tool_holds = 0;
        if (is_first) cached(at);
        complete();
        EQUAL(get(2, at), 2000 + at);
    }
    /* Both are complete. Buffers are not in use any more. */
    cached(++at);
    complete();
    tool_gets = 0;
    EQUAL(get(2, at), 2000 + at);
    EQUAL(tool_gets, 0);
}

/* The library takes the rank for near, since its gets take hardly any time for their length. */
static void make_near(void) {
    tool_instant_target = 1;
    for (int at = 0; at < 4096; ++at) {
        MPI_Get(many, 1024, MPI_LONG, 1, at, 1024, MPI_LONG, win);
        if (at % 64 == 63) MPI_Win_flush(1, win);
    }
    tool_instant_target = TOOL_NOBODY;
    tool_gets = 0;
    for (int i = 0; i < 2; ++i) EQUAL(get(1, 5), 1005);
    EQUAL(tool_gets, 2);
}

/* A near get by request is complete with it, without a flush. */
static void wait_for_near(void) {
    MPI_Rget(buffer, 1, MPI_LONG, 1, 7, 1, MPI_LONG, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EQUAL(*buffer, 1007);
    cached(FIRST);
    MPI_Win_flush(2, win);
    tool_gets = 0;
    EQUAL(get(2, FIRST), 2000 + FIRST);
    EQUAL(tool_gets, 0);
}

int main(int argc, char **argv) {
    long *memory;
    start(&argc, &argv);
    request = MPI_REQUEST_NULL;
    MPI_Type_create_resized(MPI_LONG, 0, 2 * sizeof(long), &spread);
    MPI_Type_commit(&spread);
    win = make_window(&memory, LONGS, argv[1]);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        int is_near = strcmp(argv[2], "near") == 0;
        if (is_near) make_near();
        tool_get_ns = 1000; /* Rank 2 is far. */
        if (is_near) use_twice(KINDS), wait_for_near();
        for (int kind = 0; !is_near && kind < KINDS; ++kind) use_twice(kind);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Type_free(&spread);
    MPI_Finalize();
    printf("done\n");
    return 0;
}
