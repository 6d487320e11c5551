/* Active Messages: every category and number of arguments, both ways, between all pairs, and more than a window of
 * them. */
#include "check.h"

enum { SHORT = 200, MEDIUM, LONG, SHORT_REPLY, MEDIUM_REPLY, LONG_REPLY, SILENT, FLOOD, FLOOD_REPLY, SELF };
enum { ARGS = 16, LONGEST = 200000, FLOOD_EACH = 3000 };

static vgasnet_node_t me, ranks;
static vgasnet_hsl_t lock = VGASNET_HSL_INITIALIZER;
/* Records of handlers, under the lock. */
static uint64_t replies, silent, flooded;
static unsigned char *out;

/* The bytes of a payload depend on its sender and its length. */
static unsigned char byte_of(vgasnet_node_t from, size_t len, size_t at) {
    return (unsigned char)(from * 31 + len * 7 + at * 13 + (at >> 8));
}

static void fill(vgasnet_node_t from, size_t len) {
    for (size_t i = 0; i < len; ++i) out[i] = byte_of(from, len, i);
}

static void compare(vgasnet_node_t from, const unsigned char *is, size_t len) {
    for (size_t i = 0; i < len; ++i) CHECK_EQ(is[i], byte_of(from, len, i));
}

static vgasnet_node_t source(vgasnet_token_t token) {
    vgasnet_node_t from = ranks;
    CHECK(vgasnet_AMGetMsgSource(token, &from) == VGASNET_OK);
    CHECK(from < ranks);
    return from;
}

static void count(uint64_t *counter) {
    vgasnet_hsl_lock(&lock);
    ++*counter;
    vgasnet_hsl_unlock(&lock);
}

/* The place of a rank's Longs in the segment of another. */
static void *place(vgasnet_node_t at_rank, vgasnet_node_t from) { return at(at_rank, page_bytes() / 2 + from * (size_t)LONGEST); }

static void on_short(vgasnet_token_t token, vgasnet_handlerarg_t a0, vgasnet_handlerarg_t a1) {
    CHECK_EQ(a0, source(token));
    CHECK(a1 == -7);
    CHECK(vgasnet_AMReplyShort1(token, SHORT_REPLY, (vgasnet_handlerarg_t)me) == VGASNET_OK);
    /* A second reply is an error, and so is a request by a handler. */
    CHECK(vgasnet_AMReplyShort0(token, SHORT_REPLY) == VGASNET_ERR_BAD_ARG);
    CHECK(vgasnet_AMRequestShort0(me, SILENT) == VGASNET_ERR_BAD_ARG);
}

static void on_medium(vgasnet_token_t token, void *buf, size_t len, vgasnet_handlerarg_t a0) {
    vgasnet_node_t from = source(token);
    CHECK_EQ((uintptr_t)buf % 16, 0);
    compare(from, (unsigned char *)buf, len);
    /* The buffer belongs to the handler, so it may be the source of the reply. */
    CHECK(vgasnet_AMReplyMedium2(token, MEDIUM_REPLY, buf, len, a0, (vgasnet_handlerarg_t)len) == VGASNET_OK);
}

static void on_long(vgasnet_token_t token, void *buf, size_t len, vgasnet_handlerarg_t a0) {
    vgasnet_node_t from = source(token);
    CHECK(buf == place(me, from));
    compare(from, (unsigned char *)buf, len);
    ((unsigned char *)buf)[0] ^= 255; /* a store in a handler */
    CHECK(vgasnet_AMReplyLong1(token, LONG_REPLY, buf, len, place(from, ranks + me), a0) == VGASNET_OK);
}

static void on_short_reply(vgasnet_token_t token, vgasnet_handlerarg_t a0) {
    CHECK_EQ(a0, source(token));
    CHECK(vgasnet_AMReplyShort0(token, SHORT_REPLY) == VGASNET_ERR_BAD_ARG);
    count(&replies);
}

