/* GASNet-EX: barriers, broadcasts and reductions, over all ranks and over some, in heap and segment. */
#include "ex_check.h"

#include <gasnet_coll.h>

#ifdef GASNET_PAR
#include <pthread.h>
#include <time.h>
#endif

enum { HERE = 200, OPEN_MAX = 40 };

static struct ex_job job;
static volatile unsigned here;

static void on_here(gex_Token_t token) {
    (void)token;
    ++here;
}

/* No rank passes before rank 0 has entered, and rank 0 enters after all others have tried. */
static void barrier_waits(void) {
    gex_Event_t event;
    if (job.me > 0) {
        event = gex_Coll_BarrierNB(job.tm, 0);
        CHECK_EQ(gex_Event_Test(event), GASNET_ERR_NOT_READY);
        gasnet_AMPoll();
        CHECK_EQ(gex_Event_Test(event), GASNET_ERR_NOT_READY);
        CHECK(gex_AM_RequestShort(job.tm, 0, HERE, 0) == 0);
    } else {
        GASNET_BLOCKUNTIL(here == job.ranks - 1);
        event = gex_Coll_BarrierNB(job.tm, 0);
    }
    /* A test does not poll. The client does. */
    while (gex_Event_Test(event) != GASNET_OK) gasnet_AMPoll();
}

/* More than the library's limit in flight, on two teams, synced in several orders. */
static void many_barriers(gex_TM_t some) {
    gex_Event_t events[OPEN_MAX], on_some[OPEN_MAX], none[3] = {GEX_EVENT_INVALID, GEX_EVENT_INVALID, GEX_EVENT_INVALID};
    int at;
    for (at = 0; at < OPEN_MAX; ++at) {
        events[at] = gex_Coll_BarrierNB(job.tm, 0);
        on_some[at] = gex_Coll_BarrierNB(some, 0);
    }
    for (at = OPEN_MAX - 1; at >= 0; --at) gex_Event_Wait(on_some[at]);
    gex_Event_WaitAll(events, OPEN_MAX, 0);
    for (at = 0; at < OPEN_MAX; ++at) CHECK(events[at] == GEX_EVENT_INVALID);
    gex_Event_WaitAll(none, 3, 0);
    CHECK_EQ(gex_Event_TestAll(events, OPEN_MAX, 0), GASNET_OK);
    gex_Coll_BarrierBlocking(some, 0);
}

static unsigned char byte_of(gex_Rank_t root, size_t number, size_t at) { return (unsigned char)(root * 31 + number * 7 + at * 13 + at / 251); }

/* Copies bytes to an address of the caller, and back. In the segment loads may not reach them. */
static int is_in_segment(const char *address) { return address >= job.base && address < job.base + job.size; }

static void store(char *to, const char *from, size_t length) {
    if (is_in_segment(to)) {
        gex_RMA_PutBlocking(job.tm, job.me, to, from, length, 0);
    } else {
        memcpy(to, from, length);
    }
}

static void load(char *to, char *from, size_t length) {
    if (is_in_segment(from)) {
        gex_RMA_GetBlocking(job.tm, to, job.me, from, length, 0);
    } else {
        memcpy(to, from, length);
    }
}

/* Several open at once, from each root. Some sources are the destinations. */
static void broadcasts(gex_TM_t tm, char *sources, char *destinations, size_t length) {
    gex_Rank_t rank = gex_TM_QueryRank(tm), size = gex_TM_QuerySize(tm);
    gex_Event_t events[8];
    size_t number, at;
    char *bytes = (char *)malloc(length + 1);
    CHECK(bytes != NULL);
    for (number = 0; number < 8; ++number) {
        gex_Rank_t root = (gex_Rank_t)(number % size);
        char *to = destinations + number * length, *from = number % 3 == 0 ? to : sources + number * length;
        if (rank == root) {
            for (at = 0; at < length; ++at) bytes[at] = (char)byte_of(root, number, at);
            store(from, bytes, length);
        }
        events[number] = gex_Coll_BroadcastNB(tm, root, to, rank == root ? from : NULL, length, 0);
    }
    gex_Event_WaitAll(events, 8, 0);
    for (number = 0; number < 8; ++number) {
        load(bytes, destinations + number * length, length);
        for (at = 0; at < length; ++at) CHECK_EQ((unsigned char)bytes[at], byte_of((gex_Rank_t)(number % size), number, at));
    }
    free(bytes);
}

