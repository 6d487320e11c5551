/* GASNet-EX: Active Messages of all kinds and numbers of arguments, the contents of a token, limits, and requests
 * that do not wait. */
#include "ex_check.h"

enum { COUNT = 130, BYTES = 150, DONE = 151, LONG = 152, LONG_DONE = 153, NOTE = 154, PLACED = 155, BIG = 70000 };

static struct ex_job job;
static volatile int counts, bytes_done, long_done, notes, in_note, placed;

static void check_token(gex_Token_t token, gex_AM_Index_t index, int is_request, int is_long) {
    gex_Token_Info_t info;
    memset(&info, 0xFF, sizeof info);
    CHECK_EQ(gex_Token_Info(token, &info, GEX_TI_SRCRANK | GEX_TI_EP) & GEX_TI_SRCRANK, GEX_TI_SRCRANK);
    CHECK_EQ(gex_Token_Info(token, &info, GEX_TI_ALL), GEX_TI_ALL);
    CHECK(info.gex_srcrank < job.ranks && info.gex_ep == job.ep);
    CHECK(info.gex_is_req == is_request && info.gex_is_long == is_long);
    CHECK_EQ(info.gex_entry->gex_index, index);
    CHECK(gex_EP_QueryCData(info.gex_ep) == &job && info.gex_entry->gex_cdata == (index == BYTES ? &job : NULL));
    if (is_request) {
        CHECK(gex_Token_MaxReplyMedium(token, GEX_EVENT_NOW, 0, 16) >= 512);
        CHECK(gex_Token_MaxReplyLong(token, GEX_EVENT_NOW, 0, 16) >= 512);
    }
}

/* One handler for each number of arguments. An argument's value gives its place. */
static void check_args(int count, const gex_AM_Arg_t *args) {
    int at;
    for (at = 0; at < count; ++at) CHECK(args[at] == -at - 7);
    ++counts;
}
static void count0(gex_Token_t token) { (void)token, check_args(0, NULL); }
static void count1(gex_Token_t token, gex_AM_Arg_t a) {
    const gex_AM_Arg_t args[] = {a};
    (void)token, check_args(1, args);
}
static void count5(gex_Token_t token, gex_AM_Arg_t a, gex_AM_Arg_t b, gex_AM_Arg_t c, gex_AM_Arg_t d, gex_AM_Arg_t e) {
    const gex_AM_Arg_t args[] = {a, b, c, d, e};
    (void)token, check_args(5, args);
}
static void count16(gex_Token_t token, gex_AM_Arg_t a, gex_AM_Arg_t b, gex_AM_Arg_t c, gex_AM_Arg_t d, gex_AM_Arg_t e,
                    gex_AM_Arg_t f, gex_AM_Arg_t g, gex_AM_Arg_t h, gex_AM_Arg_t i, gex_AM_Arg_t j, gex_AM_Arg_t k,
                    gex_AM_Arg_t l, gex_AM_Arg_t m, gex_AM_Arg_t n, gex_AM_Arg_t o, gex_AM_Arg_t p) {
    const gex_AM_Arg_t args[] = {a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p};
    check_token(token, COUNT + 3, 1, 0);
    check_args(16, args);
}

/* A payload comes back twice as large. */
static void on_bytes(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t fill) {
    unsigned char *at = (unsigned char *)buf;
    size_t n;
    check_token(token, BYTES, 1, 0);
    CHECK((uintptr_t)buf % 16 == 0);
    for (n = 0; n < nbytes; ++n) CHECK_EQ(at[n], (unsigned char)fill);
    memset(buf, fill + 1, nbytes);
    CHECK(gex_AM_ReplyMedium(token, DONE, buf, nbytes, GEX_EVENT_NOW, 0, fill + 1, (gex_AM_Arg_t)nbytes) == 0);
}
static void on_bytes_done(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t fill, gex_AM_Arg_t length) {
    size_t n;
    check_token(token, DONE, 0, 0);
    CHECK_EQ(nbytes, length);
    for (n = 0; n < nbytes; ++n) CHECK_EQ(((unsigned char *)buf)[n], (unsigned char)fill);
    ++bytes_done;
}

