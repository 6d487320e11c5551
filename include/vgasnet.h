/*
 * vgasnet: a communication runtime for PGAS languages and libraries whose segments are larger than memory.
 *
 * The interface is that of GASNet-1 (specification 1.8): the same functions, arguments and results, with the prefix
 * vgasnet_ for gasnet_ and VGASNET_ for GASNET_. A node of GASNet is called a rank in messages and below.
 *
 * API conventions
 *
 * Order. vgasnet_init comes first, then vgasnet_attach, then everything else. Between the two, only vgasnet_mynode,
 *   vgasnet_nodes, vgasnet_getMaxLocalSegmentSize, vgasnet_getMaxGlobalSegmentSize, vgasnet_getNodeInfo,
 *   vgasnet_set_waitmode, vgasnet_getenv and vgasnet_exit may be called. vgasnet_ErrorName, vgasnet_ErrorDesc and
 *   vgasnet_config_string may be called at any time.
 *
 * Addresses. A segment is a range of addresses in its own rank, which vgasnet_getSegmentInfo tells. Its own rank loads
 *   from it and stores to it like any memory; see "loads and stores" below. A "remote address" has to lie in the
 *   segment of the rank that it is given with, for its whole length;
 *   that rank may be the caller's own. A "local address" is ordinary memory, or an address in the caller's own segment,
 *   in which case the operation is complete when the function returns. Where source and destination overlap but are not
 *   the same, the result is undefined. A segment that nobody has written is zeros.
 *
 * Sizes. nbytes may be 0 and has no maximum. GASNet-1 asks that addresses of functions without _bulk in their name be
 *   aligned for an object of nbytes bytes; vgasnet does not.
 *
 * Completion. A get is complete when its destination holds the bytes, which are those of some moment since it was
 *   started. A put or memset is complete when no rank can read the old bytes any more. Operations that are in flight
 *   together are not ordered among each other. Completion of a put is no synchronisation: another rank learns of it by
 *   a barrier, or by reading a flag that was put after the data was complete.
 *
 * Atomicity. Concurrent operations on different bytes do not disturb each other, whatever pages they lie in. Where a
 *   put and another operation concern the same bytes at the same time, those bytes may be mixed.
 *
 * Errors. Functions that return int return VGASNET_OK or a code below, except where an error is said to be fatal. A
 *   code other than VGASNET_ERR_NOT_READY and VGASNET_ERR_BARRIER_MISMATCH comes with one line on stderr.
 *   The other functions have no way to say that they failed: the rank prints one line and the job ends with status 1.
 *   That is what "fatal" means below. Outputs are written only on success.
 *
 * Threads. Any thread may call any function at any time, except where a function says otherwise. Handles may be synced
 *   by another thread than the one that got them; implicit operations and access regions are the calling thread's. No
 *   function may be called from a signal handler, except vgasnet_exit with another status than 0, and the functions
 *   that only return a number of the job.
 */
#ifndef VGASNET_H
#define VGASNET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. */
#define VGASNET_VERSION_MAJOR 0
#define VGASNET_VERSION_MINOR 1
#define VGASNET_VERSION_PATCH 0
#define VGASNET_RELEASE_VERSION_MAJOR VGASNET_VERSION_MAJOR
#define VGASNET_RELEASE_VERSION_MINOR VGASNET_VERSION_MINOR
#define VGASNET_RELEASE_VERSION_PATCH VGASNET_VERSION_PATCH

/* The version of GASNet's specification whose interface this is. */
#define VGASNET_SPEC_VERSION_MAJOR 1
#define VGASNET_SPEC_VERSION_MINOR 8

/* What this header was made for. The library has the same string inside, between "$GASNetConfig: (libvgasnet) " and
 * " $", where it can be found in a program that is linked statically; vgasnet_config_string returns it. */
#define VGASNET_CONFIG_STRING "VGASNET=0.1.0,SPEC=1.8,THREADMODEL=PAR,SEGMENT=LARGE,ALIGNED_SEGMENTS=0,PTR=64bit"
const char *vgasnet_config_string(void);

/* The largest number of ranks in a job. */
#define VGASNET_MAXNODES 4096

/* Segment sizes and bases are multiples of this. In fact they are multiples of the page size that the environment
 * variable VGASNET_PAGE_SIZE sets (4 MiB by default): any size is rounded up to whole pages. */
#define VGASNET_PAGESIZE 4096

/* Segments may be larger than memory; the first access to a page that is not in memory is slow. */
#define VGASNET_SEGMENT_LARGE 1

/* Whether equal bases on all ranks are promised. They are equal wherever the ranks have such addresses in common, but
 * where they have none, as under tools that take most of the address space, vgasnet_attach succeeds with others. So ask
 * vgasnet_getSegmentInfo. */
#define VGASNET_ALIGNED_SEGMENTS 0

/* vgasnet_init(NULL, NULL) is fine. */
#define VGASNET_NULL_ARGV_OK 1

/* ---- types ---- */

/* The index of a rank: 0 to vgasnet_nodes() - 1. */
typedef uint32_t vgasnet_node_t;

/* An operation in flight. To be synced exactly once; then it is dead, and syncing it again is fatal. */
typedef struct vgasnet_operation *vgasnet_handle_t;

/* A get by value in flight. To be synced exactly once, by vgasnet_wait_syncnb_valget. */
typedef struct vgasnet_value_operation *vgasnet_valget_handle_t;

/* "No operation": every sync takes it for complete. All its bytes are zero. */
#define VGASNET_INVALID_HANDLE ((vgasnet_handle_t)0)

/* What the operations by value move. */
typedef uint64_t vgasnet_register_value_t;
#define SIZEOF_VGASNET_REGISTER_VALUE_T 8

/* A segment. A rank without one has size 0 and a null address. */
typedef struct {
    void *addr;
    uintptr_t size;
} vgasnet_seginfo_t;

/* Where a rank runs: ranks with the same host share a machine, ranks with the same supernode have each other's pages
 * mapped. */
typedef struct {
    vgasnet_node_t host;
    vgasnet_node_t supernode;
} vgasnet_nodeinfo_t;

/* The number of an Active Message handler. */
typedef uint8_t vgasnet_handler_t;

/* fnptr takes a handler of any type: for C it has no prototype. C23 has no such types left, and GNU C takes any
 * function for a void pointer. */
#if defined(__GNUC__) && !defined(__cplusplus) && __STDC_VERSION__ > 202000L
typedef struct {
    vgasnet_handler_t index;
    void *fnptr;
} vgasnet_handlerentry_t;
#else
#if defined(__GNUC__) && !defined(__cplusplus)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#endif
typedef struct {
    vgasnet_handler_t index;
    void (*fnptr)();
} vgasnet_handlerentry_t;
#if defined(__GNUC__) && !defined(__cplusplus)
#pragma GCC diagnostic pop
#endif
#endif

/* ---- error codes ---- */

