/* Modes checked and told: after any write, completed and learned of in any way, the next get has the new value.
 *
 * Arguments: the mode; a seed; the number of cases to draw from the square, "part 3/20" of it, "each" way once with a get
 * in flight, or the case named by a failure; a file. Rank 0 owns the memory, rank 1 is a third one, rank 2 reads. "store" alone is no case of mode
 * told, which promises that stores are told. */
#include "news.h"

/* The place of the written value in the window. The owner's flag is behind it, and the third rank's behind the
 * owner's. */
enum { AT = 3, LONGS = 32 };

static long *memory, now;
static int is_told;
static MPI_Win win;

/* ---- ways to write ---- */
enum write { STORE, STORE_SYNC, OWN_PUT, PUT, RPUT, ACCUMULATE, RACCUMULATE, FETCH, SWAP, GET_ACCUMULATE, RGET_ACCUMULATE, WRITES };
static const char *const write_names[] = {"store", "store+sync", "put-by-owner", "put", "rput", "accumulate", "raccumulate",
                                          "fetch_and_op", "compare_and_swap", "get_accumulate", "rget_accumulate"};

/* ---- how a write is completed ---- */
enum ending { FLUSH, FLUSH_ALL, UNLOCK, UNLOCK_ALL, HERE, ALL_HERE, ENDINGS };
static const char *const ending_names[] = {"flush", "flush_all", "unlock", "unlock_all", "flush_local", "flush_local_all"};

/* ---- how the reader gets ---- */
enum reading { READ_FLUSH, READ_FLUSH_LOCAL, READ_FLUSH_ALL, READ_FLUSH_LOCAL_ALL, READ_LOCK, READ_LOCK_ALL, READ_REQUEST, READ_PENDING,
               READINGS };
static const char *const reading_names[] = {"flush", "flush_local", "flush_all", "flush_local_all", "lock", "lock_all", "rget",
                                            "get under way"};

static int is_store(int how) { return how == STORE || how == STORE_SYNC; }
static int writer_of(int how) { return how <= OWN_PUT ? OWNER : THIRD; }
static int fetches(int how) { return how >= FETCH; }
static int is_case(int how, int ending) {
    if (is_store(how)) return ending == FLUSH;
    /* Completion at the origin proves nothing, except for the answer of a fetch. */
    return (ending != HERE && ending != ALL_HERE) || fetches(how);
}

static void write_now(int how, int ending) {
    static long one = 1, next, before, old;
    MPI_Request request = MPI_REQUEST_NULL;
    before = now, next = now + 1;
    if (is_store(how)) {
        *(volatile long *)&memory[AT] = next;
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (how == STORE_SYNC) MPI_Win_sync(win);
        return;
    }
    if (ending == UNLOCK) MPI_Win_unlock_all(win), MPI_Win_lock(MPI_LOCK_SHARED, OWNER, 0, win);
    switch (how) {
    case OWN_PUT: case PUT: MPI_Put(&next, 1, MPI_LONG, OWNER, AT, 1, MPI_LONG, win); break;
    case RPUT: MPI_Rput(&next, 1, MPI_LONG, OWNER, AT, 1, MPI_LONG, win, &request); break;
    case ACCUMULATE: MPI_Accumulate(&one, 1, MPI_LONG, OWNER, AT, 1, MPI_LONG, MPI_SUM, win); break;
    case RACCUMULATE: MPI_Raccumulate(&one, 1, MPI_LONG, OWNER, AT, 1, MPI_LONG, MPI_SUM, win, &request); break;
    case FETCH: MPI_Fetch_and_op(&one, &old, MPI_LONG, OWNER, AT, MPI_SUM, win); break;
    case SWAP: MPI_Compare_and_swap(&next, &before, &old, MPI_LONG, OWNER, AT, win); break;
    case GET_ACCUMULATE:
        MPI_Get_accumulate(&one, 1, MPI_LONG, &old, 1, MPI_LONG, OWNER, AT, 1, MPI_LONG, MPI_SUM, win);
        break;
    case RGET_ACCUMULATE:
        MPI_Rget_accumulate(&one, 1, MPI_LONG, &old, 1, MPI_LONG, OWNER, AT, 1, MPI_LONG, MPI_SUM, win, &request);
        break;
    }
    if (request != MPI_REQUEST_NULL) MPI_Wait(&request, MPI_STATUS_IGNORE);
    switch (ending) {
    case FLUSH: MPI_Win_flush(OWNER, win); break;
    case FLUSH_ALL: MPI_Win_flush_all(win); break;
    case UNLOCK: MPI_Win_unlock(OWNER, win), MPI_Win_lock_all(0, win); break;
    case UNLOCK_ALL: MPI_Win_unlock_all(win), MPI_Win_lock_all(0, win); break;
    /* A completed request has its answer already. */
    case HERE: if (how != RGET_ACCUMULATE) MPI_Win_flush_local(OWNER, win); break;
    case ALL_HERE: if (how != RGET_ACCUMULATE) MPI_Win_flush_local_all(win); break;
    }
    if (fetches(how)) EQUAL(old, before);
}

