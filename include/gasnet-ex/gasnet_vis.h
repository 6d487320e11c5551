/* GASNet-EX: vector, indexed and strided transfers, and GASNet-1's names of them. */
#ifndef GASNET_VIS_H
#define GASNET_VIS_H

#include "gasnetex.h"

#include "gasnet_vis_names.h"
#include "vgasnet_ex_lists.h"

/**
 * Writes regions of any lengths to a rank's segment, and returns when that is complete.
 * @see vgasnet_ex_VIS_VectorPutBlocking, GASNet-EX specification 0.19
 */
#define gex_VIS_VectorPutBlocking vgasnet_ex_VIS_VectorPutBlocking
/**
 * Starts to write regions of any lengths to a rank's segment, with an event.
 * @see vgasnet_ex_VIS_VectorPutNB, GASNet-EX specification 0.19
 */
#define gex_VIS_VectorPutNB vgasnet_ex_VIS_VectorPutNB
/**
 * Starts to write regions of any lengths to a rank's segment, without an event.
 * @see vgasnet_ex_VIS_VectorPutNBI, GASNet-EX specification 0.19
 */
#define gex_VIS_VectorPutNBI vgasnet_ex_VIS_VectorPutNBI
/**
 * Reads regions of any lengths from a rank's segment, and returns when that is complete.
 * @see vgasnet_ex_VIS_VectorGetBlocking, GASNet-EX specification 0.19
 */
#define gex_VIS_VectorGetBlocking vgasnet_ex_VIS_VectorGetBlocking
/**
 * Starts to read regions of any lengths from a rank's segment, with an event.
 * @see vgasnet_ex_VIS_VectorGetNB, GASNet-EX specification 0.19
 */
#define gex_VIS_VectorGetNB vgasnet_ex_VIS_VectorGetNB
/**
 * Starts to read regions of any lengths from a rank's segment, without an event.
 * @see vgasnet_ex_VIS_VectorGetNBI, GASNet-EX specification 0.19
 */
#define gex_VIS_VectorGetNBI vgasnet_ex_VIS_VectorGetNBI

/**
 * Writes regions of equal length to a rank's segment, and returns when that is complete.
 * @see vgasnet_ex_VIS_IndexedPutBlocking, GASNet-EX specification 0.19
 */
#define gex_VIS_IndexedPutBlocking vgasnet_ex_VIS_IndexedPutBlocking
/**
 * Starts to write regions of equal length to a rank's segment, with an event.
 * @see vgasnet_ex_VIS_IndexedPutNB, GASNet-EX specification 0.19
 */
#define gex_VIS_IndexedPutNB vgasnet_ex_VIS_IndexedPutNB
/**
 * Starts to write regions of equal length to a rank's segment, without an event.
 * @see vgasnet_ex_VIS_IndexedPutNBI, GASNet-EX specification 0.19
 */
#define gex_VIS_IndexedPutNBI vgasnet_ex_VIS_IndexedPutNBI
/**
 * Reads regions of equal length from a rank's segment, and returns when that is complete.
 * @see vgasnet_ex_VIS_IndexedGetBlocking, GASNet-EX specification 0.19
 */
#define gex_VIS_IndexedGetBlocking vgasnet_ex_VIS_IndexedGetBlocking
/**
 * Starts to read regions of equal length from a rank's segment, with an event.
 * @see vgasnet_ex_VIS_IndexedGetNB, GASNet-EX specification 0.19
 */
#define gex_VIS_IndexedGetNB vgasnet_ex_VIS_IndexedGetNB
/**
 * Starts to read regions of equal length from a rank's segment, without an event.
 * @see vgasnet_ex_VIS_IndexedGetNBI, GASNet-EX specification 0.19
 */
#define gex_VIS_IndexedGetNBI vgasnet_ex_VIS_IndexedGetNBI

/**
 * Writes elements at regular distances to a rank's segment, and returns when that is complete.
 * @see vgasnet_ex_VIS_StridedPutBlocking, GASNet-EX specification 0.19
 */
#define gex_VIS_StridedPutBlocking vgasnet_ex_VIS_StridedPutBlocking
/**
 * Starts to write elements at regular distances to a rank's segment, with an event.
 * @see vgasnet_ex_VIS_StridedPutNB, GASNet-EX specification 0.19
 */
#define gex_VIS_StridedPutNB vgasnet_ex_VIS_StridedPutNB
/**
 * Starts to write elements at regular distances to a rank's segment, without an event.
 * @see vgasnet_ex_VIS_StridedPutNBI, GASNet-EX specification 0.19
 */
#define gex_VIS_StridedPutNBI vgasnet_ex_VIS_StridedPutNBI
/**
 * Reads elements at regular distances from a rank's segment, and returns when that is complete.
 * @see vgasnet_ex_VIS_StridedGetBlocking, GASNet-EX specification 0.19
 */
#define gex_VIS_StridedGetBlocking vgasnet_ex_VIS_StridedGetBlocking
/**
 * Starts to read elements at regular distances from a rank's segment, with an event.
 * @see vgasnet_ex_VIS_StridedGetNB, GASNet-EX specification 0.19
 */
#define gex_VIS_StridedGetNB vgasnet_ex_VIS_StridedGetNB
/**
 * Starts to read elements at regular distances from a rank's segment, without an event.
 * @see vgasnet_ex_VIS_StridedGetNBI, GASNet-EX specification 0.19
 */
#define gex_VIS_StridedGetNBI vgasnet_ex_VIS_StridedGetNBI

/* The longest payload of a message that tells the end of a put to its target, in bytes. */
#define GEX_VIS_MAX_PEERCOMPLETION ((size_t)127)
/**
 * Has the calling thread's next put between lists tell its target of its end.
 * @see vgasnet_ex_VIS_SetPeerCompletionHandler, GASNet-EX specification 0.19
 */
#define gex_VIS_SetPeerCompletionHandler vgasnet_ex_VIS_SetPeerCompletionHandler

#endif
