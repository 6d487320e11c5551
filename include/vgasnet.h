/*
 * vgasnet: a communication runtime for PGAS languages and libraries whose segments are larger than memory.
 *
 * The interface is that of GASNet-1 (specification 1.8): the same functions, arguments and results, with the prefix
 * vgasnet_ for gasnet_ and VGASNET_ for GASNET_. A node of GASNet is called a rank in messages and below.
 *
 * API conventions
 *
 * Order. vgasnet_init comes first, then vgasnet_attach, then everything else. Between the two, only vgasnet_mynode,
 *   vgasnet_nodes, vgasnet_getMaxLocalSegmentSize, vgasnet_getMaxGlobalSegmentSize, vgasnet_getenv and vgasnet_exit may
 *   be called. vgasnet_ErrorName and vgasnet_ErrorDesc may be called at any time.
 *
 * Addresses. A segment is a range of addresses in its own rank, which vgasnet_getSegmentInfo tells. In this version its
 *   bytes are reached through the functions of this header only: a load or store through a pointer into a segment ends
 *   in SIGSEGV. A "remote address" has to lie in the segment of the rank that it is given with, for its whole length;
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
 *   function may be called from a signal handler.
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

/* The largest number of ranks in a job. */
#define VGASNET_MAXNODES 4096

/* Segment sizes and bases are multiples of this. In fact they are multiples of the page size that the environment
 * variable VGASNET_PAGE_SIZE sets (4 MiB by default): any size is rounded up to whole pages. */
#define VGASNET_PAGESIZE 4096

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

/* The number of an Active Message handler. */
typedef uint8_t vgasnet_handler_t;

/* fnptr takes a handler of any type: for C it has no prototype. */
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
 * table: ignored. numentries: 0, since this version has no Active Messages. minheapoffset: ignored; no segment is
 * placed where a heap could grow to.
 *
 * Errors: VGASNET_ERR_NOT_INIT before vgasnet_init and in a second call; VGASNET_ERR_BAD_ARG for numentries other than
 * 0, after which it may be called again; VGASNET_ERR_RESOURCE if there is less space than segsize, or the system
 * refuses something. If there is too little space on one rank it fails on all, and one of them prints the line.
 * Threads: once in a process.
 */
int vgasnet_attach(vgasnet_handlerentry_t *table, int numentries, uintptr_t segsize, uintptr_t minheapoffset);

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

/* An access region collects the implicit operations that the calling thread starts between begin and end; they are
 * complete when the handle that end returns has been synced. Fatal: begin in an open region, end without one. */
void vgasnet_begin_nbi_accessregion(void);
vgasnet_handle_t vgasnet_end_nbi_accessregion(void);

/* ---- barrier ----
 *
 * In two steps: a rank notifies, and later waits, or tries until the answer is another than VGASNET_ERR_NOT_READY. A
 * barrier syncs no operations. flags: 0 for a barrier named id, or one of these; unknown flags are fatal.
 */

/* Matches any id; the argument id is ignored. */
#define VGASNET_BARRIERFLAG_ANONYMOUS 1
/* The barrier fails on every rank. Has precedence over VGASNET_BARRIERFLAG_ANONYMOUS. */
#define VGASNET_BARRIERFLAG_MISMATCH 2

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

#ifdef __cplusplus
}
#endif

#endif
