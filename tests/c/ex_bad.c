/* GASNet-EX: invalid calls, selected by name. A call that ends the job does not return; a call that returns a code
 * prints it. */
#include "ex_check.h"

#include <gasnet_ratomic.h>

enum { HANDLER = 200 };

static struct ex_job job;
static volatile int runs;

static void on_short(gex_Token_t token, gex_AM_Arg_t how) {
    (void)token;
    ++runs;
    if (how == 1) (void)gex_AM_RequestShort(job.tm, 0, HANDLER, 0, 0);
    if (how == 2) {
        (void)gex_AM_ReplyShort(token, HANDLER, 0, 0);
        (void)gex_AM_ReplyShort(token, HANDLER, 0, 0);
    }
}

static void print_code(int code) {
    printf("code %s\n", gasnet_ErrorName(code));
    fflush(stdout);
}

/* Calls that return a code. Returns whether one of them has this name. */
static int answers(const char *what) {
    gex_AM_Entry_t again[] = {{HANDLER, (gex_AM_Fn_t)on_short, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, NULL}};
    gex_Segment_t segment;
    if (strcmp(what, "register-twice") == 0) {
        print_code(gex_EP_RegisterHandlers(job.ep, again, 1));
    } else if (strcmp(what, "register-reserved") == 0) {
        again[0].gex_index = 100;
        print_code(gex_EP_RegisterHandlers(job.ep, again, 1));
    } else if (strcmp(what, "register-flags") == 0) {
        again[0].gex_index = 201;
        again[0].gex_flags = GEX_FLAG_AM_SHORT;
        print_code(gex_EP_RegisterHandlers(job.ep, again, 1));
    } else if (strcmp(what, "attach-twice") == 0) {
        print_code(gex_Segment_Attach(&segment, job.tm, GASNET_PAGESIZE));
    } else if (strcmp(what, "init-twice") == 0) {
        print_code(gex_Client_Init(&job.client, &job.ep, &job.tm, "AGAIN", NULL, NULL, 0));
    } else if (strcmp(what, "init-both") == 0) {
        print_code(gasnet_init(NULL, NULL));
    } else {
        return 0;
    }
    return 1;
}

/* Calls that end the job: gets, puts and events. */
static void transfers(const char *what) {
    uint64_t value = 1;
    gex_Event_t event, place;
    if (strcmp(what, "rank") == 0) gex_RMA_GetBlocking(job.tm, &value, job.ranks, job.base, 8, 0);
    if (strcmp(what, "pair-rank") == 0) gex_RMA_GetBlocking(gex_TM_Pair(job.ep, 0), &value, job.ranks + 4, job.base, 8, 0);
    if (strcmp(what, "outside") == 0) gex_RMA_PutBlocking(job.tm, 0, ex_base(job.tm, 0) + (UINT64_C(1) << 40), &value, 8, 0);
    if (strcmp(what, "no-team") == 0) gex_RMA_PutBlocking((gex_TM_t)(void *)job.client, 0, job.base, &value, 8, 0);
    if (strcmp(what, "null-team") == 0) (void)gex_TM_QuerySize(GEX_TM_INVALID);
    if (strcmp(what, "collective-pair") == 0) (void)gex_Coll_BarrierNB(gex_TM_Pair(job.ep, 0), 0);
    if (strcmp(what, "endpoint") == 0) (void)gex_TM_Pair(job.ep, 3);
    if (strcmp(what, "no-op") == 0) gex_Event_Wait(GEX_EVENT_NO_OP);
    if (strcmp(what, "group") == 0) (void)gex_RMA_PutNB(job.tm, 0, ex_base(job.tm, 0), &value, 8, GEX_EVENT_GROUP, 0);
    if (strcmp(what, "event") == 0) (void)gex_RMA_PutNBI(job.tm, 0, ex_base(job.tm, 0), &value, 8, &place, 0);
    if (strcmp(what, "value") == 0) (void)gex_RMA_PutBlockingVal(job.tm, 0, ex_base(job.tm, 0), value, 9, 0);
    if (strcmp(what, "region") == 0) (void)gex_NBI_EndAccessRegion(0);
    if (strcmp(what, "category") == 0) gex_NBI_Wait(0x100, 0);
    event = gex_Coll_BarrierNB(job.tm, 0);
    if (strcmp(what, "leaf-late") == 0) {
        gex_Event_t leaf = gex_Event_QueryLeaf(event, GEX_EC_AM);
        gex_Event_Wait(event);
        gex_Event_Wait(leaf);
    }
    if (strcmp(what, "waited-twice") == 0) {
        gex_Event_t again = event;
        gex_Event_Wait(event);
        gex_Event_Wait(again);
    }
}

