/* Memory that is mapped over a segment of GASNet's. */
#ifndef VGASNET_GASNET_OVERLAY_H
#define VGASNET_GASNET_OVERLAY_H

#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Conduits that write to a segment by address, in the process that has it. So memory that is mapped over the segment is the
 * segment, provided that no other process has that mapped. Conduits that show the segment to a network card need their own
 * pages. */
#if GASNET_CONDUIT_UDP || GASNET_CONDUIT_MPI
#define WRITES_BY_ADDRESS 1
#else
#define WRITES_BY_ADDRESS 0
#endif

static inline size_t whole_pages(size_t len_bytes) {
    return (len_bytes + GASNET_PAGESIZE - 1) / GASNET_PAGESIZE * GASNET_PAGESIZE;
}

/* Maps the shared memory at base a second time, at address, in place of what is there. Returns whether that worked. */
static inline int map_over(void *address, void *base, size_t len_bytes) {
    /* An old size of 0 leaves the old mapping in place. The kernel is asked directly, because UCX, which MPICH brings along,
     * puts an mremap of its own before the C library's that loses the last argument. */
    return syscall(SYS_mremap, base, (size_t)0, len_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, address) != -1;
}

#endif
