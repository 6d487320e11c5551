/* GASNet-EX operations of 8 bytes or without payload, over any implementation. Arguments: ROUNDS SPREAD_BYTES. Rank 0
 * prints one line per operation: its name, and nanoseconds in each round. The other ranks wait at a barrier meanwhile,
 * like ranks with less work. All bytes are in memory. */
#include <gasnetex.h>
#include <gasnet_ratomic.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BATCH = 1000, EVENTS = 256, HIDX_REQUEST = GEX_AM_INDEX_BASE, HIDX_REPLY, PLACES = 1 << 16 };

static gex_TM_t team;
static gex_AD_t words;
static gex_Rank_t me, ranks;
static unsigned char *bases[2]; /* of the own segment, and of the neighbour's */
static gex_Rank_t owners[2];
static uint32_t places[PLACES]; /* in words */
static unsigned at;
static volatile int replies;

static void fail(const char *what) {
    fprintf(stderr, "operations: rank %u: %s\n", (unsigned)me, what);
    gasnet_exit(1);
}

static void expect_ok(int code, const char *call) {
    if (code != GASNET_OK) fail(call);
}

static void on_request(gex_Token_t token) { gex_AM_ReplyShort0(token, HIDX_REPLY, 0); }

static void on_reply(gex_Token_t token) {
    (void)token;
    ++replies;
}

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void barrier(void) { gex_Event_Wait(gex_Coll_BarrierNB(team, 0)); }

/* The next word of a segment, at a fixed or a random place. A place depends on the result of the previous operation (a
 * small number), so this measures latency, not throughput of overlapping operations. */
static void *next_word(int whose, int is_random, uint64_t brought) {
    at += 1 + (unsigned)(brought >> 63);
    return bases[whose] + 8 * (is_random ? (size_t)places[at % PLACES] : 0);
}

static void put(int whose, int is_random) {
    static uint64_t value = 1;
    if (gex_RMA_PutBlocking(team, owners[whose], next_word(whose, is_random, 0), &value, sizeof value, 0)) fail("a put failed");
}

static void get(int whose, int is_random) {
    static uint64_t value;
    if (gex_RMA_GetBlocking(team, &value, owners[whose], next_word(whose, is_random, value), sizeof value, 0)) fail("a get failed");
    if (value != 1) fail("a get brought other bytes than were put");
}

static void add(int whose, int is_random) {
    static uint64_t before;
    gex_Event_Wait(gex_AD_OpNB_U64(words, &before, owners[whose], next_word(whose, is_random, before), GEX_OP_FADD, 1, 0, 0));
    if (before == 0) fail("an addition found no word");
}

static void message(int whose, int is_random) {
    int expected = replies + 1;
    (void)is_random;
    gex_AM_RequestShort0(team, owners[whose], HIDX_REQUEST, 0);
    GASNET_BLOCKUNTIL(replies == expected);
}

/* Nanoseconds per operation, over many in a row. */
static double timed(void (*operation)(int, int), int whose, int is_random) {
    uint64_t begin = now_ns();
    for (int i = 0; i < BATCH; ++i) operation(whose, is_random);
    return (double)(now_ns() - begin) / BATCH;
}

/* Nanoseconds for testing an event that has happened. */
static double timed_tests(void) {
    static uint64_t before[EVENTS];
    gex_Event_t events[EVENTS];
    for (int i = 0; i < EVENTS; ++i) {
        events[i] = gex_AD_OpNB_U64(words, &before[i], owners[1], next_word(1, 1, 0), GEX_OP_FADD, 0, 0, 0);
    }
    /* Atomic operations of this rank to one target complete in order, so all earlier ones are complete. */
    gex_Event_Wait(gex_AD_OpNB_U64(words, &before[0], owners[1], next_word(1, 1, 0), GEX_OP_FADD, 0, 0, 0));
    for (int i = 0; i < 10000; ++i) gasnet_AMPoll();
    uint64_t begin = now_ns();
    int pending = 0;
    for (int i = 0; i < EVENTS; ++i) pending += gex_Event_Test(events[i]) != 0;
    double time = (double)(now_ns() - begin) / EVENTS;
    if (pending > 0) fail("an event has not happened");
    return time;
}

