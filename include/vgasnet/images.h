/*
 * vgasnet: images, flags, functions and completion of collectives.
 *
 * An image is a participant of a collective. It is a rank, unless vgasnet_coll_init gives some ranks several. Then each
 * image of a rank is a thread, and images are numbered rank by rank. Only VGASNET_TEAM_ALL has several images a rank. In
 * other teams an image is a rank, by its number in the team, and one thread of it calls.
 */
#ifndef VGASNET_IMAGES_H
#define VGASNET_IMAGES_H

#include <stddef.h>
#include <stdint.h>
#include <vgasnet/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The number of an image in a team. */
typedef uint32_t vgasnet_image_t;

/** A collective under way. It must be synced exactly once, like a vgasnet_handle_t. */
typedef struct vgasnet_collective *vgasnet_coll_handle_t;
/** "No collective": every sync takes it for complete. */
#define VGASNET_COLL_INVALID_HANDLE ((vgasnet_coll_handle_t)0)

/* When a collective begins. MYSYNC: an image's memory is not used before that image has called. ALLSYNC: no memory is used
 * before all images have called. NOSYNC allows any time, and is done as MYSYNC. */
#define VGASNET_COLL_IN_NOSYNC (1 << 0)
#define VGASNET_COLL_IN_MYSYNC (1 << 1)
#define VGASNET_COLL_IN_ALLSYNC (1 << 2)
/* When it is complete at an image. MYSYNC: the memory of that image is not used any more and holds the result. ALLSYNC:
 * the same is true of every image. NOSYNC promises nothing before a barrier, and is done as MYSYNC. Without a flag for
 * in or out, ALLSYNC is meant. */
#define VGASNET_COLL_OUT_NOSYNC (1 << 3)
#define VGASNET_COLL_OUT_MYSYNC (1 << 4)
#define VGASNET_COLL_OUT_ALLSYNC (1 << 5)
/* Whether each image gives every image's addresses (SINGLE) or only those of its rank (LOCAL). It matters for lists of
 * addresses: with SINGLE they have an entry for every image of the team, without it one for each image of the rank. An
 * image's own entry is read in its own call. Both together are fatal. */
#define VGASNET_COLL_SINGLE (1 << 6)
#define VGASNET_COLL_LOCAL (1 << 7)
/* Hints; they change nothing. */
#define VGASNET_COLL_AGGREGATE (1 << 8)
#define VGASNET_COLL_DST_IN_SEGMENT (1 << 10)
#define VGASNET_COLL_SRC_IN_SEGMENT (1 << 11)

/** Reduces result_count elements of elem_size bytes: results[i] = left_operands[i] op right_operands[i]. results may be
 * left_operands. Called in threads that poll or wait. It must not call functions of the library. */
typedef void (*vgasnet_coll_reduce_fn_t)(void *results, size_t result_count, const void *left_operands, size_t left_count,
                                         const void *right_operands, size_t elem_size, int flags, int arg);
/** An entry of the table of functions for reductions. */
typedef struct {
    vgasnet_coll_reduce_fn_t fnptr;
    unsigned int flags;
} vgasnet_coll_fn_entry_t;
/** The place of a function in the table. */
typedef vgasnet_handlerarg_t vgasnet_coll_fn_handle_t;

/**
 * Sets the numbers of images, and registers functions for reductions.
 *
 * Each image calls it, in its own thread, before its first collective, with the same arguments on every rank but for
 * my_image. Functions replace those of an earlier call. Where a rank has one image, any thread of it may call
 * collectives, one at a time; then the call is needed for reductions only.
 *
 * Fatal: a rank without image, an image of another rank, other numbers of images while images wait for one another, a
 * call before vgasnet_attach.
 *
 * @param images number of images of each rank of the job, one or more, the same on all; null for one image a rank
 * @param my_image the image that the calling thread is, of this rank; ignored if images is null
 * @param fn_tbl functions for reductions; may be null if fn_count is 0
 * @param fn_count number of entries in fn_tbl
 * @param init_flags ignored
 * @see vgasnet_coll_reduce, VGASNET_TEAM_ALL
 */
void vgasnet_coll_init(const vgasnet_image_t images[], vgasnet_image_t my_image, vgasnet_coll_fn_entry_t fn_tbl[],
                       size_t fn_count, int init_flags);

