/* vgasnet: sizes and addresses of segments. */
#ifndef VGASNET_SEGMENT_H
#define VGASNET_SEGMENT_H

#include <stdint.h>
#include <vgasnet/errors.h>
#include <vgasnet/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A segment. A rank without one has size 0 and a null address. */
typedef struct {
    void *addr;
    uintptr_t size;
} vgasnet_seginfo_t;

/**
 * Returns the largest segment that vgasnet_init has offered this rank.
 *
 * The offer holds as long as the space is there. Without VGASNET_MAX_SEGSIZE and its like it is a quarter of the rank's
 * share of the free disk, and at most 4 times its share of the available memory, so that programs that take all of it
 * leave others room. A program that asks for more gets up to half of its share of the free disk. Not collective, any
 * thread.
 *
 * Fatal: a call before vgasnet_init.
 *
 * @return the size in bytes, a multiple of the page size
 * @see vgasnet_getMaxGlobalSegmentSize, vgasnet_attach
 */
uintptr_t vgasnet_getMaxLocalSegmentSize(void);

/**
 * Returns the least vgasnet_getMaxLocalSegmentSize of all ranks.
 *
 * Not collective, any thread.
 *
 * Fatal: a call before vgasnet_init.
 *
 * @return the size in bytes, a multiple of the page size; the same on all ranks
 * @see vgasnet_getMaxLocalSegmentSize, vgasnet_attach
 */
uintptr_t vgasnet_getMaxGlobalSegmentSize(void);

/**
 * Tells the addresses and sizes of all ranks' segments.
 *
 * Not collective, any thread.
 *
 * @param seginfo_table receives the segments of ranks 0 to min(numentries, vgasnet_nodes()) - 1; further entries stay
 *     as they are. May be null if numentries is 0
 * @param numentries number of entries in seginfo_table, 0 or more
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @retval VGASNET_ERR_BAD_ARG if numentries is negative, or seginfo_table is null and numentries is not 0
 * @see vgasnet_attach, vgasnet_getNodeInfo
 */
int vgasnet_getSegmentInfo(vgasnet_seginfo_t *seginfo_table, int numentries);

#ifdef __cplusplus
}
#endif

#endif
