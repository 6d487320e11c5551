/*
 * vgasnet: completion of non-blocking operations.
 *
 * An operation has a handle (vgasnet_get_nb), or it is implicit (vgasnet_get_nbi) and counts for the thread that started
 * it. A wait returns when the operations are complete. A try returns at once: it looks, lets the runtime work a little,
 * and looks again. If that is in vain it lets other threads run, so that a loop of tries makes progress. Tries with
 * _nopoll look once, and run no handler.
 *
 * Before vgasnet_attach, waits are fatal and tries return VGASNET_ERR_NOT_INIT.
 */
#ifndef VGASNET_COMPLETION_H
#define VGASNET_COMPLETION_H

#include <stddef.h>
#include <vgasnet/errors.h>
#include <vgasnet/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An operation in flight. It must be synced exactly once. Then it is dead, and syncing it again is fatal. */
typedef struct vgasnet_operation *vgasnet_handle_t;

/** "No operation": every sync takes it for complete. All its bytes are zero. */
#define VGASNET_INVALID_HANDLE ((vgasnet_handle_t)0)

/* ---- operations with a handle ---- */

/**
 * Waits until one operation is complete.
 *
 * Not collective, any thread.
 *
 * Fatal: a handle that was synced before or never given out, a call before vgasnet_attach.
 *
 * @param handle handle of the operation, or VGASNET_INVALID_HANDLE, which is complete; dead once the operation is
 *     complete. It may come from another thread
 * @see vgasnet_try_syncnb, vgasnet_wait_syncnb_all, vgasnet_get_nb
 */
void vgasnet_wait_syncnb(vgasnet_handle_t handle);

/**
 * Tests whether one operation is complete.
 *
 * The call lets the runtime work a little and looks again; then it lets other threads run, so that a loop of tries
 * makes progress. Not collective, any thread.
 *
 * Fatal: a handle that was synced before or never given out.
 *
 * @param handle handle of the operation, or VGASNET_INVALID_HANDLE, which is complete; dead once the operation is
 *     complete. It may come from another thread
 * @retval VGASNET_OK if it is complete; the handle is dead then
 * @retval VGASNET_ERR_NOT_READY if it is not
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_wait_syncnb, vgasnet_try_syncnb_nopoll
 */
int vgasnet_try_syncnb(vgasnet_handle_t handle);

/**
 * Waits until several operations are all complete.
 *
 * Not collective, any thread.
 *
 * Fatal: dead handles, the same handle twice, a null array with numhandles > 0, a call before vgasnet_attach.
 *
 * @param handles array of handles, which belongs to the call until it returns; VGASNET_INVALID_HANDLE is ignored, and
 *     replaces the handle of each complete operation
 * @param numhandles number of handles, 0 or more
 * @see vgasnet_try_syncnb_all, vgasnet_wait_syncnb_some
 */
void vgasnet_wait_syncnb_all(vgasnet_handle_t *handles, size_t numhandles);

/**
 * Tests whether several operations are all complete.
 *
 * The call lets the runtime work a little and looks again; then it lets other threads run, so that a loop of tries
 * makes progress. Not collective, any thread.
 *
 * Fatal: dead handles, the same handle twice.
 *
 * @param handles array of handles, which belongs to the call until it returns; VGASNET_INVALID_HANDLE is ignored, and
 *     replaces the handle of each complete operation
 * @param numhandles number of handles, 0 or more
 * @retval VGASNET_OK if all are complete
 * @retval VGASNET_ERR_NOT_READY if one is not, also if some were complete and have been replaced
 * @retval VGASNET_ERR_BAD_ARG for a null array with numhandles > 0
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_wait_syncnb_all, vgasnet_try_syncnb_some
 */
int vgasnet_try_syncnb_all(vgasnet_handle_t *handles, size_t numhandles);