#define VGASNET_OK 0
/* Called too early, or once too often. */
#define VGASNET_ERR_NOT_INIT 10001
/* The machine lacks something: disk space, memory, threads. */
#define VGASNET_ERR_RESOURCE 10002
/* An argument or an environment variable makes no sense. */
#define VGASNET_ERR_BAD_ARG 10003
/* Not complete yet. No error: nothing is printed. */
#define VGASNET_ERR_NOT_READY 10004
/* The ranks came to the barrier with different ids. */
#define VGASNET_ERR_BARRIER_MISMATCH 10005

/* The name of a code, such as "VGASNET_ERR_BAD_ARG", and what it means. For a number that is no code, a string that
 * says so. The strings are constants. Never fails. */
const char *vgasnet_ErrorName(int errval);
const char *vgasnet_ErrorDesc(int errval);

/* ---- job control ---- */

/*
 * Makes this process a rank of the job. Collective. argc and argv may be null, and are left as they are.
 *
 * When main returns, or exit is called, with status 0, the process serves its segment until every rank is so far or has
 * called vgasnet_exit, and ends then. Any other status ends the whole job with that status.
 *
 * Signals. When another rank has failed, or the job is over, the ranks that are left get SIGQUIT, and SIGKILL 3 seconds
 * later. A rank that gets SIGINT, SIGTERM or SIGHUP while it has no handler for it gets SIGQUIT instead, if it has a
 * handler for that, and is ended by the signal if not. A handler of SIGQUIT may clean up and then calls vgasnet_exit.
 *
 * A program may define the variable uint64_t vgasnet_max_segsize, with C linkage: the largest segment that it wants to
 * be offered, in bytes. (gasnet.h has it as gasnet_max_segsize, a name that does as well.) The environment variables VGASNET_MAX_SEGSIZE and, after that, GASNET_MAX_SEGSIZE have
 * precedence.
 *
 * Errors: VGASNET_ERR_NOT_INIT if called before; VGASNET_ERR_BAD_ARG for a VGASNET_ variable that is unknown or makes
 * no sense; VGASNET_ERR_RESOURCE. If it fails on one rank it fails on all, and one of them prints the line.
 * Threads: once in a process.
 */
int vgasnet_init(int *argc, char ***argv);

/*
 * Gives this rank a segment of segsize bytes, rounded up to whole pages, and readies the rank for all other functions.
 * Collective; returns when all ranks have attached. The sizes may differ; 0 means no segment. Disk space for the whole
 * segment is reserved. All segments have the same base, unless there are no such addresses.
 *
 * table: handlers of Active Messages, numentries of them. Their indices are 128 to 255, or 0 for the lowest that is
 * free, which is then written to the table; the same table gets the same indices on every rank. minheapoffset: ignored;
 * no segment is placed where a heap could grow to.
 *
 * Errors: VGASNET_ERR_NOT_INIT before vgasnet_init and in a second call; VGASNET_ERR_BAD_ARG for a null table with
 * entries, after which it may be called again, and for a table that makes no sense; VGASNET_ERR_RESOURCE if there is
 * less space than segsize, or the system refuses something. If it fails on one rank it fails on all, and one of them
 * prints the line.
 * Threads: once in a process.
 */
int vgasnet_attach(vgasnet_handlerentry_t *table, int numentries, uintptr_t segsize, uintptr_t minheapoffset);

/*
 * For programs that call GASNet themselves, for their own messages, and vgasnet for one-sided access, over its conduit
 * gasnet:
 *
 *     gasnet_init(&argc, &argv);
 *     vgasnet_attach_gasnet(table, numentries, segsize, minheapoffset);      in place of gasnet_attach
 *     vgasnet_init(NULL, NULL);
 *     vgasnet_attach(NULL, 0, vgasnet_segsize, 0);
 *
 * It does what gasnet_attach does with the program's handlers, of gasnet_handlerentry_t, and makes GASNet's segment as large
 * as GASNet lets it be. The first segsize bytes of it, rounded up to GASNET_PAGESIZE, are the program's; the rest is for the
 * pool, whatever gasnet_getSegmentInfo says. Collective. segsize may differ between ranks. One handler of GASNet's is
 * vgasnet's, and gets an index that the program's table does not name.
 *
 * GASNet must be of the flavour that takes calls of several threads (PAR), and there must be one of it: link the program with
 * libvgasnet.a. Handlers of the program may run in a thread of vgasnet's, where they may call what GASNet lets handlers
 * call, and nothing of vgasnet. The job ends by vgasnet_exit or by gasnet_exit.
 *
 * Errors: VGASNET_ERR_NOT_INIT after vgasnet_init; VGASNET_ERR_BAD_ARG for a null table with entries;
 * VGASNET_ERR_RESOURCE if GASNet is not initialised, or refuses, or this vgasnet was built without GASNet.
 * Threads: once in a process.
 */
int vgasnet_attach_gasnet(void *table, int numentries, uintptr_t segsize, uintptr_t minheapoffset);

/* Where the client sets it, vgasnet_attach calls it with base and size of this rank's segment before it returns
 * VGASNET_OK. Threads: to be set before vgasnet_attach is called. */
extern void (*vgasnet_client_attach_hook)(void *, uintptr_t);

/*
 * Ends the whole job with exitcode. Flushes the C library's output streams; atexit functions do not run. With exitcode
 * 0 it first waits, for two seconds at most, until every rank has called it or has left main. Does not return. May be
 * called by any thread; before vgasnet_init it ends the process.
 */
void vgasnet_exit(int exitcode);

/* The caller's index. Before vgasnet_init: fatal. */
vgasnet_node_t vgasnet_mynode(void);

/* The number of ranks. Before vgasnet_init: fatal. */
vgasnet_node_t vgasnet_nodes(void);

/* The largest segment in bytes that the caller could attach when vgasnet_init returned; a multiple of the page size.
 * Before vgasnet_init: fatal. */
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

/* Writes where ranks 0 to min(numentries, vgasnet_nodes()) - 1 run, and leaves further entries alone. Not collective.
 * Errors: VGASNET_ERR_NOT_INIT before vgasnet_init; VGASNET_ERR_BAD_ARG as for vgasnet_getSegmentInfo. */
int vgasnet_getNodeInfo(vgasnet_nodeinfo_t *nodeinfo_table, int numentries);

/* How threads of this rank that wait in a call share the processors: they keep theirs, give it up at once, or try for a
 * short time and give it up then, which is the default. A hint; it may be changed at any time.
 * VGASNET_ERR_BAD_ARG: another mode. */
#define VGASNET_WAIT_SPIN 0
#define VGASNET_WAIT_BLOCK 1
#define VGASNET_WAIT_SPINBLOCK 2
int vgasnet_set_waitmode(int wait_mode);

/* The value of an environment variable, null if it is not set. The launcher gives all ranks its own environment. The
 * string is not to be changed, and is valid until the process changes the variable. A null name and a call before
 * vgasnet_init are fatal. Threads: as getenv. */
char *vgasnet_getenv(const char *name);

