/*
 * vgasnet: transfers between lists of regions.
 *
 * putv, puti and puts write to rank dstnode, and getv, geti and gets read from rank srcnode, as puts and gets do.
 * Addresses of that rank are remote addresses, the others local ones. Destination and source are lists of regions. The
 * bytes of the source, region after region, go to those of the destination, region after region. So both have the same
 * number of bytes; anything else is fatal. They may be cut into different regions. Regions and lists may be empty.
 * Where regions of the destination overlap, the result is undefined.
 *
 * vector: dstcount and srccount regions, each of its own length.
 * indexed: dstcount regions of dstlen bytes and srccount regions of srclen bytes.
 * strided: regions of count[0] bytes. On level i, from 1 to stridelevels, there are count[i] blocks, dststrides[i - 1]
 *   bytes apart at the destination and srcstrides[i - 1] bytes at the source. A block of level 1 is a region, and a
 *   block of level i + 1 is all blocks of level i. count has stridelevels + 1 entries. If one is 0 there is nothing to
 *   do.
 *
 * The lists are the client's again when the function returns. Completion is that of vgasnet_put_bulk and
 * vgasnet_get_bulk, of their _nb forms with one handle for all regions, and of their _nbi forms. Pages are fetched side
 * by side. Local regions in the caller's own segment are complete when the function returns. If more than 4096 pieces
 * lie in pages that have to be fetched, the function waits for as many at a time, but for the last of them.
 */
#ifndef VGASNET_LISTS_H
#define VGASNET_LISTS_H

#include <stddef.h>
#include <vgasnet/nonblocking.h>
#include <vgasnet/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A region of memory: its address and its length in bytes. */
typedef struct {
    void *addr;
    size_t len;
} vgasnet_memvec_t;

/* ---- blocking ---- */

/**
 * Writes regions of any lengths to a rank's segment, and returns when no rank can read the old bytes any more.
 *
 * The source's bytes go to the destination's in order, region after region. The lists are free for reuse when the call
 * returns. Not collective, any thread.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes, a call before vgasnet_attach.
 *
 * @param dstnode rank to write to, 0 to vgasnet_nodes() - 1
 * @param dstcount number of regions of the destination
 * @param dstlist regions of the destination, remote addresses in the segment of dstnode
 * @param srccount number of regions of the source
 * @param srclist regions of the source, local addresses
 * @see vgasnet_putv_nb_bulk, vgasnet_putv_nbi_bulk, vgasnet_put_bulk
 */
void vgasnet_putv_bulk(vgasnet_node_t dstnode, size_t dstcount, vgasnet_memvec_t const dstlist[], size_t srccount,
                       vgasnet_memvec_t const srclist[]);

/**
 * Reads regions of any lengths from a rank's segment, and returns when all have arrived.
 *
 * The source's bytes go to the destination's in order, region after region. The lists are free for reuse when the call
 * returns. Not collective, any thread.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes, a call before vgasnet_attach.
 *
 * @param dstcount number of regions of the destination
 * @param dstlist regions of the destination, local addresses
 * @param srcnode rank to read from, 0 to vgasnet_nodes() - 1
 * @param srccount number of regions of the source
 * @param srclist regions of the source, remote addresses in the segment of srcnode
 * @see vgasnet_getv_nb_bulk, vgasnet_getv_nbi_bulk, vgasnet_get_bulk
 */
void vgasnet_getv_bulk(size_t dstcount, vgasnet_memvec_t const dstlist[], vgasnet_node_t srcnode, size_t srccount,
                       vgasnet_memvec_t const srclist[]);

/**
 * Writes regions of equal length to a rank's segment, and returns when no rank can read the old bytes any more.
 *
 * The source's bytes go to the destination's in order, region after region. The lists are free for reuse when the call
 * returns. Not collective, any thread.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes, a call before vgasnet_attach.
 *
 * @param dstnode rank to write to, 0 to vgasnet_nodes() - 1
 * @param dstcount number of regions of the destination
 * @param dstlist remote addresses in the segment of dstnode of the destination's regions
 * @param dstlen bytes of each region of the destination
 * @param srccount number of regions of the source
 * @param srclist local addresses of the source's regions
 * @param srclen bytes of each region of the source
 * @see vgasnet_puti_nb_bulk, vgasnet_puti_nbi_bulk, vgasnet_put_bulk
 */