/**
 * Waits until at least one of several operations is complete.
 *
 * It returns at once if no handle is valid. Not collective, any thread.
 *
 * Fatal: dead handles, the same handle twice, a null array with numhandles > 0, a call before vgasnet_attach.
 *
 * @param handles array of handles, which belongs to the call until it returns; VGASNET_INVALID_HANDLE is ignored, and
 *     replaces the handle of each complete operation
 * @param numhandles number of handles, 0 or more
 * @see vgasnet_try_syncnb_some, vgasnet_wait_syncnb_all
 */
void vgasnet_wait_syncnb_some(vgasnet_handle_t *handles, size_t numhandles);

/**
 * Tests whether at least one of several operations is complete.
 *
 * The call lets the runtime work a little and looks again; then it lets other threads run, so that a loop of tries
 * makes progress. Not collective, any thread.
 *
 * Fatal: dead handles, the same handle twice.
 *
 * @param handles array of handles, which belongs to the call until it returns; VGASNET_INVALID_HANDLE is ignored, and
 *     replaces the handle of each complete operation
 * @param numhandles number of handles, 0 or more
 * @retval VGASNET_OK if at least one is complete, or none is valid
 * @retval VGASNET_ERR_NOT_READY if none is complete
 * @retval VGASNET_ERR_BAD_ARG for a null array with numhandles > 0
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_wait_syncnb_some, vgasnet_try_syncnb_all
 */
int vgasnet_try_syncnb_some(vgasnet_handle_t *handles, size_t numhandles);

/* ---- implicit operations ---- */

/**
 * Waits until all implicit gets are complete.
 *
 * It concerns the calling thread's operations outside access regions. Not collective.
 *
 * Fatal: a call in an open access region, a call before vgasnet_attach.
 *
 * @see vgasnet_try_syncnbi_gets, vgasnet_get_nbi
 */
void vgasnet_wait_syncnbi_gets(void);

/**
 * Waits until all implicit puts and memsets are complete.
 *
 * It concerns the calling thread's operations outside access regions. Not collective.
 *
 * Fatal: a call in an open access region, a call before vgasnet_attach.
 *
 * @see vgasnet_try_syncnbi_puts, vgasnet_put_nbi
 */
void vgasnet_wait_syncnbi_puts(void);

/**
 * Waits until all implicit operations are complete.
 *
 * It concerns the calling thread's operations outside access regions. Not collective.
 *
 * Fatal: a call in an open access region, a call before vgasnet_attach.
 *
 * @see vgasnet_try_syncnbi_all, vgasnet_put_nbi
 */
void vgasnet_wait_syncnbi_all(void);

/**
 * Tests whether all implicit gets are complete.
 *
 * It concerns the calling thread's operations outside access regions. The call lets the runtime work a little and looks
 * again; then it lets other threads run, so that a loop of tries makes progress. Not collective.
 *
 * Fatal: a call in an open access region.
 *
 * @retval VGASNET_OK if they are complete, or there are none
 * @retval VGASNET_ERR_NOT_READY if some are not
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_wait_syncnbi_gets, vgasnet_get_nbi
 */
int vgasnet_try_syncnbi_gets(void);

/**
 * Tests whether all implicit puts and memsets are complete.
 *
 * It concerns the calling thread's operations outside access regions. The call lets the runtime work a little and looks
 * again; then it lets other threads run, so that a loop of tries makes progress. Not collective.
 *
 * Fatal: a call in an open access region.
 *
 * @retval VGASNET_OK if they are complete, or there are none
 * @retval VGASNET_ERR_NOT_READY if some are not
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_wait_syncnbi_puts, vgasnet_put_nbi
 */
int vgasnet_try_syncnbi_puts(void);

/**
 * Tests whether all implicit operations are complete.
 *
 * It concerns the calling thread's operations outside access regions. The call lets the runtime work a little and looks
 * again; then it lets other threads run, so that a loop of tries makes progress. Not collective.
 *
 * Fatal: a call in an open access region.
 *
 * @retval VGASNET_OK if they are complete, or there are none
 * @retval VGASNET_ERR_NOT_READY if some are not
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_wait_syncnbi_all, vgasnet_put_nbi
 */
int vgasnet_try_syncnbi_all(void);

