/*
 * vgasnet: for debuggers.
 *
 * A page of the segment that is not mapped looks like zeros in a debugger. The script for gdb (vgasnet-gdb.py) reads the
 * segment by what is declared here; docs/how-to/debugging.md tells how to use it. Programs need none of it.
 */
#ifndef VGASNET_DEBUG_H
#define VGASNET_DEBUG_H

#include <stddef.h>
#include <stdint.h>
#include <vgasnet/errors.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Where the pages of the rank's own segment are, from vgasnet_attach on. Each frame has an entry that begins with a word
 * and a key, of 64 bits each. The frame has the segment's page number key - layout.key, which may be read here if any bit
 * of readable is set in the word.
 */
typedef struct {
    uint64_t version; /* of this structure: 2; 0 before vgasnet_attach */
    uint64_t rank;
    uint64_t segment; /* the first address */
    uint64_t segment_bytes;
    uint64_t page_bytes;
    uint64_t entries; /* the address of the first frame's entry */
    uint64_t entry_bytes;
    uint64_t entry_count;
    uint64_t key;    /* of the segment's first page */
    uint64_t frames; /* the address of the first frame */
    uint64_t readable;
    uint64_t scratch; /* the address of a buffer for vgasnet_debug_read */
    uint64_t scratch_bytes;
    uint64_t code; /* what vgasnet_debug_read has returned last */
} vgasnet_debug_layout_t;

/** The layout of this rank. */
extern vgasnet_debug_layout_t vgasnet_debug_layout;

/**
 * Copies bytes of the caller's own segment for a debugger, and fetches pages that are not here.
 *
 * A debugger may call it in a thread that it has stopped anywhere, while all other threads run. All registers that a
 * call may change keep their values on x86-64, except the general ones. Not collective.
 *
 * @param to buffer of len bytes
 * @param from first address, in the caller's own segment
 * @param len number of bytes, 0 or more
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG if the range leaves the segment
 * @retval VGASNET_ERR_NOT_READY if no page came within 5 seconds, because the thread was stopped in the library's work,
 *     or another rank is stopped
 * @retval VGASNET_ERR_RESOURCE if the segment cannot be loaded from
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_debug_layout, docs/how-to/debugging.md
 */
int vgasnet_debug_read(void *to, const void *from, size_t len);

/**
 * Does nothing, so that a debugger can stop there.
 *
 * The library calls it before a signal ends the process for a load or store that is none of its own.
 *
 * @param signal number of the signal
 * @see vgasnet_debug_read, docs/how-to/debugging.md
 */
void vgasnet_debug_stop(int signal);

#ifdef __cplusplus
}
#endif

#endif