/* ---- transfers ----
 *
 * dest, src: get reads nbytes bytes at the remote address src of rank node into the local address dest; put writes
 * nbytes bytes from the local address src to the remote address dest of rank node; memset sets nbytes bytes at the
 * remote address dest of rank node to (unsigned char)val.
 *
 * Fatal, for all functions of this part: a rank that does not exist, bytes outside its segment, a null local address
 * with nbytes > 0, a call before vgasnet_attach, an I/O error on a page of which there is no other copy.
 */

/* Blocking: complete on return. The forms with _bulk are the same. */
void vgasnet_get(void *dest, vgasnet_node_t node, void *src, size_t nbytes);
void vgasnet_put(vgasnet_node_t node, void *dest, void *src, size_t nbytes);
void vgasnet_get_bulk(void *dest, vgasnet_node_t node, void *src, size_t nbytes);
void vgasnet_put_bulk(vgasnet_node_t node, void *dest, void *src, size_t nbytes);
void vgasnet_memset(vgasnet_node_t node, void *dest, int val, size_t nbytes);

/* Explicit: complete when the handle has been synced. VGASNET_INVALID_HANDLE if complete on return. The destination of
 * a get is undefined until then. vgasnet_put_nb has taken all bytes from src when it returns; src of
 * vgasnet_put_nb_bulk must not change until then. Any number of operations may be in flight; what vgasnet_put_nb has to
 * keep beyond 16 MiB it waits for. */
vgasnet_handle_t vgasnet_get_nb(void *dest, vgasnet_node_t node, void *src, size_t nbytes);
vgasnet_handle_t vgasnet_put_nb(vgasnet_node_t node, void *dest, void *src, size_t nbytes);
vgasnet_handle_t vgasnet_get_nb_bulk(void *dest, vgasnet_node_t node, void *src, size_t nbytes);
vgasnet_handle_t vgasnet_put_nb_bulk(vgasnet_node_t node, void *dest, void *src, size_t nbytes);
vgasnet_handle_t vgasnet_memset_nb(vgasnet_node_t node, void *dest, int val, size_t nbytes);

/* Implicit: complete when the calling thread has synced its implicit gets, or its implicit puts, to which memsets
 * count; or, started in an access region, when the region's handle has been synced. Rules for src and dest as above. */
void vgasnet_get_nbi(void *dest, vgasnet_node_t node, void *src, size_t nbytes);
void vgasnet_put_nbi(vgasnet_node_t node, void *dest, void *src, size_t nbytes);
void vgasnet_get_nbi_bulk(void *dest, vgasnet_node_t node, void *src, size_t nbytes);
void vgasnet_put_nbi_bulk(vgasnet_node_t node, void *dest, void *src, size_t nbytes);
void vgasnet_memset_nbi(vgasnet_node_t node, void *dest, int val, size_t nbytes);

/* By value: the nbytes low-order bytes of value are written, as an unsigned integer of nbytes bytes has them in memory;
 * what is read is such an integer. nbytes: 1 to SIZEOF_VGASNET_REGISTER_VALUE_T, anything else is fatal. Complete as
 * the functions above; vgasnet_put_nbi_val counts as an implicit put. */
void vgasnet_put_val(vgasnet_node_t node, void *dest, vgasnet_register_value_t value, size_t nbytes);
vgasnet_handle_t vgasnet_put_nb_val(vgasnet_node_t node, void *dest, vgasnet_register_value_t value, size_t nbytes);
void vgasnet_put_nbi_val(vgasnet_node_t node, void *dest, vgasnet_register_value_t value, size_t nbytes);
vgasnet_register_value_t vgasnet_get_val(vgasnet_node_t node, void *src, size_t nbytes);

/* Starts a get by value, which vgasnet_wait_syncnb_valget ends, and no other sync. */
vgasnet_valget_handle_t vgasnet_get_nb_val(vgasnet_node_t node, void *src, size_t nbytes);

/* Waits for a get by value and returns the value. A handle that was synced before or never given out: fatal. */
vgasnet_register_value_t vgasnet_wait_syncnb_valget(vgasnet_valget_handle_t handle);

/* ---- syncs ----
 *
 * A try that does not find what it looks for lets the runtime work a little and looks again, and lets other threads on
 * if that is in vain, so that a loop of tries gets on. Before vgasnet_attach, wait functions are fatal and try
 * functions return VGASNET_ERR_NOT_INIT.
 */

/* Waits for one operation, or tests it: VGASNET_OK if it is complete, and the handle is dead, else
 * VGASNET_ERR_NOT_READY. A handle that was synced before or never given out: fatal. */
void vgasnet_wait_syncnb(vgasnet_handle_t handle);
int vgasnet_try_syncnb(vgasnet_handle_t handle);

/*
 * Several operations: numhandles handles, of which complete ones are replaced by VGASNET_INVALID_HANDLE, and those that
 * are VGASNET_INVALID_HANDLE already are ignored. Fatal: dead handles, the same handle twice, and a null pointer with
 * numhandles > 0 (for try functions VGASNET_ERR_BAD_ARG).
 *
 * all: wait until all are complete; try returns VGASNET_OK if all are, else VGASNET_ERR_NOT_READY, also where some were
 *   complete and have been replaced. some: wait until at least one is complete, or none is valid; try returns
 *   VGASNET_OK if at least one is complete or none is valid, else VGASNET_ERR_NOT_READY.
 *
 * Threads: the array belongs to the call until it returns.
 */
void vgasnet_wait_syncnb_all(vgasnet_handle_t *handles, size_t numhandles);
int vgasnet_try_syncnb_all(vgasnet_handle_t *handles, size_t numhandles);
void vgasnet_wait_syncnb_some(vgasnet_handle_t *handles, size_t numhandles);
int vgasnet_try_syncnb_some(vgasnet_handle_t *handles, size_t numhandles);

/* The calling thread's implicit operations, of which those in access regions are none: wait until all gets, all puts,
 * or all of both are complete; try returns VGASNET_OK if they are, else VGASNET_ERR_NOT_READY. In an open access
 * region: fatal. */
void vgasnet_wait_syncnbi_gets(void);
void vgasnet_wait_syncnbi_puts(void);
void vgasnet_wait_syncnbi_all(void);
int vgasnet_try_syncnbi_gets(void);
int vgasnet_try_syncnbi_puts(void);
int vgasnet_try_syncnbi_all(void);

/* As the try functions without _nopoll, but they look once and do not let the runtime work, so that no handler runs. */
int vgasnet_try_syncnb_nopoll(vgasnet_handle_t handle);
int vgasnet_try_syncnb_all_nopoll(vgasnet_handle_t *handles, size_t numhandles);
int vgasnet_try_syncnb_some_nopoll(vgasnet_handle_t *handles, size_t numhandles);
int vgasnet_try_syncnbi_gets_nopoll(void);
int vgasnet_try_syncnbi_puts_nopoll(void);
int vgasnet_try_syncnbi_all_nopoll(void);

/* An access region collects the implicit operations that the calling thread starts between begin and end; they are
 * complete when the handle that end returns has been synced. Fatal: begin in an open region, end without one. */
void vgasnet_begin_nbi_accessregion(void);
vgasnet_handle_t vgasnet_end_nbi_accessregion(void);

