/* GASNet-1 and GASNet-EX, mixed: a client may begin with either init, and use the names of both. gasnetex.h tells how to compile. */
#ifndef GASNET_H
#define GASNET_H
#define _INCLUDED_GASNET_H

#include "gasnetex.h"

#include "gasnet_counted.h"
#include "gasnet_tools.h"
#include "gasnet_vis_names.h"

/* As GASNet-1's, but that a neighbourhood, which GASNet-1 calls supernode, is one rank here. */
static inline int vgasnet_ex_getNodeInfo(gasnet_nodeinfo_t *table, int entries) {
    int code = vgasnet_getNodeInfo(table, entries);
    for (int at = 0; code == GASNET_OK && at < entries && at < (int)vgasnet_nodes(); ++at) table[at].supernode = (gasnet_node_t)at;
    return code;
}

#undef gasnet_getNodeInfo
#define gasnet_getNodeInfo vgasnet_ex_getNodeInfo

/* Handles may be events, with or without leaves, and leaves. */
#undef gasnet_wait_syncnb
#define gasnet_wait_syncnb gex_Event_Wait
#undef gasnet_try_syncnb
#define gasnet_try_syncnb gex_Event_Test
#undef gasnet_wait_syncnb_all
#define gasnet_wait_syncnb_all(handles, count) gex_Event_WaitAll(handles, count, 0)
#undef gasnet_try_syncnb_all
#define gasnet_try_syncnb_all(handles, count) gex_Event_TestAll(handles, count, 0)
#undef gasnet_wait_syncnb_some
#define gasnet_wait_syncnb_some(handles, count) gex_Event_WaitSome(handles, count, 0)
#undef gasnet_try_syncnb_some
#define gasnet_try_syncnb_some(handles, count) gex_Event_TestSome(handles, count, 0)

/* The objects that a job has, by whichever init; a place may be null. */
#define gasnet_QueryGexObjects vgasnet_ex_QueryGexObjects

#endif
