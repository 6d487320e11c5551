/* vgasnet: handler-safe locks, for handlers and other code of one rank. */
#ifndef VGASNET_LOCKS_H
#define VGASNET_LOCKS_H

#include <stdint.h>
#include <vgasnet/errors.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A lock for handlers and other code of one rank. A lock of zeros is free. It is not for memory that processes share. */
typedef struct {
    uint32_t opaque_[4];
} vgasnet_hsl_t;
/** A lock that is free. */
#define VGASNET_HSL_INITIALIZER {{0, 0, 0, 0}}

/**
 * Makes a lock free, as VGASNET_HSL_INITIALIZER and zeros do.
 *
 * Not collective. One thread, before any other uses the lock.
 *
 * Fatal: a null pointer.
 *
 * @param hsl the lock; not null
 * @see vgasnet_hsl_destroy, vgasnet_hsl_lock, vgasnet_hsl_unlock
 */
void vgasnet_hsl_init(vgasnet_hsl_t *hsl);

/**
 * Ends the use of a lock, which must be free.
 *
 * Not collective, any thread.
 *
 * Fatal: a null pointer, a lock that is taken.
 *
 * @param hsl the lock; not null
 * @see vgasnet_hsl_init
 */
void vgasnet_hsl_destroy(vgasnet_hsl_t *hsl);

/**
 * Takes a lock, and waits until it can.
 *
 * A thread that holds the lock may take it again, and then has to unlock it as often. Handlers may call it. Not
 * collective, any thread.
 *
 * Fatal: a null pointer.
 *
 * @param hsl the lock; not null
 * @see vgasnet_hsl_trylock, vgasnet_hsl_unlock
 */
void vgasnet_hsl_lock(vgasnet_hsl_t *hsl);

/**
 * Takes a lock if that needs no wait.
 *
 * Handlers may call it. Not collective, any thread.
 *
 * Fatal: a null pointer.
 *
 * @param hsl the lock; not null
 * @retval VGASNET_OK if the thread has the lock now
 * @retval VGASNET_ERR_NOT_READY if another thread has it
 * @see vgasnet_hsl_lock, vgasnet_hsl_unlock
 */
int vgasnet_hsl_trylock(vgasnet_hsl_t *hsl);

/**
 * Gives back a lock that the calling thread holds.
 *
 * A lock that is free stays so, with one warning; with VGASNET_CHECK=1 that is fatal. Handlers may call it. Not
 * collective, any thread.
 *
 * Fatal: a null pointer.
 *
 * @param hsl the lock; not null
 * @see vgasnet_hsl_lock
 */
void vgasnet_hsl_unlock(vgasnet_hsl_t *hsl);

#ifdef __cplusplus
}
#endif

#endif
