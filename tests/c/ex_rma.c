/* GASNet-EX: gets and puts with all kinds of completion, by team and by pair, on segments larger than the pools. */
#include "ex_check.h"

enum { SLOTS = 64, LARGE = 96 << 10 };

static unsigned char letter(gex_Rank_t rank, unsigned slot) { return (unsigned char)(rank * 67 + slot * 13 + 1); }

/* Slots are spread over the segment, so that most accesses miss. */
static char *slot_of(const struct ex_job *job, gex_Rank_t rank, unsigned slot) {
    return ex_base(job->tm, rank) + (job->size / SLOTS) * slot + 8 * slot;
}

static gex_Rank_t next_of(const struct ex_job *job) { return (job->me + 1) % job->ranks; }
static gex_Rank_t last_of(const struct ex_job *job) { return (job->me + job->ranks - 1) % job->ranks; }

/* Checks the last rank's put to this slot. */
static void check_put(const struct ex_job *job, unsigned slot, size_t bytes, unsigned char is) {
    static unsigned char got[LARGE];
    size_t at;
    ex_barrier(job);
    memset(got, 0, bytes);
    CHECK(gex_RMA_GetBlocking(job->tm, got, job->me, slot_of(job, job->me, slot), bytes, 0) == 0);
    for (at = 0; at < bytes; ++at) CHECK_EQ(got[at], is);
    ex_barrier(job);
}

/* Puts with each kind of local completion, of few and of many bytes. */
static void puts_of(const struct ex_job *job, gex_TM_t tm, size_t bytes, unsigned first) {
    static unsigned char source[LARGE];
    gex_Rank_t to = next_of(job), from = last_of(job);
    gex_Event_t leaf = GEX_EVENT_NO_OP, root;
    unsigned char one = letter(job->me, first), is = letter(from, first);
    memset(source, one, bytes);
    CHECK(gex_RMA_PutBlocking(tm, to, slot_of(job, to, first), source, bytes, 0) == 0);
    memset(source, 0xEE, bytes);
    check_put(job, first, bytes, is);

    memset(source, one, bytes);
    root = gex_RMA_PutNB(tm, to, slot_of(job, to, first + 1), source, bytes, GEX_EVENT_NOW, 0);
    memset(source, 0xEE, bytes);
    gex_Event_Wait(root);
    check_put(job, first + 1, bytes, is);

    memset(source, one, bytes);
    root = gex_RMA_PutNB(tm, to, slot_of(job, to, first + 2), source, bytes, GEX_EVENT_DEFER, 0);
    while (gex_Event_Test(root) != GASNET_OK) gasnet_AMPoll();
    check_put(job, first + 2, bytes, is);

    /* The leaf before its root. It stays the same until then. */
    root = gex_RMA_PutNB(tm, to, slot_of(job, to, first + 3), source, bytes, &leaf, 0);
    CHECK(leaf != GEX_EVENT_NO_OP);
    if (leaf != GEX_EVENT_INVALID) CHECK(leaf != root && gex_Event_QueryLeaf(root, GEX_EC_LC) == leaf);
    /* An invalid leaf means local completion. The root's leaf must agree. */
    else CHECK(gex_Event_Test(gex_Event_QueryLeaf(root, GEX_EC_LC)) == GASNET_OK);
    gex_Event_Wait(leaf);
    memset(source, 0xEE, bytes);
    gex_Event_Wait(root);
    check_put(job, first + 3, bytes, is);

    memset(source, one, bytes);
    CHECK(gex_RMA_PutNBI(tm, to, slot_of(job, to, first + 4), source, bytes, GEX_EVENT_GROUP, 0) == 0);
    gex_NBI_Wait(GEX_EC_LC, 0);
    memset(source, 0xEE, bytes);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    check_put(job, first + 4, bytes, is);

    memset(source, one, bytes);
    CHECK(gex_RMA_PutNBI(tm, to, slot_of(job, to, first + 5), source, bytes, GEX_EVENT_NOW, 0) == 0);
    memset(source, 0xEE, bytes);
    /* An empty set of categories is complete. */
    CHECK(gex_NBI_Test(0, 0) == GASNET_OK);
    gex_NBI_Wait(0, 0);
    while (gex_NBI_Test(GEX_EC_PUT, 0) != GASNET_OK) gasnet_AMPoll();
    check_put(job, first + 5, bytes, is);

    memset(source, one, bytes);
    gex_NBI_BeginAccessRegion(0);
    CHECK(gex_RMA_PutNBI(tm, to, slot_of(job, to, first + 6), source, bytes, GEX_EVENT_DEFER, 0) == 0);
    CHECK(gex_RMA_PutNBI(tm, to, slot_of(job, to, first + 7), source, bytes, GEX_EVENT_GROUP, 0) == 0);
    root = gex_NBI_EndAccessRegion(0);
    leaf = gex_Event_QueryLeaf(root, GEX_EC_LC);
    CHECK(gex_Event_QueryLeaf(root, GEX_EC_LC) == leaf);
    gex_Event_Wait(leaf);
    gex_Event_Wait(root);
    check_put(job, first + 6, bytes, is);
    check_put(job, first + 7, bytes, is);
}

