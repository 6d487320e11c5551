/* The common declarations of the shims. */
#ifndef VGASNET_GASNET_INTERNAL_H
#define VGASNET_GASNET_INTERNAL_H

#include <gasnet.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim.h"

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

/* Maps the shared memory at base a second time, in place of the mapping at address. Returns whether it worked. */
static inline int map_over(void *address, void *base, size_t len_bytes) {
    /* An old size of 0 leaves the old mapping in place. The kernel is asked directly, because UCX, which MPICH brings along,
     * puts an mremap of its own before the C library's that loses the last argument. */
    return syscall(SYS_mremap, base, (size_t)0, len_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, address) != -1;
}

/* The receiver of messages. */
extern vgasnet_gn_deliver_t vgasnet_gn_deliver_to;

/* What shim_ex.c and shim_1.c offer to shim_both.c: the handler of messages; whether somebody has initialised this GASNet; and to
 * take the segment that the caller has attached, whose first bytes are the caller's, with the handler's number. */
void vgasnet_gn_on_message(gasnet_token_t token, void *bytes, size_t len_bytes, gasnet_handlerarg_t kind);
int vgasnet_gn_is_initialised(void);
void vgasnet_gn_take_attached(int index, size_t callers_bytes);

#endif
