/*
 * vgasnet: non-blocking gets, puts and memsets.
 *
 * An explicit operation has a handle, and is complete when the handle has been synced. An implicit one is complete when
 * the calling thread has synced its implicit gets, or its implicit puts, which include memsets; or, if it was started in
 * an access region, when the region's handle has been synced. completion.h has the syncs, and transfer.h says more about
 * arguments and fatal errors.
 */
#ifndef VGASNET_NONBLOCKING_H
#define VGASNET_NONBLOCKING_H

#include <stddef.h>
#include <vgasnet/completion.h>
#include <vgasnet/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- operations with a handle ---- */

/**
 * Starts to read bytes of a rank's segment, with a handle.
 *
 * The operation is complete when the handle has been synced. Any number may be in flight, in no order. If more than
 * 4096 pages have to be fetched, the call waits for batches of 4096, but not for the last batch. Not collective, any
 * thread.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, a null local address with nbytes > 0, a call before
 * vgasnet_attach, an I/O error on a page without another copy.
 *
 * @param dest local address that receives the bytes; undefined until completion
 * @param node rank to read from, 0 to vgasnet_nodes() - 1
 * @param src remote address in the segment of node, any alignment
 * @param nbytes number of bytes, 0 or more, no maximum
 * @return a handle to be synced exactly once; VGASNET_INVALID_HANDLE if the operation is complete already
 * @see vgasnet_wait_syncnb, vgasnet_try_syncnb, vgasnet_wait_syncnb_all, vgasnet_get
 */
vgasnet_handle_t vgasnet_get_nb(void *dest, vgasnet_node_t node, void *src, size_t nbytes);

/**
 * Starts to write bytes to a rank's segment, with a handle; their source is free at once.
 *
 * The operation is complete when the handle has been synced. Any number may be in flight, in no order. If more than
 * 4096 pages have to be fetched, the call waits for batches of 4096, but not for the last batch. The library keeps
 * copies of bytes that are not written yet, at most 16 MiB of all such puts together; beyond that the call waits. Not
 * collective, any thread.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, a null local address with nbytes > 0, a call before
 * vgasnet_attach, an I/O error on a page without another copy.
 *
 * @param node rank to write to, 0 to vgasnet_nodes() - 1
 * @param dest remote address in the segment of node, any alignment
 * @param src local address of the bytes; free for reuse when the call returns
 * @param nbytes number of bytes, 0 or more, no maximum
 * @return a handle to be synced exactly once; VGASNET_INVALID_HANDLE if the operation is complete already
 * @see vgasnet_wait_syncnb, vgasnet_try_syncnb, vgasnet_wait_syncnb_all, vgasnet_put, vgasnet_put_nb_bulk
 */
vgasnet_handle_t vgasnet_put_nb(vgasnet_node_t node, void *dest, void *src, size_t nbytes);

/**
 * Starts to read bytes of a rank's segment, with a handle.
 *
 * The same as vgasnet_get_nb. The operation is complete when the handle has been synced. Any number may be in flight,
 * in no order. If more than 4096 pages have to be fetched, the call waits for batches of 4096, but not for the last
 * batch. Not collective, any thread.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, a null local address with nbytes > 0, a call before
 * vgasnet_attach, an I/O error on a page without another copy.
 *
 * @param dest local address that receives the bytes; undefined until completion
 * @param node rank to read from, 0 to vgasnet_nodes() - 1
 * @param src remote address in the segment of node, any alignment
 * @param nbytes number of bytes, 0 or more, no maximum
 * @return a handle to be synced exactly once; VGASNET_INVALID_HANDLE if the operation is complete already
 * @see vgasnet_wait_syncnb, vgasnet_try_syncnb, vgasnet_wait_syncnb_all, vgasnet_get
 */
vgasnet_handle_t vgasnet_get_nb_bulk(void *dest, vgasnet_node_t node, void *src, size_t nbytes);

/**
 * Starts to write bytes to a rank's segment, with a handle, without a copy of them.
 *
 * The operation is complete when the handle has been synced. Any number may be in flight, in no order. If more than
 * 4096 pages have to be fetched, the call waits for batches of 4096, but not for the last batch. Not collective, any
 * thread.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, a null local address with nbytes > 0, a call before
 * vgasnet_attach, an I/O error on a page without another copy.
 *
 * @param node rank to write to, 0 to vgasnet_nodes() - 1
 * @param dest remote address in the segment of node, any alignment
 * @param src local address of the bytes, which must not change until completion
 * @param nbytes number of bytes, 0 or more, no maximum
 * @return a handle to be synced exactly once; VGASNET_INVALID_HANDLE if the operation is complete already
 * @see vgasnet_wait_syncnb, vgasnet_try_syncnb, vgasnet_wait_syncnb_all, vgasnet_put, vgasnet_put_nb
 */
vgasnet_handle_t vgasnet_put_nb_bulk(vgasnet_node_t node, void *dest, void *src, size_t nbytes);

/**
 * Starts to set bytes of a rank's segment to one value, with a handle.
 *
 * The operation is complete when the handle has been synced. Any number may be in flight, in no order. If more than
 * 4096 pages have to be fetched, the call waits for batches of 4096, but not for the last batch. Not collective, any
 * thread.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, a null local address with nbytes > 0, a call before
 * vgasnet_attach, an I/O error on a page without another copy.
 *
 * @param node rank to write to, 0 to vgasnet_nodes() - 1
 * @param dest remote address in the segment of node, any alignment
 * @param val value of each byte, converted to unsigned char
 * @param nbytes number of bytes, 0 or more, no maximum
 * @return a handle to be synced exactly once; VGASNET_INVALID_HANDLE if the operation is complete already
 * @see vgasnet_wait_syncnb, vgasnet_try_syncnb, vgasnet_wait_syncnb_all, vgasnet_memset
 */