/* ---- Active Messages ----
 *
 * A request runs a handler at its target, with up to 16 arguments of 32 bits, and with a payload if it is a Medium or a
 * Long. The handler of a request may reply, once, to the rank that sent it. Requests and replies are reliable and
 * unordered. They return when the payload is free for reuse.
 *
 *   void short_handler(vgasnet_token_t token, vgasnet_handlerarg_t arg0, ...);
 *   void medium_handler(vgasnet_token_t token, void *buf, size_t nbytes, vgasnet_handlerarg_t arg0, ...);
 *   void long_handler(vgasnet_token_t token, void *buf, size_t nbytes, vgasnet_handlerarg_t arg0, ...);
 *
 * The buf of a Medium is the handler's until it returns, and aligned for any type. The buf of a Long is the address
 * that the sender named, in the segment of the handler's rank; the payload is there.
 *
 * Handlers run in threads that called in: in vgasnet_AMPoll, in requests, and in calls that wait or try. A thread runs
 * one handler at a time; several threads may run handlers at the same time. A handler may call vgasnet_mynode,
 * vgasnet_nodes, the replies, vgasnet_AMGetMsgSource, the handler-safe locks and vgasnet_exit, and may load from and
 * store to its rank's segment.
 *
 * A rank has at most 64 requests, of 128 KiB of payload, under way to another one; then requests wait until handlers
 * have run there, and run handlers meanwhile.
 */

/* An argument, and what names the message inside its handler. */
typedef int32_t vgasnet_handlerarg_t;
typedef void *vgasnet_token_t;

/* The most arguments, and the largest payloads in bytes. */
size_t vgasnet_AMMaxArgs(void);
size_t vgasnet_AMMaxMedium(void);
size_t vgasnet_AMMaxLongRequest(void);
size_t vgasnet_AMMaxLongReply(void);

/*
 * Requests and replies with numargs arguments from an array. vgasnet_AMRequestShort0 to vgasnet_AMRequestShort16 and
 * their like, below, take them one by one.
 *
 * VGASNET_ERR_BAD_ARG: no such rank, a handler index below 128, more than 16 arguments, a payload that is too long or does not lie in the target's
 * segment, a request in a handler, a reply outside of one, in a handler of a reply, or a second one. Nothing is sent
 * then. A handler index that is not registered at the target is fatal there.
 */
int vgasnet_AMRequestShortArgs(vgasnet_node_t dest, vgasnet_handler_t handler, size_t numargs,
                               const vgasnet_handlerarg_t *args);
int vgasnet_AMRequestMediumArgs(vgasnet_node_t dest, vgasnet_handler_t handler, void *source_addr, size_t nbytes,
                                size_t numargs, const vgasnet_handlerarg_t *args);
int vgasnet_AMRequestLongArgs(vgasnet_node_t dest, vgasnet_handler_t handler, void *source_addr, size_t nbytes,
                              void *dest_addr, size_t numargs, const vgasnet_handlerarg_t *args);
int vgasnet_AMReplyShortArgs(vgasnet_token_t token, vgasnet_handler_t handler, size_t numargs,
                             const vgasnet_handlerarg_t *args);
int vgasnet_AMReplyMediumArgs(vgasnet_token_t token, vgasnet_handler_t handler, void *source_addr, size_t nbytes,
                              size_t numargs, const vgasnet_handlerarg_t *args);
int vgasnet_AMReplyLongArgs(vgasnet_token_t token, vgasnet_handler_t handler, void *source_addr, size_t nbytes,
                            void *dest_addr, size_t numargs, const vgasnet_handlerarg_t *args);

/* The parameters and the arguments of the functions below, by their number. */
#define VGASNET_PARAMETERS0_
#define VGASNET_PARAMETERS1_ , vgasnet_handlerarg_t a0
#define VGASNET_PARAMETERS2_ VGASNET_PARAMETERS1_, vgasnet_handlerarg_t a1
#define VGASNET_PARAMETERS3_ VGASNET_PARAMETERS2_, vgasnet_handlerarg_t a2
#define VGASNET_PARAMETERS4_ VGASNET_PARAMETERS3_, vgasnet_handlerarg_t a3
#define VGASNET_PARAMETERS5_ VGASNET_PARAMETERS4_, vgasnet_handlerarg_t a4
#define VGASNET_PARAMETERS6_ VGASNET_PARAMETERS5_, vgasnet_handlerarg_t a5
#define VGASNET_PARAMETERS7_ VGASNET_PARAMETERS6_, vgasnet_handlerarg_t a6
#define VGASNET_PARAMETERS8_ VGASNET_PARAMETERS7_, vgasnet_handlerarg_t a7
#define VGASNET_PARAMETERS9_ VGASNET_PARAMETERS8_, vgasnet_handlerarg_t a8
#define VGASNET_PARAMETERS10_ VGASNET_PARAMETERS9_, vgasnet_handlerarg_t a9
#define VGASNET_PARAMETERS11_ VGASNET_PARAMETERS10_, vgasnet_handlerarg_t a10
#define VGASNET_PARAMETERS12_ VGASNET_PARAMETERS11_, vgasnet_handlerarg_t a11
#define VGASNET_PARAMETERS13_ VGASNET_PARAMETERS12_, vgasnet_handlerarg_t a12
#define VGASNET_PARAMETERS14_ VGASNET_PARAMETERS13_, vgasnet_handlerarg_t a13
#define VGASNET_PARAMETERS15_ VGASNET_PARAMETERS14_, vgasnet_handlerarg_t a14
#define VGASNET_PARAMETERS16_ VGASNET_PARAMETERS15_, vgasnet_handlerarg_t a15
#define VGASNET_ARGUMENTS0_ 0
#define VGASNET_ARGUMENTS1_ a0
#define VGASNET_ARGUMENTS2_ VGASNET_ARGUMENTS1_, a1
#define VGASNET_ARGUMENTS3_ VGASNET_ARGUMENTS2_, a2
#define VGASNET_ARGUMENTS4_ VGASNET_ARGUMENTS3_, a3
#define VGASNET_ARGUMENTS5_ VGASNET_ARGUMENTS4_, a4
#define VGASNET_ARGUMENTS6_ VGASNET_ARGUMENTS5_, a5
#define VGASNET_ARGUMENTS7_ VGASNET_ARGUMENTS6_, a6
#define VGASNET_ARGUMENTS8_ VGASNET_ARGUMENTS7_, a7
#define VGASNET_ARGUMENTS9_ VGASNET_ARGUMENTS8_, a8
#define VGASNET_ARGUMENTS10_ VGASNET_ARGUMENTS9_, a9
#define VGASNET_ARGUMENTS11_ VGASNET_ARGUMENTS10_, a10
#define VGASNET_ARGUMENTS12_ VGASNET_ARGUMENTS11_, a11
#define VGASNET_ARGUMENTS13_ VGASNET_ARGUMENTS12_, a12
#define VGASNET_ARGUMENTS14_ VGASNET_ARGUMENTS13_, a13
#define VGASNET_ARGUMENTS15_ VGASNET_ARGUMENTS14_, a14
#define VGASNET_ARGUMENTS16_ VGASNET_ARGUMENTS15_, a15

