/* Atomic domains: all operations on numbers of all types, their effects and results, and many ranks on one number. */
#include "ex_check.h"

#include <gasnet_ratomic.h>

enum { PAGE_BYTES = 64 << 10, PAGES = 16, ROUNDS = 200 };

#define NUMBERS \
    (GEX_OP_ADD | GEX_OP_SUB | GEX_OP_MULT | GEX_OP_MIN | GEX_OP_MAX | GEX_OP_INC | GEX_OP_DEC | GEX_OP_SET | GEX_OP_CAS | \
     GEX_OP_FADD | GEX_OP_FSUB | GEX_OP_FMULT | GEX_OP_FMIN | GEX_OP_FMAX | GEX_OP_FINC | GEX_OP_FDEC | GEX_OP_SWAP | GEX_OP_FCAS | \
     GEX_OP_GET)
#define BITS (GEX_OP_AND | GEX_OP_OR | GEX_OP_XOR | GEX_OP_FAND | GEX_OP_FOR | GEX_OP_FXOR)

#define IS_FETCHING(op) ((op) >= GEX_OP_FAND)

/* The results of the operations on bits of two integers, as cases of a switch, or none of them. */
#define CASES_OF_BITS \
    case GEX_OP_AND: return old & a; \
    case GEX_OP_OR: return old | a; \
    case GEX_OP_XOR: return old ^ a;
#define NO_CASES

/* A number used only by this rank, in one of the pages of a rank's segment. */
static void *number(const struct ex_job *job, gex_Rank_t rank, unsigned page) {
    return ex_base(job->tm, rank) + (size_t)(page % PAGES) * PAGE_BYTES + 4096 * (job->me + 1);
}

/* One operation on a number of each rank, explicit and implicit. The result goes to the own segment or elsewhere. */
#define OPERATIONS(SUFFIX, T, SETS, CASES) \
    static T applied_##SUFFIX(gex_OP_t op, T old, T a, T b) { \
        switch (IS_FETCHING(op) && op != GEX_OP_GET ? GEX_OP_TO_NONFETCHING(op) : op) { \
            CASES \
        case GEX_OP_ADD: return old + a; \
        case GEX_OP_SUB: return old - a; \
        case GEX_OP_MULT: return old * a; \
        case GEX_OP_MIN: return old < a ? old : a; \
        case GEX_OP_MAX: return old > a ? old : a; \
        case GEX_OP_INC: return old + 1; \
        case GEX_OP_DEC: return old - 1; \
        case GEX_OP_SET: return a; \
        case GEX_OP_CAS: return old == a ? b : old; \
        default: return old; \
        } \
    } \