static void broadcasts_anywhere(gex_TM_t tm) {
    const size_t lengths[] = {0, 1, 1000, 70001};
    unsigned at;
    for (at = 0; at < 4; ++at) {
        size_t length = lengths[at];
        char *sources = (char *)malloc(8 * length + 1), *destinations = (char *)malloc(8 * length + 1);
        CHECK(sources != NULL && destinations != NULL);
        broadcasts(tm, sources, destinations, length);
        broadcasts(tm, job.base + 4096, job.base + 4096 + 8 * length, length);
        free(sources);
        free(destinations);
    }
}

/* One operation of one type: to one rank, to all, and to all in place. OPERAND is a rank's value of an element. */
#define REDUCE(tm, suffix, type, operation, apply) \
    do { \
        const size_t counts[] = {0, 1, 7, 5000}; \
        gex_Rank_t rank_ = gex_TM_QueryRank(tm), size_ = gex_TM_QuerySize(tm), other_, root_; \
        unsigned which_; \
        for (which_ = 0; which_ < 4; ++which_) { \
            size_t count_ = counts[which_], at_; \
            type *source_ = (type *)malloc((count_ + 1) * sizeof(type)), *to_one_ = (type *)malloc((count_ + 1) * sizeof(type)); \
            type *to_all_ = (type *)malloc((count_ + 1) * sizeof(type)), *should_ = (type *)malloc((count_ + 1) * sizeof(type)); \
            gex_Event_t events_[2]; \
            for (at_ = 0; at_ < count_; ++at_) { \
                source_[at_] = (type)OPERAND(rank_, at_); \
                should_[at_] = (type)OPERAND(0, at_); \
                for (other_ = 1; other_ < size_; ++other_) { \
                    type a = should_[at_], b = (type)OPERAND(other_, at_); \
                    should_[at_] = (type)(apply); \
                } \
            } \
            root_ = (gex_Rank_t)(which_ % size_); \
            events_[0] = gex_Coll_ReduceToOneNB(tm, root_, rank_ == root_ ? to_one_ : NULL, source_, GEX_DT_##suffix, sizeof(type), \
                                                count_, operation, NULL, NULL, 0); \
            events_[1] = gex_Coll_ReduceToAllNB(tm, to_all_, source_, GEX_DT_##suffix, sizeof(type), count_, operation, NULL, NULL, 0); \
            gex_Event_WaitAll(events_, 2, 0); \
            CHECK(rank_ != root_ || memcmp(to_one_, should_, count_ * sizeof(type)) == 0); \
            CHECK(memcmp(to_all_, should_, count_ * sizeof(type)) == 0); \
            gex_Event_Wait(gex_Coll_ReduceToAllNB(tm, source_, source_, GEX_DT_##suffix, sizeof(type), count_, operation, NULL, NULL, 0)); \
            CHECK(memcmp(source_, should_, count_ * sizeof(type)) == 0); \
            free(source_); \
            free(to_one_); \
            free(to_all_); \
            free(should_); \
        } \
    } while (0)

/* Small enough for products of floats to be exact, and of both signs for signed types. */
#define OPERAND(rank, at) (((at) + (rank)) % 5 + 1)
#define OF_ALL_TYPES(tm, suffix, type) \
    do { \
        REDUCE(tm, suffix, type, GEX_OP_ADD, a + b); \
        REDUCE(tm, suffix, type, GEX_OP_MULT, a * b); \
        REDUCE(tm, suffix, type, GEX_OP_MIN, a < b ? a : b); \
        REDUCE(tm, suffix, type, GEX_OP_MAX, a > b ? a : b); \
    } while (0)
#define OF_INTEGERS(tm, suffix, type) \
    do { \
        OF_ALL_TYPES(tm, suffix, type); \
        REDUCE(tm, suffix, type, GEX_OP_AND, a & b); \
        REDUCE(tm, suffix, type, GEX_OP_OR, a | b); \
        REDUCE(tm, suffix, type, GEX_OP_XOR, a ^ b); \
    } while (0)

static void unsigned_reductions(gex_TM_t tm) {
    OF_INTEGERS(tm, U32, uint32_t);
    OF_INTEGERS(tm, U64, uint64_t);
}

#undef OPERAND
#define OPERAND(rank, at) ((int)(((at) + (rank)) % 7) - 3)

static void signed_reductions(gex_TM_t tm) {
    OF_INTEGERS(tm, I32, int32_t);
    OF_INTEGERS(tm, I64, int64_t);
}

#undef OPERAND
#define OPERAND(rank, at) (((at) + (rank)) % 4 == 0 ? 0.5 : (((at) + (rank)) % 4) * -2.0)

static void float_reductions(gex_TM_t tm) {
    OF_ALL_TYPES(tm, FLT, float);
    OF_ALL_TYPES(tm, DBL, double);
}

/* Elements of 32 KiB and 4 bytes: a sum, and the client's data in each word. */
enum { WORDS = 8193 };

static int cdata_of_sum;

static void sum(const void *left, void *right, size_t count, const void *cdata) {
    const uint32_t *from = (const uint32_t *)left;
    uint32_t *to = (uint32_t *)right;
    size_t at;
    CHECK(cdata == &cdata_of_sum && left != right && count > 0);
    for (at = 0; at < count * WORDS; ++at) to[at] += from[at];
}

static void large_elements(gex_TM_t tm) {
    gex_Rank_t rank = gex_TM_QueryRank(tm), size = gex_TM_QuerySize(tm), root = size - 1;
    size_t count = 3, at, bytes = count * WORDS * sizeof(uint32_t);
    uint32_t *source = (uint32_t *)malloc(bytes), *to_all = (uint32_t *)malloc(bytes), *to_one = (uint32_t *)malloc(bytes);
    gex_Event_t events[2];
    CHECK(source != NULL && to_all != NULL && to_one != NULL);
    for (at = 0; at < count * WORDS; ++at) source[at] = rank + 1 + (uint32_t)at;
    events[0] = gex_Coll_ReduceToOneNB(tm, root, to_one, source, GEX_DT_USER, WORDS * sizeof(uint32_t), count, GEX_OP_USER, sum,
                                       &cdata_of_sum, 0);
    events[1] = gex_Coll_ReduceToAllNB(tm, to_all, source, GEX_DT_USER, WORDS * sizeof(uint32_t), count, GEX_OP_USER, sum,
                                       &cdata_of_sum, 0);
    gex_Event_WaitAll(events, 2, 0);
    for (at = 0; at < count * WORDS; ++at) {
        uint32_t should = (uint32_t)(size * (size + 1) / 2 + size * at);
        CHECK_EQ(to_all[at], should);
        CHECK(rank != root || to_one[at] == should);
    }
    free(source);
    free(to_all);
    free(to_one);
}

/* A client's function for a built-in type, with operands in the order of ranks: digits of a number. */
struct digits {
    uint64_t value, scale;
};

static void append(const void *left, void *right, size_t count, const void *cdata) {
    const struct digits *from = (const struct digits *)left;
    struct digits *to = (struct digits *)right;
    size_t at;
    CHECK(cdata == NULL);
    for (at = 0; at < count; ++at) {
        to[at].value += from[at].value * to[at].scale;
        to[at].scale *= from[at].scale;
    }
}

static void least(const void *left, void *right, size_t count, const void *cdata) {
    const double *from = (const double *)left;
    double *to = (double *)right;
    size_t at;
    for (at = 0; at < count; ++at) to[at] = from[at] < to[at] ? from[at] : to[at];
    CHECK(cdata == &job);
}

static void functions_of_the_client(gex_TM_t tm) {
    gex_Rank_t rank = gex_TM_QueryRank(tm), size = gex_TM_QuerySize(tm), other;
    struct digits given[3], got[3];
    double value = 10.0 - rank, result = 0;
    uint64_t should = 0;
    int at;
    for (other = 0; other < size; ++other) should = should * 10 + other % 10;
    for (at = 0; at < 3; ++at) given[at].value = rank % 10, given[at].scale = 10;
    gex_Event_Wait(gex_Coll_ReduceToAllNB(tm, got, given, GEX_DT_USER, sizeof given[0], 3, GEX_OP_USER_NC, append, NULL, 0));
    for (at = 0; at < 3; ++at) CHECK_EQ(got[at].value, should);
    gex_Event_Wait(gex_Coll_ReduceToOneNB(tm, 0, &result, &value, GEX_DT_DBL, sizeof value, 1, GEX_OP_USER, least, &job, 0));
    CHECK(rank != 0 || result == 10.0 - (size - 1));
}

/* A vector of several pools, from segment to segment, and in place. */
static void reductions_in_the_segment(gex_TM_t tm) {
    gex_Rank_t rank = gex_TM_QueryRank(tm), size = gex_TM_QuerySize(tm);
    size_t count = 150000, at;
    uint64_t *values = (uint64_t *)malloc(count * sizeof *values);
    char *from = job.base, *to = job.base + count * sizeof *values;
    int is_in_place;
    CHECK(values != NULL && 2 * count * sizeof *values <= job.size);
    for (is_in_place = 0; is_in_place < 2; ++is_in_place) {
        for (at = 0; at < count; ++at) values[at] = at * 3 + rank;
        gex_RMA_PutBlocking(tm, rank, from, values, count * sizeof *values, 0);
        gex_Event_Wait(gex_Coll_ReduceToAllNB(tm, is_in_place ? from : to, from, GEX_DT_U64, sizeof *values, count, GEX_OP_ADD, NULL,
                                              NULL, 0));
        gex_RMA_GetBlocking(tm, values, rank, is_in_place ? from : to, count * sizeof *values, 0);
        for (at = 0; at < count; ++at) CHECK_EQ(values[at], size * 3 * at + size * (size - 1) / 2);
    }
    free(values);
}

#ifdef GASNET_PAR
static void *wait_there(void *event) {
    gex_Event_Wait(*(gex_Event_t *)event);
    return NULL;
}
#endif

/* Another thread waits for the event of a collective than the one that has begun it. */
static void waited_for_elsewhere(gex_TM_t tm) {
#ifdef GASNET_PAR
    uint64_t value = 1, got = 0;
    gex_Event_t event = gex_Coll_ReduceToAllNB(tm, &got, &value, GEX_DT_U64, sizeof value, 1, GEX_OP_ADD, NULL, NULL, 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wait_there, &event) == 0 && pthread_join(thread, NULL) == 0);
    CHECK_EQ(got, gex_TM_QuerySize(tm));
#endif
    (void)tm;
}

/* Threads of a rank sleep, each in a barrier of its own, until the last rank enters these barriers one by one. */
static void sleepers(void) {
#ifdef GASNET_PAR
    enum { ROUNDS = 20, THREADS = 3 };
    const struct timespec late = {0, 5000000};
    gex_Event_t events[THREADS];
    pthread_t threads[THREADS];
    int round, at;
    for (round = 0; round < ROUNDS; ++round) {
        const int is_last = job.me == (gex_Rank_t)round % job.ranks;
        if (is_last) nanosleep(&late, NULL);
        for (at = 0; at < THREADS; ++at) events[at] = gex_Coll_BarrierNB(job.tm, 0);
        for (at = 0; at < THREADS; ++at) CHECK(pthread_create(&threads[at], NULL, wait_there, &events[at]) == 0);
        for (at = 0; at < THREADS; ++at) CHECK(pthread_join(threads[at], NULL) == 0);
    }
#endif
}

/* The collectives of GASNet-1 that EX has kept. An event stands for a collective in flight. */
static void old_names(void) {
    uint32_t mine = job.me, all[64];
    gasnet_coll_handle_t handles[2];
    gex_Rank_t rank;
    int flags = GASNET_COLL_LOCAL | GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC;
    gex_Event_t event = gasnet_coll_gather_all_nb(GASNET_TEAM_ALL, all, &mine, sizeof mine, flags);
    gex_Event_Wait(event);
    for (rank = 0; rank < job.ranks; ++rank) CHECK_EQ(all[rank], rank);
    handles[0] = gasnet_coll_broadcast_nb(GASNET_TEAM_ALL, &mine, 0, all, sizeof mine, flags);
    handles[1] = GASNET_COLL_INVALID_HANDLE;
    gasnet_coll_wait_sync_all(handles, 2);
    CHECK_EQ(mine, 0);
    gasnet_coll_broadcast(GASNET_TEAM_ALL, &mine, job.ranks - 1, &all[job.ranks - 1], sizeof mine, flags);
    CHECK_EQ(mine, job.ranks - 1);
    gasnet_coll_barrier_notify(GASNET_TEAM_ALL, 3, 0);
    CHECK_EQ(gasnet_coll_barrier_wait(GASNET_TEAM_ALL, 3, 0), GASNET_OK);
}

static void all_of(gex_TM_t tm) {
    broadcasts_anywhere(tm);
    unsigned_reductions(tm);
    signed_reductions(tm);
    float_reductions(tm);
    large_elements(tm);
    functions_of_the_client(tm);
    reductions_in_the_segment(tm);
    waited_for_elsewhere(tm);
}

int main(void) {
    gex_AM_Entry_t table[] = {{HERE, (gex_AM_Fn_t)on_here, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "here"}};
    gex_TM_t some = GEX_TM_INVALID, one = GEX_TM_INVALID;
    job = ex_start();
    ex_attach(&job, 6, table, 1);
    ex_barrier(&job);
    barrier_waits();
    gex_TM_Split(&some, job.tm, (int)(job.me % 2), -(int)job.me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    gex_TM_Split(&one, job.tm, (int)job.me, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    many_barriers(some);
    sleepers();
    all_of(job.tm);
    all_of(some);
    all_of(one);
    old_names();
    CHECK(gex_TM_Destroy(some, NULL, 0) == 0 && gex_TM_Destroy(one, NULL, 0) == 0);
    ex_barrier(&job);
    return 0;
}