/* ---- completion ---- */

/**
 * Waits until one collective is complete.
 *
 * Not collective, any thread.
 *
 * Fatal: a handle that was synced before or never given out, a call before vgasnet_attach.
 *
 * @param handle handle of the collective, or VGASNET_COLL_INVALID_HANDLE, which is complete; dead once the collective
 *     is complete
 * @see vgasnet_coll_try_sync, vgasnet_coll_wait_sync_all
 */
void vgasnet_coll_wait_sync(vgasnet_coll_handle_t handle);

/**
 * Tests whether one collective is complete.
 *
 * The call lets the runtime work a little and looks again; then it lets other threads run, so that a loop of tries
 * makes progress. Not collective, any thread.
 *
 * Fatal: a handle that was synced before or never given out.
 *
 * @param handle handle of the collective, or VGASNET_COLL_INVALID_HANDLE, which is complete; dead once the collective
 *     is complete
 * @retval VGASNET_OK if it is complete; the handle is dead then
 * @retval VGASNET_ERR_NOT_READY if it is not
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_coll_wait_sync
 */
int vgasnet_coll_try_sync(vgasnet_coll_handle_t handle);

/**
 * Waits until several collectives are all complete.
 *
 * Not collective, any thread.
 *
 * Fatal: dead handles, the same handle twice, a null array with numhandles > 0, a call before vgasnet_attach.
 *
 * @param handles array of handles, which belongs to the call until it returns; VGASNET_COLL_INVALID_HANDLE is ignored,
 *     and replaces the handle of each complete collective
 * @param numhandles number of handles, 0 or more
 * @see vgasnet_coll_try_sync_all, vgasnet_coll_wait_sync_some
 */
void vgasnet_coll_wait_sync_all(vgasnet_coll_handle_t *handles, size_t numhandles);

/**
 * Tests whether several collectives are all complete.
 *
 * The call lets the runtime work a little and looks again; then it lets other threads run, so that a loop of tries
 * makes progress. Not collective, any thread.
 *
 * Fatal: dead handles, the same handle twice.
 *
 * @param handles array of handles, which belongs to the call until it returns; VGASNET_COLL_INVALID_HANDLE is ignored,
 *     and replaces the handle of each complete collective
 * @param numhandles number of handles, 0 or more
 * @retval VGASNET_OK if all are complete
 * @retval VGASNET_ERR_NOT_READY if one is not, also if some were complete and have been replaced
 * @retval VGASNET_ERR_BAD_ARG for a null array with numhandles > 0
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_coll_wait_sync_all, vgasnet_coll_try_sync_some
 */
int vgasnet_coll_try_sync_all(vgasnet_coll_handle_t *handles, size_t numhandles);

/**
 * Waits until at least one of several collectives is complete.
 *
 * It returns at once if no handle is valid. Not collective, any thread.
 *
 * Fatal: dead handles, the same handle twice, a null array with numhandles > 0, a call before vgasnet_attach.
 *
 * @param handles array of handles, which belongs to the call until it returns; VGASNET_COLL_INVALID_HANDLE is ignored,
 *     and replaces the handle of each complete collective
 * @param numhandles number of handles, 0 or more
 * @see vgasnet_coll_try_sync_some, vgasnet_coll_wait_sync_all
 */
void vgasnet_coll_wait_sync_some(vgasnet_coll_handle_t *handles, size_t numhandles);

/**
 * Tests whether at least one of several collectives is complete.
 *
 * The call lets the runtime work a little and looks again; then it lets other threads run, so that a loop of tries
 * makes progress. Not collective, any thread.
 *
 * Fatal: dead handles, the same handle twice.
 *
 * @param handles array of handles, which belongs to the call until it returns; VGASNET_COLL_INVALID_HANDLE is ignored,
 *     and replaces the handle of each complete collective
 * @param numhandles number of handles, 0 or more
 * @retval VGASNET_OK if at least one is complete, or none is valid
 * @retval VGASNET_ERR_NOT_READY if none is complete
 * @retval VGASNET_ERR_BAD_ARG for a null array with numhandles > 0
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_coll_wait_sync_some, vgasnet_coll_try_sync_all
 */
int vgasnet_coll_try_sync_some(vgasnet_coll_handle_t *handles, size_t numhandles);

#ifdef __cplusplus
}
#endif

#endif
