/* The library's functions for vector, indexed and strided transfers of GASNet-EX; see vgasnet_ex.h. Lists are read by the call. */
#ifndef VGASNET_EX_LISTS_H
#define VGASNET_EX_LISTS_H

#include <gex_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Writes regions of any lengths to a rank's segment, and returns when that is complete.
 *
 * Lists are free for reuse when the call returns.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team; of a pair, in the job
 * @param dstcount number of regions of the destination
 * @param dstlist remote regions of the destination
 * @param srccount number of regions of the source
 * @param srclist local regions of the source
 * @param flags ignored
 * @return 0, as nothing is refused
 * @see vgasnet_putv_bulk, GASNet-EX specification 0.19 (gex_VIS_VectorPutBlocking)
 */
int vgasnet_ex_VIS_VectorPutBlocking(gex_TM_t team, gex_Rank_t rank, size_t dstcount, gex_Memvec_t const dstlist[], size_t srccount,
                                     gex_Memvec_t const srclist[], gex_Flags_t flags);

/**
 * Starts to write regions of any lengths to a rank's segment, with an event.
 *
 * Lists are free for reuse when the call returns.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team; of a pair, in the job
 * @param dstcount number of regions of the destination
 * @param dstlist remote regions of the destination
 * @param srccount number of regions of the source
 * @param srclist local regions of the source
 * @param flags 0, or GEX_FLAG_ENABLE_LEAF_LC for an event of the source
 * @return an event to be tested or waited for; GEX_EVENT_INVALID if the operation is complete already
 * @see vgasnet_ex_Event_Wait, GASNet-EX specification 0.19 (gex_VIS_VectorPutNB)
 */
gex_Event_t vgasnet_ex_VIS_VectorPutNB(gex_TM_t team, gex_Rank_t rank, size_t dstcount, gex_Memvec_t const dstlist[],
                                       size_t srccount, gex_Memvec_t const srclist[], gex_Flags_t flags);

/**
 * Starts to write regions of any lengths to a rank's segment, without an event.
 *
 * Lists are free for reuse when the call returns.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team; of a pair, in the job
 * @param dstcount number of regions of the destination
 * @param dstlist remote regions of the destination
 * @param srccount number of regions of the source
 * @param srclist local regions of the source
 * @param flags 0, or GEX_FLAG_ENABLE_LEAF_LC for an event of the source
 * @return 0, as nothing is refused
 * @see vgasnet_ex_NBI_Wait, GASNet-EX specification 0.19 (gex_VIS_VectorPutNBI)
 */
int vgasnet_ex_VIS_VectorPutNBI(gex_TM_t team, gex_Rank_t rank, size_t dstcount, gex_Memvec_t const dstlist[], size_t srccount,
                                gex_Memvec_t const srclist[], gex_Flags_t flags);

/**
 * Reads regions of any lengths from a rank's segment, and returns when that is complete.
 *
 * Lists are free for reuse when the call returns.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes.
 *
 * @param team the team, or a pair of endpoints
 * @param dstcount number of regions of the destination
 * @param dstlist local regions of the destination
 * @param rank rank in the team; of a pair, in the job
 * @param srccount number of regions of the source
 * @param srclist remote regions of the source
 * @param flags ignored
 * @return 0, as nothing is refused
 * @see vgasnet_getv_bulk, GASNet-EX specification 0.19 (gex_VIS_VectorGetBlocking)
 */
int vgasnet_ex_VIS_VectorGetBlocking(gex_TM_t team, size_t dstcount, gex_Memvec_t const dstlist[], gex_Rank_t rank, size_t srccount,
                                     gex_Memvec_t const srclist[], gex_Flags_t flags);

