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

typedef uint64_t vgasnet_register_value_t;
#define SIZEOF_VGASNET_REGISTER_VALUE_T 8

/* put_val and get_val are complete on return, put_nb_val when its handle has been synced. put_nbi_val counts as an
 * implicit put. */
void vgasnet_put_val(vgasnet_node_t node, void *dest, vgasnet_register_value_t value, size_t nbytes);
vgasnet_handle_t vgasnet_put_nb_val(vgasnet_node_t node, void *dest, vgasnet_register_value_t value, size_t nbytes);
void vgasnet_put_nbi_val(vgasnet_node_t node, void *dest, vgasnet_register_value_t value, size_t nbytes);
vgasnet_register_value_t vgasnet_get_val(vgasnet_node_t node, void *src, size_t nbytes);

/* A get by value in flight. It must be synced exactly once, by vgasnet_wait_syncnb_valget. */
typedef struct vgasnet_value_operation *vgasnet_valget_handle_t;

/* Starts a get by value. Only vgasnet_wait_syncnb_valget syncs it. */
vgasnet_valget_handle_t vgasnet_get_nb_val(vgasnet_node_t node, void *src, size_t nbytes);

/* Waits for a get by value and returns the value. Fatal: a handle that was synced before or never given out. */
vgasnet_register_value_t vgasnet_wait_syncnb_valget(vgasnet_valget_handle_t handle);

#ifdef __cplusplus
}
#endif

#endif
