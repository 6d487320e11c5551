/* vgasnet: handler-safe locks. */
#ifndef VGASNET_LOCKS_H
#define VGASNET_LOCKS_H

#include <stdint.h>
#include <vgasnet/errors.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A lock for handlers and other code of one rank. A thread that holds it may take it again, and then has to unlock it
 * as often. A lock of zeros is free. Fatal: null pointers, destroying a lock that is taken. Unlocking a free one is
 * ignored with one warning; with VGASNET_CHECK=1 it is fatal. trylock returns VGASNET_OK or VGASNET_ERR_NOT_READY. */
typedef struct {
    uint32_t opaque_[4];
} vgasnet_hsl_t;
#define VGASNET_HSL_INITIALIZER {{0, 0, 0, 0}}
void vgasnet_hsl_init(vgasnet_hsl_t *hsl);
void vgasnet_hsl_destroy(vgasnet_hsl_t *hsl);
void vgasnet_hsl_lock(vgasnet_hsl_t *hsl);
int vgasnet_hsl_trylock(vgasnet_hsl_t *hsl);
void vgasnet_hsl_unlock(vgasnet_hsl_t *hsl);

#ifdef __cplusplus
}
#endif

#endif