static void on_medium_reply(vgasnet_token_t token, void *buf, size_t len, vgasnet_handlerarg_t a0, vgasnet_handlerarg_t a1) {
    CHECK(source(token) < ranks);
    CHECK_EQ(a0, 11);
    CHECK_EQ(a1, len);
    compare(me, (unsigned char *)buf, len);
    count(&replies);
}

static void on_long_reply(vgasnet_token_t token, void *buf, size_t len, vgasnet_handlerarg_t a0) {
    vgasnet_node_t from = source(token);
    CHECK_EQ(a0, 12);
    CHECK(buf == place(me, ranks + from));
    CHECK_EQ(((unsigned char *)buf)[0], byte_of(me, len, 0) ^ 255);
    CHECK_EQ(((unsigned char *)buf)[len - 1], byte_of(me, len, len - 1));
    count(&replies);
}

/* The largest number of arguments: the number itself, then -1, -2, ... */
static void on_silent(vgasnet_token_t token, vgasnet_handlerarg_t a0, vgasnet_handlerarg_t a1, vgasnet_handlerarg_t a2,
                      vgasnet_handlerarg_t a3, vgasnet_handlerarg_t a4, vgasnet_handlerarg_t a5, vgasnet_handlerarg_t a6,
                      vgasnet_handlerarg_t a7, vgasnet_handlerarg_t a8, vgasnet_handlerarg_t a9, vgasnet_handlerarg_t a10,
                      vgasnet_handlerarg_t a11, vgasnet_handlerarg_t a12, vgasnet_handlerarg_t a13,
                      vgasnet_handlerarg_t a14, vgasnet_handlerarg_t a15) {
    vgasnet_handlerarg_t others[] = {a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15};
    CHECK(source(token) < ranks);
    CHECK_EQ(a0, ARGS);
    for (vgasnet_handlerarg_t n = 0; n < ARGS - 1; ++n) CHECK(others[n] == -(n + 1));
    count(&silent);
}

static void on_self(vgasnet_token_t token) { CHECK(source(token) == me); }

static void on_flood(vgasnet_token_t token, void *buf, size_t len, vgasnet_handlerarg_t a0) {
    CHECK_EQ(((unsigned char *)buf)[len - 1], (unsigned char)a0);
    if (a0 % 3 == 0) CHECK(vgasnet_AMReplyMedium1(token, FLOOD_REPLY, buf, len, a0) == VGASNET_OK);
    count(&flooded);
}

static void on_flood_reply(vgasnet_token_t token, void *buf, size_t len, vgasnet_handlerarg_t a0) {
    CHECK(source(token) < ranks);
    CHECK_EQ(((unsigned char *)buf)[len - 1], (unsigned char)a0);
    count(&replies);
}

static void one_of_each(vgasnet_node_t target) {
    size_t lengths[] = {2, 15, 511, 4096, 40000, vgasnet_AMMaxMedium()};
    uint64_t before = replies;
    CHECK(vgasnet_AMRequestShort2(target, SHORT, (vgasnet_handlerarg_t)me, -7) == VGASNET_OK);
    VGASNET_BLOCKUNTIL(replies == before + 1);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
        fill(me, lengths[i]);
        CHECK(vgasnet_AMRequestMedium1(target, MEDIUM, out, lengths[i], 11) == VGASNET_OK);
        memset(out, 0, lengths[i]);
        VGASNET_BLOCKUNTIL(replies == before + 2 + 3 * i);
        fill(me, lengths[i]);
        CHECK(vgasnet_AMRequestLong1(target, LONG, out, lengths[i], place(target, me), 12) == VGASNET_OK);
        VGASNET_BLOCKUNTIL(replies == before + 3 + 3 * i);
        fill(me, LONGEST);
        CHECK(vgasnet_AMRequestLongAsync1(target, LONG, out, LONGEST, place(target, me), 12) == VGASNET_OK);
        VGASNET_BLOCKUNTIL(replies == before + 4 + 3 * i);
    }
    CHECK(vgasnet_AMRequestShort16(target, SILENT, 16, -1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -11, -12, -13, -14, -15) ==
          VGASNET_OK);
}

