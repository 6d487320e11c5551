/* GASNet-1's functions by their own names. They are macros, as the specification allows: their addresses cannot be taken. */
#ifndef GASNET_NAMES_H
#define GASNET_NAMES_H

#include "gasnet_message_names.h"

/* job control */
/** Makes this process a rank of the job. @see vgasnet_init, GASNet-1 specification 1.8 */
#define gasnet_init vgasnet_init
/**
 * Gives this rank its segment, registers its handlers, and readies it for all other functions.
 * @see vgasnet_attach, GASNet-1 specification 1.8
 */
#define gasnet_attach vgasnet_attach
/** Ends the whole job with a status. @see vgasnet_exit, GASNet-1 specification 1.8 */
#define gasnet_exit vgasnet_exit
/** Returns the caller's index. @see vgasnet_mynode, GASNet-1 specification 1.8 */
#define gasnet_mynode vgasnet_mynode
/** Returns the number of ranks in the job. @see vgasnet_nodes, GASNet-1 specification 1.8 */
#define gasnet_nodes vgasnet_nodes
/**
 * Returns the largest segment that vgasnet_init has offered this rank.
 * @see vgasnet_getMaxLocalSegmentSize, GASNet-1 specification 1.8
 */
#define gasnet_getMaxLocalSegmentSize vgasnet_getMaxLocalSegmentSize
/**
 * Returns the least vgasnet_getMaxLocalSegmentSize of all ranks.
 * @see vgasnet_getMaxGlobalSegmentSize, GASNet-1 specification 1.8
 */
#define gasnet_getMaxGlobalSegmentSize vgasnet_getMaxGlobalSegmentSize
/** Tells the addresses and sizes of all ranks' segments. @see vgasnet_getSegmentInfo, GASNet-1 specification 1.8 */
#define gasnet_getSegmentInfo vgasnet_getSegmentInfo
/** Tells which ranks share a machine. @see vgasnet_getNodeInfo */
#define gasnet_getNodeInfo vgasnet_getNodeInfo
/** Returns the value of an environment variable of the job. @see vgasnet_getenv, GASNet-1 specification 1.8 */
#define gasnet_getenv vgasnet_getenv
/** Sets how waiting threads of this rank share the processors. @see vgasnet_set_waitmode, GASNet-1 specification 1.8 */
#define gasnet_set_waitmode vgasnet_set_waitmode

/* Active Messages, apart from the requests and replies */
/** Returns the largest number of arguments of a message. @see vgasnet_AMMaxArgs, GASNet-1 specification 1.8 */
#define gasnet_AMMaxArgs vgasnet_AMMaxArgs
/** Returns the largest payload of a Medium message. @see vgasnet_AMMaxMedium, GASNet-1 specification 1.8 */
#define gasnet_AMMaxMedium vgasnet_AMMaxMedium
/** Returns the largest payload of a Long request. @see vgasnet_AMMaxLongRequest, GASNet-1 specification 1.8 */
#define gasnet_AMMaxLongRequest vgasnet_AMMaxLongRequest
/** Returns the largest payload of a Long reply. @see vgasnet_AMMaxLongReply, GASNet-1 specification 1.8 */
#define gasnet_AMMaxLongReply vgasnet_AMMaxLongReply
/** Tells the rank that sent the message of the running handler. @see vgasnet_AMGetMsgSource, GASNet-1 specification 1.8 */
#define gasnet_AMGetMsgSource vgasnet_AMGetMsgSource
/**
 * Lets the runtime work a little, and runs handlers of messages that have arrived.
 * @see vgasnet_AMPoll, GASNet-1 specification 1.8
 */
#define gasnet_AMPoll vgasnet_AMPoll
/**
 * Begins a no-interrupt section, which does nothing: handlers never interrupt a thread.
 * @see vgasnet_hold_interrupts, GASNet-1 specification 1.8
 */
#define gasnet_hold_interrupts vgasnet_hold_interrupts
/**
 * Ends a no-interrupt section, which does nothing: handlers never interrupt a thread.
 * @see vgasnet_resume_interrupts, GASNet-1 specification 1.8
 */
#define gasnet_resume_interrupts vgasnet_resume_interrupts

/* handler-safe locks */
/** Makes a lock free, as VGASNET_HSL_INITIALIZER and zeros do. @see vgasnet_hsl_init, GASNet-1 specification 1.8 */
#define gasnet_hsl_init vgasnet_hsl_init
/** Ends the use of a lock, which must be free. @see vgasnet_hsl_destroy, GASNet-1 specification 1.8 */
#define gasnet_hsl_destroy vgasnet_hsl_destroy
/** Takes a lock, and waits until it can. @see vgasnet_hsl_lock, GASNet-1 specification 1.8 */
#define gasnet_hsl_lock vgasnet_hsl_lock
/** Takes a lock if that needs no wait. @see vgasnet_hsl_trylock, GASNet-1 specification 1.8 */
#define gasnet_hsl_trylock vgasnet_hsl_trylock
/** Gives back a lock that the calling thread holds. @see vgasnet_hsl_unlock, GASNet-1 specification 1.8 */
#define gasnet_hsl_unlock vgasnet_hsl_unlock

