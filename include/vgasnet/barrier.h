/*
 * vgasnet: the barrier of all ranks.
 *
 * It has two steps: a rank notifies, and later waits, or tries until the answer is another than VGASNET_ERR_NOT_READY.
 * A barrier syncs no operations. flags: 0 for a barrier named id, or some of these; unknown flags are fatal.
 *
 * Programs for GASNet may live on calls in the wrong order, since GASNet checks the order in debug builds only. So a
 * second notify in a row is ignored, and a wait or try without a notify returns VGASNET_OK at once, both with one
 * warning; with VGASNET_CHECK=1 they are fatal.
 */
#ifndef VGASNET_BARRIER_H
#define VGASNET_BARRIER_H

#include <vgasnet/errors.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Matches any id; the argument id is ignored. */
#define VGASNET_BARRIERFLAG_ANONYMOUS 1
/** The barrier fails on every rank. Has precedence over VGASNET_BARRIERFLAG_ANONYMOUS. */
#define VGASNET_BARRIERFLAG_MISMATCH 2
/** As VGASNET_BARRIERFLAG_ANONYMOUS, and promises that the barrier is anonymous on every rank. */
#define VGASNET_BARRIERFLAG_UNNAMED 5
/** Every image takes part, in the barriers of collectives.h. It changes nothing here: call these functions once a rank. */
#define VGASNET_BARRIERFLAG_IMAGES 8

/**
 * Arrives at the barrier of all ranks, and waits for nobody.
 *
 * A barrier syncs no operations. A second notify in a row is ignored, with one warning; with VGASNET_CHECK=1 it is
 * fatal.
 *
 * Collective. Once a rank; no two threads of a rank may call barrier functions at the same time.
 *
 * Fatal: unknown flags, a call before vgasnet_attach.
 *
 * @param id name of the barrier, any number; ignored with VGASNET_BARRIERFLAG_ANONYMOUS
 * @param flags 0 for a barrier named id, or some of VGASNET_BARRIERFLAG_
 * @see vgasnet_barrier_wait, vgasnet_barrier_try, vgasnet_barrier
 */
void vgasnet_barrier_notify(int id, int flags);

/**
 * Waits until all ranks have notified the barrier.
 *
 * Without a notify before, it returns VGASNET_OK at once, with one warning; with VGASNET_CHECK=1 that is fatal.
 *
 * Collective. Once a rank; no two threads of a rank may call barrier functions at the same time.
 *
 * Fatal: unknown flags.
 *
 * @param id as in vgasnet_barrier_notify
 * @param flags as in vgasnet_barrier_notify
 * @retval VGASNET_OK if all ranks have notified
 * @retval VGASNET_ERR_BARRIER_MISMATCH if two ranks notified with different ids, if one notified with
 *     VGASNET_BARRIERFLAG_MISMATCH, or if id is not the one of this rank's notify or, if that was anonymous, of the
 *     other ranks'
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_barrier_notify, vgasnet_barrier_try, vgasnet_barrier_result
 */
int vgasnet_barrier_wait(int id, int flags);

/**
 * Tests whether all ranks have notified the barrier.
 *
 * Without a notify before, it returns VGASNET_OK at once, with one warning; with VGASNET_CHECK=1 that is fatal.
 *
 * Collective. Once a rank; no two threads of a rank may call barrier functions at the same time.
 *
 * Fatal: unknown flags.
 *
 * @param id as in vgasnet_barrier_notify
 * @param flags as in vgasnet_barrier_notify
 * @retval VGASNET_OK if all ranks have notified; the barrier is complete
 * @retval VGASNET_ERR_NOT_READY if some rank has not notified
 * @retval VGASNET_ERR_BARRIER_MISMATCH if two ranks notified with different ids, if one notified with
 *     VGASNET_BARRIERFLAG_MISMATCH, or if id is not the one of this rank's notify or, if that was anonymous, of the
 *     other ranks'
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_barrier_notify, vgasnet_barrier_wait
 */
int vgasnet_barrier_try(int id, int flags);

/**
 * Arrives at the barrier of all ranks, and waits until all have.
 *
 * It is vgasnet_barrier_notify and vgasnet_barrier_wait. A barrier syncs no operations.
 *
 * Collective. Once a rank; no two threads of a rank may call barrier functions at the same time.
 *
 * Fatal: unknown flags.
 *
 * @param id name of the barrier, any number; ignored with VGASNET_BARRIERFLAG_ANONYMOUS
 * @param flags 0 for a barrier named id, or some of VGASNET_BARRIERFLAG_
 * @retval VGASNET_OK if all ranks have notified
 * @retval VGASNET_ERR_BARRIER_MISMATCH if two ranks notified with different ids, if one notified with
 *     VGASNET_BARRIERFLAG_MISMATCH, or if id is not the one of this rank's notify or, if that was anonymous, of the
 *     other ranks'
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_barrier_notify, vgasnet_coll_barrier
 */
int vgasnet_barrier(int id, int flags);

/**
 * Tells the name of the last barrier.
 *
 * May be called between a barrier with the answer VGASNET_OK and the next notify. Not collective. Threads: as
 * vgasnet_barrier_notify.
 *
 * Fatal: a call at another time, a null pointer.
 *
 * @param id receives the id of the notifies, the same on every rank, if the barrier had one; not null
 * @return 0 if the barrier had a name, another number if all ranks notified anonymously
 * @see vgasnet_barrier_wait
 */
int vgasnet_barrier_result(int *id);

#ifdef __cplusplus
}
#endif

#endif