/* ---- without polling ---- */

/**
 * Tests whether one operation is complete, without polling.
 *
 * The call looks once and does not let the runtime work, so that no handler runs. Not collective, any thread.
 *
 * Fatal: a handle that was synced before or never given out.
 *
 * @param handle handle of the operation, or VGASNET_INVALID_HANDLE, which is complete; dead once the operation is
 *     complete. It may come from another thread
 * @retval VGASNET_OK if it is complete; the handle is dead then
 * @retval VGASNET_ERR_NOT_READY if it is not
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_wait_syncnb, vgasnet_try_syncnb
 */
int vgasnet_try_syncnb_nopoll(vgasnet_handle_t handle);

/**
 * Tests whether several operations are all complete, without polling.
 *
 * The call looks once and does not let the runtime work, so that no handler runs. Not collective, any thread.
 *
 * Fatal: dead handles, the same handle twice.
 *
 * @param handles array of handles, which belongs to the call until it returns; VGASNET_INVALID_HANDLE is ignored, and
 *     replaces the handle of each complete operation
 * @param numhandles number of handles, 0 or more
 * @retval VGASNET_OK if all are complete
 * @retval VGASNET_ERR_NOT_READY if one is not, also if some were complete and have been replaced
 * @retval VGASNET_ERR_BAD_ARG for a null array with numhandles > 0
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_wait_syncnb_all, vgasnet_try_syncnb_some_nopoll
 */
int vgasnet_try_syncnb_all_nopoll(vgasnet_handle_t *handles, size_t numhandles);

/**
 * Tests whether at least one of several operations is complete, without polling.
 *
 * The call looks once and does not let the runtime work, so that no handler runs. Not collective, any thread.
 *
 * Fatal: dead handles, the same handle twice.
 *
 * @param handles array of handles, which belongs to the call until it returns; VGASNET_INVALID_HANDLE is ignored, and
 *     replaces the handle of each complete operation
 * @param numhandles number of handles, 0 or more
 * @retval VGASNET_OK if at least one is complete, or none is valid
 * @retval VGASNET_ERR_NOT_READY if none is complete
 * @retval VGASNET_ERR_BAD_ARG for a null array with numhandles > 0
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_wait_syncnb_some, vgasnet_try_syncnb_all_nopoll
 */
int vgasnet_try_syncnb_some_nopoll(vgasnet_handle_t *handles, size_t numhandles);

/**
 * Tests whether all implicit gets are complete, without polling.
 *
 * It concerns the calling thread's operations outside access regions. The call looks once and does not let the runtime
 * work, so that no handler runs. Not collective.
 *
 * Fatal: a call in an open access region.
 *
 * @retval VGASNET_OK if they are complete, or there are none
 * @retval VGASNET_ERR_NOT_READY if some are not
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_wait_syncnbi_gets, vgasnet_get_nbi
 */
int vgasnet_try_syncnbi_gets_nopoll(void);

/**
 * Tests whether all implicit puts and memsets are complete, without polling.
 *
 * It concerns the calling thread's operations outside access regions. The call looks once and does not let the runtime
 * work, so that no handler runs. Not collective.
 *
 * Fatal: a call in an open access region.
 *
 * @retval VGASNET_OK if they are complete, or there are none
 * @retval VGASNET_ERR_NOT_READY if some are not
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_wait_syncnbi_puts, vgasnet_put_nbi
 */
int vgasnet_try_syncnbi_puts_nopoll(void);

/**
 * Tests whether all implicit operations are complete, without polling.
 *
 * It concerns the calling thread's operations outside access regions. The call looks once and does not let the runtime
 * work, so that no handler runs. Not collective.
 *
 * Fatal: a call in an open access region.
 *
 * @retval VGASNET_OK if they are complete, or there are none
 * @retval VGASNET_ERR_NOT_READY if some are not
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_wait_syncnbi_all, vgasnet_put_nbi
 */
int vgasnet_try_syncnbi_all_nopoll(void);

#ifdef __cplusplus
}
#endif

#endif
