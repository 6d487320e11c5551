/* A program with its own messages by the real GASNet, and shared data by vgasnet. Its argument selects the way it
 * ends. */
#include <gasnet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vgasnet.h>

#define ROUNDS 60
#define BYTES 30000
#define OWN_BYTES 100000

static uint32_t rank, ranks;
static volatile unsigned arrived, answered;
static unsigned char by_message[ROUNDS][BYTES];

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "rank %u: %s:%d: %s does not hold\n", rank, __FILE__, __LINE__, #condition); \
            gasnet_exit(1); \
        } \
    } while (0)

/* The longest message permitted by GASNet, at most BYTES. */
static size_t message_bytes(void) { return gasnet_AMMaxMedium() < BYTES ? gasnet_AMMaxMedium() : BYTES; }

static unsigned char byte_of(int round, uint32_t from, size_t at) {
    return (unsigned char)(round * 31 + (int)from * 7 + (int)(at % 251));
}

static gasnet_handlerentry_t handlers[2];

static void on_bytes(gasnet_token_t token, void *bytes, size_t len, gasnet_handlerarg_t round) {
    memcpy(by_message[round], bytes, len);
    __sync_fetch_and_add(&arrived, 1);
    gasnet_AMReplyShort1(token, handlers[1].index, round);
}

static void on_answer(gasnet_token_t token, gasnet_handlerarg_t round) {
    (void)token, (void)round;
    __sync_fetch_and_add(&answered, 1);
}

static void meet(void) {
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    CHECK(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS) == GASNET_OK);
}

static void vmeet(void) {
    vgasnet_barrier_notify(0, VGASNET_BARRIERFLAG_ANONYMOUS);
    CHECK(vgasnet_barrier_wait(0, VGASNET_BARRIERFLAG_ANONYMOUS) == VGASNET_OK);
}

/* Sends the same bytes to the next rank by GASNet's message, by vgasnet's put, and by GASNet's put into the
 * program's own part of its segment. */
static void all_ways(int round, const vgasnet_seginfo_t *segments, const gasnet_seginfo_t *real) {
    static unsigned char mine[BYTES], by_vgasnet[BYTES];
    uint32_t next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    size_t at, offset = (size_t)round * BYTES, len = message_bytes();
    for (at = 0; at < BYTES; ++at) mine[at] = byte_of(round, rank, at);
    vgasnet_put(next, (char *)segments[next].addr + offset, mine, BYTES);
    CHECK(gasnet_AMRequestMedium1(next, handlers[0].index, mine, len, round) == GASNET_OK);
    gasnet_put(next, (char *)real[next].addr + OWN_BYTES - BYTES, mine, BYTES);
    GASNET_BLOCKUNTIL(arrived > (unsigned)round && answered > (unsigned)round);
    meet();
    vgasnet_get(by_vgasnet, rank, (char *)segments[rank].addr + offset, BYTES);
    CHECK(memcmp(by_message[round], by_vgasnet, len) == 0);
    CHECK(memcmp((char *)real[rank].addr + OWN_BYTES - BYTES, by_vgasnet, BYTES) == 0);
    for (at = 0; at < BYTES; ++at) CHECK(by_vgasnet[at] == byte_of(round, before, at));
    vmeet();
}

/* This rank's segment as memory, larger than the pool. */
static void as_memory(const vgasnet_seginfo_t *segments) {
    uint32_t next = (rank + 1) % ranks;
    uint64_t *words = (uint64_t *)segments[rank].addr, got;
    size_t count = segments[rank].size / sizeof *words, at;
    for (at = 0; at < count; at += 512) words[at] = at * 3 + rank;
    vmeet();
    for (at = 0; at < count; at += 512) {
        vgasnet_get(&got, next, (uint64_t *)segments[next].addr + at, sizeof got);
        CHECK(got == at * 3 + next);
        CHECK(words[at] == at * 3 + rank);
    }
    vmeet();
}

int main(int argc, char **argv) {
    gasnet_seginfo_t *real;
    vgasnet_seginfo_t *segments;
    size_t at;
    int round;
    if (argc != 2) return 2;
    CHECK(gasnet_init(&argc, &argv) == GASNET_OK);
    handlers[0].fnptr = (void (*)())on_bytes;
    handlers[1].fnptr = (void (*)())on_answer;
    handlers[1].index = 130;
    CHECK(vgasnet_attach_gasnet(handlers, 2, OWN_BYTES, 0) == VGASNET_OK);
    rank = gasnet_mynode(), ranks = gasnet_nodes();
    CHECK(handlers[0].index != 0 && handlers[1].index == 130);
    real = (gasnet_seginfo_t *)malloc(ranks * sizeof *real);
    CHECK(real != NULL && gasnet_getSegmentInfo(real, (int)ranks) == GASNET_OK);
    memset(real[rank].addr, 0x5a, OWN_BYTES - BYTES);

    CHECK(vgasnet_init(NULL, NULL) == VGASNET_OK);
    CHECK(vgasnet_attach_gasnet(NULL, 0, 0, 0) == VGASNET_ERR_NOT_INIT);
    CHECK(rank == vgasnet_mynode() && ranks == vgasnet_nodes());
    CHECK(vgasnet_attach(NULL, 0, ROUNDS * BYTES, 0) == VGASNET_OK);
    segments = (vgasnet_seginfo_t *)malloc(ranks * sizeof *segments);
    CHECK(segments != NULL && vgasnet_getSegmentInfo(segments, (int)ranks) == VGASNET_OK);
    for (round = 0; round < ROUNDS; ++round) all_ways(round, segments, real);
    as_memory(segments);
    for (at = 0; at < OWN_BYTES - BYTES; ++at) CHECK(((unsigned char *)real[rank].addr)[at] == 0x5a);
    free(segments);
    free(real);
    meet();
    if (strcmp(argv[1], "vgasnet") == 0) vgasnet_exit(0);
    if (strcmp(argv[1], "fails") == 0 && rank == 0) gasnet_exit(7);
    if (strcmp(argv[1], "fails") == 0) vgasnet_get(&at, 0, NULL, 0), meet();
    gasnet_exit(0);
    return 0;
}