/**
 * Starts to read regions of any lengths from a rank's segment, with an event.
 *
 * Lists are free for reuse when the call returns.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes.
 *
 * @param team the team, or a pair of endpoints
 * @param dstcount number of regions of the destination
 * @param dstlist local regions of the destination
 * @param rank rank in the team; of a pair, in the job
 * @param srccount number of regions of the source
 * @param srclist remote regions of the source
 * @param flags ignored
 * @return an event to be tested or waited for; GEX_EVENT_INVALID if the operation is complete already
 * @see vgasnet_ex_Event_Wait, GASNet-EX specification 0.19 (gex_VIS_VectorGetNB)
 */
gex_Event_t vgasnet_ex_VIS_VectorGetNB(gex_TM_t team, size_t dstcount, gex_Memvec_t const dstlist[], gex_Rank_t rank,
                                       size_t srccount, gex_Memvec_t const srclist[], gex_Flags_t flags);

/**
 * Starts to read regions of any lengths from a rank's segment, without an event.
 *
 * Lists are free for reuse when the call returns.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes.
 *
 * @param team the team, or a pair of endpoints
 * @param dstcount number of regions of the destination
 * @param dstlist local regions of the destination
 * @param rank rank in the team; of a pair, in the job
 * @param srccount number of regions of the source
 * @param srclist remote regions of the source
 * @param flags ignored
 * @return 0, as nothing is refused
 * @see vgasnet_ex_NBI_Wait, GASNet-EX specification 0.19 (gex_VIS_VectorGetNBI)
 */
int vgasnet_ex_VIS_VectorGetNBI(gex_TM_t team, size_t dstcount, gex_Memvec_t const dstlist[], gex_Rank_t rank, size_t srccount,
                                gex_Memvec_t const srclist[], gex_Flags_t flags);

/**
 * Writes regions of equal length to a rank's segment, and returns when that is complete.
 *
 * Lists are free for reuse when the call returns.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team; of a pair, in the job
 * @param dstcount number of regions of the destination
 * @param dstlist remote addresses of the destination's regions
 * @param dstlen bytes of each region of the destination
 * @param srccount number of regions of the source
 * @param srclist local addresses of the source's regions
 * @param srclen bytes of each region of the source
 * @param flags ignored
 * @return 0, as nothing is refused
 * @see vgasnet_puti_bulk, GASNet-EX specification 0.19 (gex_VIS_IndexedPutBlocking)
 */
int vgasnet_ex_VIS_IndexedPutBlocking(gex_TM_t team, gex_Rank_t rank, size_t dstcount, void *const dstlist[], size_t dstlen,
                                      size_t srccount, void *const srclist[], size_t srclen, gex_Flags_t flags);

/**
 * Starts to write regions of equal length to a rank's segment, with an event.
 *
 * Lists are free for reuse when the call returns.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team; of a pair, in the job
 * @param dstcount number of regions of the destination
 * @param dstlist remote addresses of the destination's regions
 * @param dstlen bytes of each region of the destination
 * @param srccount number of regions of the source
 * @param srclist local addresses of the source's regions
 * @param srclen bytes of each region of the source
 * @param flags 0, or GEX_FLAG_ENABLE_LEAF_LC for an event of the source
 * @return an event to be tested or waited for; GEX_EVENT_INVALID if the operation is complete already
 * @see vgasnet_ex_Event_Wait, GASNet-EX specification 0.19 (gex_VIS_IndexedPutNB)
 */
gex_Event_t vgasnet_ex_VIS_IndexedPutNB(gex_TM_t team, gex_Rank_t rank, size_t dstcount, void *const dstlist[], size_t dstlen,
                                        size_t srccount, void *const srclist[], size_t srclen, gex_Flags_t flags);

/**
 * Starts to write regions of equal length to a rank's segment, without an event.
 *
 * Lists are free for reuse when the call returns.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team; of a pair, in the job
 * @param dstcount number of regions of the destination
 * @param dstlist remote addresses of the destination's regions
 * @param dstlen bytes of each region of the destination
 * @param srccount number of regions of the source
 * @param srclist local addresses of the source's regions
 * @param srclen bytes of each region of the source
 * @param flags 0, or GEX_FLAG_ENABLE_LEAF_LC for an event of the source
 * @return 0, as nothing is refused
 * @see vgasnet_ex_NBI_Wait, GASNet-EX specification 0.19 (gex_VIS_IndexedPutNBI)
 */