void vgasnet_puti_bulk(vgasnet_node_t dstnode, size_t dstcount, void *const dstlist[], size_t dstlen, size_t srccount,
                       void *const srclist[], size_t srclen);

/**
 * Reads regions of equal length from a rank's segment, and returns when all have arrived.
 *
 * The source's bytes go to the destination's in order, region after region. The lists are free for reuse when the call
 * returns. Not collective, any thread.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes, a call before vgasnet_attach.
 *
 * @param dstcount number of regions of the destination
 * @param dstlist local addresses of the destination's regions
 * @param dstlen bytes of each region of the destination
 * @param srcnode rank to read from, 0 to vgasnet_nodes() - 1
 * @param srccount number of regions of the source
 * @param srclist remote addresses in the segment of srcnode of the source's regions
 * @param srclen bytes of each region of the source
 * @see vgasnet_geti_nb_bulk, vgasnet_geti_nbi_bulk, vgasnet_get_bulk
 */
void vgasnet_geti_bulk(size_t dstcount, void *const dstlist[], size_t dstlen, vgasnet_node_t srcnode, size_t srccount,
                       void *const srclist[], size_t srclen);

/**
 * Writes regions at regular distances to a rank's segment, and returns when no rank can read the old bytes any more.
 *
 * The source's bytes go to the destination's in order, region after region. The lists are free for reuse when the call
 * returns. Not collective, any thread.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes, a call before vgasnet_attach.
 *
 * @param dstnode rank to write to, 0 to vgasnet_nodes() - 1
 * @param dstaddr remote address in the segment of dstnode of the destination's first region
 * @param dststrides stridelevels entries: the distance in bytes between blocks of each level at the destination
 * @param srcaddr local address of the source's first region
 * @param srcstrides stridelevels entries: the distance in bytes between blocks of each level at the source
 * @param count stridelevels + 1 entries: the bytes of a region, then the number of blocks of each level; if one is 0
 *     there is nothing to do
 * @param stridelevels number of levels; 0 for one region
 * @see vgasnet_puts_nb_bulk, vgasnet_puts_nbi_bulk, vgasnet_put_bulk
 */
void vgasnet_puts_bulk(vgasnet_node_t dstnode, void *dstaddr, const size_t dststrides[], void *srcaddr,
                       const size_t srcstrides[], const size_t count[], size_t stridelevels);

/**
 * Reads regions at regular distances from a rank's segment, and returns when all have arrived.
 *
 * The source's bytes go to the destination's in order, region after region. The lists are free for reuse when the call
 * returns. Not collective, any thread.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes, a call before vgasnet_attach.
 *
 * @param dstaddr local address of the destination's first region
 * @param dststrides stridelevels entries: the distance in bytes between blocks of each level at the destination
 * @param srcnode rank to read from, 0 to vgasnet_nodes() - 1
 * @param srcaddr remote address in the segment of srcnode of the source's first region
 * @param srcstrides stridelevels entries: the distance in bytes between blocks of each level at the source
 * @param count stridelevels + 1 entries: the bytes of a region, then the number of blocks of each level; if one is 0
 *     there is nothing to do
 * @param stridelevels number of levels; 0 for one region
 * @see vgasnet_gets_nb_bulk, vgasnet_gets_nbi_bulk, vgasnet_get_bulk
 */
void vgasnet_gets_bulk(void *dstaddr, const size_t dststrides[], vgasnet_node_t srcnode, void *srcaddr,
                       const size_t srcstrides[], const size_t count[], size_t stridelevels);

/* ---- with a handle ---- */

/**
 * Starts to write regions of any lengths to a rank's segment, with one handle for all.
 *
 * The source's bytes go to the destination's in order, region after region. The lists are free for reuse when the call
 * returns. Source bytes must not change until completion. Not collective, any thread.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes, a call before vgasnet_attach.
 *
 * @param dstnode rank to write to, 0 to vgasnet_nodes() - 1
 * @param dstcount number of regions of the destination
 * @param dstlist regions of the destination, remote addresses in the segment of dstnode
 * @param srccount number of regions of the source
 * @param srclist regions of the source, local addresses
 * @return a handle to be synced exactly once; VGASNET_INVALID_HANDLE if the operation is complete already
 * @see vgasnet_wait_syncnb, vgasnet_putv_bulk
 */
