/*
 * vgasnet: start and end of a job, and its ranks.
 *
 * End. A process that returns from main or calls exit with status 0 serves its segment until every rank has done so or
 *   has called vgasnet_exit. Then it ends. Any other status ends the whole job with that status. A process that ends by
 *   _exit(0) has failed, unless all ranks end within two seconds: the job ends with status 1.
 *
 * Signals. When another rank has failed, or the job is over, the remaining ranks get SIGQUIT, and SIGKILL 3 seconds
 *   later. A rank may get SIGINT, SIGTERM or SIGHUP without having a handler for it. Then it gets SIGQUIT instead if it
 *   has a handler for that; otherwise the signal ends it. A handler of SIGQUIT may clean up and then calls vgasnet_exit.
 *
 * Children. A child that is forked is a program of its own, and no rank. It may end, or execute another program. It has
 *   neither the segment nor memory of the library: a load or store there ends it by SIGSEGV, and a call of the library
 *   is refused with VGASNET_ERR_NOT_INIT or ends it with status 1, each after one line.
 */
#ifndef VGASNET_JOB_H
#define VGASNET_JOB_H

#include <stdint.h>
#include <vgasnet/errors.h>
#include <vgasnet/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Makes this process a rank of the job.
 *
 * Collective; once in a process, by one thread. On success vgasnet_attach comes next.
 *
 * A program may define the variable uint64_t vgasnet_max_segsize with C linkage: the largest segment that it wants to
 * be offered, in bytes. (gasnet.h calls it gasnet_max_segsize; this name works as well.) The environment variables
 * VGASNET_MAX_SEGSIZE and, after that, GASNET_MAX_SEGSIZE have precedence.
 *
 * If it fails on one rank it fails on all, and one of them prints the line.
 *
 * @param argc number of the program's arguments, left as it is; may be null
 * @param argv the program's arguments, left as they are; may be null
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_NOT_INIT in a second call
 * @retval VGASNET_ERR_BAD_ARG for a VGASNET_ variable whose name is nearly one of vgasnet's, or whose value makes no
 *     sense
 * @retval VGASNET_ERR_RESOURCE if the machine lacks disk space, memory or threads
 * @see vgasnet_attach, vgasnet_exit, vgasnet_attach_gasnet
 */
int vgasnet_init(int *argc, char ***argv);

/**
 * Gives this rank its segment, registers its handlers, and readies it for all other functions.
 *
 * Collective; once in a process, by one thread. Returns when all ranks have attached.
 *
 * Disk space for the whole segment is reserved if the file system can do that. All segments have the same base if all
 * ranks have such addresses in common. If it fails on one rank it fails on all, and one of them prints the line.
 *
 * @param table handlers of Active Messages; may be null if numentries is 0. An index is 128 to 255, or 0 for the lowest
 *     free one, which is then written to the table. The same table gets the same indices on every rank
 * @param numentries number of entries in table, 0 or more
 * @param segsize size of this rank's segment in bytes, rounded up to whole pages; 0 for no segment. Ranks may give
 *     different sizes
 * @param minheapoffset ignored: no segment is placed where a heap could grow to
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_init, and in a second call
 * @retval VGASNET_ERR_BAD_ARG for a table that makes no sense; for a null table with entries, after which it may be
 *     called again
 * @retval VGASNET_ERR_RESOURCE if there is less space than segsize, or the system refuses something
 * @see vgasnet_init, vgasnet_getMaxLocalSegmentSize, vgasnet_getSegmentInfo
 */
int vgasnet_attach(vgasnet_handlerentry_t *table, int numentries, uintptr_t segsize, uintptr_t minheapoffset);

/**
 * Attaches GASNet for a program that uses both GASNet's messages and vgasnet's one-sided access.
 *
 * It is for vgasnet's conduit gasnet. The program calls it in place of gasnet_attach:
 *
 *     gasnet_init(&argc, &argv);
 *     vgasnet_attach_gasnet(table, numentries, segsize, minheapoffset);
 *     vgasnet_init(NULL, NULL);
 *     vgasnet_attach(NULL, 0, vgasnet_segsize, 0);
 *
 * It calls gasnet_attach with the program's handlers, and makes GASNet's segment as large as GASNet allows. The first
 * segsize bytes of it are the program's, and the rest is for the pool; gasnet_getSegmentInfo reports both as one.
 * vgasnet takes one handler of GASNet's, with an index that the table does not name.
 *
 * GASNet must be of the flavour that takes calls of several threads (PAR), and both must use the same GASNet: link the
 * program with libvgasnet.a. Handlers of the program may run in a thread of vgasnet. There they may call everything
 * that GASNet lets handlers call, and nothing of vgasnet. The job ends by vgasnet_exit or by gasnet_exit.
 *
 * Collective; once in a process, by one thread.
 *
 * @param table handlers, of type gasnet_handlerentry_t; may be null if numentries is 0
 * @param numentries number of entries in table, 0 or more
 * @param segsize size of the program's part in bytes, rounded up to GASNET_PAGESIZE. Ranks may give different sizes
 * @param minheapoffset as for gasnet_attach, in bytes
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_NOT_INIT after vgasnet_init
 * @retval VGASNET_ERR_BAD_ARG for a null table with entries
 * @retval VGASNET_ERR_RESOURCE if GASNet is not initialised or refuses, or this vgasnet was built without GASNet
 * @see vgasnet_init, vgasnet_attach
 */
