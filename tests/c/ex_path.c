/* GASNet-EX from init to the end of main: attach, put, get, barrier, messages. */
#include "ex_check.h"

enum { PING = 200, PONG = 201 };

static volatile int pings, pongs;
static volatile gex_Rank_t from;

static void ping(gex_Token_t token, gex_AM_Arg_t number) {
    gex_Token_Info_t info;
    CHECK_EQ(gex_Token_Info(token, &info, GEX_TI_ALL), GEX_TI_ALL);
    from = info.gex_srcrank;
    ++pings;
    CHECK(gex_AM_ReplyShort(token, PONG, 0, number + 1) == 0);
}

static void pong(gex_Token_t token, gex_AM_Arg_t number) {
    (void)token;
    CHECK(number == 42);
    ++pongs;
}

int main(void) {
    struct ex_job job = ex_start();
    gex_AM_Entry_t table[] = {
        {PING, (gex_AM_Fn_t)ping, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, "ping"},
        {PONG, (gex_AM_Fn_t)pong, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 1, NULL, "pong"},
    };
    uint64_t value, got;
    gex_Rank_t next;
    ex_attach(&job, 2, table, 2);
    next = (job.me + 1) % job.ranks;
    value = UINT64_C(0x1122334455667788) + job.me;
    CHECK(gex_RMA_PutBlocking(job.tm, next, ex_base(job.tm, next) + 64, &value, sizeof value, 0) == 0);
    ex_barrier(&job);
    CHECK(gex_RMA_GetBlocking(job.tm, &got, job.me, job.base + 64, sizeof got, 0) == 0);
    CHECK_EQ(got, UINT64_C(0x1122334455667788) + (job.me + job.ranks - 1) % job.ranks);
    gex_Event_Wait(gex_RMA_GetNB(job.tm, &got, next, ex_base(job.tm, next) + 64, sizeof got, 0));
    CHECK_EQ(got, value);
    CHECK(gex_AM_RequestShort(job.tm, next, PING, 0, 41) == 0);
    GASNET_BLOCKUNTIL(pings == 1 && pongs == 1);
    CHECK_EQ(from, (job.me + job.ranks - 1) % job.ranks);
    ex_barrier(&job);
    return 0;
}