/* Calls with handles not from the library. Nothing is mapped at `unmapped`. */
static void handles(const char *what) {
    static uint64_t zeros[8];
    const uintptr_t unmapped = 0x12345678;
    uint64_t value = 1;
    gex_TM_t team;
    if (strncmp(what, "team-", 5) == 0) {
        gex_TM_Split(&team, job.tm, (int)job.me, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
        if (strcmp(what, "team-source") == 0) gex_RMA_PutBlocking(team, 0, job.base, (void *)unmapped, 8, 0);
        if (strcmp(what, "team-dest") == 0) gex_RMA_GetBlocking(team, (void *)unmapped, 0, job.base, 8, 0);
    }
    if (strcmp(what, "wild-team") == 0) gex_RMA_PutBlocking((gex_TM_t)unmapped, 0, job.base, &value, 8, 0);
    if (strcmp(what, "zero-team") == 0) gex_RMA_PutBlocking((gex_TM_t)(void *)zeros, 0, job.base, &value, 8, 0);
    if (strcmp(what, "wild-parent") == 0) (void)gex_TM_Split(&team, (gex_TM_t)unmapped, 0, 0, NULL, 0, 0);
    if (strcmp(what, "wild-endpoint") == 0) (void)gex_EP_QueryIndex((gex_EP_t)unmapped);
    if (strcmp(what, "wild-segment") == 0) (void)gex_Segment_QueryAddr((gex_Segment_t)(UINTPTR_MAX - 7));
    if (strcmp(what, "wild-client") == 0) (void)gex_Client_QueryFlags((gex_Client_t)unmapped);
    if (strcmp(what, "wild-domain") == 0) gex_AD_Destroy((gex_AD_t)unmapped);
    if (strcmp(what, "wild-event") == 0) gex_Event_Wait((gex_Event_t)unmapped);
    if (strcmp(what, "high-event") == 0) gex_Event_WaitAll(&(gex_Event_t){(gex_Event_t)UINTPTR_MAX}, 1, 0);
}

/* Calls with messages. */
static void messages(const char *what) {
    static char bytes[1 << 17];
    gex_AM_SrcDesc_t sd;
    if (strcmp(what, "handler") == 0) (void)gex_AM_RequestShort(job.tm, 0, 5, 0);
    if (strcmp(what, "large") == 0) (void)gex_AM_RequestMedium(job.tm, 0, HANDLER, bytes, sizeof bytes, GEX_EVENT_NOW, 0);
    if (strcmp(what, "defer") == 0) (void)gex_AM_RequestMedium(job.tm, 0, HANDLER, bytes, 1, GEX_EVENT_DEFER, 0);
    if (strcmp(what, "prepare-defer") == 0) (void)gex_AM_PrepareRequestMedium(job.tm, 0, bytes, 8, 8, GEX_EVENT_DEFER, 0, 1);
    if (strcmp(what, "request-in-handler") == 0) (void)gex_AM_RequestShort(job.tm, job.me, HANDLER, 0, 1);
    if (strcmp(what, "reply-twice") == 0) (void)gex_AM_RequestShort(job.tm, job.me, HANDLER, 0, 2);
    if (strcmp(what, "described") == 0) (void)gex_AM_RequestShort(job.tm, job.me, HANDLER, 0, 1, 2);
    if (strcmp(what, "most") == 0) (void)gex_AM_PrepareRequestMedium(job.tm, 0, NULL, 9, 8, NULL, 0, 0);
    if (strcmp(what, "least") == 0) {
        (void)gex_AM_PrepareRequestMedium(job.tm, 0, NULL, sizeof bytes, sizeof bytes, NULL, 0, 0);
    }
    sd = gex_AM_PrepareRequestMedium(job.tm, 0, NULL, 8, 8, NULL, 0, 1);
    if (strcmp(what, "nested") == 0) (void)gex_AM_PrepareRequestMedium(job.tm, 0, NULL, 8, 8, NULL, 0, 1);
    if (strcmp(what, "too-much") == 0) gex_AM_CommitRequestMedium(sd, HANDLER, 9, 0);
    if (strcmp(what, "count") == 0) gex_AM_CommitRequestMedium(sd, HANDLER, 8, 0, 0);
    if (strcmp(what, "kind") == 0) (void)gex_AM_CancelRequestLong(sd, 0);
    if (strcmp(what, "cancelled") == 0) {
        (void)gex_AM_CancelRequestMedium(sd, 0);
        gex_AM_CommitRequestMedium(sd, HANDLER, 8, 0);
    }
}

int main(int argc, char **argv) {
    gex_AM_Entry_t table[] = {{HANDLER, (gex_AM_Fn_t)on_short, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQREP, 1, NULL, NULL}};
    CHECK(argc == 2);
    job = ex_start();
    ex_attach(&job, 2, table, 1);
    if (answers(argv[1])) return 0;
    handles(argv[1]);
    transfers(argv[1]);
    messages(argv[1]);
    printf("returned\n");
    return 0;
}
