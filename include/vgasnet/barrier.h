/*
 * vgasnet: the barrier of all ranks.
 *
 * It has two steps: a rank notifies, and later waits, or tries until the answer is another than VGASNET_ERR_NOT_READY.
 * A barrier syncs no operations. flags: 0 for a barrier named id, or some of these; unknown flags are fatal.
 *
 * Programs for GASNet may live on calls in the wrong order, which that checks only where it is built to. So a second
 * notify in a row is ignored, and a wait or try without a notify returns VGASNET_OK at once, both with one warning;
 * with VGASNET_CHECK=1 they are fatal.
 */
#ifndef VGASNET_BARRIER_H
#define VGASNET_BARRIER_H

#include <vgasnet/errors.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Matches any id; the argument id is ignored. */
#define VGASNET_BARRIERFLAG_ANONYMOUS 1
/* The barrier fails on every rank. Has precedence over VGASNET_BARRIERFLAG_ANONYMOUS. */
#define VGASNET_BARRIERFLAG_MISMATCH 2
/* As VGASNET_BARRIERFLAG_ANONYMOUS, and promises that the barrier is anonymous on every rank. */
#define VGASNET_BARRIERFLAG_UNNAMED 5
/* Every image takes part, in the barriers of collectives.h. It changes nothing here: call these functions once a rank. */
#define VGASNET_BARRIERFLAG_IMAGES 8

/* Arrives, and waits for nobody.
 * Threads: no two threads of a rank may call barrier functions at the same time. */
void vgasnet_barrier_notify(int id, int flags);

/*
 * Waits until all ranks have notified. Returns VGASNET_OK, or VGASNET_ERR_BARRIER_MISMATCH in these cases: two ranks
 * notified with different ids; one notified with VGASNET_BARRIERFLAG_MISMATCH; the wait names another id than this
 * rank's notify did or, if that was anonymous, than the other ranks' did. Before vgasnet_attach: VGASNET_ERR_NOT_INIT.
 */
int vgasnet_barrier_wait(int id, int flags);

/* VGASNET_ERR_NOT_READY if some rank has not notified; else as vgasnet_barrier_wait. */
int vgasnet_barrier_try(int id, int flags);

/* vgasnet_barrier_notify, then vgasnet_barrier_wait. */
int vgasnet_barrier(int id, int flags);

/*
 * The name of the last barrier. Returns 0 if it had one, and writes to *id the id of the notifies, the same on every
 * rank. Returns another number if all ranks notified anonymously. May be called between a barrier with the answer
 * VGASNET_OK and the next notify; fatal at other times, and for a null pointer.
 */
int vgasnet_barrier_result(int *id);

#ifdef __cplusplus
}
#endif

#endif
