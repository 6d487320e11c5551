/* Chapter "Active Messages": every category with every number of arguments, requests and replies, to every node. */
#include "client.h"

enum { ARGS = 16 };

/* Indices: a block of 17 for each kind of handler. */
enum { SHORT = 128, MEDIUM = SHORT + 17, LONG = MEDIUM + 17, DONE = LONG + 17, DONE_MEDIUM, DONE_LONG };

static gasnet_hsl_t lock = GASNET_HSL_INITIALIZER;
static unsigned done;

#define P0
#define P1 , gasnet_handlerarg_t a0
#define P2 P1, gasnet_handlerarg_t a1
#define P3 P2, gasnet_handlerarg_t a2
#define P4 P3, gasnet_handlerarg_t a3
#define P5 P4, gasnet_handlerarg_t a4
#define P6 P5, gasnet_handlerarg_t a5
#define P7 P6, gasnet_handlerarg_t a6
#define P8 P7, gasnet_handlerarg_t a7
#define P9 P8, gasnet_handlerarg_t a8
#define P10 P9, gasnet_handlerarg_t a9
#define P11 P10, gasnet_handlerarg_t a10
#define P12 P11, gasnet_handlerarg_t a11
#define P13 P12, gasnet_handlerarg_t a12
#define P14 P13, gasnet_handlerarg_t a13
#define P15 P14, gasnet_handlerarg_t a14
#define P16 P15, gasnet_handlerarg_t a15
#define N0
#define N1 , a0
#define N2 N1, a1
#define N3 N2, a2
#define N4 N3, a3
#define N5 N4, a4
#define N6 N5, a5
#define N7 N6, a6
#define N8 N7, a7
#define N9 N8, a8
#define N10 N9, a9
#define N11 N10, a10
#define N12 N11, a11
#define N13 N12, a12
#define N14 N13, a13
#define N15 N14, a14
#define N16 N15, a15
/* The sent arguments: small, large and negative ones. */
#define V0
#define V1 , 1
#define V2 V1, -2
#define V3 V2, 3
#define V4 V3, -4
#define V5 V4, INT32_MIN
#define V6 V5, -6
#define V7 V6, 7
#define V8 V7, -8
#define V9 V8, 9
#define V10 V9, INT32_MAX
#define V11 V10, 11
#define V12 V11, -12
#define V13 V12, 13
#define V14 V13, -14
#define V15 V14, 15
#define V16 V15, -16

static void check_arguments(int count, const gasnet_handlerarg_t *is) {
    const gasnet_handlerarg_t should[] = {0 V16};
    int i;
    for (i = 0; i <= count; ++i) CHECK(is[i] == should[i]);
}

static gasnet_node_t source(gasnet_token_t token) {
    gasnet_node_t from = nodes;
    CHECK(gasnet_AMGetMsgSource(token, &from) == GASNET_OK && from < nodes);
    return from;
}

/* The place of a Long from this node, and the place of its answer. */
static void *place(gasnet_node_t target, gasnet_node_t from) { return at(target, segments[target].size / 2 + from * 4096); }