vgasnet_handle_t vgasnet_putv_nb_bulk(vgasnet_node_t dstnode, size_t dstcount, vgasnet_memvec_t const dstlist[],
                                      size_t srccount, vgasnet_memvec_t const srclist[]);

/**
 * Starts to read regions of any lengths from a rank's segment, with one handle for all.
 *
 * The source's bytes go to the destination's in order, region after region. The lists are free for reuse when the call
 * returns. The destination is undefined until completion. Not collective, any thread.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes, a call before vgasnet_attach.
 *
 * @param dstcount number of regions of the destination
 * @param dstlist regions of the destination, local addresses
 * @param srcnode rank to read from, 0 to vgasnet_nodes() - 1
 * @param srccount number of regions of the source
 * @param srclist regions of the source, remote addresses in the segment of srcnode
 * @return a handle to be synced exactly once; VGASNET_INVALID_HANDLE if the operation is complete already
 * @see vgasnet_wait_syncnb, vgasnet_getv_bulk
 */
vgasnet_handle_t vgasnet_getv_nb_bulk(size_t dstcount, vgasnet_memvec_t const dstlist[], vgasnet_node_t srcnode,
                                      size_t srccount, vgasnet_memvec_t const srclist[]);

/**
 * Starts to write regions of equal length to a rank's segment, with one handle for all.
 *
 * The source's bytes go to the destination's in order, region after region. The lists are free for reuse when the call
 * returns. Source bytes must not change until completion. Not collective, any thread.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes, a call before vgasnet_attach.
 *
 * @param dstnode rank to write to, 0 to vgasnet_nodes() - 1
 * @param dstcount number of regions of the destination
 * @param dstlist remote addresses in the segment of dstnode of the destination's regions
 * @param dstlen bytes of each region of the destination
 * @param srccount number of regions of the source
 * @param srclist local addresses of the source's regions
 * @param srclen bytes of each region of the source
 * @return a handle to be synced exactly once; VGASNET_INVALID_HANDLE if the operation is complete already
 * @see vgasnet_wait_syncnb, vgasnet_puti_bulk
 */
vgasnet_handle_t vgasnet_puti_nb_bulk(vgasnet_node_t dstnode, size_t dstcount, void *const dstlist[], size_t dstlen,
                                      size_t srccount, void *const srclist[], size_t srclen);

/**
 * Starts to read regions of equal length from a rank's segment, with one handle for all.
 *
 * The source's bytes go to the destination's in order, region after region. The lists are free for reuse when the call
 * returns. The destination is undefined until completion. Not collective, any thread.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes, a call before vgasnet_attach.
 *
 * @param dstcount number of regions of the destination
 * @param dstlist local addresses of the destination's regions
 * @param dstlen bytes of each region of the destination
 * @param srcnode rank to read from, 0 to vgasnet_nodes() - 1
 * @param srccount number of regions of the source
 * @param srclist remote addresses in the segment of srcnode of the source's regions
 * @param srclen bytes of each region of the source
 * @return a handle to be synced exactly once; VGASNET_INVALID_HANDLE if the operation is complete already
 * @see vgasnet_wait_syncnb, vgasnet_geti_bulk
 */
vgasnet_handle_t vgasnet_geti_nb_bulk(size_t dstcount, void *const dstlist[], size_t dstlen, vgasnet_node_t srcnode,
                                      size_t srccount, void *const srclist[], size_t srclen);

/**
 * Starts to write regions at regular distances to a rank's segment, with one handle for all.
 *
 * The source's bytes go to the destination's in order, region after region. The lists are free for reuse when the call
 * returns. Source bytes must not change until completion. Not collective, any thread.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes, a call before vgasnet_attach.
 *
 * @param dstnode rank to write to, 0 to vgasnet_nodes() - 1
 * @param dstaddr remote address in the segment of dstnode of the destination's first region
 * @param dststrides stridelevels entries: the distance in bytes between blocks of each level at the destination
 * @param srcaddr local address of the source's first region
 * @param srcstrides stridelevels entries: the distance in bytes between blocks of each level at the source
 * @param count stridelevels + 1 entries: the bytes of a region, then the number of blocks of each level; if one is 0
 *     there is nothing to do
 * @param stridelevels number of levels; 0 for one region
 * @return a handle to be synced exactly once; VGASNET_INVALID_HANDLE if the operation is complete already
 * @see vgasnet_wait_syncnb, vgasnet_puts_bulk
 */
