/* The shim over GASNet-EX. */
#include <gasnet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#ifndef GASNET_SEGMENT_EVERYTHING
#define GASNET_SEGMENT_EVERYTHING 0
#endif

/* Unless the environment says otherwise, ranks of a host do not share segments: vgasnet shares their memory itself, and
 * GASNet takes memory of its client's only where nobody shares it. */
#define SHARING "GASNET_SUPERNODE_MAXSIZE"

static gex_Client_t client;
static gex_EP_t endpoint;
static gex_TM_t team;
static gex_AM_Index_t handler = 200;
/* The segment that the caller has attached, and the length of the caller's part. */
static gex_Segment_t shared;
static size_t callers_bytes;

void vgasnet_gn_on_message(gex_Token_t token, void *bytes, size_t len_bytes, gex_AM_Arg_t kind) {
    gex_Token_Info_t info;
    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    vgasnet_gn_deliver_to(info.gex_srcrank, (uint32_t)kind, bytes, len_bytes);
}

/* Whether the segment can be memory of ours. */
static int takes_memory(void) {
#if GASNET_SEGMENT_EVERYTHING
    return 1;
#elif GASNET_CONDUIT_SMP
    return gex_TM_QuerySize(team) == 1;
#else
    gex_RankInfo_t *neighbours;
    gex_Rank_t count, own;
    const char *sharing = gasnet_getenv(SHARING);
    gex_System_QueryNbrhdInfo(&neighbours, &count, &own);
    if (shared && !WRITES_BY_ADDRESS) return 0;
    return count == 1 && sharing && !strcmp(sharing, "1");
#endif
}

static int start(int *argc, char ***argv) {
    gex_AM_Entry_t handlers[1] = {
        {handler, (gex_AM_Fn_t)vgasnet_gn_on_message, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_MEDIUM, 1, NULL, "vgasnet"},
    };
    int error;
#if !GASNET_CONDUIT_SMP
    setenv(SHARING, "1", 0);
#endif
    if ((error = gex_Client_Init(&client, &endpoint, &team, "vgasnet", argc, argv, 0))) return error;
    return gex_EP_RegisterHandlers(endpoint, handlers, 1);
}

int vgasnet_gn_is_initialised(void) {
    gasnet_QueryGexObjects(&client, &endpoint, &team, NULL);
    return client != GEX_CLIENT_INVALID;
}

void vgasnet_gn_take_attached(int index, size_t bytes) {
    handler = index;
    callers_bytes = bytes;
    gasnet_QueryGexObjects(&client, &endpoint, &team, &shared);
}

int vgasnet_gn_start(int *argc, char ***argv, vgasnet_gn_deliver_t deliver, struct vgasnet_gn_started *started) {
    int error;
    vgasnet_gn_deliver_to = deliver;
    if (!shared && (error = start(argc, argv))) return error;
    started->rank = gex_TM_QueryRank(team);
    started->ranks = gex_TM_QuerySize(team);
    started->message_bytes_max = gex_AM_LUBRequestMedium();
    started->segment_bytes_max = (shared ? gex_Segment_QuerySize(shared) : gasnet_getMaxLocalSegmentSize()) - callers_bytes;
    started->takes_memory = takes_memory();
    started->transfers_are_threads_own = 0;
    started->transfers_need_polls = WRITES_BY_ADDRESS;
    /* Nobody sends before everybody has the handler. */
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
    return VGASNET_GN_OK;
}

int vgasnet_gn_bind(void *base, size_t len_bytes, void **address) {
    gex_Segment_t segment;
    int error;
    *address = base;
    /* There any memory is the segment. */
    if (GASNET_SEGMENT_EVERYTHING) return VGASNET_GN_OK;
    if (shared) {
        *address = (char *)gex_Segment_QueryAddr(shared) + callers_bytes;
        if (len_bytes > gex_Segment_QuerySize(shared) - callers_bytes) return GASNET_ERR_RESOURCE;
        return map_over(*address, base, len_bytes) ? VGASNET_GN_OK : GASNET_ERR_RESOURCE;
    }
    if ((error = gex_Segment_Create(&segment, client, base, len_bytes, GEX_MK_HOST, 0))) return error;
    if ((error = gex_EP_BindSegment(endpoint, segment, 0))) return error;
    return gex_EP_PublishBoundSegment(team, &endpoint, 1, 0);
}

int vgasnet_gn_allocate(size_t len_bytes, void **segment, void **base) {
    gex_Segment_t own = shared;
    int error;
    if (!shared && (error = gex_Segment_Attach(&own, team, len_bytes))) return error;
    if (len_bytes > gex_Segment_QuerySize(own) - callers_bytes) return GASNET_ERR_RESOURCE;
    *segment = gex_Segment_QueryAddr(own);
    *base = (char *)*segment + callers_bytes;
    return VGASNET_GN_OK;
}

int vgasnet_gn_is_neighbour(uint32_t rank) {
    gex_RankInfo_t *neighbours;
    gex_Rank_t count, own;
    gex_System_QueryNbrhdInfo(&neighbours, &count, &own);
    while (count--) {
        if (neighbours[count].gex_jobrank == rank) return 1;
    }
    return 0;
}

void *vgasnet_gn_mapped(uint32_t rank) {
    void *here = NULL;
    uintptr_t len_bytes = 0;
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(team, rank, NULL, &here, &len_bytes, 0));
    return len_bytes ? here : NULL;
}

static int send(uint32_t to, uint32_t kind, const void *bytes, size_t len_bytes, gex_Flags_t flags) {
    /* GASNet copies the bytes before it returns, and does not write to them. */
    int refused = gex_AM_RequestMedium1(team, to, handler, (void *)bytes, len_bytes, GEX_EVENT_NOW, flags,
                                        (gex_AM_Arg_t)kind);
    if (!refused) return VGASNET_GN_OK;
    return flags & GEX_FLAG_IMMEDIATE ? VGASNET_GN_BUSY : GASNET_ERR_RESOURCE;
}

int vgasnet_gn_send(uint32_t to, uint32_t kind, const void *bytes, size_t len_bytes) {
    return send(to, kind, bytes, len_bytes, GEX_FLAG_IMMEDIATE);
}

int vgasnet_gn_send_patiently(uint32_t to, uint32_t kind, const void *bytes, size_t len_bytes) {
    return send(to, kind, bytes, len_bytes, 0);
}

void *vgasnet_gn_put(uint32_t to, void *there, const void *here, size_t len_bytes) {
    return gex_RMA_PutNB(team, to, there, (void *)here, len_bytes, GEX_EVENT_DEFER, 0);
}

void *vgasnet_gn_get(uint32_t from, void *here, const void *there, size_t len_bytes) {
    return gex_RMA_GetNB(team, here, from, (void *)there, len_bytes, 0);
}

int vgasnet_gn_is_complete(void *transfer) {
    return gex_Event_Test(transfer) == 0;
}