int vgasnet_attach_gasnet(void *table, int numentries, uintptr_t segsize, uintptr_t minheapoffset);

/**
 * A client may set this before it calls vgasnet_attach, which calls it with base and size of this rank's segment before
 * it returns VGASNET_OK.
 */
extern void (*vgasnet_client_attach_hook)(void *, uintptr_t);

/**
 * Ends the whole job with a status.
 *
 * It does not return. The process ends as by exit: exit handlers and destructors run, which write buffered output of C,
 * C++ and Fortran, for ten seconds at most. In a handler of a signal, and in a second call, it flushes the C library's
 * output streams only. Before vgasnet_init it ends the process alone.
 *
 * Not collective. Any thread, also in a handler of a message or a signal (there with another status than 0). Of threads
 * that call it at once, one ends the process.
 *
 * @param exitcode status of the job. With 0 the rank waits, for two seconds at most, until every rank has called it or
 *     has left main
 * @see vgasnet_init
 */
void vgasnet_exit(int exitcode);

/**
 * Returns the caller's index.
 *
 * Not collective, any thread, also in handlers.
 *
 * Fatal: a call before vgasnet_init.
 *
 * @return the index of this rank, 0 to vgasnet_nodes() - 1
 * @see vgasnet_nodes
 */
vgasnet_node_t vgasnet_mynode(void);

/**
 * Returns the number of ranks in the job.
 *
 * Not collective, any thread, also in handlers.
 *
 * Fatal: a call before vgasnet_init.
 *
 * @return the number of ranks, at least 1
 * @see vgasnet_mynode
 */
vgasnet_node_t vgasnet_nodes(void);

/**
 * The place of a rank. Ranks with the same host share a machine. Ranks with the same supernode have each other's pages
 * mapped.
 */
typedef struct {
    vgasnet_node_t host;
    vgasnet_node_t supernode;
} vgasnet_nodeinfo_t;

/**
 * Tells which ranks share a machine.
 *
 * Not collective, any thread.
 *
 * @param nodeinfo_table receives the places of ranks 0 to min(numentries, vgasnet_nodes()) - 1; further entries stay as
 *     they are. May be null if numentries is 0
 * @param numentries number of entries in nodeinfo_table, 0 or more
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_init
 * @retval VGASNET_ERR_BAD_ARG if numentries is negative, or nodeinfo_table is null and numentries is not 0
 * @see vgasnet_getSegmentInfo, vgasnet_nodes
 */
int vgasnet_getNodeInfo(vgasnet_nodeinfo_t *nodeinfo_table, int numentries);

/** Waiting threads keep their processors. */
#define VGASNET_WAIT_SPIN 0
/** They give them up at once. */
#define VGASNET_WAIT_BLOCK 1
/** They try for a short time, and give them up then. */
#define VGASNET_WAIT_SPINBLOCK 2

/**
 * Sets how waiting threads of this rank share the processors.
 *
 * It is a hint, and may be changed at any time after vgasnet_init. Not collective, any thread.
 *
 * @param wait_mode VGASNET_WAIT_SPIN, VGASNET_WAIT_BLOCK or VGASNET_WAIT_SPINBLOCK, the default
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG for another mode
 * @see VGASNET_BLOCKUNTIL, docs/reference/settings.md
 */
int vgasnet_set_waitmode(int wait_mode);

/**
 * Returns the value of an environment variable of the job.
 *
 * The launcher gives all ranks its own environment. Not collective. Threads: as getenv.
 *
 * Fatal: a null name, a call before vgasnet_init.
 *
 * @param name name of the variable; not null
 * @return the value, which must not be changed and is valid until the process changes the variable. Null if the
 *     variable is not set, and for VGASNET_ and GASNET_ variables in a program that has more rights than its user
 *     (AT_SECURE)
 * @see docs/reference/settings.md
 */
char *vgasnet_getenv(const char *name);

#ifdef __cplusplus
}
#endif

#endif