/* vgasnet_AMRequestShortM, MediumM, LongM, LongAsyncM and vgasnet_AMReplyShortM, MediumM, LongM for M arguments. */
#define VGASNET_MESSAGES_(M) \
    static inline int vgasnet_AMRequestShort##M(vgasnet_node_t dest, vgasnet_handler_t handler VGASNET_PARAMETERS##M##_) { \
        const vgasnet_handlerarg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_AMRequestShortArgs(dest, handler, M, args); \
    } \
    static inline int vgasnet_AMRequestMedium##M(vgasnet_node_t dest, vgasnet_handler_t handler, void *source_addr, \
                                                 size_t nbytes VGASNET_PARAMETERS##M##_) { \
        const vgasnet_handlerarg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_AMRequestMediumArgs(dest, handler, source_addr, nbytes, M, args); \
    } \
    static inline int vgasnet_AMRequestLong##M(vgasnet_node_t dest, vgasnet_handler_t handler, void *source_addr, \
                                               size_t nbytes, void *dest_addr VGASNET_PARAMETERS##M##_) { \
        const vgasnet_handlerarg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_AMRequestLongArgs(dest, handler, source_addr, nbytes, dest_addr, M, args); \
    } \
    static inline int vgasnet_AMRequestLongAsync##M(vgasnet_node_t dest, vgasnet_handler_t handler, void *source_addr, \
                                                    size_t nbytes, void *dest_addr VGASNET_PARAMETERS##M##_) { \
        const vgasnet_handlerarg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_AMRequestLongArgs(dest, handler, source_addr, nbytes, dest_addr, M, args); \
    } \
    static inline int vgasnet_AMReplyShort##M(vgasnet_token_t token, vgasnet_handler_t handler VGASNET_PARAMETERS##M##_) { \
        const vgasnet_handlerarg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_AMReplyShortArgs(token, handler, M, args); \
    } \
    static inline int vgasnet_AMReplyMedium##M(vgasnet_token_t token, vgasnet_handler_t handler, void *source_addr, \
                                               size_t nbytes VGASNET_PARAMETERS##M##_) { \
        const vgasnet_handlerarg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_AMReplyMediumArgs(token, handler, source_addr, nbytes, M, args); \
    } \
    static inline int vgasnet_AMReplyLong##M(vgasnet_token_t token, vgasnet_handler_t handler, void *source_addr, \
                                             size_t nbytes, void *dest_addr VGASNET_PARAMETERS##M##_) { \
        const vgasnet_handlerarg_t args[] = {VGASNET_ARGUMENTS##M##_}; \
        return vgasnet_AMReplyLongArgs(token, handler, source_addr, nbytes, dest_addr, M, args); \
    }
VGASNET_MESSAGES_(0)
VGASNET_MESSAGES_(1)
VGASNET_MESSAGES_(2)
VGASNET_MESSAGES_(3)
VGASNET_MESSAGES_(4)
VGASNET_MESSAGES_(5)
VGASNET_MESSAGES_(6)
VGASNET_MESSAGES_(7)
VGASNET_MESSAGES_(8)
VGASNET_MESSAGES_(9)
VGASNET_MESSAGES_(10)
VGASNET_MESSAGES_(11)
VGASNET_MESSAGES_(12)
VGASNET_MESSAGES_(13)
VGASNET_MESSAGES_(14)
VGASNET_MESSAGES_(15)
VGASNET_MESSAGES_(16)

/* In a handler: the rank that sent the message. VGASNET_ERR_BAD_ARG: outside of a handler, or a null pointer. */
int vgasnet_AMGetMsgSource(vgasnet_token_t token, vgasnet_node_t *srcindex);

/* Works a little, and runs handlers whose messages have arrived. */
int vgasnet_AMPoll(void);

/* Waits until the expression cond is true, running handlers. cond is looked at again at once when a handler has run, and
 * every 10 ms for what changes otherwise: by another thread, or by a put. */
#define VGASNET_BLOCKUNTIL(cond) \
    do { \
        for (;;) { \
            uint64_t vgasnet_seen_ = vgasnet_handler_runs(); \
            if (cond) break; \
            vgasnet_wait_handler(vgasnet_seen_); \
        } \
    } while (0)

/* How often a handler of this rank has begun or ended; and waits until that is another number than seen, or 10 ms. */
uint64_t vgasnet_handler_runs(void);
void vgasnet_wait_handler(uint64_t seen);

/* No-interrupt sections. Handlers never interrupt a thread, so these do nothing. */
void vgasnet_hold_interrupts(void);
void vgasnet_resume_interrupts(void);

/* A handler-safe lock: for handlers and other code of one rank. A thread that has it may take it again, and then has to
 * unlock it as often. All zero is a free lock. Fatal: null pointers, destroying a lock that is taken, unlocking a free
 * one. trylock answers VGASNET_OK or VGASNET_ERR_NOT_READY. */
typedef struct {
    uint32_t opaque_[4];
} vgasnet_hsl_t;
#define VGASNET_HSL_INITIALIZER {{0, 0, 0, 0}}
void vgasnet_hsl_init(vgasnet_hsl_t *hsl);
void vgasnet_hsl_destroy(vgasnet_hsl_t *hsl);
void vgasnet_hsl_lock(vgasnet_hsl_t *hsl);
int vgasnet_hsl_trylock(vgasnet_hsl_t *hsl);
void vgasnet_hsl_unlock(vgasnet_hsl_t *hsl);

/* ---- transfers of many pieces ----
 *
 * putv, puti and puts write to rank dstnode, getv, geti and gets read from rank srcnode, as puts and gets do; addresses
 * of that rank are remote addresses, the others local ones. Destination and source are lists of regions. The bytes of
 * the source, region after region, go to those of the destination, region after region, so both have the same number of
 * bytes; anything else is fatal. Where they are cut into regions may differ. Regions and lists may be empty. Where
 * regions of the destination overlap, the result is undefined.
 *
 * vector: dstcount and srccount regions, each of its own length.
 * indexed: dstcount regions of dstlen bytes and srccount regions of srclen bytes.
 * strided: regions of count[0] bytes. On level i, from 1 to stridelevels, there are count[i] blocks, dststrides[i - 1]
 *   bytes apart at the destination and srcstrides[i - 1] bytes at the source; a block of level 1 is a region, one of
 *   level i + 1 is all blocks of level i. count has stridelevels + 1 entries. If one is 0 there is nothing to do.
 *
 * The lists are the client's again when the function returns. Completion is that of vgasnet_put_bulk and
 * vgasnet_get_bulk, of their _nb forms with one handle for all, and of their _nbi forms. Pages that have to be fetched
 * are fetched side by side. Regions of the local side in the caller's own segment are complete when the function
 * returns. If there are more than 4096 pieces in pages that have to be fetched, all but the last so many are waited
 * for.
 */
typedef struct {
    void *addr;
    size_t len;
} vgasnet_memvec_t;