vgasnet_handle_t vgasnet_memset_nb(vgasnet_node_t node, void *dest, int val, size_t nbytes);

/* ---- implicit operations ---- */

/**
 * Starts to read bytes of a rank's segment, without a handle.
 *
 * The operation is complete when the calling thread has synced its implicit gets, or the handle of the access region
 * that it was started in. Not collective, any thread.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, a null local address with nbytes > 0, a call before
 * vgasnet_attach, an I/O error on a page without another copy.
 *
 * @param dest local address that receives the bytes; undefined until completion
 * @param node rank to read from, 0 to vgasnet_nodes() - 1
 * @param src remote address in the segment of node, any alignment
 * @param nbytes number of bytes, 0 or more, no maximum
 * @see vgasnet_wait_syncnbi_gets, vgasnet_begin_nbi_accessregion, vgasnet_get
 */
void vgasnet_get_nbi(void *dest, vgasnet_node_t node, void *src, size_t nbytes);

/**
 * Starts to write bytes to a rank's segment, without a handle; their source is free at once.
 *
 * The operation is complete when the calling thread has synced its implicit puts, or the handle of the access region
 * that it was started in. The library keeps copies of bytes that are not written yet, at most 16 MiB of all such puts
 * together; beyond that the call waits. Not collective, any thread.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, a null local address with nbytes > 0, a call before
 * vgasnet_attach, an I/O error on a page without another copy.
 *
 * @param node rank to write to, 0 to vgasnet_nodes() - 1
 * @param dest remote address in the segment of node, any alignment
 * @param src local address of the bytes; free for reuse when the call returns
 * @param nbytes number of bytes, 0 or more, no maximum
 * @see vgasnet_wait_syncnbi_puts, vgasnet_begin_nbi_accessregion, vgasnet_put, vgasnet_put_nbi_bulk
 */
void vgasnet_put_nbi(vgasnet_node_t node, void *dest, void *src, size_t nbytes);

/**
 * Starts to read bytes of a rank's segment, without a handle.
 *
 * The same as vgasnet_get_nbi. The operation is complete when the calling thread has synced its implicit gets, or the
 * handle of the access region that it was started in. Not collective, any thread.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, a null local address with nbytes > 0, a call before
 * vgasnet_attach, an I/O error on a page without another copy.
 *
 * @param dest local address that receives the bytes; undefined until completion
 * @param node rank to read from, 0 to vgasnet_nodes() - 1
 * @param src remote address in the segment of node, any alignment
 * @param nbytes number of bytes, 0 or more, no maximum
 * @see vgasnet_wait_syncnbi_gets, vgasnet_begin_nbi_accessregion, vgasnet_get
 */
void vgasnet_get_nbi_bulk(void *dest, vgasnet_node_t node, void *src, size_t nbytes);

/**
 * Starts to write bytes to a rank's segment, without a handle and without a copy of them.
 *
 * The operation is complete when the calling thread has synced its implicit puts, or the handle of the access region
 * that it was started in. Not collective, any thread.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, a null local address with nbytes > 0, a call before
 * vgasnet_attach, an I/O error on a page without another copy.
 *
 * @param node rank to write to, 0 to vgasnet_nodes() - 1
 * @param dest remote address in the segment of node, any alignment
 * @param src local address of the bytes, which must not change until completion
 * @param nbytes number of bytes, 0 or more, no maximum
 * @see vgasnet_wait_syncnbi_puts, vgasnet_begin_nbi_accessregion, vgasnet_put, vgasnet_put_nbi
 */
void vgasnet_put_nbi_bulk(vgasnet_node_t node, void *dest, void *src, size_t nbytes);

/**
 * Starts to set bytes of a rank's segment to one value, without a handle.
 *
 * The operation is complete when the calling thread has synced its implicit puts, or the handle of the access region
 * that it was started in. It counts as a put. Not collective, any thread.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, a null local address with nbytes > 0, a call before
 * vgasnet_attach, an I/O error on a page without another copy.
 *
 * @param node rank to write to, 0 to vgasnet_nodes() - 1
 * @param dest remote address in the segment of node, any alignment
 * @param val value of each byte, converted to unsigned char
 * @param nbytes number of bytes, 0 or more, no maximum
 * @see vgasnet_wait_syncnbi_puts, vgasnet_begin_nbi_accessregion, vgasnet_memset
 */
void vgasnet_memset_nbi(vgasnet_node_t node, void *dest, int val, size_t nbytes);

/* ---- access regions ---- */

/**
 * Begins an access region of the calling thread.
 *
 * The region collects the implicit operations that the thread starts until vgasnet_end_nbi_accessregion. Syncs of
 * implicit operations are fatal meanwhile. Regions do not nest. Not collective.
 *
 * Fatal: a call in an open region, a call before vgasnet_attach.
 *
 * @see vgasnet_end_nbi_accessregion
 */
void vgasnet_begin_nbi_accessregion(void);

/**
 * Ends the access region of the calling thread, and returns one handle for its operations.
 *
 * Not collective.
 *
 * Fatal: a call without an open region.
 *
 * @return a handle to be synced exactly once; VGASNET_INVALID_HANDLE if all operations of the region are complete
 *     already
 * @see vgasnet_begin_nbi_accessregion, vgasnet_wait_syncnb
 */
vgasnet_handle_t vgasnet_end_nbi_accessregion(void);

#ifdef __cplusplus
}
#endif

#endif