/* Every rank sends every other rank more than the windows allow, of all lengths. */
static void flood(void) {
    uint64_t state = mixed(3, me, 0), expected = 0, before = replies;
    for (int n = 0; n < FLOOD_EACH; ++n) {
        vgasnet_node_t target = (vgasnet_node_t)random_below(&state, ranks);
        size_t len = 1 + (size_t)random_below(&state, n % 50 == 0 ? vgasnet_AMMaxMedium() : 300);
        out[len - 1] = (unsigned char)n;
        CHECK(vgasnet_AMRequestMedium1(target, FLOOD, out, len, n) == VGASNET_OK);
        expected += n % 3 == 0;
    }
    VGASNET_BLOCKUNTIL(replies == before + expected);
}

/* A condition with a send to the own rank, so that a handler has run at each evaluation. */
static int is_answered(uint64_t expected) {
    CHECK(vgasnet_AMRequestShort0(me, SELF) == VGASNET_OK);
    return replies == expected;
}

static void condition_with_messages(void) {
    uint64_t before = replies;
    CHECK(vgasnet_AMRequestShort2((me + 1) % ranks, SHORT, (vgasnet_handlerarg_t)me, -7) == VGASNET_OK);
    VGASNET_BLOCKUNTIL(is_answered(before + 1));
}

static void nonsense(void) {
    vgasnet_handlerarg_t args[ARGS + 1] = {0};
    size_t max = vgasnet_AMMaxMedium();
    CHECK(vgasnet_AMRequestShort0(ranks, SILENT) == VGASNET_ERR_BAD_ARG);
    CHECK(vgasnet_AMRequestShortArgs(me, SILENT, ARGS + 1, args) == VGASNET_ERR_BAD_ARG);
    CHECK(vgasnet_AMRequestMedium0(me, SILENT, out, max + 1) == VGASNET_ERR_BAD_ARG);
    CHECK(vgasnet_AMRequestLong0(me, SILENT, out, 9, (char *)at(me, 0) - 8) == VGASNET_ERR_BAD_ARG);
    CHECK(vgasnet_AMRequestLong0(me, SILENT, NULL, 9, at(me, 0)) == VGASNET_ERR_BAD_ARG);
    CHECK(vgasnet_AMRequestShort0(me, 127) == VGASNET_ERR_BAD_ARG);
    CHECK(vgasnet_AMReplyShort0(NULL, SILENT) == VGASNET_ERR_BAD_ARG);
    CHECK(vgasnet_AMGetMsgSource(NULL, NULL) == VGASNET_ERR_BAD_ARG);
}

int main(int argc, char **argv) {
    vgasnet_handlerentry_t handlers[] = {
        {SHORT, (void (*)())on_short},
        {MEDIUM, (void (*)())on_medium},
        {LONG, (void (*)())on_long},
        {SHORT_REPLY, (void (*)())on_short_reply},
        {MEDIUM_REPLY, (void (*)())on_medium_reply},
        {LONG_REPLY, (void (*)())on_long_reply},
        {SILENT, (void (*)())on_silent},
        {FLOOD, (void (*)())on_flood},
        {FLOOD_REPLY, (void (*)())on_flood_reply},
        {SELF, (void (*)())on_self},
    };
    if (vgasnet_init(&argc, &argv) != VGASNET_OK) return 1;
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    size_t size = page_bytes() + 2 * ranks * (size_t)LONGEST;
    CHECK(vgasnet_attach(handlers, sizeof handlers / sizeof *handlers, size, 0) == VGASNET_OK);
    CHECK(vgasnet_AMMaxArgs() == ARGS);
    out = (unsigned char *)allocate(LONGEST);
    for (vgasnet_node_t i = 0; i < ranks; ++i) one_of_each((me + i) % ranks);
    VGASNET_BLOCKUNTIL(silent == ranks);
    barrier();
    condition_with_messages();
    flood();
    barrier();
    if (me == 0) nonsense();
    return finish();
}