/* blocking transfers */
/** Reads bytes of a rank's segment, and returns when they have arrived. @see vgasnet_get, GASNet-1 specification 1.8 */
#define gasnet_get vgasnet_get
/**
 * Writes bytes to a rank's segment, and returns when no rank can read the old ones any more.
 * @see vgasnet_put, GASNet-1 specification 1.8
 */
#define gasnet_put vgasnet_put
/**
 * Does the same as vgasnet_get: reads bytes of a rank's segment, and returns when they have arrived.
 * @see vgasnet_get_bulk, GASNet-1 specification 1.8
 */
#define gasnet_get_bulk vgasnet_get_bulk
/**
 * Does the same as vgasnet_put: writes bytes to a rank's segment, and returns when no rank can read the old ones any
 * more.
 * @see vgasnet_put_bulk, GASNet-1 specification 1.8
 */
#define gasnet_put_bulk vgasnet_put_bulk
/**
 * Sets bytes of a rank's segment to one value, and returns when no rank can read the old ones any more.
 * @see vgasnet_memset, GASNet-1 specification 1.8
 */
#define gasnet_memset vgasnet_memset

/* transfers with a handle */
/** Starts to read bytes of a rank's segment, with a handle. @see vgasnet_get_nb, GASNet-1 specification 1.8 */
#define gasnet_get_nb vgasnet_get_nb
/**
 * Starts to write bytes to a rank's segment, with a handle; their source is free at once.
 * @see vgasnet_put_nb, GASNet-1 specification 1.8
 */
#define gasnet_put_nb vgasnet_put_nb
/** Starts to read bytes of a rank's segment, with a handle. @see vgasnet_get_nb_bulk, GASNet-1 specification 1.8 */
#define gasnet_get_nb_bulk vgasnet_get_nb_bulk
/**
 * Starts to write bytes to a rank's segment, with a handle, without a copy of them.
 * @see vgasnet_put_nb_bulk, GASNet-1 specification 1.8
 */
#define gasnet_put_nb_bulk vgasnet_put_nb_bulk
/**
 * Starts to set bytes of a rank's segment to one value, with a handle.
 * @see vgasnet_memset_nb, GASNet-1 specification 1.8
 */
#define gasnet_memset_nb vgasnet_memset_nb

/* transfers with an implicit handle */
/** Starts to read bytes of a rank's segment, without a handle. @see vgasnet_get_nbi, GASNet-1 specification 1.8 */
#define gasnet_get_nbi vgasnet_get_nbi
/**
 * Starts to write bytes to a rank's segment, without a handle; their source is free at once.
 * @see vgasnet_put_nbi, GASNet-1 specification 1.8
 */
#define gasnet_put_nbi vgasnet_put_nbi
/** Starts to read bytes of a rank's segment, without a handle. @see vgasnet_get_nbi_bulk */
#define gasnet_get_nbi_bulk vgasnet_get_nbi_bulk
/** Starts to write bytes to a rank's segment, without a handle and without a copy of them. @see vgasnet_put_nbi_bulk */
#define gasnet_put_nbi_bulk vgasnet_put_nbi_bulk
/**
 * Starts to set bytes of a rank's segment to one value, without a handle.
 * @see vgasnet_memset_nbi, GASNet-1 specification 1.8
 */
#define gasnet_memset_nbi vgasnet_memset_nbi

/* transfers by value */
/**
 * Writes a number to a rank's segment, and returns when no rank can read the old bytes any more.
 * @see vgasnet_put_val, GASNet-1 specification 1.8
 */
#define gasnet_put_val vgasnet_put_val
/** Starts to write a number to a rank's segment, with a handle. @see vgasnet_put_nb_val, GASNet-1 specification 1.8 */
#define gasnet_put_nb_val vgasnet_put_nb_val
/**
 * Starts to write a number to a rank's segment, without a handle.
 * @see vgasnet_put_nbi_val, GASNet-1 specification 1.8
 */
#define gasnet_put_nbi_val vgasnet_put_nbi_val
/** Reads a number from a rank's segment, and returns it. @see vgasnet_get_val, GASNet-1 specification 1.8 */
#define gasnet_get_val vgasnet_get_val
/** Starts to read a number from a rank's segment. @see vgasnet_get_nb_val, GASNet-1 specification 1.8 */
#define gasnet_get_nb_val vgasnet_get_nb_val
/** Waits for a get by value, and returns the number. @see vgasnet_wait_syncnb_valget, GASNet-1 specification 1.8 */
#define gasnet_wait_syncnb_valget vgasnet_wait_syncnb_valget

/** Waits until one operation is complete. @see vgasnet_wait_syncnb, GASNet-1 specification 1.8 */
#define gasnet_wait_syncnb vgasnet_wait_syncnb
/** Tests whether one operation is complete. @see vgasnet_try_syncnb, GASNet-1 specification 1.8 */
#define gasnet_try_syncnb vgasnet_try_syncnb
/** Waits until several operations are all complete. @see vgasnet_wait_syncnb_all, GASNet-1 specification 1.8 */
#define gasnet_wait_syncnb_all vgasnet_wait_syncnb_all
/** Tests whether several operations are all complete. @see vgasnet_try_syncnb_all, GASNet-1 specification 1.8 */
#define gasnet_try_syncnb_all vgasnet_try_syncnb_all
/**
 * Waits until at least one of several operations is complete.
 * @see vgasnet_wait_syncnb_some, GASNet-1 specification 1.8
 */
