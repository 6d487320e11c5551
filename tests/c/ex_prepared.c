/* GASNet-EX: Active Messages with a negotiated payload. */
#include "ex_check.h"

enum { MEDIUM = 140, MEDIUM_BACK = 141, LONG = 142, LONG_BACK = 143 };

static struct ex_job job;
static volatile int medium_back, long_back;

static char *place_of(gex_Rank_t rank) { return ex_base(job.tm, rank) + 8192 + 1024 * job.me; }

static void on_medium(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t first, gex_AM_Arg_t length) {
    gex_AM_SrcDesc_t sd = gex_AM_PrepareReplyMedium(token, NULL, nbytes + 1, nbytes + 1, NULL, 0, 1);
    unsigned char *to = (unsigned char *)gex_AM_SrcDescAddr(sd);
    CHECK_EQ(nbytes, length);
    CHECK_EQ(gex_AM_SrcDescSize(sd), nbytes + 1);
    memcpy(to, buf, nbytes);
    to[nbytes] = 0x77;
    gex_AM_CommitReplyMedium(sd, MEDIUM_BACK, nbytes + 1, first);
}

static void on_medium_back(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t first) {
    const unsigned char *at = (const unsigned char *)buf;
    size_t n;
    (void)token;
    for (n = 0; n + 1 < nbytes; ++n) CHECK_EQ(at[n], (unsigned char)(first + (int)n));
    CHECK_EQ(at[nbytes - 1], 0x77);
    ++medium_back;
}

static void on_long(gex_Token_t token, void *buf, size_t nbytes) {
    gex_Token_Info_t info;
    gex_AM_SrcDesc_t sd;
    char *back;
    (void)gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    back = place_of(info.gex_srcrank) + 512;
    sd = gex_AM_PrepareReplyLong(token, buf, nbytes, nbytes, back, GEX_EVENT_NOW, 0, 0);
    CHECK(gex_AM_SrcDescAddr(sd) == buf);
    CHECK(gex_AM_CommitReplyLong0_v2(sd, LONG_BACK, nbytes, back, 0) == 0);
}

static void on_long_back(gex_Token_t token, void *buf, size_t nbytes) {
    (void)token;
    CHECK_EQ(*(unsigned char *)buf, 0x55);
    CHECK_EQ(nbytes, 100);
    ++long_back;
}

static gex_AM_Entry_t table[] = {
    {MEDIUM, (gex_AM_Fn_t)on_medium, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 2, NULL, NULL},
    {MEDIUM_BACK, (gex_AM_Fn_t)on_medium_back, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 1, NULL, NULL},
    {LONG, (gex_AM_Fn_t)on_long, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
    {LONG_BACK, (gex_AM_Fn_t)on_long_back, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REPLY, 0, NULL, NULL},
};

static void mediums(gex_TM_t tm, gex_Rank_t to) {
    static unsigned char own[70000];
    const size_t most = gex_AM_MaxRequestMedium(tm, to, NULL, GEX_FLAG_AM_PREPARE_LEAST_ALLOC, 2);
    const size_t sizes[] = {1, 33, 3000, most - 1};
    size_t at, n;
    for (at = 0; at < 4; ++at) {
        int before = medium_back, first = (int)at * 3, is_own = at % 2 == 1;
        gex_Event_t local = GEX_EVENT_NO_OP;
        gex_AM_SrcDesc_t sd =
            gex_AM_PrepareRequestMedium(tm, to, is_own ? own : NULL, sizes[at], 200000, is_own ? &local : NULL, 0, 2);
        unsigned char *buffer = (unsigned char *)gex_AM_SrcDescAddr(sd);
        CHECK(sd != GEX_AM_SRCDESC_NO_OP && (!is_own || buffer == own) && (uintptr_t)gex_AM_SrcDescAddr(sd) != 0);
        CHECK(gex_AM_SrcDescSize(sd) >= sizes[at] && gex_AM_SrcDescSize(sd) <= 200000);
        for (n = 0; n < sizes[at]; ++n) buffer[n] = (unsigned char)(first + (int)n);
        if (at < 2) {
            gex_AM_CommitRequestMedium(sd, MEDIUM, sizes[at], first, (gex_AM_Arg_t)sizes[at]);
        } else {
            while (gex_AM_CommitRequestMedium_v2(sd, MEDIUM, sizes[at], GEX_FLAG_IMMEDIATE, first, (gex_AM_Arg_t)sizes[at])) {
            }
        }
        if (is_own) gex_Event_Wait(local);
        memset(buffer, 0xEE, is_own ? sizes[at] : 0);
        GASNET_BLOCKUNTIL(medium_back == before + 1);
    }
}

static void longs(gex_TM_t tm, gex_Rank_t to) {
    static unsigned char own[100];
    int round;
    for (round = 0; round < 4; ++round) {
        int before = long_back;
        unsigned char *client = round % 2 ? own : NULL;
        gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestLong(tm, to, client, 100, 100, round < 2 ? NULL : place_of(to),
                                                        client ? GEX_EVENT_NOW : NULL, 0, 0);
        memset(gex_AM_SrcDescAddr(sd), 0x55, 100);
        gex_AM_CommitRequestLong(sd, LONG, 100, place_of(to));
        memset(own, 0xEE, sizeof own);
        GASNET_BLOCKUNTIL(long_back == before + 1);
    }
}

/* A cancelled preparation leaves no trace: the window is as large as before. */
static void cancelled(gex_TM_t tm) {
    gex_Rank_t to = (job.me + 1) % job.ranks;
    int round;
    for (round = 0; round < 200; ++round) {
        gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestMedium(tm, to, NULL, 64, 60000, NULL, GEX_FLAG_IMMEDIATE, 0);
        if (sd == GEX_AM_SRCDESC_NO_OP) sd = gex_AM_PrepareRequestMedium(tm, to, NULL, 64, 60000, NULL, 0, 0);
        CHECK(gex_AM_CancelRequestMedium(sd, 0) == 0);
        sd = gex_AM_PrepareRequestLong(tm, to, NULL, 64, 64, NULL, NULL, 0, 16);
        CHECK(gex_AM_CancelRequestLong(sd, 0) == 0);
    }
}

/* Without polls, an immediate prepare for this rank itself runs out of credit. No handlers run in the meantime. */
static void no_credit(gex_TM_t tm) {
    gex_Rank_t to = job.me;
    int sent = 0, before;
    ex_barrier(&job);
    before = medium_back;
    for (;;) {
        gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestMedium(tm, to, NULL, 1, 1, NULL, GEX_FLAG_IMMEDIATE, 2);
        if (sd == GEX_AM_SRCDESC_NO_OP) break;
        *(unsigned char *)gex_AM_SrcDescAddr(sd) = 9;
        CHECK(gex_AM_CommitRequestMedium2_v2(sd, MEDIUM, 1, GEX_FLAG_IMMEDIATE, 9, 1) == 0);
        CHECK(++sent < 100000 && medium_back == before);
    }
    CHECK(sent > 1);
    GASNET_BLOCKUNTIL(medium_back == before + sent);
}

int main(void) {
    gex_Rank_t to;
    job = ex_start();
    ex_attach(&job, 2, table, sizeof table / sizeof table[0]);
    ex_barrier(&job);
    for (to = 0; to < job.ranks; ++to) {
        mediums(job.tm, to);
        longs(gex_TM_Pair(job.ep, 0), to);
    }
    ex_barrier(&job);
    cancelled(job.tm);
    no_credit(job.tm);
    ex_barrier(&job);
    return 0;
}
