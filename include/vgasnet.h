/*
 * vgasnet: a communication runtime for PGAS languages and libraries, with segments larger than memory.
 *
 * Programs include this header. It has the conventions of the interface, and includes the chapters with the
 * functions. The interface is GASNet-1's (specification 1.8): the same functions, arguments and results, with the
 * prefix vgasnet_ for gasnet_ and VGASNET_ for GASNET_. Messages and comments call a node of GASNet a rank.
 *
 * Order. vgasnet_init comes first, then vgasnet_attach, then everything else. Between the two, only vgasnet_mynode,
 *   vgasnet_nodes, vgasnet_getMaxLocalSegmentSize, vgasnet_getMaxGlobalSegmentSize, vgasnet_getNodeInfo,
 *   vgasnet_set_waitmode, vgasnet_getenv and vgasnet_exit may be called. vgasnet_ErrorName, vgasnet_ErrorDesc,
 *   vgasnet_ErrorLine and vgasnet_config_string may be called at any time. vgasnet_attach_gasnet is for programs that
 *   start GASNet before vgasnet; see job.h.
 *
 * Documentation. Each function has a comment of its own: parameters with their ranges, results, and errors. All ranks,
 *   or all of a team, call a "collective" function. Other functions are not collective.
 *
 * Addresses. A segment is a range of addresses in its own rank; vgasnet_getSegmentInfo returns it. Its own rank loads
 *   from it and stores to it like any memory; see residency.h. A "remote address" is given together with a rank, and
 *   lies in the segment of this rank for its whole length. The rank may be the caller's own. A "local address" is
 *   ordinary memory, or an address in the caller's own segment. In the latter case the operation is complete when the
 *   function returns. If source and destination overlap but are not the same, the result is undefined. A segment is
 *   zeros until it is written.
 *
 * Sizes. nbytes may be 0 and has no maximum. In GASNet-1, addresses of functions without _bulk in their name are
 *   aligned for an object of nbytes bytes; vgasnet needs no alignment.
 *
 * Completion. A get is complete when its destination holds the bytes, as they were at some moment since its start. A
 *   put or memset is complete when no rank can read the old bytes any more. Operations in flight together are
 *   not ordered among each other. Completion of a put is no synchronisation: another rank learns of it by a barrier, or
 *   by reading a flag put after the data was complete.
 *
 * Atomicity. Concurrent operations on different bytes do not disturb each other, whatever pages they lie in. If a put
 *   and another operation concern the same bytes at the same time, those bytes may be mixed.
 *
 * Errors. A function of type int returns VGASNET_OK or a code of errors.h, unless its description calls an error
 *   fatal. A code other than VGASNET_ERR_NOT_READY and VGASNET_ERR_BARRIER_MISMATCH comes with one line on stderr. The
 *   other functions cannot return errors: the rank prints one line and the job ends with status 1. The chapters call
 *   this "fatal". Outputs are written only on success.
 *
 * Threads. Any thread may call any function at any time, unless the description of the function says otherwise. Any
 *   thread may sync a handle. Implicit operations and access regions are the calling thread's.
 *   The threads of the library do not end before the process does: a program ends by exit or by a return from main, not
 *   by pthread_exit of all its threads.
 *
 * Signals. A signal handler may call vgasnet_exit with a status other than 0, and the functions with no other effect
 *   than to return a number of the job. It may jump (siglongjmp) out of a load or store of the segment, but out of no
 *   call of the library. A get or put with an unusable address raises SIGSEGV or SIGBUS in the call. The handler returns
 *   or ends the process; a wait of the thread from the handler, or after a jump, is fatal.
 *
 * Cancellation. A cancelled thread ends at a cancellation point of its own. No load, store, handler or function of the
 *   library is one, except functions for input and output with addresses in the segment. No thread is cancelled
 *   asynchronously (PTHREAD_CANCEL_ASYNCHRONOUS) while it uses the segment.
 *
 * Descriptors. The library has descriptors of its own, from the lowest free numbers. A program closes its own descriptors
 *   and no others (close_range, dup2); a forked child may close all.
 */
#ifndef VGASNET_H
#define VGASNET_H

#include <vgasnet/version.h> /* versions, configuration, limits */
#include <vgasnet/errors.h> /* error codes */
#include <vgasnet/types.h> /* types of several chapters */
#include <vgasnet/job.h> /* start and end, ranks */
#include <vgasnet/segment.h> /* sizes and addresses of segments */
#include <vgasnet/transfer.h> /* blocking gets, puts and memsets */
#include <vgasnet/completion.h> /* completion of non-blocking operations */
#include <vgasnet/nonblocking.h> /* non-blocking gets, puts and memsets */
#include <vgasnet/values.h> /* puts and gets by value */
#include <vgasnet/atomics.h> /* atomic operations on numbers */
#include <vgasnet/lists.h> /* transfers between lists of regions */
#include <vgasnet/readonly.h> /* read-only ranges with cached small gets */
#include <vgasnet/residency.h> /* loads and stores, pins, advice */
#include <vgasnet/messages.h> /* Active Messages */
#include <vgasnet/counted.h> /* Active Messages with their arguments one by one */
#include <vgasnet/locks.h> /* handler-safe locks */
#include <vgasnet/barrier.h> /* the barrier of all ranks */
#include <vgasnet/teams.h> /* teams of ranks, and their barriers */
#include <vgasnet/images.h> /* images, flags and completion of collectives */
#include <vgasnet/reductions.h> /* reductions */
#include <vgasnet/collectives.h> /* collectives */
#include <vgasnet/files.h> /* shared files */
#include <vgasnet/stats.h> /* statistics of this rank */
#include <vgasnet/debug.h> /* for debuggers */

#endif
