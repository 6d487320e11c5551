/* vgasnet: start and end of a job, and its ranks. */
#ifndef VGASNET_JOB_H
#define VGASNET_JOB_H

#include <stdint.h>
#include <vgasnet/errors.h>
#include <vgasnet/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Makes this process a rank of the job. Collective. argc and argv may be null, and are left as they are.
 *
 * A process that returns from main or calls exit with status 0 serves its segment until every rank has done so or has
 * called vgasnet_exit. Then it ends. Any other status ends the whole job with that status. A process that ends by
 * _exit(0) has failed, unless all ranks end within two seconds: the job ends with status 1.
 *
 * Signals. When another rank has failed, or the job is over, the remaining ranks get SIGQUIT, and SIGKILL 3 seconds
 * later. A rank may get SIGINT, SIGTERM or SIGHUP without having a handler for it. Then it gets SIGQUIT instead if it
 * has a handler for that; otherwise the signal ends it. A handler of SIGQUIT may clean up and then calls vgasnet_exit.
 *
 * Children. A child that is forked is a program of its own, and no rank. It may end, or execute another program. It has
 * neither the segment nor memory of the library: a load or store there ends it by SIGSEGV, and a call of the library is
 * refused with VGASNET_ERR_NOT_INIT or ends it with status 1, each after one line.
 *
 * A program may define the variable uint64_t vgasnet_max_segsize with C linkage: the largest segment that it wants to
 * be offered, in bytes. (gasnet.h calls it gasnet_max_segsize; this name works as well.) The environment variables
 * VGASNET_MAX_SEGSIZE and, after that, GASNET_MAX_SEGSIZE have precedence.
 *
 * Errors: VGASNET_ERR_NOT_INIT in a second call; VGASNET_ERR_BAD_ARG for a VGASNET_ variable whose name is nearly one of
 * vgasnet's, or whose value makes no sense; VGASNET_ERR_RESOURCE. If it fails on one rank it fails on all, and one of them
 * prints the line.
 * Threads: once in a process.
 */
int vgasnet_init(int *argc, char ***argv);

/*
 * Gives this rank a segment of segsize bytes, rounded up to whole pages, and readies the rank for all other functions.
 * Collective; returns when all ranks have attached. The sizes may differ; 0 means no segment. Disk space for the whole
 * segment is reserved, where the file system can do that. All segments have the same base, if all ranks have such
 * addresses in common.
 *
 * table: numentries handlers of Active Messages. Their indices are 128 to 255, or 0 for the lowest free one, which is
 * then written to the table. The same table gets the same indices on every rank. minheapoffset is ignored: no segment
 * is placed where a heap could grow to.
 *
 * Errors: VGASNET_ERR_NOT_INIT before vgasnet_init and in a second call; VGASNET_ERR_BAD_ARG for a table that makes no
 * sense, and for a null table with entries, after which it may be called again; VGASNET_ERR_RESOURCE if there is less
 * space than segsize, or the system refuses something. If it fails on one rank it fails on all, and one of them prints
 * the line.
 * Threads: once in a process.
 */
int vgasnet_attach(vgasnet_handlerentry_t *table, int numentries, uintptr_t segsize, uintptr_t minheapoffset);

/*
 * For programs that call GASNet for their own messages and vgasnet, over its conduit gasnet, for one-sided access:
 *
 *     gasnet_init(&argc, &argv);
 *     vgasnet_attach_gasnet(table, numentries, segsize, minheapoffset);      in place of gasnet_attach
 *     vgasnet_init(NULL, NULL);
 *     vgasnet_attach(NULL, 0, vgasnet_segsize, 0);
 *
 * It calls gasnet_attach with the program's handlers, of type gasnet_handlerentry_t, and makes GASNet's segment as
 * large as GASNet allows. The first segsize bytes of that segment, rounded up to GASNET_PAGESIZE, are the program's;
 * the rest is for the pool. gasnet_getSegmentInfo reports both as one. Collective. segsize may differ between ranks.
 * vgasnet takes one handler of GASNet's, with an index that the program's table does not name.
 *
 * GASNet must be of the flavour that takes calls of several threads (PAR), and both must use the same GASNet: link the
 * program with libvgasnet.a. Handlers of the program may run in a thread of vgasnet. There they may call everything
 * that GASNet lets handlers call, and nothing of vgasnet. The job ends by vgasnet_exit or by gasnet_exit.
 *
 * Errors: VGASNET_ERR_NOT_INIT after vgasnet_init; VGASNET_ERR_BAD_ARG for a null table with entries;
 * VGASNET_ERR_RESOURCE if GASNet is not initialised or refuses, or this vgasnet was built without GASNet.
 * Threads: once in a process.
 */
int vgasnet_attach_gasnet(void *table, int numentries, uintptr_t segsize, uintptr_t minheapoffset);

/* A client may set this. vgasnet_attach calls it with base and size of this rank's segment before it returns
 * VGASNET_OK. Threads: to be set before vgasnet_attach is called. */
extern void (*vgasnet_client_attach_hook)(void *, uintptr_t);

/*
 * Ends the whole job with exitcode. The process ends as by exit: exit handlers and destructors run, which write
 * buffered output of C, C++ and Fortran, for ten seconds at most. In a handler of a signal, and in a second call, it
 * flushes the C library's output streams only. With exitcode 0 it waits, for two seconds at most, until every rank has
 * called it or has left main. Does not return. Before vgasnet_init it ends the process.
 * Threads: any. Of threads that call it at once, one ends the process.
 */
void vgasnet_exit(int exitcode);

/* The caller's index. Before vgasnet_init: fatal. */
vgasnet_node_t vgasnet_mynode(void);

/* The number of ranks. Before vgasnet_init: fatal. */
vgasnet_node_t vgasnet_nodes(void);

/* The place of a rank. Ranks with the same host share a machine. Ranks with the same supernode have each other's pages
 * mapped. */
typedef struct {
    vgasnet_node_t host;
    vgasnet_node_t supernode;
} vgasnet_nodeinfo_t;

/* Writes the places of ranks 0 to min(numentries, vgasnet_nodes()) - 1, and leaves further entries alone. Not
 * collective. Errors: VGASNET_ERR_NOT_INIT before vgasnet_init; VGASNET_ERR_BAD_ARG if numentries is negative, or
 * nodeinfo_table is null and numentries is not 0. */
int vgasnet_getNodeInfo(vgasnet_nodeinfo_t *nodeinfo_table, int numentries);

/* How waiting threads of this rank share the processors. SPIN: they keep theirs. BLOCK: they give it up at once.
 * SPINBLOCK, the default: they try for a short time and give it up then. A hint; it may be changed at any time.
 * VGASNET_ERR_BAD_ARG: another mode. */
#define VGASNET_WAIT_SPIN 0
#define VGASNET_WAIT_BLOCK 1
#define VGASNET_WAIT_SPINBLOCK 2
int vgasnet_set_waitmode(int wait_mode);

/* The value of an environment variable; null if it is not set, and for VGASNET_ and GASNET_ variables in a program that
 * has more rights than its user (AT_SECURE). The launcher gives all ranks its own environment. The string must not be
 * changed, and is valid until the process changes the variable. A null name and a call before vgasnet_init are fatal.
 * Threads: as getenv. */
char *vgasnet_getenv(const char *name);

#ifdef __cplusplus
}
#endif

#endif
