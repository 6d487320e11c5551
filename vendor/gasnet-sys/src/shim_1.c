/* The shim over GASNet-1. */
#include <gasnet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#ifndef GASNET_SEGMENT_EVERYTHING
#define GASNET_SEGMENT_EVERYTHING 0
#endif

/* Unless the environment says otherwise, ranks of a host do not share segments: vgasnet shares their memory itself. */
#define SHARING "GASNET_SUPERNODE_MAXSIZE"

static gasnet_handler_t handler = 200;
/* Whether the caller attached, and how much of this rank's segment is the caller's. */
static int is_shared;
static size_t callers_bytes;
/* Of each rank. The segments exist from the start on. */
static gasnet_seginfo_t *segments;
static gasnet_nodeinfo_t *places;

void vgasnet_gn_on_message(gasnet_token_t token, void *bytes, size_t len_bytes, gasnet_handlerarg_t kind) {
    gasnet_node_t from = 0;
    gasnet_AMGetMsgSource(token, &from);
    vgasnet_gn_deliver_to(from, (uint32_t)kind, bytes, len_bytes);
}

static int attach(void) {
    gasnet_handlerentry_t handlers[1] = {{handler, (void (*)())vgasnet_gn_on_message}};
    return gasnet_attach(handlers, 1, gasnet_getMaxLocalSegmentSize(), 0);
}

static int look_around(void) {
    int error;
    segments = calloc(gasnet_nodes(), sizeof *segments);
    places = calloc(gasnet_nodes(), sizeof *places);
    if (!segments || !places) return GASNET_ERR_RESOURCE;
    if ((error = gasnet_getSegmentInfo(segments, gasnet_nodes()))) return error;
    return gasnet_getNodeInfo(places, gasnet_nodes());
}

/* Whether the segment can be memory of ours. */
static int takes_memory(void) {
#if GASNET_SEGMENT_EVERYTHING
    return 1;
#else
    const char *sharing = gasnet_getenv(SHARING);
    gasnet_node_t other, own = gasnet_mynode();
    /* With one rank there is nobody to reach it. */
    if (gasnet_nodes() == 1) return 1;
    for (other = 0; other < gasnet_nodes(); ++other) {
        if (other != own && places[other].supernode == places[own].supernode) return 0;
    }
    return WRITES_BY_ADDRESS && sharing && !strcmp(sharing, "1");
#endif
}

int vgasnet_gn_is_initialised(void) {
    return gasnet_nodes() > 0;
}

void vgasnet_gn_take_attached(int index, size_t bytes) {
    handler = index;
    callers_bytes = bytes;
    is_shared = 1;
}

int vgasnet_gn_start(int *argc, char ***argv, vgasnet_gn_deliver_t deliver, struct vgasnet_gn_started *started) {
    int error;
    vgasnet_gn_deliver_to = deliver;
    if (!is_shared) {
        if (WRITES_BY_ADDRESS) setenv(SHARING, "1", 0);
        if ((error = gasnet_init(argc, argv))) return error;
        if ((error = attach())) return error;
    }
    if ((error = look_around())) return error;
    started->rank = gasnet_mynode();
    started->ranks = gasnet_nodes();
    started->message_bytes_max = gasnet_AMMaxMedium();
    started->segment_bytes_max = segments[gasnet_mynode()].size - callers_bytes;
    started->takes_memory = takes_memory();
    started->transfers_are_threads_own = 1;
    started->transfers_need_polls = WRITES_BY_ADDRESS;
    return VGASNET_GN_OK;
}

int vgasnet_gn_bind(void *base, size_t len_bytes, void **address) {
    const gasnet_seginfo_t *own = &segments[gasnet_mynode()];
    *address = base;
    /* Either any memory is the segment, or nobody is there to reach it. */
    if (GASNET_SEGMENT_EVERYTHING || gasnet_nodes() == 1) return VGASNET_GN_OK;
    *address = (char *)own->addr + callers_bytes;
    if (len_bytes > own->size - callers_bytes) return GASNET_ERR_RESOURCE;
    return map_over(*address, base, len_bytes) ? VGASNET_GN_OK : GASNET_ERR_RESOURCE;
}

int vgasnet_gn_allocate(size_t len_bytes, void **segment, void **base) {
    const gasnet_seginfo_t *own = &segments[gasnet_mynode()];
    if (len_bytes > own->size - callers_bytes) return GASNET_ERR_RESOURCE;
    *segment = own->addr;
    *base = (char *)own->addr + callers_bytes;
    return VGASNET_GN_OK;
}

int vgasnet_gn_is_neighbour(uint32_t rank) {
    return places[rank].supernode == places[gasnet_mynode()].supernode;
}

void *vgasnet_gn_mapped(uint32_t rank) {
    if (!vgasnet_gn_is_neighbour(rank)) return NULL;
#if GASNET_PSHM
    return (char *)segments[rank].addr + places[rank].offset;
#else
    return rank == gasnet_mynode() ? segments[rank].addr : NULL;
#endif
}

/* GASNet-1 waits for room itself, and polls meanwhile. */
int vgasnet_gn_send(uint32_t to, uint32_t kind, const void *bytes, size_t len_bytes) {
    return gasnet_AMRequestMedium1(to, handler, (void *)bytes, len_bytes, (gasnet_handlerarg_t)kind);
}

int vgasnet_gn_send_patiently(uint32_t to, uint32_t kind, const void *bytes, size_t len_bytes) {
    return vgasnet_gn_send(to, kind, bytes, len_bytes);
}

void *vgasnet_gn_put(uint32_t to, void *there, const void *here, size_t len_bytes) {
    return (void *)gasnet_put_nb_bulk(to, there, (void *)here, len_bytes);
}

void *vgasnet_gn_get(uint32_t from, void *here, const void *there, size_t len_bytes) {
    return (void *)gasnet_get_nb_bulk(here, from, (void *)there, len_bytes);
}

int vgasnet_gn_is_complete(void *transfer) {
    return gasnet_try_syncnb((gasnet_handle_t)transfer) == GASNET_OK;
}