int vgasnet_ex_VIS_IndexedPutNBI(gex_TM_t team, gex_Rank_t rank, size_t dstcount, void *const dstlist[], size_t dstlen,
                                 size_t srccount, void *const srclist[], size_t srclen, gex_Flags_t flags);

/**
 * Reads regions of equal length from a rank's segment, and returns when that is complete.
 *
 * Lists are free for reuse when the call returns.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes.
 *
 * @param team the team, or a pair of endpoints
 * @param dstcount number of regions of the destination
 * @param dstlist local addresses of the destination's regions
 * @param dstlen bytes of each region of the destination
 * @param rank rank in the team; of a pair, in the job
 * @param srccount number of regions of the source
 * @param srclist remote addresses of the source's regions
 * @param srclen bytes of each region of the source
 * @param flags ignored
 * @return 0, as nothing is refused
 * @see vgasnet_geti_bulk, GASNet-EX specification 0.19 (gex_VIS_IndexedGetBlocking)
 */
int vgasnet_ex_VIS_IndexedGetBlocking(gex_TM_t team, size_t dstcount, void *const dstlist[], size_t dstlen, gex_Rank_t rank,
                                      size_t srccount, void *const srclist[], size_t srclen, gex_Flags_t flags);

/**
 * Starts to read regions of equal length from a rank's segment, with an event.
 *
 * Lists are free for reuse when the call returns.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes.
 *
 * @param team the team, or a pair of endpoints
 * @param dstcount number of regions of the destination
 * @param dstlist local addresses of the destination's regions
 * @param dstlen bytes of each region of the destination
 * @param rank rank in the team; of a pair, in the job
 * @param srccount number of regions of the source
 * @param srclist remote addresses of the source's regions
 * @param srclen bytes of each region of the source
 * @param flags ignored
 * @return an event to be tested or waited for; GEX_EVENT_INVALID if the operation is complete already
 * @see vgasnet_ex_Event_Wait, GASNet-EX specification 0.19 (gex_VIS_IndexedGetNB)
 */
gex_Event_t vgasnet_ex_VIS_IndexedGetNB(gex_TM_t team, size_t dstcount, void *const dstlist[], size_t dstlen, gex_Rank_t rank,
                                        size_t srccount, void *const srclist[], size_t srclen, gex_Flags_t flags);

/**
 * Starts to read regions of equal length from a rank's segment, without an event.
 *
 * Lists are free for reuse when the call returns.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes.
 *
 * @param team the team, or a pair of endpoints
 * @param dstcount number of regions of the destination
 * @param dstlist local addresses of the destination's regions
 * @param dstlen bytes of each region of the destination
 * @param rank rank in the team; of a pair, in the job
 * @param srccount number of regions of the source
 * @param srclist remote addresses of the source's regions
 * @param srclen bytes of each region of the source
 * @param flags ignored
 * @return 0, as nothing is refused
 * @see vgasnet_ex_NBI_Wait, GASNet-EX specification 0.19 (gex_VIS_IndexedGetNBI)
 */
int vgasnet_ex_VIS_IndexedGetNBI(gex_TM_t team, size_t dstcount, void *const dstlist[], size_t dstlen, gex_Rank_t rank,
                                 size_t srccount, void *const srclist[], size_t srclen, gex_Flags_t flags);