static double timed_barriers(void) {
    uint64_t begin = now_ns();
    for (int i = 0; i < BATCH; ++i) barrier();
    return (double)(now_ns() - begin) / BATCH;
}

static void start(int *argc, char ***argv, size_t spread_bytes) {
    gex_Client_t client;
    gex_EP_t endpoint;
    gex_Segment_t segment;
    gex_AM_Entry_t handlers[] = {
        {HIDX_REQUEST, (gex_AM_Fn_t)on_request, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "request"},
        {HIDX_REPLY, (gex_AM_Fn_t)on_reply, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "reply"},
    };
    expect_ok(gex_Client_Init(&client, &endpoint, &team, "OPERATIONS", argc, argv, 0), "gex_Client_Init");
    expect_ok(gex_EP_RegisterHandlers(endpoint, handlers, 2), "gex_EP_RegisterHandlers");
    expect_ok(gex_Segment_Attach(&segment, team, spread_bytes), "gex_Segment_Attach");
    me = gex_TM_QueryRank(team);
    ranks = gex_TM_QuerySize(team);
    gex_AD_Create(&words, team, GEX_DT_U64, GEX_OP_FADD, GEX_FLAG_AD_FAVOR_MY_NBRHD);
    for (int whose = 0; whose < 2; ++whose) {
        void *base;
        uintptr_t size;
        owners[whose] = (me + (gex_Rank_t)whose) % ranks;
        gex_Event_Wait(gex_EP_QueryBoundSegmentNB(team, owners[whose], &base, NULL, &size, 0));
        bases[whose] = base;
        if (size < spread_bytes) fail("the segment is too small");
    }
}

/* Sets every word of the own segment to 1 and makes all pages resident. */
static void fill(size_t spread_bytes) {
    enum { WORDS = 8192 };
    static uint64_t ones[WORDS];
    for (int i = 0; i < WORDS; ++i) ones[i] = 1;
    for (size_t offset = 0; offset < spread_bytes; offset += sizeof ones) {
        if (gex_RMA_PutBlocking(team, owners[0], bases[0] + offset, ones, sizeof ones, 0)) fail("a put failed");
    }
}

static void measure(int rounds) {
    static const struct {
        const char *name;
        void (*operation)(int, int);
        int has_places;
    } kinds[] = {{"get", get, 1}, {"put", put, 1}, {"add", add, 1}, {"message", message, 0}}; /* gets read the sums */
    static const char *const owner_names[] = {"own", "neighbour"}, *const place_names[] = {"_one_place", "_random"};
    for (int kind = 0; kind < 4; ++kind) {
        for (int whose = 0; whose < 2; ++whose) {
            for (int is_random = 0; is_random <= kinds[kind].has_places; ++is_random) {
                printf("%s_%s%s", kinds[kind].name, owner_names[whose], kinds[kind].has_places ? place_names[is_random] : "");
                for (int round = 0; round < rounds; ++round) printf(" %.1f", timed(kinds[kind].operation, whose, is_random));
                printf("\n");
            }
        }
    }
    printf("event_test");
    for (int round = 0; round < rounds; ++round) printf(" %.1f", timed_tests());
    printf("\n");
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    int rounds = atoi(argv[1]);
    size_t spread_bytes = (size_t)strtoull(argv[2], NULL, 10);
    start(&argc, &argv, spread_bytes);
    uint64_t drawn = 88172645463325252u;
    for (int i = 0; i < PLACES; ++i) {
        drawn ^= drawn << 13, drawn ^= drawn >> 7, drawn ^= drawn << 17;
        places[i] = (uint32_t)(drawn % (spread_bytes / 8));
    }
    fill(spread_bytes);
    barrier();
    if (me == 0) measure(rounds);
    barrier();
    if (me == 0) printf("barrier");
    for (int round = 0; round < rounds; ++round) {
        double time = timed_barriers();
        if (me == 0) printf(" %.1f", time);
    }
    if (me == 0) printf("\n");
    fflush(stdout);
    barrier();
    gasnet_exit(0);
    return 0;
}