\
    static void one_##SUFFIX(const struct ex_job *job, gex_AD_t ad, gex_OP_t op, gex_Rank_t rank, unsigned at, T old, T a, T b) { \
        const T untouched = 77; \
        T elsewhere = untouched, is = untouched; \
        T *result = at % 3 == 0 ? (T *)(job->base + 64) : &elsewhere; \
        void *place = number(job, rank, at); \
        gex_EC_t category = op == GEX_OP_SET ? GEX_EC_PUT : op == GEX_OP_GET ? GEX_EC_GET : GEX_EC_RMW; \
        *result = untouched; \
        gex_Event_Wait(gex_AD_OpNB_##SUFFIX(ad, NULL, rank, place, GEX_OP_SET, old, 0, GEX_FLAG_AD_REL)); \
        if (at % 2 == 0) { \
            gex_Event_Wait(gex_AD_OpNB_##SUFFIX(ad, result, rank, place, op, a, b, GEX_FLAG_AD_ACQ | GEX_FLAG_AD_REL)); \
        } else { \
            CHECK(gex_AD_OpNBI_##SUFFIX(ad, result, rank, place, op, a, b, GEX_FLAG_RANK_IS_JOBRANK) == 0); \
            gex_NBI_Wait(category, 0); \
        } \
        CHECK(*result == (IS_FETCHING(op) ? old : untouched)); \
        gex_Event_Wait(gex_AD_OpNB_##SUFFIX(ad, &is, rank, place, GEX_OP_GET, 0, 0, 0)); \
        CHECK(is == applied_##SUFFIX(op, old, a, b)); \
    } \
\
    static void type_##SUFFIX(const struct ex_job *job) { \
        const gex_OP_t ops = SETS; \
        const T values[][3] = {{0, 0, 0}, {5, 3, 9}, {5, 5, 9}, {3, 5, 1}, {(T)-4, 6, 2}, {6, (T)-4, 2}}; \
        unsigned at = 0, bit, value; \
        gex_Rank_t rank; \
        gex_AD_t ad = GEX_AD_INVALID; \
        gex_AD_Create(&ad, job->tm, GEX_DT_##SUFFIX, ops, GEX_FLAG_AD_FAVOR_REMOTE); \
        CHECK(ad != GEX_AD_INVALID); \
        CHECK(gex_AD_QueryTM(ad) == job->tm); \
        CHECK_EQ(gex_AD_QueryDT(ad), GEX_DT_##SUFFIX); \
        CHECK_EQ(gex_AD_QueryOps(ad), ops); \
        CHECK_EQ(gex_AD_QueryFlags(ad), GEX_FLAG_AD_FAVOR_REMOTE); \
        CHECK(gex_AD_QueryCData(ad) == NULL); \
        gex_AD_SetCData(ad, &at); \
        CHECK(gex_AD_QueryCData(ad) == &at); \
        for (bit = 0; bit < 28; ++bit) { \
            gex_OP_t op = (gex_OP_t)1 << bit; \
            if (!(ops & op)) continue; \
            for (rank = 0; rank < job->ranks; ++rank) { \
                for (value = 0; value < sizeof values / sizeof *values; ++value, ++at) { \
                    one_##SUFFIX(job, ad, op, rank, at, values[value][0], values[value][1], values[value][2]); \
                } \
            } \
        } \
        ex_barrier(job); \
        gex_AD_Destroy(ad); \
    }

OPERATIONS(I32, int32_t, NUMBERS | BITS, CASES_OF_BITS)
OPERATIONS(U32, uint32_t, NUMBERS | BITS, CASES_OF_BITS)
OPERATIONS(I64, int64_t, NUMBERS | BITS, CASES_OF_BITS)
OPERATIONS(U64, uint64_t, NUMBERS | BITS, CASES_OF_BITS)
OPERATIONS(FLT, float, NUMBERS, NO_CASES)
OPERATIONS(DBL, double, NUMBERS, NO_CASES)

/* A number used by all ranks at once, in a page of the last rank. */
static void *shared(const struct ex_job *job, unsigned which) {
    return ex_base(job->tm, job->ranks - 1) + 5 * (size_t)PAGE_BYTES + 8 * which;
}

/* No addition of any rank is lost, and each one returns a different sum. */
static void sums(const struct ex_job *job) {
    const gex_Rank_t owner = job->ranks - 1;
    int64_t seen[ROUNDS], sum = 0;
    float part = 0;
    double whole = 0;
    gex_AD_t integers, singles, doubles;
    int i;
    gex_AD_Create(&integers, job->tm, GEX_DT_I64, GEX_OP_FADD | GEX_OP_GET, GEX_FLAG_PEER_SEG_OFFSET);
    CHECK_EQ(gex_AD_QueryFlags(integers), GEX_FLAG_PEER_SEG_OFFSET);
    gex_AD_Create(&singles, job->tm, GEX_DT_FLT, GEX_OP_ADD | GEX_OP_GET, GEX_FLAG_AD_FAVOR_MY_NBRHD);
    gex_AD_Create(&doubles, job->tm, GEX_DT_DBL, GEX_OP_SUB | GEX_OP_GET, GEX_FLAG_AD_FAVOR_MY_RANK);
    gex_NBI_BeginAccessRegion(0);
    for (i = 0; i < ROUNDS; ++i) {
        gex_AD_OpNBI_I64(integers, &seen[i], owner, shared(job, 0), GEX_OP_FADD, 1, 0, 0);
        gex_AD_OpNBI_FLT(singles, NULL, owner, shared(job, 1), GEX_OP_ADD, 0.5f, 0, 0);
        gex_AD_OpNBI_DBL(doubles, NULL, owner, shared(job, 2), GEX_OP_SUB, 0.25, 0, 0);
    }
    gex_Event_Wait(gex_NBI_EndAccessRegion(0));
    for (i = 0; i < ROUNDS; ++i) {
        int j;
        CHECK(seen[i] >= 0 && seen[i] < (int64_t)job->ranks * ROUNDS);
        for (j = 0; j < i; ++j) CHECK(seen[i] != seen[j]);
    }
    ex_barrier(job);
    gex_AD_OpNBI_I64(integers, &sum, owner, shared(job, 0), GEX_OP_GET, 0, 0, 0);
    gex_AD_OpNBI_FLT(singles, &part, owner, shared(job, 1), GEX_OP_GET, 0, 0, 0);
    gex_AD_OpNBI_DBL(doubles, &whole, owner, shared(job, 2), GEX_OP_GET, 0, 0, 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    CHECK(sum == (int64_t)job->ranks * ROUNDS);
    CHECK(part == 0.5f * (float)(job->ranks * ROUNDS));
    CHECK(whole == -0.25 * (double)(job->ranks * ROUNDS));
    ex_barrier(job);
    gex_AD_Destroy(integers);
    gex_AD_Destroy(singles);
    gex_AD_Destroy(doubles);
}

/* Each rank adds by compare-and-swap, and leaves the largest rank. */
static void swaps(const struct ex_job *job) {
    const gex_Rank_t owner = job->ranks - 1;
    uint32_t value = 0, largest = 0;
    gex_AD_t ad;
    int i;
    gex_AD_Create(&ad, job->tm, GEX_DT_U32, GEX_OP_FCAS | GEX_OP_MAX | GEX_OP_GET, 0);
    for (i = 0; i < ROUNDS / 4; ++i) {
        for (;;) {
            uint32_t before = value;
            gex_Event_Wait(gex_AD_OpNB_U32(ad, &value, owner, shared(job, 3), GEX_OP_FCAS, before, before + 1, 0));
            if (value == before) break;
        }
    }
    gex_Event_Wait(gex_AD_OpNB_U32(ad, NULL, owner, shared(job, 4), GEX_OP_MAX, job->me, 0, 0));
    ex_barrier(job);
    gex_Event_Wait(gex_AD_OpNB_U32(ad, &value, owner, shared(job, 3), GEX_OP_GET, 0, 0, 0));
    gex_Event_Wait(gex_AD_OpNB_U32(ad, &largest, owner, shared(job, 4), GEX_OP_GET, 0, 0, 0));
    CHECK_EQ(value, job->ranks * (ROUNDS / 4));
    CHECK_EQ(largest, job->ranks - 1);
    ex_barrier(job);
    gex_AD_Destroy(ad);
}

/* A rank waits for another rank's update, with operations on its own numbers only. */
static void signals(const struct ex_job *job) {
    const gex_Rank_t next = (job->me + 1) % job->ranks;
    uint64_t value = 0;
    gex_AD_t ad;
    gex_AD_Create(&ad, job->tm, GEX_DT_U64, GEX_OP_INC | GEX_OP_GET | GEX_OP_SWAP, 0);
    ex_barrier(job);
    gex_Event_Wait(gex_AD_OpNB_U64(ad, NULL, next, ex_base(job->tm, next) + 2048, GEX_OP_INC, 0, 0, GEX_FLAG_AD_REL));
    while (value != 1) {
        gex_Event_Wait(gex_AD_OpNB_U64(ad, &value, job->me, job->base + 2048, GEX_OP_GET, 0, 0, GEX_FLAG_AD_MY_RANK | GEX_FLAG_AD_ACQ));
        gasnet_AMPoll();
    }
    gex_Event_Wait(gex_AD_OpNB_U64(ad, &value, job->me, job->base + 2048, GEX_OP_SWAP, 40, 0, GEX_FLAG_AD_MY_NBRHD));
    CHECK_EQ(value, 1);
    CHECK_EQ(*(volatile uint64_t *)(job->base + 2048), 40);
    ex_barrier(job);
    gex_AD_Destroy(ad);
}

/* A rank creates the domain after the rank before it: the call does not synchronise. */
static void one_after_the_other(const struct ex_job *job) {
    volatile uint64_t *turn = (volatile uint64_t *)(job->base + 3072);
    const uint64_t one = 1;
    uint64_t value = 7;
    gex_AD_t ad;
    while (job->me > 0 && *turn == 0) gasnet_AMPoll();
    gex_AD_Create(&ad, job->tm, GEX_DT_U64, GEX_OP_GET, 0);
    if (job->me + 1 < job->ranks) {
        CHECK(gex_RMA_PutBlocking(job->tm, job->me + 1, ex_base(job->tm, job->me + 1) + 3072, &one, sizeof one, 0) == 0);
    }
    ex_barrier(job);
    gex_Event_Wait(gex_AD_OpNB_U64(ad, &value, 0, ex_base(job->tm, 0) + 3072, GEX_OP_GET, 0, 0, 0));
    CHECK_EQ(value, 0);
    ex_barrier(job);
    gex_AD_Destroy(ad);
}

int main(void) {
    struct ex_job job = ex_start();
    ex_attach(&job, 2, NULL, 0);
    CHECK(job.size >= PAGES * (uintptr_t)PAGE_BYTES);
    ex_barrier(&job);
    one_after_the_other(&job);
    sums(&job);
    swaps(&job);
    signals(&job);
    type_I32(&job);
    type_U32(&job);
    type_I64(&job);
    type_U64(&job);
    type_FLT(&job);
    type_DBL(&job);
    return 0;
}
