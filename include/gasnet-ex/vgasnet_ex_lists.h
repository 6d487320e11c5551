/* The library's functions for vector, indexed and strided transfers of GASNet-EX; see vgasnet_ex.h. Lists are read by the call. */
#ifndef VGASNET_EX_LISTS_H
#define VGASNET_EX_LISTS_H

#include <gex_types.h>

#ifdef __cplusplus
extern "C" {
#endif

int vgasnet_ex_VIS_VectorPutBlocking(gex_TM_t team, gex_Rank_t rank, size_t dstcount, gex_Memvec_t const dstlist[], size_t srccount,
                                     gex_Memvec_t const srclist[], gex_Flags_t flags);
gex_Event_t vgasnet_ex_VIS_VectorPutNB(gex_TM_t team, gex_Rank_t rank, size_t dstcount, gex_Memvec_t const dstlist[],
                                       size_t srccount, gex_Memvec_t const srclist[], gex_Flags_t flags);
int vgasnet_ex_VIS_VectorPutNBI(gex_TM_t team, gex_Rank_t rank, size_t dstcount, gex_Memvec_t const dstlist[], size_t srccount,
                                gex_Memvec_t const srclist[], gex_Flags_t flags);
int vgasnet_ex_VIS_VectorGetBlocking(gex_TM_t team, size_t dstcount, gex_Memvec_t const dstlist[], gex_Rank_t rank, size_t srccount,
                                     gex_Memvec_t const srclist[], gex_Flags_t flags);
gex_Event_t vgasnet_ex_VIS_VectorGetNB(gex_TM_t team, size_t dstcount, gex_Memvec_t const dstlist[], gex_Rank_t rank,
                                       size_t srccount, gex_Memvec_t const srclist[], gex_Flags_t flags);
int vgasnet_ex_VIS_VectorGetNBI(gex_TM_t team, size_t dstcount, gex_Memvec_t const dstlist[], gex_Rank_t rank, size_t srccount,
                                gex_Memvec_t const srclist[], gex_Flags_t flags);

int vgasnet_ex_VIS_IndexedPutBlocking(gex_TM_t team, gex_Rank_t rank, size_t dstcount, void *const dstlist[], size_t dstlen,
                                      size_t srccount, void *const srclist[], size_t srclen, gex_Flags_t flags);
gex_Event_t vgasnet_ex_VIS_IndexedPutNB(gex_TM_t team, gex_Rank_t rank, size_t dstcount, void *const dstlist[], size_t dstlen,
                                        size_t srccount, void *const srclist[], size_t srclen, gex_Flags_t flags);
int vgasnet_ex_VIS_IndexedPutNBI(gex_TM_t team, gex_Rank_t rank, size_t dstcount, void *const dstlist[], size_t dstlen,
                                 size_t srccount, void *const srclist[], size_t srclen, gex_Flags_t flags);
int vgasnet_ex_VIS_IndexedGetBlocking(gex_TM_t team, size_t dstcount, void *const dstlist[], size_t dstlen, gex_Rank_t rank,
                                      size_t srccount, void *const srclist[], size_t srclen, gex_Flags_t flags);
gex_Event_t vgasnet_ex_VIS_IndexedGetNB(gex_TM_t team, size_t dstcount, void *const dstlist[], size_t dstlen, gex_Rank_t rank,
                                        size_t srccount, void *const srclist[], size_t srclen, gex_Flags_t flags);
int vgasnet_ex_VIS_IndexedGetNBI(gex_TM_t team, size_t dstcount, void *const dstlist[], size_t dstlen, gex_Rank_t rank,
                                 size_t srccount, void *const srclist[], size_t srclen, gex_Flags_t flags);

int vgasnet_ex_VIS_StridedPutBlocking(gex_TM_t team, gex_Rank_t rank, void *dstaddr, const ptrdiff_t dststrides[], void *srcaddr,
                                      const ptrdiff_t srcstrides[], size_t elemsz, const size_t count[], size_t stridelevels,
                                      gex_Flags_t flags);
gex_Event_t vgasnet_ex_VIS_StridedPutNB(gex_TM_t team, gex_Rank_t rank, void *dstaddr, const ptrdiff_t dststrides[], void *srcaddr,
                                        const ptrdiff_t srcstrides[], size_t elemsz, const size_t count[], size_t stridelevels,
                                        gex_Flags_t flags);
int vgasnet_ex_VIS_StridedPutNBI(gex_TM_t team, gex_Rank_t rank, void *dstaddr, const ptrdiff_t dststrides[], void *srcaddr,
                                 const ptrdiff_t srcstrides[], size_t elemsz, const size_t count[], size_t stridelevels,
                                 gex_Flags_t flags);
int vgasnet_ex_VIS_StridedGetBlocking(gex_TM_t team, void *dstaddr, const ptrdiff_t dststrides[], gex_Rank_t rank, void *srcaddr,
                                      const ptrdiff_t srcstrides[], size_t elemsz, const size_t count[], size_t stridelevels,
                                      gex_Flags_t flags);
gex_Event_t vgasnet_ex_VIS_StridedGetNB(gex_TM_t team, void *dstaddr, const ptrdiff_t dststrides[], gex_Rank_t rank, void *srcaddr,
                                        const ptrdiff_t srcstrides[], size_t elemsz, const size_t count[], size_t stridelevels,
                                        gex_Flags_t flags);
int vgasnet_ex_VIS_StridedGetNBI(gex_TM_t team, void *dstaddr, const ptrdiff_t dststrides[], gex_Rank_t rank, void *srcaddr,
                                 const ptrdiff_t srcstrides[], size_t elemsz, const size_t count[], size_t stridelevels,
                                 gex_Flags_t flags);

/* The put to which it belongs is complete when it returns. */
void vgasnet_ex_VIS_SetPeerCompletionHandler(gex_AM_Index_t handler, const void *source, size_t length, gex_Flags_t flags);

#ifdef __cplusplus
}
#endif

#endif