/**
 * Writes elements at regular distances to a rank's segment, and returns when that is complete.
 *
 * Lists are free for reuse when the call returns.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team; of a pair, in the job
 * @param dstaddr remote address of the destination
 * @param dststrides stridelevels distances in bytes at the destination, which may be negative
 * @param srcaddr local address of the source
 * @param srcstrides stridelevels distances in bytes at the source, which may be negative
 * @param elemsz bytes of an element
 * @param count stridelevels entries: the number of blocks of each level; 0 for nothing to do
 * @param stridelevels number of levels; 0 for one element
 * @param flags ignored
 * @return 0, as nothing is refused
 * @see vgasnet_puts_bulk, GASNet-EX specification 0.19 (gex_VIS_StridedPutBlocking)
 */
int vgasnet_ex_VIS_StridedPutBlocking(gex_TM_t team, gex_Rank_t rank, void *dstaddr, const ptrdiff_t dststrides[], void *srcaddr,
                                      const ptrdiff_t srcstrides[], size_t elemsz, const size_t count[], size_t stridelevels,
                                      gex_Flags_t flags);

/**
 * Starts to write elements at regular distances to a rank's segment, with an event.
 *
 * Lists are free for reuse when the call returns.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team; of a pair, in the job
 * @param dstaddr remote address of the destination
 * @param dststrides stridelevels distances in bytes at the destination, which may be negative
 * @param srcaddr local address of the source
 * @param srcstrides stridelevels distances in bytes at the source, which may be negative
 * @param elemsz bytes of an element
 * @param count stridelevels entries: the number of blocks of each level; 0 for nothing to do
 * @param stridelevels number of levels; 0 for one element
 * @param flags 0, or GEX_FLAG_ENABLE_LEAF_LC for an event of the source
 * @return an event to be tested or waited for; GEX_EVENT_INVALID if the operation is complete already
 * @see vgasnet_ex_Event_Wait, GASNet-EX specification 0.19 (gex_VIS_StridedPutNB)
 */
gex_Event_t vgasnet_ex_VIS_StridedPutNB(gex_TM_t team, gex_Rank_t rank, void *dstaddr, const ptrdiff_t dststrides[], void *srcaddr,
                                        const ptrdiff_t srcstrides[], size_t elemsz, const size_t count[], size_t stridelevels,
                                        gex_Flags_t flags);

/**
 * Starts to write elements at regular distances to a rank's segment, without an event.
 *
 * Lists are free for reuse when the call returns.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes.
 *
 * @param team the team, or a pair of endpoints
 * @param rank rank in the team; of a pair, in the job
 * @param dstaddr remote address of the destination
 * @param dststrides stridelevels distances in bytes at the destination, which may be negative
 * @param srcaddr local address of the source
 * @param srcstrides stridelevels distances in bytes at the source, which may be negative
 * @param elemsz bytes of an element
 * @param count stridelevels entries: the number of blocks of each level; 0 for nothing to do
 * @param stridelevels number of levels; 0 for one element
 * @param flags 0, or GEX_FLAG_ENABLE_LEAF_LC for an event of the source
 * @return 0, as nothing is refused
 * @see vgasnet_ex_NBI_Wait, GASNet-EX specification 0.19 (gex_VIS_StridedPutNBI)
 */
int vgasnet_ex_VIS_StridedPutNBI(gex_TM_t team, gex_Rank_t rank, void *dstaddr, const ptrdiff_t dststrides[], void *srcaddr,
                                 const ptrdiff_t srcstrides[], size_t elemsz, const size_t count[], size_t stridelevels,
                                 gex_Flags_t flags);

/**
 * Reads elements at regular distances from a rank's segment, and returns when that is complete.
 *
 * Lists are free for reuse when the call returns.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes.
 *
 * @param team the team, or a pair of endpoints
 * @param dstaddr local address of the destination
 * @param dststrides stridelevels distances in bytes at the destination, which may be negative
 * @param rank rank in the team; of a pair, in the job
 * @param srcaddr remote address of the source
 * @param srcstrides stridelevels distances in bytes at the source, which may be negative
 * @param elemsz bytes of an element
 * @param count stridelevels entries: the number of blocks of each level; 0 for nothing to do
 * @param stridelevels number of levels; 0 for one element
 * @param flags ignored
 * @return 0, as nothing is refused
 * @see vgasnet_gets_bulk, GASNet-EX specification 0.19 (gex_VIS_StridedGetBlocking)
 */
