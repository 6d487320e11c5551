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

typedef struct {
    void *addr;
    size_t len;
} vgasnet_memvec_t;

void vgasnet_putv_bulk(vgasnet_node_t dstnode, size_t dstcount, vgasnet_memvec_t const dstlist[], size_t srccount,
                       vgasnet_memvec_t const srclist[]);
void vgasnet_getv_bulk(size_t dstcount, vgasnet_memvec_t const dstlist[], vgasnet_node_t srcnode, size_t srccount,
                       vgasnet_memvec_t const srclist[]);
void vgasnet_puti_bulk(vgasnet_node_t dstnode, size_t dstcount, void *const dstlist[], size_t dstlen, size_t srccount,
                       void *const srclist[], size_t srclen);
void vgasnet_geti_bulk(size_t dstcount, void *const dstlist[], size_t dstlen, vgasnet_node_t srcnode, size_t srccount,
                       void *const srclist[], size_t srclen);
void vgasnet_puts_bulk(vgasnet_node_t dstnode, void *dstaddr, const size_t dststrides[], void *srcaddr,
                       const size_t srcstrides[], const size_t count[], size_t stridelevels);
void vgasnet_gets_bulk(void *dstaddr, const size_t dststrides[], vgasnet_node_t srcnode, void *srcaddr,
                       const size_t srcstrides[], const size_t count[], size_t stridelevels);

vgasnet_handle_t vgasnet_putv_nb_bulk(vgasnet_node_t dstnode, size_t dstcount, vgasnet_memvec_t const dstlist[],
                                      size_t srccount, vgasnet_memvec_t const srclist[]);
vgasnet_handle_t vgasnet_getv_nb_bulk(size_t dstcount, vgasnet_memvec_t const dstlist[], vgasnet_node_t srcnode,
                                      size_t srccount, vgasnet_memvec_t const srclist[]);
vgasnet_handle_t vgasnet_puti_nb_bulk(vgasnet_node_t dstnode, size_t dstcount, void *const dstlist[], size_t dstlen,
                                      size_t srccount, void *const srclist[], size_t srclen);
vgasnet_handle_t vgasnet_geti_nb_bulk(size_t dstcount, void *const dstlist[], size_t dstlen, vgasnet_node_t srcnode,
                                      size_t srccount, void *const srclist[], size_t srclen);
vgasnet_handle_t vgasnet_puts_nb_bulk(vgasnet_node_t dstnode, void *dstaddr, const size_t dststrides[], void *srcaddr,
                                      const size_t srcstrides[], const size_t count[], size_t stridelevels);
vgasnet_handle_t vgasnet_gets_nb_bulk(void *dstaddr, const size_t dststrides[], vgasnet_node_t srcnode, void *srcaddr,
                                      const size_t srcstrides[], const size_t count[], size_t stridelevels);

void vgasnet_putv_nbi_bulk(vgasnet_node_t dstnode, size_t dstcount, vgasnet_memvec_t const dstlist[], size_t srccount,
                           vgasnet_memvec_t const srclist[]);
void vgasnet_getv_nbi_bulk(size_t dstcount, vgasnet_memvec_t const dstlist[], vgasnet_node_t srcnode, size_t srccount,
                           vgasnet_memvec_t const srclist[]);
void vgasnet_puti_nbi_bulk(vgasnet_node_t dstnode, size_t dstcount, void *const dstlist[], size_t dstlen,
                           size_t srccount, void *const srclist[], size_t srclen);
void vgasnet_geti_nbi_bulk(size_t dstcount, void *const dstlist[], size_t dstlen, vgasnet_node_t srcnode,
                           size_t srccount, void *const srclist[], size_t srclen);
void vgasnet_puts_nbi_bulk(vgasnet_node_t dstnode, void *dstaddr, const size_t dststrides[], void *srcaddr,
                           const size_t srcstrides[], const size_t count[], size_t stridelevels);
void vgasnet_gets_nbi_bulk(void *dstaddr, const size_t dststrides[], vgasnet_node_t srcnode, void *srcaddr,
                           const size_t srcstrides[], const size_t count[], size_t stridelevels);

#ifdef __cplusplus
}
#endif

#endif
