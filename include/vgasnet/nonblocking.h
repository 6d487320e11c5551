/*
 * vgasnet: non-blocking gets, puts and memsets, and their completion. transfer.h has their arguments and fatal errors.
 *
 * A try that finds nothing complete lets the runtime work a little and looks again. If that is in vain it lets other
 * threads run, so that a loop of tries makes progress. Before vgasnet_attach, wait functions are fatal and try
 * functions return VGASNET_ERR_NOT_INIT.
 */
#ifndef VGASNET_NONBLOCKING_H
#define VGASNET_NONBLOCKING_H

#include <stddef.h>
#include <stdint.h>
#include <vgasnet/errors.h>
#include <vgasnet/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An operation in flight. It must be synced exactly once. Then it is dead, and syncing it again is fatal. */
typedef struct vgasnet_operation *vgasnet_handle_t;

/* "No operation": every sync takes it for complete. All its bytes are zero. */
#define VGASNET_INVALID_HANDLE ((vgasnet_handle_t)0)

/* Explicit operations are complete when their handle has been synced. Their handle is VGASNET_INVALID_HANDLE if they
 * are complete on return. The destination of a get is undefined until completion. vgasnet_put_nb has read all bytes of
 * src when it returns; src of vgasnet_put_nb_bulk must not change until completion. Any number of operations may be in
 * flight. vgasnet_put_nb keeps copies of unwritten bytes, of all such puts together at most 16 MiB; beyond that it
 * waits. If more than 4096 pages of one operation have to be fetched, it waits for as many at a time, but for the
 * last of them. */
vgasnet_handle_t vgasnet_get_nb(void *dest, vgasnet_node_t node, void *src, size_t nbytes);
vgasnet_handle_t vgasnet_put_nb(vgasnet_node_t node, void *dest, void *src, size_t nbytes);
vgasnet_handle_t vgasnet_get_nb_bulk(void *dest, vgasnet_node_t node, void *src, size_t nbytes);
vgasnet_handle_t vgasnet_put_nb_bulk(vgasnet_node_t node, void *dest, void *src, size_t nbytes);
vgasnet_handle_t vgasnet_memset_nb(vgasnet_node_t node, void *dest, int val, size_t nbytes);

/* Implicit operations are complete when the calling thread has synced its implicit gets, or its implicit puts, which
 * include memsets. Those started in an access region are complete when the region's handle has been synced. src and
 * dest are as for explicit operations. */
void vgasnet_get_nbi(void *dest, vgasnet_node_t node, void *src, size_t nbytes);
void vgasnet_put_nbi(vgasnet_node_t node, void *dest, void *src, size_t nbytes);
void vgasnet_get_nbi_bulk(void *dest, vgasnet_node_t node, void *src, size_t nbytes);
void vgasnet_put_nbi_bulk(vgasnet_node_t node, void *dest, void *src, size_t nbytes);
void vgasnet_memset_nbi(vgasnet_node_t node, void *dest, int val, size_t nbytes);

/* Waits for one operation, or tests it: VGASNET_OK if it is complete, and the handle is dead then, else
 * VGASNET_ERR_NOT_READY. Fatal: a handle that was synced before or never given out. */
void vgasnet_wait_syncnb(vgasnet_handle_t handle);
int vgasnet_try_syncnb(vgasnet_handle_t handle);

/*
 * Several operations: numhandles handles. Handles of complete operations are replaced by VGASNET_INVALID_HANDLE, and
 * VGASNET_INVALID_HANDLE is ignored. Fatal: dead handles, the same handle twice, and a null pointer with numhandles > 0
 * (for try functions VGASNET_ERR_BAD_ARG).
 *
 * all: wait until all are complete. try returns VGASNET_OK if all are, else VGASNET_ERR_NOT_READY, also if some were
 *   complete and have been replaced.
 * some: wait until at least one is complete, or none is valid. try returns VGASNET_OK if at least one is complete or
 *   none is valid, else VGASNET_ERR_NOT_READY.
 *
 * Threads: the array belongs to the call until it returns.
 */
void vgasnet_wait_syncnb_all(vgasnet_handle_t *handles, size_t numhandles);
int vgasnet_try_syncnb_all(vgasnet_handle_t *handles, size_t numhandles);
void vgasnet_wait_syncnb_some(vgasnet_handle_t *handles, size_t numhandles);
int vgasnet_try_syncnb_some(vgasnet_handle_t *handles, size_t numhandles);

/* The calling thread's implicit operations outside access regions: wait until all gets, all puts, or all of both are
 * complete. try returns VGASNET_OK if they are, else VGASNET_ERR_NOT_READY. In an open access region: fatal. */
void vgasnet_wait_syncnbi_gets(void);
void vgasnet_wait_syncnbi_puts(void);
void vgasnet_wait_syncnbi_all(void);
int vgasnet_try_syncnbi_gets(void);
int vgasnet_try_syncnbi_puts(void);
int vgasnet_try_syncnbi_all(void);

/* As the try functions without _nopoll, but they look once and do not let the runtime work, so that no handler runs. */
int vgasnet_try_syncnb_nopoll(vgasnet_handle_t handle);
int vgasnet_try_syncnb_all_nopoll(vgasnet_handle_t *handles, size_t numhandles);
int vgasnet_try_syncnb_some_nopoll(vgasnet_handle_t *handles, size_t numhandles);
int vgasnet_try_syncnbi_gets_nopoll(void);
int vgasnet_try_syncnbi_puts_nopoll(void);
int vgasnet_try_syncnbi_all_nopoll(void);

/* An access region collects the implicit operations that the calling thread starts between begin and end. They are
 * complete when the handle that end returns has been synced. Fatal: begin in an open region, end without one. */
void vgasnet_begin_nbi_accessregion(void);
vgasnet_handle_t vgasnet_end_nbi_accessregion(void);

#ifdef __cplusplus
}
#endif

#endif