/* Every number of bytes from 0 to more than a value, at every alignment. */
static void small_ones(const struct ex_job *job) {
    gex_Rank_t to = next_of(job);
    unsigned char out[32], in[32];
    size_t bytes, shift;
    for (bytes = 0; bytes <= 17; ++bytes) {
        for (shift = 0; shift < 8; ++shift) {
            char *there = slot_of(job, to, 40) + shift;
            memset(out, (int)(bytes * 8 + shift + 1), sizeof out);
            memset(in, 0, sizeof in);
            CHECK(gex_RMA_PutBlocking(job->tm, to, there, out, bytes, 0) == 0);
            CHECK(gex_RMA_GetBlocking(job->tm, in, to, there, bytes, 0) == 0);
            CHECK(memcmp(in, out, bytes) == 0 && in[bytes] == 0);
        }
    }
    /* A transfer of nothing may be anywhere. */
    CHECK(gex_RMA_PutBlocking(job->tm, to, NULL, NULL, 0, 0) == 0 && gex_RMA_GetBlocking(job->tm, NULL, to, NULL, 0, 0) == 0);
    CHECK(gex_RMA_PutNB(job->tm, to, NULL, NULL, 0, GEX_EVENT_NOW, 0) == GEX_EVENT_INVALID);
}

static void values(const struct ex_job *job) {
    gex_Rank_t to = next_of(job);
    char *there = slot_of(job, to, 41);
    const gex_RMA_Value_t value = UINT64_C(0x8877665544332211);
    size_t bytes;
    for (bytes = 1; bytes <= sizeof value; ++bytes) {
        gex_RMA_Value_t should = bytes == 8 ? value : value & ((UINT64_C(1) << (8 * bytes)) - 1);
        CHECK(gex_RMA_PutBlockingVal(job->tm, to, there, value, bytes, 0) == 0);
        CHECK_EQ(gex_RMA_GetBlockingVal(job->tm, to, there, bytes, 0), should);
        CHECK(gex_RMA_PutNBIVal(job->tm, to, there + 8, value, bytes, 0) == 0);
        gex_Event_Wait(gex_RMA_PutNBVal(job->tm, to, there + 16, value, bytes, 0));
        gex_NBI_Wait(GEX_EC_ALL, 0);
        CHECK_EQ(gex_RMA_GetBlockingVal(job->tm, to, there + 8, bytes, 0), should);
        CHECK_EQ(gex_RMA_GetBlockingVal(job->tm, to, there + 16, bytes, 0), should);
    }
}

/* Arrays of events: empty, all invalid, with leaves before and behind their roots. */
static void arrays(const struct ex_job *job) {
    static unsigned char source[LARGE], sink[SLOTS / 2][8];
    gex_Event_t events[SLOTS], none[3] = {GEX_EVENT_INVALID, GEX_EVENT_INVALID, GEX_EVENT_INVALID};
    gex_Rank_t to = next_of(job);
    unsigned at, done = 0;
    CHECK(gex_Event_TestAll(NULL, 0, 0) == 0 && gex_Event_TestSome(NULL, 0, 0) == 0);
    CHECK(gex_Event_TestAll(none, 3, 0) == 0 && gex_Event_TestSome(none, 3, 0) == 0);
    gex_Event_WaitAll(NULL, 0, 0);
    gex_Event_WaitSome(NULL, 0, 0);
    gex_Event_WaitAll(none, 3, 0);
    gex_Event_WaitSome(none, 3, 0);
    CHECK(gex_Event_Test(GEX_EVENT_INVALID) == 0 && gex_Event_QueryLeaf(GEX_EVENT_INVALID, GEX_EC_LC) == GEX_EVENT_INVALID);
    gex_Event_Wait(GEX_EVENT_INVALID);
    memset(source, 5, sizeof source);
    for (at = 0; at < 8; ++at) {
        gex_Event_t leaf, root = gex_RMA_PutNB(job->tm, to, slot_of(job, to, 8 * at), source, LARGE, &leaf, 0);
        /* Half of them in reverse order. */
        events[2 * at + (at & 1)] = leaf;
        events[2 * at + 1 - (at & 1)] = root;
    }
    gex_Event_WaitAll(events, 16, 0);
    for (at = 0; at < 16; ++at) CHECK(events[at] == GEX_EVENT_INVALID);
    for (at = 0; at < SLOTS / 2; ++at) {
        events[at] = gex_RMA_GetNB(job->tm, sink[at], to, slot_of(job, to, at), 8, 0);
    }
    while (done < SLOTS / 2) {
        gex_Event_WaitSome(events, SLOTS / 2, 0);
        for (at = 0, done = 0; at < SLOTS / 2; ++at) done += events[at] == GEX_EVENT_INVALID;
        CHECK(done > 0);
    }
    for (at = 0; at < SLOTS / 2; at += 8) CHECK_EQ(sink[at][0], 5);
    for (at = 0; at < 8; ++at) CHECK(gex_RMA_GetNBI(job->tm, sink[at], to, slot_of(job, to, 8 * at), 8, 0) == 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    for (at = 0; at < 8; ++at) CHECK_EQ(sink[at][7], 5);
}

/* Puts from the own segment to another rank's have an event, even if both pages are here. */
static void between_segments(const struct ex_job *job) {
    gex_Rank_t to = next_of(job);
    char *source = slot_of(job, job->me, 60);
    memset(source, letter(job->me, 60), 8);
    for (int i = 0; i < 20; ++i) {
        gex_Event_t root = gex_RMA_PutNB(job->tm, to, slot_of(job, to, 61), source, 8, GEX_EVENT_DEFER, 0);
        CHECK(to == job->me || root != GEX_EVENT_INVALID);
        gex_Event_Wait(root);
    }
    check_put(job, 61, 8, letter(last_of(job), 60));
}

int main(void) {
    struct ex_job job = ex_start();
    ex_attach(&job, 4, NULL, 0);
    puts_of(&job, job.tm, 24, 0);
    puts_of(&job, gex_TM_Pair(job.ep, 0), LARGE, 16);
    small_ones(&job);
    between_segments(&job);
    values(&job);
    ex_barrier(&job);
    arrays(&job);
    ex_barrier(&job);
    return 0;
}
