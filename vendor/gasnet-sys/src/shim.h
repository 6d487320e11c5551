/* GASNet as vgasnet uses it, the same for GASNet-EX and GASNet-1. Bindings to Rust are made of this header.
 *
 * A function of type int returns VGASNET_GN_OK or an error code of GASNet, or VGASNET_GN_BUSY where its comment says so. After the
 * start any thread may call anything, unless a comment says otherwise. */
#ifndef VGASNET_GASNET_SHIM_H
#define VGASNET_GASNET_SHIM_H

#include <stddef.h>
#include <stdint.h>

#define VGASNET_GN_OK 0
/* There is no room for a message now. Nothing was done. */
#define VGASNET_GN_BUSY (-1)
/* This copy of GASNet is not initialised. */
#define VGASNET_GN_NOT_STARTED (-2)

struct vgasnet_gn_started {
    uint32_t rank;
    uint32_t ranks;
    /* The largest message. */
    size_t message_bytes_max;
    /* The largest segment of this rank's, as far as GASNet says. */
    size_t segment_bytes_max;
    /* Whether vgasnet_gn_bind works, as far as this rank knows. */
    int takes_memory;
    /* Whether only the thread that started a transfer may test it. */
    int transfers_are_threads_own;
    /* Whether a transfer needs the other end to poll. */
    int transfers_need_polls;
};

/* Takes a message. It runs inside other calls of any thread, and returns without calling anything of GASNet. */
typedef void (*vgasnet_gn_deliver_t)(uint32_t from, uint32_t kind, const void *bytes, size_t len_bytes);

/* Starts GASNet. Once a process, collective. GASNet may change the arguments, whose strings must stay. A GASNet-1 makes its
 * segment now, as large as it can be; an EX does so in vgasnet_gn_allocate. */
int vgasnet_gn_start(int *argc, char ***argv, vgasnet_gn_deliver_t deliver, struct vgasnet_gn_started *started);

/* Attaches GASNet, which the caller has initialised, for the caller and for vgasnet: with the count entries of table, of
 * gasnet_handlerentry_t, and vgasnet's handler, whose number GASNet chooses as it does for entries of the caller's without
 * one, and with as large a segment as there can be, of which the first segment_bytes bytes are the caller's. Once,
 * collective, before vgasnet_gn_start, which then takes GASNet as it is. VGASNET_GN_NOT_STARTED: the caller
 * has initialised another copy of GASNet, or none. GASNET_ERR_RESOURCE: nothing of the segment would be left. */
int vgasnet_gn_attach_both(void *table, int count, size_t segment_bytes, size_t min_heap_offset,
                           vgasnet_gn_deliver_t deliver);

/* Makes memory of the caller's, a shared mapping, the segment, or vgasnet's part of it. Once, collective. *address is where
 * peers say that it is. Where the segment exists already, it must have room for it. */
int vgasnet_gn_bind(void *base, size_t len_bytes, void **address);

/* Makes GASNet's memory the segment, of at least so many bytes, a multiple of the page size. Once, collective. *base is where
 * vgasnet's part of it begins, *segment where all of it does. */
int vgasnet_gn_allocate(size_t len_bytes, void **segment, void **base);

/* Whether this rank has the segment of that one mapped. */
int vgasnet_gn_is_neighbour(uint32_t rank);

/* Where the segment of rank is mapped here, after allocation; null if it is not. */
void *vgasnet_gn_mapped(uint32_t rank);

/* Sends an Active Message. May be busy. */
int vgasnet_gn_send(uint32_t to, uint32_t kind, const void *bytes, size_t len_bytes);

/* As vgasnet_gn_send, and waits for room. */
int vgasnet_gn_send_patiently(uint32_t to, uint32_t kind, const void *bytes, size_t len_bytes);

/* Takes in arrivals. */
int vgasnet_gn_poll(void);

/* Starts a copy into a peer's segment or out of it, and gives a name to it, null if it is complete already. */
void *vgasnet_gn_put(uint32_t to, void *there, const void *here, size_t len_bytes);
void *vgasnet_gn_get(uint32_t from, void *here, const void *there, size_t len_bytes);

/* Whether a transfer is complete, which is then gone. */
int vgasnet_gn_is_complete(void *transfer);

/* This process's connection to GASNet's launcher, which ends the job when it loses the connection. -1 on all conduits but UDP, which
 * have no such connection. */
int vgasnet_gn_connection(void);

/* Whether GASNet hears its launcher, and so ends this process without a word when another rank has ended. It does from its start
 * on, and has to in vgasnet_gn_bind, vgasnet_gn_allocate, and vgasnet_gn_exit. */
void vgasnet_gn_hear_launcher(int hears);

/* Ends all ranks. Does not return. */
void vgasnet_gn_exit(int status);

/* Flushes the C library's output streams. */
void vgasnet_gn_flush(void);

/* GASNet's name for an error, and for its conduit. */
const char *vgasnet_gn_error(int code);
const char *vgasnet_gn_conduit(void);

#endif