/* The handlers for this number of arguments answer in their own category with the same number. */
#define HANDLERS(M) \
    static void on_short##M(gasnet_token_t token P##M) { \
        const gasnet_handlerarg_t args[] = {0 N##M}; \
        check_arguments(M, args); \
        CHECK(source(token) < nodes); \
        if (M % 2) CHECK(gasnet_AMReplyShort##M(token, DONE N##M) == GASNET_OK); \
        else CHECK(gasnet_AMReplyMedium0(token, DONE_MEDIUM, NULL, 0) == GASNET_OK); \
    } \
    static void on_medium##M(gasnet_token_t token, void *buf, size_t len P##M) { \
        const gasnet_handlerarg_t args[] = {0 N##M}; \
        check_arguments(M, args); \
        compare(buf, len, source(token), M); \
        CHECK((uintptr_t)buf % 16 == 0); \
        CHECK(gasnet_AMReplyMedium##M(token, DONE_MEDIUM, buf, len N##M) == GASNET_OK); \
    } \
    static void on_long##M(gasnet_token_t token, void *buf, size_t len P##M) { \
        const gasnet_handlerarg_t args[] = {0 N##M}; \
        gasnet_node_t from = source(token); \
        check_arguments(M, args); \
        CHECK(buf == place(me, from)); \
        compare(buf, len, from, M); \
        ((unsigned char *)buf)[0] ^= 1; \
        CHECK(gasnet_AMReplyLong##M(token, DONE_LONG, buf, len, place(from, nodes + me) N##M) == GASNET_OK); \
    }
HANDLERS(0)
HANDLERS(1)
HANDLERS(2)
HANDLERS(3)
HANDLERS(4)
HANDLERS(5)
HANDLERS(6)
HANDLERS(7)
HANDLERS(8)
HANDLERS(9)
HANDLERS(10)
HANDLERS(11)
HANDLERS(12)
HANDLERS(13)
HANDLERS(14)
HANDLERS(15)
HANDLERS(16)

static void count(void) {
    gasnet_hsl_lock(&lock);
    ++done;
    gasnet_hsl_unlock(&lock);
}

/* Handlers of replies: the number of arguments differs, and undeclared ones are ignored. */
static void on_done(gasnet_token_t token) {
    CHECK(source(token) < nodes);
    count();
}
static void on_done_medium(gasnet_token_t token, void *buf, size_t len) {
    (void)token, (void)buf, (void)len;
    count();
}
static void on_done_long(gasnet_token_t token, void *buf, size_t len) {
    gasnet_node_t from = source(token);
    CHECK(buf == place(me, nodes + from) && len > 0);
    count();
}

static unsigned char out[2000];

#define SEND(M, target, len) \
    do { \
        unsigned before = done; \
        CHECK(gasnet_AMRequestShort##M(target, SHORT + M V##M) == GASNET_OK); \
        GASNET_BLOCKUNTIL(done == before + 1); \
        fill(out, len, me, M); \
        CHECK(gasnet_AMRequestMedium##M(target, MEDIUM + M, out, len V##M) == GASNET_OK); \
        memset(out, 0, len); \
        GASNET_BLOCKUNTIL(done == before + 2); \
        fill(out, len, me, M); \
        CHECK(gasnet_AMRequestLong##M(target, LONG + M, out, len, place(target, me) V##M) == GASNET_OK); \
        memset(out, 0, len); \
        GASNET_BLOCKUNTIL(done == before + 3); \
        fill(out, len, me, M); \
        CHECK(gasnet_AMRequestLongAsync##M(target, LONG + M, out, len, place(target, me) V##M) == GASNET_OK); \
        GASNET_BLOCKUNTIL(done == before + 4); \
    } while (0)

#define ENTRIES(M) HANDLER(SHORT + M, on_short##M), HANDLER(MEDIUM + M, on_medium##M), HANDLER(LONG + M, on_long##M)

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {
        ENTRIES(0),  ENTRIES(1),  ENTRIES(2),  ENTRIES(3),  ENTRIES(4),  ENTRIES(5),          ENTRIES(6),
        ENTRIES(7),  ENTRIES(8),  ENTRIES(9),  ENTRIES(10), ENTRIES(11), ENTRIES(12),         ENTRIES(13),
        ENTRIES(14), ENTRIES(15), ENTRIES(16), HANDLER(DONE, on_done),   HANDLER(DONE_MEDIUM, on_done_medium),
        HANDLER(DONE_LONG, on_done_long),
    };
    gasnet_node_t i;
    start(&argc, &argv, table, (int)(sizeof table / sizeof *table));
    CHECK(gasnet_AMMaxArgs() == ARGS && gasnet_AMMaxMedium() >= 512);
    CHECK(gasnet_AMMaxLongRequest() >= 512 && gasnet_AMMaxLongReply() >= 512);
    for (i = 0; i < nodes; ++i) {
        gasnet_node_t target = (me + i) % nodes;
        SEND(0, target, 1);
        SEND(1, target, 2);
        SEND(2, target, 7);
        SEND(3, target, 8);
        SEND(4, target, 100);
        SEND(5, target, 511);
        SEND(6, target, 512);
        SEND(7, target, 513);
        SEND(8, target, 1000);
        SEND(9, target, 1999);
        SEND(10, target, 2000);
        SEND(11, target, 64);
        SEND(12, target, 65);
        SEND(13, target, 66);
        SEND(14, target, 67);
        SEND(15, target, 68);
        SEND(16, target, 69);
        CHECK(gasnet_AMPoll() == GASNET_OK);
    }
    return finish();
}