vgasnet_handle_t vgasnet_puts_nb_bulk(vgasnet_node_t dstnode, void *dstaddr, const size_t dststrides[], void *srcaddr,
                                      const size_t srcstrides[], const size_t count[], size_t stridelevels);

/**
 * Starts to read regions at regular distances from a rank's segment, with one handle for all.
 *
 * The source's bytes go to the destination's in order, region after region. The lists are free for reuse when the call
 * returns. The destination is undefined until completion. Not collective, any thread.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes, a call before vgasnet_attach.
 *
 * @param dstaddr local address of the destination's first region
 * @param dststrides stridelevels entries: the distance in bytes between blocks of each level at the destination
 * @param srcnode rank to read from, 0 to vgasnet_nodes() - 1
 * @param srcaddr remote address in the segment of srcnode of the source's first region
 * @param srcstrides stridelevels entries: the distance in bytes between blocks of each level at the source
 * @param count stridelevels + 1 entries: the bytes of a region, then the number of blocks of each level; if one is 0
 *     there is nothing to do
 * @param stridelevels number of levels; 0 for one region
 * @return a handle to be synced exactly once; VGASNET_INVALID_HANDLE if the operation is complete already
 * @see vgasnet_wait_syncnb, vgasnet_gets_bulk
 */
vgasnet_handle_t vgasnet_gets_nb_bulk(void *dstaddr, const size_t dststrides[], vgasnet_node_t srcnode, void *srcaddr,
                                      const size_t srcstrides[], const size_t count[], size_t stridelevels);

/* ---- implicit ---- */

/**
 * Starts to write regions of any lengths to a rank's segment, without a handle.
 *
 * The source's bytes go to the destination's in order, region after region. The lists are free for reuse when the call
 * returns. Source bytes must not change until completion. It counts as an implicit put. Not collective, any thread.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes, a call before vgasnet_attach.
 *
 * @param dstnode rank to write to, 0 to vgasnet_nodes() - 1
 * @param dstcount number of regions of the destination
 * @param dstlist regions of the destination, remote addresses in the segment of dstnode
 * @param srccount number of regions of the source
 * @param srclist regions of the source, local addresses
 * @see vgasnet_wait_syncnbi_puts, vgasnet_putv_bulk
 */
void vgasnet_putv_nbi_bulk(vgasnet_node_t dstnode, size_t dstcount, vgasnet_memvec_t const dstlist[], size_t srccount,
                           vgasnet_memvec_t const srclist[]);

/**
 * Starts to read regions of any lengths from a rank's segment, without a handle.
 *
 * The source's bytes go to the destination's in order, region after region. The lists are free for reuse when the call
 * returns. The destination is undefined until completion. It counts as an implicit get. Not collective, any thread.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes, a call before vgasnet_attach.
 *
 * @param dstcount number of regions of the destination
 * @param dstlist regions of the destination, local addresses
 * @param srcnode rank to read from, 0 to vgasnet_nodes() - 1
 * @param srccount number of regions of the source
 * @param srclist regions of the source, remote addresses in the segment of srcnode
 * @see vgasnet_wait_syncnbi_gets, vgasnet_getv_bulk
 */
void vgasnet_getv_nbi_bulk(size_t dstcount, vgasnet_memvec_t const dstlist[], vgasnet_node_t srcnode, size_t srccount,
                           vgasnet_memvec_t const srclist[]);