void vgasnet_putv_bulk(vgasnet_node_t dstnode, size_t dstcount, vgasnet_memvec_t const dstlist[], size_t srccount,
                       vgasnet_memvec_t const srclist[]);
void vgasnet_getv_bulk(size_t dstcount, vgasnet_memvec_t const dstlist[], vgasnet_node_t srcnode, size_t srccount,
                       vgasnet_memvec_t const srclist[]);
void vgasnet_puti_bulk(vgasnet_node_t dstnode, size_t dstcount, void *const dstlist[], size_t dstlen, size_t srccount,
                       void *const srclist[], size_t srclen);
void vgasnet_geti_bulk(size_t dstcount, void *const dstlist[], size_t dstlen, vgasnet_node_t srcnode, size_t srccount,
                       void *const srclist[], size_t srclen);
void vgasnet_puts_bulk(vgasnet_node_t dstnode, void *dstaddr, const size_t dststrides[], void *srcaddr,
                       const size_t srcstrides[], const size_t count[], size_t stridelevels);
void vgasnet_gets_bulk(void *dstaddr, const size_t dststrides[], vgasnet_node_t srcnode, void *srcaddr,
                       const size_t srcstrides[], const size_t count[], size_t stridelevels);

vgasnet_handle_t vgasnet_putv_nb_bulk(vgasnet_node_t dstnode, size_t dstcount, vgasnet_memvec_t const dstlist[],
                                      size_t srccount, vgasnet_memvec_t const srclist[]);
vgasnet_handle_t vgasnet_getv_nb_bulk(size_t dstcount, vgasnet_memvec_t const dstlist[], vgasnet_node_t srcnode,
                                      size_t srccount, vgasnet_memvec_t const srclist[]);
vgasnet_handle_t vgasnet_puti_nb_bulk(vgasnet_node_t dstnode, size_t dstcount, void *const dstlist[], size_t dstlen,
                                      size_t srccount, void *const srclist[], size_t srclen);
vgasnet_handle_t vgasnet_geti_nb_bulk(size_t dstcount, void *const dstlist[], size_t dstlen, vgasnet_node_t srcnode,
                                      size_t srccount, void *const srclist[], size_t srclen);
vgasnet_handle_t vgasnet_puts_nb_bulk(vgasnet_node_t dstnode, void *dstaddr, const size_t dststrides[], void *srcaddr,
                                      const size_t srcstrides[], const size_t count[], size_t stridelevels);
vgasnet_handle_t vgasnet_gets_nb_bulk(void *dstaddr, const size_t dststrides[], vgasnet_node_t srcnode, void *srcaddr,
                                      const size_t srcstrides[], const size_t count[], size_t stridelevels);

void vgasnet_putv_nbi_bulk(vgasnet_node_t dstnode, size_t dstcount, vgasnet_memvec_t const dstlist[], size_t srccount,
                           vgasnet_memvec_t const srclist[]);
void vgasnet_getv_nbi_bulk(size_t dstcount, vgasnet_memvec_t const dstlist[], vgasnet_node_t srcnode, size_t srccount,
                           vgasnet_memvec_t const srclist[]);
void vgasnet_puti_nbi_bulk(vgasnet_node_t dstnode, size_t dstcount, void *const dstlist[], size_t dstlen,
                           size_t srccount, void *const srclist[], size_t srclen);
void vgasnet_geti_nbi_bulk(size_t dstcount, void *const dstlist[], size_t dstlen, vgasnet_node_t srcnode,
                           size_t srccount, void *const srclist[], size_t srclen);
void vgasnet_puts_nbi_bulk(vgasnet_node_t dstnode, void *dstaddr, const size_t dststrides[], void *srcaddr,
                           const size_t srcstrides[], const size_t count[], size_t stridelevels);
void vgasnet_gets_nbi_bulk(void *dstaddr, const size_t dststrides[], vgasnet_node_t srcnode, void *srcaddr,
                           const size_t srcstrides[], const size_t count[], size_t stridelevels);

/* ---- loads and stores ----
 *
 * A rank reads and writes its own segment through pointers, in any thread, while other ranks get from it and put to it.
 * The first access to a page that is not mapped raises SIGSEGV inside the library, which fetches the page, maps it and
 * goes on. A page needs the pool: with a pool of fewer than 4 pages the first access ends the rank.
 *
 * Stores are seen by other ranks, and their puts by loads, like operations that are complete at once. Atomic
 * instructions are atomic among the threads of the rank; against gets and puts, single bytes are.
 *
 * Signals. The library handles SIGSEGV, and SIGTRAP for single steps, from vgasnet_attach on. Handlers that the client
 * installs before or after that, by sigaction or signal, get every fault outside the segment. SIGSEGV, SIGBUS, SIGILL,
 * SIGFPE and SIGTRAP are never blocked: sigprocmask and pthread_sigmask ignore them in a set. No stack, and nothing
 * that holds the program's code, may lie in a segment.
 *
 * System calls and devices do not raise SIGSEGV: a read(2) into a page that is not mapped fails with EFAULT. They, and
 * MPI or other libraries that pass addresses on to them, need the range pinned.
 */

/* What will be done to a pinned range: loads only, or loads and stores. */
#define VGASNET_PIN_READ 1
#define VGASNET_PIN_WRITE 2

/*
 * Makes the pages of len bytes at addr, which lie in the caller's own segment, resident and mapped until vgasnet_unpin.
 * Pins add up: each needs its own unpin. A page counts once, however often it is pinned.
 *
 * mode: VGASNET_PIN_READ or VGASNET_PIN_WRITE. While a range is pinned to write, other ranks that read or write it wait
 *   unless they run on this host; while it is pinned to read, so do those that write it, this rank's own stores and
 *   puts included. So pin briefly, and wait for no other rank meanwhile.
 *
 * VGASNET_ERR_BAD_ARG: the range leaves the segment, or the mode is unknown. VGASNET_ERR_RESOURCE: more pages would be
 *   pinned at a time than three quarters of the pool, or than all but 4 of its pages. Nothing is pinned then.
 */
int vgasnet_pin(void *addr, size_t len, int mode);

/* Undoes one vgasnet_pin of the same range. VGASNET_ERR_BAD_ARG: some page of it is not pinned; nothing is undone. */
int vgasnet_unpin(void *addr, size_t len);

/* The range will be read or written soon: its first pages, up to half of the pool, are fetched in the background. */
#define VGASNET_ADVISE_WILLNEED 1
/* The range will not be used soon: its pages leave the pool, written back where they are dirty. Its bytes stay. */
#define VGASNET_ADVISE_DONTNEED 2
/* The range will be used in order, now, from its first page on: it is read ahead from the first access, not the third.
 * */
#define VGASNET_ADVISE_SEQUENTIAL 3
/* The range will be read much more often than written: its dirty pages are written back in the background and stay in
 * the pool, so that they can leave it later without a write. */
#define VGASNET_ADVISE_READMOSTLY 4

/* A hint about len bytes at addr in the caller's own segment. Changes no byte, waits for nothing.
 * VGASNET_ERR_BAD_ARG: the range leaves the segment, or the advice is unknown. */
