/*
 * vgasnet: blocking gets, puts and memsets.
 *
 * A get reads nbytes bytes at the remote address src of rank node into the local address dest. A put writes nbytes
 * bytes from the local address src to the remote address dest of rank node. A memset sets nbytes bytes at the remote
 * address dest of rank node to (unsigned char)val.
 *
 * The functions here are complete on return. The forms with _bulk are the same as those without.
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

/**
 * Reads bytes of a rank's segment, and returns when they have arrived.
 *
 * The bytes are as they were at some moment during the call. With the own rank as node, an address outside its segment
 * is the program's other memory and the transfer is a copy; with VGASNET_CHECK=1 it is fatal. Not collective, any
 * thread.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, a null local address with nbytes > 0, a call before
 * vgasnet_attach, an I/O error on a page without another copy.
 *
 * @param dest local address that receives the bytes
 * @param node rank to read from, 0 to vgasnet_nodes() - 1
 * @param src remote address in the segment of node, any alignment
 * @param nbytes number of bytes, 0 or more, no maximum
 * @see vgasnet_get_nb, vgasnet_get_nbi, vgasnet_get_val, vgasnet_put
 */
void vgasnet_get(void *dest, vgasnet_node_t node, void *src, size_t nbytes);

/**
 * Writes bytes to a rank's segment, and returns when no rank can read the old ones any more.
 *
 * Completion is no synchronisation: another rank learns of it by a barrier, or by a flag that is put afterwards. With
 * the own rank as node, an address outside its segment is the program's other memory and the transfer is a copy; with
 * VGASNET_CHECK=1 it is fatal. Not collective, any thread.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, a null local address with nbytes > 0, a call before
 * vgasnet_attach, an I/O error on a page without another copy.
 *
 * @param node rank to write to, 0 to vgasnet_nodes() - 1
 * @param dest remote address in the segment of node, any alignment
 * @param src local address of the bytes
 * @param nbytes number of bytes, 0 or more, no maximum
 * @see vgasnet_put_nb, vgasnet_put_nbi, vgasnet_put_val, vgasnet_get
 */
void vgasnet_put(vgasnet_node_t node, void *dest, void *src, size_t nbytes);

/**
 * Does the same as vgasnet_get: reads bytes of a rank's segment, and returns when they have arrived.
 *
 * With the own rank as node, an address outside its segment is the program's other memory and the transfer is a copy;
 * with VGASNET_CHECK=1 it is fatal. Not collective, any thread.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, a null local address with nbytes > 0, a call before
 * vgasnet_attach, an I/O error on a page without another copy.
 *
 * @param dest local address that receives the bytes
 * @param node rank to read from, 0 to vgasnet_nodes() - 1
 * @param src remote address in the segment of node, any alignment
 * @param nbytes number of bytes, 0 or more, no maximum
 * @see vgasnet_get, vgasnet_get_nb_bulk
 */
void vgasnet_get_bulk(void *dest, vgasnet_node_t node, void *src, size_t nbytes);

/**
 * Does the same as vgasnet_put: writes bytes to a rank's segment, and returns when no rank can read the old ones any
 * more.
 *
 * With the own rank as node, an address outside its segment is the program's other memory and the transfer is a copy;
 * with VGASNET_CHECK=1 it is fatal. Not collective, any thread.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, a null local address with nbytes > 0, a call before
 * vgasnet_attach, an I/O error on a page without another copy.
 *
 * @param node rank to write to, 0 to vgasnet_nodes() - 1
 * @param dest remote address in the segment of node, any alignment
 * @param src local address of the bytes
 * @param nbytes number of bytes, 0 or more, no maximum
 * @see vgasnet_put, vgasnet_put_nb_bulk
 */
void vgasnet_put_bulk(vgasnet_node_t node, void *dest, void *src, size_t nbytes);

/**
 * Sets bytes of a rank's segment to one value, and returns when no rank can read the old ones any more.
 *
 * With the own rank as node, an address outside its segment is the program's other memory and the transfer is a copy;
 * with VGASNET_CHECK=1 it is fatal. Not collective, any thread.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, a null local address with nbytes > 0, a call before
 * vgasnet_attach, an I/O error on a page without another copy.
 *
 * @param node rank to write to, 0 to vgasnet_nodes() - 1
 * @param dest remote address in the segment of node, any alignment
 * @param val value of each byte, converted to unsigned char
 * @param nbytes number of bytes, 0 or more, no maximum
 * @see vgasnet_memset_nb, vgasnet_memset_nbi, vgasnet_put
 */
void vgasnet_memset(vgasnet_node_t node, void *dest, int val, size_t nbytes);

#ifdef __cplusplus
}
#endif

#endif
