/* GASNet-1 and GASNet-EX in one client, which begins with GASNet-1: objects, handlers registered by either, events
 * as handles. */
#include <gasnet.h>

#include "ex_check.h"

enum { BY_1 = 140, BY_EX = 150 };

static volatile int by_1, by_ex;

static void on_1(gasnet_token_t token, gasnet_handlerarg_t number) {
    gasnet_node_t from;
    CHECK(gasnet_AMGetMsgSource(token, &from) == GASNET_OK && (int)from == number);
    ++by_1;
}
static void on_ex(gex_Token_t token, gex_AM_Arg_t number) {
    gex_Token_Info_t info;
    CHECK((gex_Token_Info(token, &info, GEX_TI_SRCRANK) & GEX_TI_SRCRANK) && (int)info.gex_srcrank == number);
    ++by_ex;
}

/* A supernode of GASNet-1 is a neighbourhood of GASNet-EX. */
static void check_places(gasnet_node_t me) {
    static gasnet_nodeinfo_t places[4096];
    gasnet_memvec_t region = {places, sizeof places};
    gasnet_node_t other, size = 0;
    gex_Rank_t neighbours;
    CHECK(gasnet_nodes() <= 4096 && sizeof region == sizeof(gex_Memvec_t));
    CHECK(gasnet_getNodeInfo(places, (int)gasnet_nodes()) == GASNET_OK);
    for (other = 0; other < gasnet_nodes(); ++other) size += places[other].supernode == places[me].supernode;
    gex_System_QueryNbrhdInfo(NULL, &neighbours, NULL);
    CHECK_EQ(size, neighbours);
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t first[] = {{BY_1, (void (*)())on_1}};
    gex_AM_Entry_t second[] = {{BY_EX, (gex_AM_Fn_t)on_ex, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, NULL}};
    gex_Client_t client = GEX_CLIENT_INVALID;
    gex_EP_t ep = GEX_EP_INVALID;
    gex_TM_t tm = GEX_TM_INVALID;
    gex_Segment_t segment;
    gasnet_node_t me, next;
    uint64_t value, got = 0;
    gasnet_handle_t handle, handles[3];
    static char large[16 * GASNET_PAGESIZE];
    CHECK(gasnet_init(&argc, &argv) == GASNET_OK);
    gasnet_QueryGexObjects(&client, &ep, &tm, &segment);
    CHECK(client && ep && tm && segment == GEX_SEGMENT_INVALID);
    CHECK_EQ(gex_Client_QueryFlags(client), GEX_FLAG_USES_GASNET1);
    CHECK(gasnet_attach(first, 1, 16 * GASNET_PAGESIZE, 0) == GASNET_OK);
    gasnet_QueryGexObjects(NULL, NULL, NULL, &segment);
    CHECK(segment != GEX_SEGMENT_INVALID && gex_EP_QuerySegment(ep) == segment);
    CHECK(gex_Segment_QuerySize(segment) >= 16 * GASNET_PAGESIZE);
    CHECK(gex_EP_RegisterHandlers(ep, second, 1) == GASNET_OK);
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    CHECK(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS) == GASNET_OK);
    me = gasnet_mynode();
    next = (me + 1) % gasnet_nodes();
    CHECK(gasnet_AMRequestShort1(next, BY_1, (gasnet_handlerarg_t)me) == GASNET_OK);
    CHECK(gasnet_AMRequestShort1(next, BY_EX, (gasnet_handlerarg_t)me) == GASNET_OK);
    CHECK(gex_AM_RequestShort1(tm, next, BY_1, 0, (gex_AM_Arg_t)me) == 0);
    CHECK(gex_AM_RequestShort1(tm, next, BY_EX, 0, (gex_AM_Arg_t)me) == 0);
    GASNET_BLOCKUNTIL(by_1 == 2 && by_ex == 2);
    value = me + 50;
    gasnet_put(next, ex_base(tm, next), &value, sizeof value);
    /* An event of GASNet-EX is a handle of GASNet-1. */
    handle = gex_RMA_GetNB(tm, &got, next, ex_base(tm, next), sizeof got, 0);
    gasnet_wait_syncnb(handle);
    CHECK_EQ(got, value);
    gex_Event_Wait(gasnet_get_nb(&got, next, ex_base(tm, next), sizeof got));
    /* So are leaf events. */
    handles[0] = gex_RMA_PutNB(tm, next, ex_base(tm, next), large, sizeof large, &handles[1], 0);
    handles[2] = GASNET_INVALID_HANDLE;
    gasnet_wait_syncnb_some(handles, 3);
    while (gasnet_try_syncnb_all(handles, 3) == GASNET_ERR_NOT_READY) gasnet_AMPoll();
    CHECK(handles[0] == GASNET_INVALID_HANDLE && handles[1] == GASNET_INVALID_HANDLE);
    handles[0] = gex_RMA_PutNB(tm, next, ex_base(tm, next), large, sizeof large, &handles[1], 0);
    gasnet_wait_syncnb(handles[1]);
    while (gasnet_try_syncnb(handles[0]) == GASNET_ERR_NOT_READY) gasnet_AMPoll();
    gasnet_put_nbi(next, ex_base(tm, next) + 8, &value, sizeof value);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    check_places(me);
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    CHECK_EQ(gasnet_get_val(me, ex_base(tm, me) + 8, 8), (me + gasnet_nodes() - 1) % gasnet_nodes() + 50);
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    gasnet_exit(0);
    return 0;
}