static void on_long(gex_Token_t token, void *buf, size_t nbytes) {
    gex_Token_Info_t info;
    gex_Event_t local = GEX_EVENT_NO_OP;
    check_token(token, LONG, 1, 1);
    (void)gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    CHECK((char *)buf == job.base + 64 + 8 * info.gex_srcrank);
    if (nbytes >= 8) CHECK_EQ(*(uint64_t *)buf, info.gex_srcrank + 100);
    CHECK(gex_AM_ReplyLong(token, LONG_DONE, buf, nbytes, ex_base(job.tm, info.gex_srcrank) + 4096 + 8 * job.me, &local, 0) == 0);
    CHECK(local != GEX_EVENT_NO_OP);
}
static void on_placed(gex_Token_t token, void *buf, size_t nbytes) {
    const char *bytes = (const char *)buf;
    size_t at;
    check_token(token, PLACED, 1, 1);
    CHECK(nbytes > 0 && bytes[0] == 'a' + (int)((size_t)(bytes - job.base) / nbytes) % 26);
    for (at = 1; at < nbytes; ++at) CHECK_EQ(bytes[at], bytes[0]);
    ++placed;
}

static void on_long_done(gex_Token_t token, void *buf, size_t nbytes) {
    check_token(token, LONG_DONE, 0, 1);
    (void)buf, (void)nbytes;
    ++long_done;
}

static void on_note(gex_Token_t token) {
    (void)token;
    CHECK(!in_note);
    ++notes;
}

