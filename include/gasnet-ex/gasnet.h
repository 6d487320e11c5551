/* GASNet-1 and GASNet-EX, mixed: a client may begin with either init, and use the names of both. gasnetex.h tells how to compile. */
#ifndef GASNET_H
#define GASNET_H
#define _INCLUDED_GASNET_H

#include "gasnetex.h"

#include "gasnet_counted.h"
#include "gasnet_tools.h"
#include "gasnet_vis_names.h"

/** Tells which ranks share a machine; a supernode is one rank. @see vgasnet_getNodeInfo */
static inline int vgasnet_ex_getNodeInfo(gasnet_nodeinfo_t *table, int entries) {
    int code = vgasnet_getNodeInfo(table, entries);
    for (int at = 0; code == GASNET_OK && at < entries && at < (int)vgasnet_nodes(); ++at) table[at].supernode = (gasnet_node_t)at;
    return code;
}

#undef gasnet_getNodeInfo
/** Tells which ranks share a machine; a supernode is one rank. @see vgasnet_ex_getNodeInfo */
#define gasnet_getNodeInfo vgasnet_ex_getNodeInfo

/* Handles may be events, with or without leaves, and leaves. */
#undef gasnet_wait_syncnb
/** Waits until one operation is complete; a handle may be an event. @see gex_Event_Wait, GASNet-1 specification 1.8 */
#define gasnet_wait_syncnb gex_Event_Wait
#undef gasnet_try_syncnb
/**
 * Tests whether one operation is complete; a handle may be an event.
 * @see gex_Event_Test, GASNet-1 specification 1.8
 */
#define gasnet_try_syncnb gex_Event_Test
#undef gasnet_wait_syncnb_all
/**
 * Waits until several operations are all complete; handles may be events.
 * @see vgasnet_wait_syncnb_all, GASNet-1 specification 1.8
 */
#define gasnet_wait_syncnb_all(handles, count) gex_Event_WaitAll(handles, count, 0)
#undef gasnet_try_syncnb_all
/**
 * Tests whether several operations are all complete; handles may be events.
 * @see vgasnet_try_syncnb_all, GASNet-1 specification 1.8
 */
#define gasnet_try_syncnb_all(handles, count) gex_Event_TestAll(handles, count, 0)
#undef gasnet_wait_syncnb_some
/**
 * Waits until at least one of several operations is complete; handles may be events.
 * @see vgasnet_wait_syncnb_some, GASNet-1 specification 1.8
 */
#define gasnet_wait_syncnb_some(handles, count) gex_Event_WaitSome(handles, count, 0)
#undef gasnet_try_syncnb_some
/**
 * Tests whether at least one of several operations is complete; handles may be events.
 * @see vgasnet_try_syncnb_some, GASNet-1 specification 1.8
 */
#define gasnet_try_syncnb_some(handles, count) gex_Event_TestSome(handles, count, 0)

/**
 * Tells the objects that a job has, by whichever init.
 * @see vgasnet_ex_QueryGexObjects, GASNet-EX specification 0.19
 */
#define gasnet_QueryGexObjects vgasnet_ex_QueryGexObjects

#endif
