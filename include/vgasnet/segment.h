/* vgasnet: sizes and addresses of segments. */
#ifndef VGASNET_SEGMENT_H
#define VGASNET_SEGMENT_H

#include <stdint.h>
#include <vgasnet/errors.h>
#include <vgasnet/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A segment. A rank without one has size 0 and a null address. */
typedef struct {
    void *addr;
    uintptr_t size;
} vgasnet_seginfo_t;

/* The largest segment in bytes that the caller was offered by vgasnet_init; a multiple of the page size. The offer
 * holds as long as the space is there. Without VGASNET_MAX_SEGSIZE and its like it is a quarter of the rank's share of
 * the free disk, and at most 4 times its share of the available memory, so that programs that take all of it leave
 * others room; a program that asks for more gets up to half of its share of the free disk. Before vgasnet_init: fatal. */
uintptr_t vgasnet_getMaxLocalSegmentSize(void);

/* The least vgasnet_getMaxLocalSegmentSize of all ranks. Before vgasnet_init: fatal. */
uintptr_t vgasnet_getMaxGlobalSegmentSize(void);

/*
 * Writes the segments of ranks 0 to min(numentries, vgasnet_nodes()) - 1 to seginfo_table, and leaves further entries
 * alone. Not collective.
 * Errors: VGASNET_ERR_NOT_INIT before vgasnet_attach; VGASNET_ERR_BAD_ARG if numentries is negative, or seginfo_table
 * is null and numentries is not 0.
 */
int vgasnet_getSegmentInfo(vgasnet_seginfo_t *seginfo_table, int numentries);

#ifdef __cplusplus
}
#endif

#endif
