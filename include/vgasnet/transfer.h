/*
 * vgasnet: blocking gets, puts and memsets.
 *
 * A get reads nbytes bytes at the remote address src of rank node into the local address dest. A put writes nbytes
 * bytes from the local address src to the remote address dest of rank node. A memset sets nbytes bytes at the remote
 * address dest of rank node to (unsigned char)val.
 *
 * Fatal, here and in nonblocking.h, values.h and lists.h: a rank that does not exist, bytes outside its segment, a null
 * local address with nbytes > 0, a call before vgasnet_attach, an I/O error on a page without another copy.
 *
 * With the own rank as node, an address outside its segment is one of the program's other memory, and the transfer is a
 * copy, as in GASNet; with VGASNET_CHECK=1 it is fatal.
 */
#ifndef VGASNET_TRANSFER_H
#define VGASNET_TRANSFER_H

#include <stddef.h>
#include <vgasnet/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Complete on return. The forms with _bulk are the same. */
void vgasnet_get(void *dest, vgasnet_node_t node, void *src, size_t nbytes);
void vgasnet_put(vgasnet_node_t node, void *dest, void *src, size_t nbytes);
void vgasnet_get_bulk(void *dest, vgasnet_node_t node, void *src, size_t nbytes);
void vgasnet_put_bulk(vgasnet_node_t node, void *dest, void *src, size_t nbytes);
void vgasnet_memset(vgasnet_node_t node, void *dest, int val, size_t nbytes);

#ifdef __cplusplus
}
#endif

#endif