static gex_AM_Entry_t table[] = {
    {COUNT, (gex_AM_Fn_t)count0, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
    {COUNT + 1, (gex_AM_Fn_t)count1, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, NULL},
    {COUNT + 2, (gex_AM_Fn_t)count5, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 5, NULL, NULL},
    {COUNT + 3, (gex_AM_Fn_t)count16, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 16, NULL, NULL},
    {BYTES, (gex_AM_Fn_t)on_bytes, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 1, &job, "bytes"},
    {DONE, (gex_AM_Fn_t)on_bytes_done, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 2, NULL, NULL},
    {LONG, (gex_AM_Fn_t)on_long, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
    {PLACED, (gex_AM_Fn_t)on_placed, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
    {LONG_DONE, (gex_AM_Fn_t)on_long_done, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REPLY, 0, NULL, NULL},
    {NOTE, (gex_AM_Fn_t)on_note, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQREP, 0, NULL, NULL},
};

static void all_counts(gex_TM_t tm, gex_Rank_t to) {
    counts = 0;
    ex_barrier(&job);
    CHECK(gex_AM_RequestShort(tm, to, COUNT, 0) == 0);
    CHECK(gex_AM_RequestShort(tm, to, COUNT + 1, 0, -7) == 0);
    CHECK(gex_AM_RequestShort(tm, to, COUNT + 2, 0, -7, -8, -9, -10, -11) == 0);
    CHECK(gex_AM_RequestShort16(tm, to, COUNT + 3, 0, -7, -8, -9, -10, -11, -12, -13, -14, -15, -16, -17, -18, -19, -20, -21,
                                -22) == 0);
    GASNET_BLOCKUNTIL(counts == 4);
    ex_barrier(&job);
}

static void payloads(gex_TM_t tm, gex_Rank_t to) {
    static unsigned char source[BIG];
    const size_t most = gex_AM_MaxRequestMedium(tm, to, GEX_EVENT_NOW, 0, 1);
    const size_t sizes[] = {0, 1, 7, 64, 512, 4097, most};
    size_t at;
    CHECK(most <= sizeof source && most >= 512 && most >= gex_AM_LUBRequestMedium());
    for (at = 0; at < sizeof sizes / sizeof sizes[0]; ++at) {
        gex_Event_t local = GEX_EVENT_NO_OP;
        int before = bytes_done;
        memset(source, (int)at + 3, sizes[at]);
        if (at % 3 == 0) CHECK(gex_AM_RequestMedium(tm, to, BYTES, source, sizes[at], GEX_EVENT_NOW, 0, (int)at + 3) == 0);
        if (at % 3 == 1) CHECK(gex_AM_RequestMedium1(tm, to, BYTES, source, sizes[at], GEX_EVENT_GROUP, 0, (int)at + 3) == 0);
        if (at % 3 == 2) CHECK(gex_AM_RequestMedium(tm, to, BYTES, source, sizes[at], &local, 0, (int)at + 3) == 0);
        if (at % 3 == 1) gex_NBI_Wait(GEX_EC_AM, 0);
        if (at % 3 == 2) gex_Event_Wait(local);
        memset(source, 0xEE, sizes[at]);
        GASNET_BLOCKUNTIL(bytes_done == before + 1);
    }
}

static void longs(gex_TM_t tm, gex_Rank_t to) {
    static uint64_t source[BIG / 8];
    const size_t sizes[] = {0, 8, 4096, BIG / 8 * 8};
    size_t at;
    CHECK(gex_AM_LUBRequestLong() >= BIG && gex_AM_MaxRequestLong(tm, GEX_RANK_INVALID, NULL, 0, 0) >= BIG);
    CHECK(gex_AM_MaxReplyLong(tm, to, GEX_EVENT_NOW, GEX_FLAG_AM_PREPARE_LEAST_ALLOC, 16) >= 512);
    for (at = 0; at < sizeof sizes / sizeof sizes[0]; ++at) {
        int before = long_done;
        source[0] = job.me + 100;
        CHECK(gex_AM_RequestLong(tm, to, LONG, source, sizes[at], ex_base(job.tm, to) + 64 + 8 * job.me, GEX_EVENT_NOW, 0) == 0);
        GASNET_BLOCKUNTIL(long_done == before + 1);
    }
}

/* An immediate request runs no handler, not even for this rank itself. It is refused when a window is full: only
 * this thread runs the handlers of requests to this rank. Then the sent requests are handled, and the window is
 * open. */
static void immediate(gex_TM_t tm) {
    const gex_Rank_t next = (job.me + 1) % job.ranks;
    int sent = 0, more;
    ex_barrier(&job);
    notes = 0;
    in_note = 1;
    while (gex_AM_RequestShort(tm, job.me, NOTE, GEX_FLAG_IMMEDIATE) == 0) CHECK(++sent < 100000);
    CHECK(gex_AM_RequestShort(tm, job.me, NOTE, GEX_FLAG_IMMEDIATE) != 0);
    CHECK(sent > 1 && notes == 0);
    in_note = 0;
    GASNET_BLOCKUNTIL(notes == sent);
    ex_barrier(&job);
    notes = 0;
    ex_barrier(&job);
    for (more = 0; more < 200; gasnet_AMPoll()) {
        if (gex_AM_RequestShort(tm, next, NOTE, GEX_FLAG_IMMEDIATE) == 0) ++more;
    }
    GASNET_BLOCKUNTIL(notes == 200);
    ex_barrier(&job);
}

/* An immediate request with a payload too long for a message is sent even if its pages are not here, also from the
 * own segment. The payload is free for reuse on return, and the handler finds all of it. Sources are in the upper
 * half of segments, targets in the lower. */
static void immediate_long(gex_TM_t tm) {
    enum { BYTES = 100000 };
    const gex_Rank_t next = (job.me + 1) % job.ranks;
    char *heap = (char *)malloc(BYTES), *own = job.base + job.size / 2, *there = (char *)ex_base(tm, next);
    size_t at = 0;
    int sent = 0;
    CHECK(gex_AM_MaxRequestLong(tm, next, GEX_EVENT_NOW, GEX_FLAG_IMMEDIATE, 0) >= BYTES);
    placed = 0;
    ex_barrier(&job);
    for (; at + BYTES <= job.size / 2; at += BYTES, ++sent) {
        char *payload = sent % 2 ? heap : own + at;
        int tries = 0;
        memset(payload, 'a' + sent % 26, BYTES);
        while (gex_AM_RequestLong(tm, next, PLACED, payload, BYTES, there + at, GEX_EVENT_NOW, GEX_FLAG_IMMEDIATE) != 0) {
            CHECK(++tries < 1000000);
            gasnet_AMPoll();
        }
        memset(payload, '#', BYTES);
    }
    CHECK(sent > 1);
    GASNET_BLOCKUNTIL(placed == sent);
    ex_barrier(&job);
    free(heap);
}

int main(void) {
    gex_Rank_t to;
    job = ex_start();
    gex_EP_SetCData(job.ep, &job);
    ex_attach(&job, 2, table, sizeof table / sizeof table[0]);
    CHECK_EQ(gex_AM_MaxArgs(), 16);
    for (to = 0; to < job.ranks; ++to) {
        gex_Rank_t shifted = (job.me + to) % job.ranks;
        all_counts(job.tm, shifted);
        payloads(gex_TM_Pair(job.ep, 0), shifted);
        longs(job.tm, shifted);
        ex_barrier(&job);
    }
    immediate(job.tm);
    immediate_long(job.tm);
    return 0;
}
