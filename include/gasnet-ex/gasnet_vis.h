/* GASNet-EX: vector, indexed and strided transfers, and GASNet-1's names of them. */
#ifndef GASNET_VIS_H
#define GASNET_VIS_H

#include "gasnetex.h"

#include "gasnet_vis_names.h"
#include "vgasnet_ex_lists.h"

#define gex_VIS_VectorPutBlocking vgasnet_ex_VIS_VectorPutBlocking
#define gex_VIS_VectorPutNB vgasnet_ex_VIS_VectorPutNB
#define gex_VIS_VectorPutNBI vgasnet_ex_VIS_VectorPutNBI
#define gex_VIS_VectorGetBlocking vgasnet_ex_VIS_VectorGetBlocking
#define gex_VIS_VectorGetNB vgasnet_ex_VIS_VectorGetNB
#define gex_VIS_VectorGetNBI vgasnet_ex_VIS_VectorGetNBI

#define gex_VIS_IndexedPutBlocking vgasnet_ex_VIS_IndexedPutBlocking
#define gex_VIS_IndexedPutNB vgasnet_ex_VIS_IndexedPutNB
#define gex_VIS_IndexedPutNBI vgasnet_ex_VIS_IndexedPutNBI
#define gex_VIS_IndexedGetBlocking vgasnet_ex_VIS_IndexedGetBlocking
#define gex_VIS_IndexedGetNB vgasnet_ex_VIS_IndexedGetNB
#define gex_VIS_IndexedGetNBI vgasnet_ex_VIS_IndexedGetNBI

#define gex_VIS_StridedPutBlocking vgasnet_ex_VIS_StridedPutBlocking
#define gex_VIS_StridedPutNB vgasnet_ex_VIS_StridedPutNB
#define gex_VIS_StridedPutNBI vgasnet_ex_VIS_StridedPutNBI
#define gex_VIS_StridedGetBlocking vgasnet_ex_VIS_StridedGetBlocking
#define gex_VIS_StridedGetNB vgasnet_ex_VIS_StridedGetNB
#define gex_VIS_StridedGetNBI vgasnet_ex_VIS_StridedGetNBI

/* The longest payload of a message that tells the end of a put to its target, in bytes. */
#define GEX_VIS_MAX_PEERCOMPLETION ((size_t)127)
#define gex_VIS_SetPeerCompletionHandler vgasnet_ex_VIS_SetPeerCompletionHandler

#endif
