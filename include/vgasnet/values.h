/*
 * vgasnet: puts and gets by value.
 *
 * A put writes the nbytes low-order bytes of value, as an unsigned integer of nbytes bytes has them in memory. A get
 * reads such an integer. nbytes is 1 to SIZEOF_VGASNET_REGISTER_VALUE_T; anything else is fatal. The other arguments
 * and fatal errors are those of transfer.h.
 */
#ifndef VGASNET_VALUES_H
#define VGASNET_VALUES_H

#include <stddef.h>
#include <stdint.h>
#include <vgasnet/nonblocking.h>
#include <vgasnet/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A number that is put or got by value. */
typedef uint64_t vgasnet_register_value_t;
/** Its size in bytes. */
#define SIZEOF_VGASNET_REGISTER_VALUE_T 8

/**
 * Writes a number to a rank's segment, and returns when no rank can read the old bytes any more.
 *
 * Not collective, any thread.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, nbytes that is not 1 to 8, a call before
 * vgasnet_attach, an I/O error on a page without another copy.
 *
 * @param node rank to write to, 0 to vgasnet_nodes() - 1
 * @param dest remote address in the segment of node, any alignment
 * @param value the number, whose nbytes low-order bytes are written as an unsigned integer of nbytes bytes
 * @param nbytes number of bytes, 1 to SIZEOF_VGASNET_REGISTER_VALUE_T (8)
 * @see vgasnet_put, vgasnet_put_nb_val, vgasnet_get_val
 */
void vgasnet_put_val(vgasnet_node_t node, void *dest, vgasnet_register_value_t value, size_t nbytes);

/**
 * Starts to write a number to a rank's segment, with a handle.
 *
 * It is complete when the handle has been synced. Not collective, any thread.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, nbytes that is not 1 to 8, a call before
 * vgasnet_attach, an I/O error on a page without another copy.
 *
 * @param node rank to write to, 0 to vgasnet_nodes() - 1
 * @param dest remote address in the segment of node, any alignment
 * @param value the number, whose nbytes low-order bytes are written as an unsigned integer of nbytes bytes
 * @param nbytes number of bytes, 1 to SIZEOF_VGASNET_REGISTER_VALUE_T (8)
 * @return a handle to be synced exactly once; VGASNET_INVALID_HANDLE if the operation is complete already
 * @see vgasnet_wait_syncnb, vgasnet_put_val
 */
vgasnet_handle_t vgasnet_put_nb_val(vgasnet_node_t node, void *dest, vgasnet_register_value_t value, size_t nbytes);

/**
 * Starts to write a number to a rank's segment, without a handle.
 *
 * It counts as an implicit put. Not collective, any thread.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, nbytes that is not 1 to 8, a call before
 * vgasnet_attach, an I/O error on a page without another copy.
 *
 * @param node rank to write to, 0 to vgasnet_nodes() - 1
 * @param dest remote address in the segment of node, any alignment
 * @param value the number, whose nbytes low-order bytes are written as an unsigned integer of nbytes bytes
 * @param nbytes number of bytes, 1 to SIZEOF_VGASNET_REGISTER_VALUE_T (8)
 * @see vgasnet_wait_syncnbi_puts, vgasnet_put_val
 */
void vgasnet_put_nbi_val(vgasnet_node_t node, void *dest, vgasnet_register_value_t value, size_t nbytes);

/**
 * Reads a number from a rank's segment, and returns it.
 *
 * Not collective, any thread.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, nbytes that is not 1 to 8, a call before
 * vgasnet_attach, an I/O error on a page without another copy.
 *
 * @param node rank to read from, 0 to vgasnet_nodes() - 1
 * @param src remote address in the segment of node, any alignment
 * @param nbytes number of bytes, 1 to SIZEOF_VGASNET_REGISTER_VALUE_T (8)
 * @return the unsigned integer of nbytes bytes at src, the high-order bytes 0
 * @see vgasnet_get, vgasnet_get_nb_val, vgasnet_put_val
 */
vgasnet_register_value_t vgasnet_get_val(vgasnet_node_t node, void *src, size_t nbytes);

/** A get by value in flight. It must be synced exactly once, by vgasnet_wait_syncnb_valget. */
typedef struct vgasnet_value_operation *vgasnet_valget_handle_t;

/**
 * Starts to read a number from a rank's segment.
 *
 * Not collective, any thread.
 *
 * Fatal: a rank that does not exist, bytes outside its segment, nbytes that is not 1 to 8, a call before
 * vgasnet_attach, an I/O error on a page without another copy.
 *
 * @param node rank to read from, 0 to vgasnet_nodes() - 1
 * @param src remote address in the segment of node, any alignment
 * @param nbytes number of bytes, 1 to SIZEOF_VGASNET_REGISTER_VALUE_T (8)
 * @return a handle to be synced exactly once, by vgasnet_wait_syncnb_valget alone
 * @see vgasnet_wait_syncnb_valget, vgasnet_get_val
 */
vgasnet_valget_handle_t vgasnet_get_nb_val(vgasnet_node_t node, void *src, size_t nbytes);

/**
 * Waits for a get by value, and returns the number.
 *
 * Not collective, any thread.
 *
 * Fatal: a handle that was synced before or never given out, a call before vgasnet_attach.
 *
 * @param handle what vgasnet_get_nb_val has returned; dead afterwards
 * @return the unsigned integer that was read, the high-order bytes 0
 * @see vgasnet_get_nb_val
 */
vgasnet_register_value_t vgasnet_wait_syncnb_valget(vgasnet_valget_handle_t handle);

#ifdef __cplusplus
}
#endif

#endif