/**
 * Starts to write regions of equal length to a rank's segment, without a handle.
 *
 * The source's bytes go to the destination's in order, region after region. The lists are free for reuse when the call
 * returns. Source bytes must not change until completion. It counts as an implicit put. Not collective, any thread.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes, a call before vgasnet_attach.
 *
 * @param dstnode rank to write to, 0 to vgasnet_nodes() - 1
 * @param dstcount number of regions of the destination
 * @param dstlist remote addresses in the segment of dstnode of the destination's regions
 * @param dstlen bytes of each region of the destination
 * @param srccount number of regions of the source
 * @param srclist local addresses of the source's regions
 * @param srclen bytes of each region of the source
 * @see vgasnet_wait_syncnbi_puts, vgasnet_puti_bulk
 */
void vgasnet_puti_nbi_bulk(vgasnet_node_t dstnode, size_t dstcount, void *const dstlist[], size_t dstlen,
                           size_t srccount, void *const srclist[], size_t srclen);

/**
 * Starts to read regions of equal length from a rank's segment, without a handle.
 *
 * The source's bytes go to the destination's in order, region after region. The lists are free for reuse when the call
 * returns. The destination is undefined until completion. It counts as an implicit get. Not collective, any thread.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes, a call before vgasnet_attach.
 *
 * @param dstcount number of regions of the destination
 * @param dstlist local addresses of the destination's regions
 * @param dstlen bytes of each region of the destination
 * @param srcnode rank to read from, 0 to vgasnet_nodes() - 1
 * @param srccount number of regions of the source
 * @param srclist remote addresses in the segment of srcnode of the source's regions
 * @param srclen bytes of each region of the source
 * @see vgasnet_wait_syncnbi_gets, vgasnet_geti_bulk
 */
void vgasnet_geti_nbi_bulk(size_t dstcount, void *const dstlist[], size_t dstlen, vgasnet_node_t srcnode,
                           size_t srccount, void *const srclist[], size_t srclen);

/**
 * Starts to write regions at regular distances to a rank's segment, without a handle.
 *
 * The source's bytes go to the destination's in order, region after region. The lists are free for reuse when the call
 * returns. Source bytes must not change until completion. It counts as an implicit put. Not collective, any thread.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes, a call before vgasnet_attach.
 *
 * @param dstnode rank to write to, 0 to vgasnet_nodes() - 1
 * @param dstaddr remote address in the segment of dstnode of the destination's first region
 * @param dststrides stridelevels entries: the distance in bytes between blocks of each level at the destination
 * @param srcaddr local address of the source's first region
 * @param srcstrides stridelevels entries: the distance in bytes between blocks of each level at the source
 * @param count stridelevels + 1 entries: the bytes of a region, then the number of blocks of each level; if one is 0
 *     there is nothing to do
 * @param stridelevels number of levels; 0 for one region
 * @see vgasnet_wait_syncnbi_puts, vgasnet_puts_bulk
 */
void vgasnet_puts_nbi_bulk(vgasnet_node_t dstnode, void *dstaddr, const size_t dststrides[], void *srcaddr,
                           const size_t srcstrides[], const size_t count[], size_t stridelevels);

/**
 * Starts to read regions at regular distances from a rank's segment, without a handle.
 *
 * The source's bytes go to the destination's in order, region after region. The lists are free for reuse when the call
 * returns. The destination is undefined until completion. It counts as an implicit get. Not collective, any thread.
 *
 * Fatal: sides with different numbers of bytes, a rank that does not exist, bytes outside its segment, a null pointer
 * where there are bytes, a call before vgasnet_attach.
 *
 * @param dstaddr local address of the destination's first region
 * @param dststrides stridelevels entries: the distance in bytes between blocks of each level at the destination
 * @param srcnode rank to read from, 0 to vgasnet_nodes() - 1
 * @param srcaddr remote address in the segment of srcnode of the source's first region
 * @param srcstrides stridelevels entries: the distance in bytes between blocks of each level at the source
 * @param count stridelevels + 1 entries: the bytes of a region, then the number of blocks of each level; if one is 0
 *     there is nothing to do
 * @param stridelevels number of levels; 0 for one region
 * @see vgasnet_wait_syncnbi_gets, vgasnet_gets_bulk
 */
void vgasnet_gets_nbi_bulk(void *dstaddr, const size_t dststrides[], vgasnet_node_t srcnode, void *srcaddr,
                           const size_t srcstrides[], const size_t count[], size_t stridelevels);

#ifdef __cplusplus
}
#endif

#endif