int vgasnet_advise(void *addr, size_t len, int advice);

/* ---- collectives ----
 *
 * Every rank of a team calls the same collectives of the team in the same order, with the same sizes, root and flags;
 * teams are independent of each other. A rank is one image of GASNet's: an image is a rank, as its team counts. All
 * memory is local, anywhere. Sources stay unchanged, and destinations are undefined, until the collective is complete.
 *
 * A collective gets on in calls that poll or wait. At most 16 of a team are under way at a rank; those that are started
 * beyond wait for their turn.
 *
 * Fatal: a team that does not exist, a root that it does not have, unknown flags, a null address where there are bytes,
 * ranks that call different collectives (as far as that is seen), a call before vgasnet_attach.
 */

/* A team of ranks, which has names of its own for them: 0 to vgasnet_coll_team_size() - 1. */
typedef struct vgasnet_team *vgasnet_team_handle_t;
#define VGASNET_TEAM_ALL ((vgasnet_team_handle_t)(uintptr_t)1)

typedef uint32_t vgasnet_image_t;

/* A collective under way. To be synced exactly once, like a vgasnet_handle_t. */
typedef struct vgasnet_collective *vgasnet_coll_handle_t;
#define VGASNET_COLL_INVALID_HANDLE ((vgasnet_coll_handle_t)0)

/* When a collective begins. MYSYNC: a rank's memory is not used before that rank has called. ALLSYNC: no memory is used
 * before all ranks have called. NOSYNC allows any time, and is done as MYSYNC. */
#define VGASNET_COLL_IN_NOSYNC (1 << 0)
#define VGASNET_COLL_IN_MYSYNC (1 << 1)
#define VGASNET_COLL_IN_ALLSYNC (1 << 2)
/* When it is complete at a rank. MYSYNC: that rank's memory is not used any more and holds what belongs there. ALLSYNC:
 * so it is with every rank. NOSYNC promises nothing before a barrier, and is done as MYSYNC. Without a flag for in or
 * out, ALLSYNC is meant. */
#define VGASNET_COLL_OUT_NOSYNC (1 << 3)
#define VGASNET_COLL_OUT_MYSYNC (1 << 4)
#define VGASNET_COLL_OUT_ALLSYNC (1 << 5)
/* Each rank gives every rank's addresses, or only its own. That matters to lists of addresses, which have an entry for
 * every rank of the team with SINGLE, and one entry without. Both together are fatal. */
#define VGASNET_COLL_SINGLE (1 << 6)
#define VGASNET_COLL_LOCAL (1 << 7)
/* Hints; they change nothing. */
#define VGASNET_COLL_AGGREGATE (1 << 8)
#define VGASNET_COLL_DST_IN_SEGMENT (1 << 10)
#define VGASNET_COLL_SRC_IN_SEGMENT (1 << 11)

/* Reduces result_count elements of elem_size bytes: results[i] = left_operands[i] op right_operands[i]. results may be
 * left_operands. Called in threads that poll or wait; it may not call functions of the library. */
typedef void (*vgasnet_coll_reduce_fn_t)(void *results, size_t result_count, const void *left_operands, size_t left_count,
                                         const void *right_operands, size_t elem_size, int flags, int arg);
typedef struct {
    vgasnet_coll_reduce_fn_t fnptr;
    unsigned int flags;
} vgasnet_coll_fn_entry_t;
/* The place of a function in the table. */
typedef vgasnet_handlerarg_t vgasnet_coll_fn_handle_t;

/* Registers fn_count functions for reductions, the same ones on every rank, in place of those of an earlier call.
 * images: null, or the number of images of each rank, of which any but 1 is fatal. my_image: the rank's number, or
 * anything with null images. init_flags are ignored. */
void vgasnet_coll_init(const vgasnet_image_t images[], vgasnet_image_t my_image, vgasnet_coll_fn_entry_t fn_tbl[],
                       size_t fn_count, int init_flags);

/*
 * broadcast: nbytes bytes at src of srcimage to dst of every rank. scatter: block i of nbytes bytes at src of srcimage
 * to dst of rank i. gather: nbytes bytes at src of rank i to block i at dst of dstimage. gather_all: the same to dst of
 * every rank. exchange: block j at src of rank i to block i at dst of rank j. dst of the own block may be src.
 *
 * reduce: elem_count elements of elem_size bytes at src of every rank, reduced element by element with function func in
 * the order of the ranks, to dst of dstimage, which may be its src. func gets func_arg and the flags of its entry.
 * src_blksz and src_offset are ignored.
 *
 * src and dst of ranks that have none are ignored. The functions with M take lists of addresses, see
 * VGASNET_COLL_SINGLE.
 */
void vgasnet_coll_broadcast(vgasnet_team_handle_t team, void *dst, vgasnet_image_t srcimage, void *src, size_t nbytes,
                            int flags);
vgasnet_coll_handle_t vgasnet_coll_broadcast_nb(vgasnet_team_handle_t team, void *dst, vgasnet_image_t srcimage,
                                                void *src, size_t nbytes, int flags);
void vgasnet_coll_broadcastM(vgasnet_team_handle_t team, void *const dstlist[], vgasnet_image_t srcimage, void *src,
                             size_t nbytes, int flags);
vgasnet_coll_handle_t vgasnet_coll_broadcastM_nb(vgasnet_team_handle_t team, void *const dstlist[],
                                                 vgasnet_image_t srcimage, void *src, size_t nbytes, int flags);
void vgasnet_coll_scatter(vgasnet_team_handle_t team, void *dst, vgasnet_image_t srcimage, void *src, size_t nbytes,
                          int flags);
vgasnet_coll_handle_t vgasnet_coll_scatter_nb(vgasnet_team_handle_t team, void *dst, vgasnet_image_t srcimage,
                                              void *src, size_t nbytes, int flags);
void vgasnet_coll_scatterM(vgasnet_team_handle_t team, void *const dstlist[], vgasnet_image_t srcimage, void *src,
                           size_t nbytes, int flags);
vgasnet_coll_handle_t vgasnet_coll_scatterM_nb(vgasnet_team_handle_t team, void *const dstlist[],
                                               vgasnet_image_t srcimage, void *src, size_t nbytes, int flags);
void vgasnet_coll_gather(vgasnet_team_handle_t team, vgasnet_image_t dstimage, void *dst, void *src, size_t nbytes,
                         int flags);
vgasnet_coll_handle_t vgasnet_coll_gather_nb(vgasnet_team_handle_t team, vgasnet_image_t dstimage, void *dst, void *src,
                                             size_t nbytes, int flags);
void vgasnet_coll_gatherM(vgasnet_team_handle_t team, vgasnet_image_t dstimage, void *dst, void *const srclist[],
                          size_t nbytes, int flags);
vgasnet_coll_handle_t vgasnet_coll_gatherM_nb(vgasnet_team_handle_t team, vgasnet_image_t dstimage, void *dst,
                                              void *const srclist[], size_t nbytes, int flags);