#define gasnet_wait_syncnb_some vgasnet_wait_syncnb_some
/**
 * Tests whether at least one of several operations is complete.
 * @see vgasnet_try_syncnb_some, GASNet-1 specification 1.8
 */
#define gasnet_try_syncnb_some vgasnet_try_syncnb_some

/* syncs of implicit operations */
/** Waits until all implicit gets are complete. @see vgasnet_wait_syncnbi_gets, GASNet-1 specification 1.8 */
#define gasnet_wait_syncnbi_gets vgasnet_wait_syncnbi_gets
/**
 * Waits until all implicit puts and memsets are complete.
 * @see vgasnet_wait_syncnbi_puts, GASNet-1 specification 1.8
 */
#define gasnet_wait_syncnbi_puts vgasnet_wait_syncnbi_puts
/** Waits until all implicit operations are complete. @see vgasnet_wait_syncnbi_all, GASNet-1 specification 1.8 */
#define gasnet_wait_syncnbi_all vgasnet_wait_syncnbi_all
/** Tests whether all implicit gets are complete. @see vgasnet_try_syncnbi_gets, GASNet-1 specification 1.8 */
#define gasnet_try_syncnbi_gets vgasnet_try_syncnbi_gets
/**
 * Tests whether all implicit puts and memsets are complete.
 * @see vgasnet_try_syncnbi_puts, GASNet-1 specification 1.8
 */
#define gasnet_try_syncnbi_puts vgasnet_try_syncnbi_puts
/** Tests whether all implicit operations are complete. @see vgasnet_try_syncnbi_all, GASNet-1 specification 1.8 */
#define gasnet_try_syncnbi_all vgasnet_try_syncnbi_all

/* syncs that do not poll */
/** Tests whether one operation is complete, without polling. @see vgasnet_try_syncnb_nopoll */
#define gasnet_try_syncnb_nopoll vgasnet_try_syncnb_nopoll
/** Tests whether several operations are all complete, without polling. @see vgasnet_try_syncnb_all_nopoll */
#define gasnet_try_syncnb_all_nopoll vgasnet_try_syncnb_all_nopoll
/**
 * Tests whether at least one of several operations is complete, without polling.
 * @see vgasnet_try_syncnb_some_nopoll
 */
#define gasnet_try_syncnb_some_nopoll vgasnet_try_syncnb_some_nopoll
/** Tests whether all implicit gets are complete, without polling. @see vgasnet_try_syncnbi_gets_nopoll */
#define gasnet_try_syncnbi_gets_nopoll vgasnet_try_syncnbi_gets_nopoll
/** Tests whether all implicit puts and memsets are complete, without polling. @see vgasnet_try_syncnbi_puts_nopoll */
#define gasnet_try_syncnbi_puts_nopoll vgasnet_try_syncnbi_puts_nopoll
/** Tests whether all implicit operations are complete, without polling. @see vgasnet_try_syncnbi_all_nopoll */
#define gasnet_try_syncnbi_all_nopoll vgasnet_try_syncnbi_all_nopoll

/* access regions */
/** Begins an access region of the calling thread. @see vgasnet_begin_nbi_accessregion, GASNet-1 specification 1.8 */
#define gasnet_begin_nbi_accessregion vgasnet_begin_nbi_accessregion
/**
 * Ends the access region of the calling thread, and returns one handle for its operations.
 * @see vgasnet_end_nbi_accessregion, GASNet-1 specification 1.8
 */
#define gasnet_end_nbi_accessregion vgasnet_end_nbi_accessregion

/* barriers */
/**
 * Arrives at the barrier of all ranks, and waits for nobody.
 * @see vgasnet_barrier_notify, GASNet-1 specification 1.8
 */
#define gasnet_barrier_notify vgasnet_barrier_notify
/** Waits until all ranks have notified the barrier. @see vgasnet_barrier_wait, GASNet-1 specification 1.8 */
#define gasnet_barrier_wait vgasnet_barrier_wait
/** Tests whether all ranks have notified the barrier. @see vgasnet_barrier_try, GASNet-1 specification 1.8 */
#define gasnet_barrier_try vgasnet_barrier_try
/** Arrives at the barrier of all ranks, and waits until all have. @see vgasnet_barrier */
#define gasnet_barrier vgasnet_barrier
/** Tells the name of the last barrier. @see vgasnet_barrier_result */
#define gasnet_barrier_result vgasnet_barrier_result

/** A client may set it: gasnet_attach calls it with base and size of the segment. @see vgasnet_client_attach_hook */
#define gasnet_client_attach_hook vgasnet_client_attach_hook
/** A client may define it: the largest segment that it wants to be offered, in bytes. @see vgasnet_max_segsize */
#define gasnet_max_segsize vgasnet_max_segsize

#endif