int vgasnet_ex_VIS_StridedGetBlocking(gex_TM_t team, void *dstaddr, const ptrdiff_t dststrides[], gex_Rank_t rank, void *srcaddr,
                                      const ptrdiff_t srcstrides[], size_t elemsz, const size_t count[], size_t stridelevels,
                                      gex_Flags_t flags);

/**
 * Starts to read elements at regular distances from a rank's segment, with an event.
 *
 * Lists are free for reuse when the call returns.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes.
 *
 * @param team the team, or a pair of endpoints
 * @param dstaddr local address of the destination
 * @param dststrides stridelevels distances in bytes at the destination, which may be negative
 * @param rank rank in the team; of a pair, in the job
 * @param srcaddr remote address of the source
 * @param srcstrides stridelevels distances in bytes at the source, which may be negative
 * @param elemsz bytes of an element
 * @param count stridelevels entries: the number of blocks of each level; 0 for nothing to do
 * @param stridelevels number of levels; 0 for one element
 * @param flags ignored
 * @return an event to be tested or waited for; GEX_EVENT_INVALID if the operation is complete already
 * @see vgasnet_ex_Event_Wait, GASNet-EX specification 0.19 (gex_VIS_StridedGetNB)
 */
gex_Event_t vgasnet_ex_VIS_StridedGetNB(gex_TM_t team, void *dstaddr, const ptrdiff_t dststrides[], gex_Rank_t rank, void *srcaddr,
                                        const ptrdiff_t srcstrides[], size_t elemsz, const size_t count[], size_t stridelevels,
                                        gex_Flags_t flags);

/**
 * Starts to read elements at regular distances from a rank's segment, without an event.
 *
 * Lists are free for reuse when the call returns.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes.
 *
 * @param team the team, or a pair of endpoints
 * @param dstaddr local address of the destination
 * @param dststrides stridelevels distances in bytes at the destination, which may be negative
 * @param rank rank in the team; of a pair, in the job
 * @param srcaddr remote address of the source
 * @param srcstrides stridelevels distances in bytes at the source, which may be negative
 * @param elemsz bytes of an element
 * @param count stridelevels entries: the number of blocks of each level; 0 for nothing to do
 * @param stridelevels number of levels; 0 for one element
 * @param flags ignored
 * @return 0, as nothing is refused
 * @see vgasnet_ex_NBI_Wait, GASNet-EX specification 0.19 (gex_VIS_StridedGetNBI)
 */
int vgasnet_ex_VIS_StridedGetNBI(gex_TM_t team, void *dstaddr, const ptrdiff_t dststrides[], gex_Rank_t rank, void *srcaddr,
                                 const ptrdiff_t srcstrides[], size_t elemsz, const size_t count[], size_t stridelevels,
                                 gex_Flags_t flags);

/**
 * Has the calling thread's next put between lists tell its target of its end.
 *
 * The put is complete when its call returns.
 *
 * Fatal: a handler of 1 to 127, a payload that is too long or null.
 *
 * @param handler index of the handler at the target, 128 to 255; 0 for none
 * @param source local address of the handler's payload
 * @param length size of the payload in bytes, 0 to GEX_VIS_MAX_PEERCOMPLETION
 * @param flags ignored
 * @see GASNet-EX specification 0.19 (gex_VIS_SetPeerCompletionHandler)
 */
void vgasnet_ex_VIS_SetPeerCompletionHandler(gex_AM_Index_t handler, const void *source, size_t length, gex_Flags_t flags);

#ifdef __cplusplus
}
#endif

#endif