void vgasnet_coll_gather_all(vgasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags);
vgasnet_coll_handle_t vgasnet_coll_gather_all_nb(vgasnet_team_handle_t team, void *dst, void *src, size_t nbytes,
                                                 int flags);
void vgasnet_coll_gather_allM(vgasnet_team_handle_t team, void *const dstlist[], void *const srclist[], size_t nbytes,
                              int flags);
vgasnet_coll_handle_t vgasnet_coll_gather_allM_nb(vgasnet_team_handle_t team, void *const dstlist[],
                                                  void *const srclist[], size_t nbytes, int flags);
void vgasnet_coll_exchange(vgasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags);
vgasnet_coll_handle_t vgasnet_coll_exchange_nb(vgasnet_team_handle_t team, void *dst, void *src, size_t nbytes,
                                               int flags);
void vgasnet_coll_exchangeM(vgasnet_team_handle_t team, void *const dstlist[], void *const srclist[], size_t nbytes,
                            int flags);
vgasnet_coll_handle_t vgasnet_coll_exchangeM_nb(vgasnet_team_handle_t team, void *const dstlist[],
                                                void *const srclist[], size_t nbytes, int flags);
void vgasnet_coll_reduce(vgasnet_team_handle_t team, vgasnet_image_t dstimage, void *dst, void *src, size_t src_blksz,
                         size_t src_offset, size_t elem_size, size_t elem_count, vgasnet_coll_fn_handle_t func,
                         int func_arg, int flags);
vgasnet_coll_handle_t vgasnet_coll_reduce_nb(vgasnet_team_handle_t team, vgasnet_image_t dstimage, void *dst, void *src,
                                             size_t src_blksz, size_t src_offset, size_t elem_size, size_t elem_count,
                                             vgasnet_coll_fn_handle_t func, int func_arg, int flags);
void vgasnet_coll_reduceM(vgasnet_team_handle_t team, vgasnet_image_t dstimage, void *dst, void *const srclist[],
                          size_t src_blksz, size_t src_offset, size_t elem_size, size_t elem_count,
                          vgasnet_coll_fn_handle_t func, int func_arg, int flags);
vgasnet_coll_handle_t vgasnet_coll_reduceM_nb(vgasnet_team_handle_t team, vgasnet_image_t dstimage, void *dst,
                                              void *const srclist[], size_t src_blksz, size_t src_offset,
                                              size_t elem_size, size_t elem_count, vgasnet_coll_fn_handle_t func,
                                              int func_arg, int flags);

/* As vgasnet_wait_syncnb, vgasnet_try_syncnb and their like. */
void vgasnet_coll_wait_sync(vgasnet_coll_handle_t handle);
int vgasnet_coll_try_sync(vgasnet_coll_handle_t handle);
void vgasnet_coll_wait_sync_all(vgasnet_coll_handle_t *handles, size_t numhandles);
int vgasnet_coll_try_sync_all(vgasnet_coll_handle_t *handles, size_t numhandles);
void vgasnet_coll_wait_sync_some(vgasnet_coll_handle_t *handles, size_t numhandles);
int vgasnet_coll_try_sync_some(vgasnet_coll_handle_t *handles, size_t numhandles);

/* The barrier of a team, as vgasnet_barrier_notify, _try and _wait, vgasnet_barrier and vgasnet_barrier_result. That of
 * VGASNET_TEAM_ALL is the same barrier as theirs. */
void vgasnet_coll_barrier_notify(vgasnet_team_handle_t team, int id, int flags);
int vgasnet_coll_barrier_try(vgasnet_team_handle_t team, int id, int flags);
int vgasnet_coll_barrier_wait(vgasnet_team_handle_t team, int id, int flags);
int vgasnet_coll_barrier(vgasnet_team_handle_t team, int id, int flags);
int vgasnet_coll_barrier_result(vgasnet_team_handle_t team, int *id);

/* Makes a team of all ranks of parent that give the same color, in the order of relrank, or of their numbers in parent
 * where that is the same. Collective. clientdata is ignored. */
vgasnet_team_handle_t vgasnet_coll_team_split(vgasnet_team_handle_t parent, vgasnet_node_t color, vgasnet_node_t relrank,
                                              void *clientdata);

/* Forgets a team at this rank, once its collectives and barriers are complete here. Fatal: VGASNET_TEAM_ALL. */
void vgasnet_coll_team_free(vgasnet_team_handle_t team);

/* How many ranks a team has; the job's number of one of them; and the other way round, which is fatal if it is none. */
vgasnet_node_t vgasnet_coll_team_size(vgasnet_team_handle_t team);
vgasnet_node_t vgasnet_coll_team_rank2node(vgasnet_team_handle_t team, vgasnet_node_t rank);
vgasnet_node_t vgasnet_coll_team_node2rank(vgasnet_team_handle_t team, vgasnet_node_t node);

/* ---- barrier ----
 *
 * In two steps: a rank notifies, and later waits, or tries until the answer is another than VGASNET_ERR_NOT_READY. A
 * barrier syncs no operations. flags: 0 for a barrier named id, or some of these; unknown flags are fatal.
 */

/* Matches any id; the argument id is ignored. */
#define VGASNET_BARRIERFLAG_ANONYMOUS 1
/* The barrier fails on every rank. Has precedence over VGASNET_BARRIERFLAG_ANONYMOUS. */
#define VGASNET_BARRIERFLAG_MISMATCH 2
/* As VGASNET_BARRIERFLAG_ANONYMOUS, and promises that the barrier is anonymous on every rank. */
#define VGASNET_BARRIERFLAG_UNNAMED 5
/* Every image takes part. A rank is one image in these functions, so it changes nothing: they are called once a rank.
 * */
#define VGASNET_BARRIERFLAG_IMAGES 8

/* Arrives, without waiting for anyone. Notifying twice without a completed wait or try in between is fatal.
 * Threads: the client sees to it that the threads of a rank do not call barrier functions at the same time. */
void vgasnet_barrier_notify(int id, int flags);

/*
 * Waits until all ranks have notified. VGASNET_OK, or VGASNET_ERR_BARRIER_MISMATCH if two ranks notified with different
 * ids, if one notified with VGASNET_BARRIERFLAG_MISMATCH, or if the wait names another id than this rank's notify did
 * (or, where that was anonymous, than the other ranks' did). Waiting without having notified is fatal. Before
 * vgasnet_attach: VGASNET_ERR_NOT_INIT.
 */
int vgasnet_barrier_wait(int id, int flags);

/* VGASNET_ERR_NOT_READY if some rank has not notified; else as vgasnet_barrier_wait. */
int vgasnet_barrier_try(int id, int flags);

/* vgasnet_barrier_notify, then vgasnet_barrier_wait. */
int vgasnet_barrier(int id, int flags);

/*
 * What the last barrier was: 0 if it had a name, which is written to *id and is the one that the notifies had, on every
 * rank; another number if all ranks notified anonymously. To be called between a barrier that was answered with
 * VGASNET_OK and the next notify; fatal at other times, and where id is a null pointer.
 */
int vgasnet_barrier_result(int *id);

#ifdef __cplusplus
}
#endif

#endif