static long read_now(int how) {
    static long value;
    MPI_Request request;
    value = -1;
    if (how == READ_LOCK) MPI_Win_unlock_all(win), MPI_Win_lock(MPI_LOCK_SHARED, OWNER, 0, win);
    if (how == READ_REQUEST) {
        MPI_Rget(&value, 1, MPI_LONG, OWNER, AT, 1, MPI_LONG, win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Get(&value, 1, MPI_LONG, OWNER, AT, 1, MPI_LONG, win);
    }
    switch (how) {
    case READ_PENDING: case READ_FLUSH: MPI_Win_flush(OWNER, win); break;
    case READ_FLUSH_LOCAL: MPI_Win_flush_local(OWNER, win); break;
    case READ_FLUSH_ALL: MPI_Win_flush_all(win); break;
    case READ_FLUSH_LOCAL_ALL: MPI_Win_flush_local_all(win); break;
    case READ_LOCK: MPI_Win_unlock(OWNER, win), MPI_Win_lock_all(0, win); break;
    case READ_LOCK_ALL: MPI_Win_unlock_all(win), MPI_Win_lock_all(0, win); break;
    }
    return value;
}

/* ---- news that windows bring themselves ---- */

/* Current values of the owner's flag and of the third rank's. */
static long raised[2];

/* The reader polls a number of the owner's window, which the writer raises after the value. */
static void by_flag(int writer, int how) {
    static long one = 1, flag, nothing;
    int of = writer != OWNER, at = AT + 1 + of;
    long before = raised[of]++;
    if (rank == writer && writer == OWNER && how < 2) {
        __atomic_store_n(&memory[at], raised[of], __ATOMIC_SEQ_CST);
        if (is_told) MPI_Win_sync(win);
    } else if (rank == writer) {
        MPI_Accumulate(&one, 1, MPI_LONG, OWNER, at, 1, MPI_LONG, MPI_SUM, win);
        MPI_Win_flush(OWNER, win);
    }
    for (flag = before; rank == READER && flag == before;) {
        MPI_Request request;
        switch (how) {
        case 0: MPI_Get(&flag, 1, MPI_LONG, OWNER, at, 1, MPI_LONG, win), MPI_Win_flush(OWNER, win); break;
        case 1:
            MPI_Rget(&flag, 1, MPI_LONG, OWNER, at, 1, MPI_LONG, win, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            break;
        case 2:
            MPI_Get_accumulate(&nothing, 1, MPI_LONG, &flag, 1, MPI_LONG, OWNER, at, 1, MPI_LONG, MPI_NO_OP, win);
            MPI_Win_flush(OWNER, win);
            break;
        default: MPI_Fetch_and_op(&nothing, &flag, MPI_LONG, OWNER, at, MPI_NO_OP, win), MPI_Win_flush_local(OWNER, win); break;
        }
    }
}
static void by_get(int writer) { by_flag(writer, 0); }
static void by_rget(int writer) { by_flag(writer, 1); }
static void by_get_accumulate(int writer) { by_flag(writer, 2); }
static void by_fetch(int writer) { by_flag(writer, 3); }

/* A fence between passive epochs. */
static void by_fence(int writer) {
    (void)writer;
    MPI_Win_unlock_all(win);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_lock_all(0, win);
}

/* The owner hears of the write, and exposes its memory to the reader. */
static void by_start(int writer) {
    MPI_Group world, one;
    int of_one = rank == OWNER ? READER : OWNER;
    if (writer != OWNER && rank == writer) MPI_Send(NULL, 0, MPI_BYTE, OWNER, 9, MPI_COMM_WORLD);
    if (writer != OWNER && rank == OWNER) MPI_Recv(NULL, 0, MPI_BYTE, writer, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(win);
    if (rank != THIRD) {
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        MPI_Group_incl(world, 1, &of_one, &one);
        if (rank == OWNER) MPI_Win_post(one, 0, win), MPI_Win_wait(win);
        if (rank == READER) MPI_Win_start(one, 0, win), MPI_Win_complete(win);
        MPI_Group_free(&one);
        MPI_Group_free(&world);
    }
    MPI_Win_lock_all(0, win);
}

static const struct way own_ways[] = {{"get", by_get}, {"rget", by_rget}, {"get_accumulate", by_get_accumulate},
                                      {"fetch_and_op", by_fetch}, {"fence", by_fence}, {"start", by_start}};
enum { OWN_WAYS = sizeof own_ways / sizeof *own_ways };

static const struct way *way_of(int number) { return number < OWN_WAYS ? &own_ways[number] : &ways[number - OWN_WAYS]; }

/* One case: the reader has the value, a writer changes it, and the reader learns of the change. */
static void run(int way, int how, int ending, int reading) {
    static long before[2], after;
    int writer = writer_of(how);
    if (rank == READER) {
        before[0] = read_now(reading == READ_PENDING ? READ_FLUSH : reading);
        if (reading == READ_PENDING) MPI_Get(&before[1], 1, MPI_LONG, OWNER, AT, 1, MPI_LONG, win);
        else before[1] = read_now(reading);
        MPI_Send(NULL, 0, MPI_BYTE, writer, 8, MPI_COMM_WORLD);
    }
    if (rank == writer) {
        MPI_Recv(NULL, 0, MPI_BYTE, READER, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        write_now(how, ending);
    }
    way_of(way)->tell(writer);
    after = rank == READER ? read_now(reading) : now + 1;
    if (after != now + 1 || (rank == READER && before[0] != now)) {
        fprintf(stderr, "WRONG: %ld, then %ld for %ld: %s, completed by %s, told by %s, read by %s. Replay: case %d,%d,%d,%d\n", before[0],
                after, now + 1, write_names[how], ending_names[ending], way_of(way)->name, reading_names[reading], way, how, ending,
                reading);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    ++now;
    end_way(writer);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    int way, how, ending, reading, cases = 0;
    start(&argc, &argv);
    CHECK(ranks == 3 && argc > 4);
    const int all = OWN_WAYS + WAYS;
    is_told = strcmp(argv[1], "told") == 0;
    uint64_t seed = strtoull(argv[2], NULL, 10);
    long drawn = atol(argv[3]), part = 0, parts = 1, square = (long)all * WRITES * ENDINGS * READINGS;
    win = make_window(&memory, LONGS, argv[1]);
    now = AT;
    if (rank == OWNER) memory[AT + 1] = memory[AT + 2] = 0;
    prepare_ways(argv[4]);
    MPI_Win_lock_all(0, win);
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (sscanf(argv[3], "part %ld/%ld", &part, &parts) == 2) drawn = 0;
    if (strcmp(argv[3], "each") == 0) {
        for (; cases < all; ++cases) run(cases, PUT, FLUSH, READ_PENDING);
    } else if (sscanf(argv[3], "case %d,%d,%d,%d", &way, &how, &ending, &reading) == 4) {
        run(way, how, ending, reading);
    } else {
        for (long at = 0; at < square; ++at) {
            way = at % all, how = at / all % WRITES, ending = at / all / WRITES % ENDINGS, reading = at / all / WRITES / ENDINGS;
            if (at % parts != part || !is_case(how, ending) || (is_told && how == STORE)) continue;
            /* The same draw at all ranks. */
            uint64_t mixed = (seed + at + 1) * 0x9E3779B97F4A7C15u;
            mixed = (mixed ^ mixed >> 32) * 0xD6E8FEB86659FD93u;
            if (drawn != 0 && (mixed >> 11) % square >= (uint64_t)drawn) continue;
            run(way, how, ending, reading);
            ++cases;
        }
    }
    MPI_Win_unlock_all(win);
    end_ways();
    MPI_Win_free(&win);
    MPI_Finalize();
    if (rank == 0) printf("done: %d cases of %d ways to learn, %d to write\n", cases, all, WRITES);
    return 0;
}
