/*
 * GASNet-1 (specification 1.8), by its own names, over vgasnet. Programs that were written for GASNet compile against
 * this header as they are and link with -lvgasnet:
 *
 *   cc -Iinclude/gasnet-compat -Iinclude -DGASNET_PAR client.c -lvgasnet
 *
 * vgasnet.h and its chapters document the functions, under the same names with a v in front. Programs in C++ work too.
 * Programs in C are compiled as C99 or later, or with GNU extensions. Handler tables need no casts if the compiler has GNU
 * extensions, not even in C23.
 */
#ifndef GASNET_H
#define GASNET_H

/* GASNet's own headers ask for this one. */
#define _INCLUDED_GASNET_H

/* The client names by one of these macros the threads that call GASNet. The library is the same for all. */
#if defined(GASNET_SEQ) + defined(GASNET_PARSYNC) + defined(GASNET_PAR) == 0
#error "define GASNET_SEQ, GASNET_PARSYNC or GASNET_PAR before you include gasnet.h, as by cc -DGASNET_PAR"
#elif defined(GASNET_SEQ) + defined(GASNET_PARSYNC) + defined(GASNET_PAR) > 1
#error "define one of GASNET_SEQ, GASNET_PARSYNC and GASNET_PAR, and not several"
#endif
/* Clients ask for the mode by #if, too. */
#if defined(GASNET_SEQ)
#undef GASNET_SEQ
#define GASNET_SEQ 1
#define GASNET_THREAD_MODE_ "SEQ"
#elif defined(GASNET_PARSYNC)
#undef GASNET_PARSYNC
#define GASNET_PARSYNC 1
#define GASNET_THREAD_MODE_ "PARSYNC"
#else
#undef GASNET_PAR
#define GASNET_PAR 1
#define GASNET_THREAD_MODE_ "PAR"
#endif

/* Clients expect gasnet.h to include these. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(GASNET_PARSYNC) || defined(GASNET_PAR)
#include <pthread.h>
#endif

#include <vgasnet.h>

/* With GASNet's own tools beside this header, the file of this name is theirs, and asks for its includer. */
#define _IN_GASNET_H
#include <gasnet_config.h>
#undef _IN_GASNET_H

#include "gasnet_names.h"
#include "gasnet_process.h"
#include "portable_inttypes.h"
#include "portable_platform.h"

/* ---- version and configuration ---- */

#define GASNET_SPEC_VERSION_MAJOR VGASNET_SPEC_VERSION_MAJOR
#define GASNET_SPEC_VERSION_MINOR VGASNET_SPEC_VERSION_MINOR
#define GASNET_VERSION GASNET_SPEC_VERSION_MAJOR
/* Of the library, and of this client: the library is the same for all thread modes. */
#define GASNET_CONFIG_STRING VGASNET_CONFIG_STRING ",THREADMODEL=" GASNET_THREAD_MODE_

/* The library chooses its transport when the job starts. Clients that ask at compile time get the conduit whose package they
 * were built with: that of MPI defines GASNET_CONDUIT_MPI. */
#if defined GASNET_CONDUIT_MPI
#define GASNET_CONDUIT_NAME MPI
#define GASNET_CONDUIT_NAME_STR "MPI"
#elif defined GASNET_CONDUIT_UDP
#define GASNET_CONDUIT_NAME UDP
#define GASNET_CONDUIT_NAME_STR "UDP"
#elif defined GASNET_CONDUIT_IBV
#define GASNET_CONDUIT_NAME IBV
#define GASNET_CONDUIT_NAME_STR "IBV"
#elif defined GASNET_CONDUIT_OFI
#define GASNET_CONDUIT_NAME OFI
#define GASNET_CONDUIT_NAME_STR "OFI"
#elif defined GASNET_CONDUIT_UCX
#define GASNET_CONDUIT_NAME UCX
#define GASNET_CONDUIT_NAME_STR "UCX"
#elif defined GASNET_CONDUIT_ARIES
#define GASNET_CONDUIT_NAME ARIES
#define GASNET_CONDUIT_NAME_STR "ARIES"
#else
#undef GASNET_CONDUIT_SMP
#define GASNET_CONDUIT_SMP 1
#define GASNET_CONDUIT_NAME SMP
#define GASNET_CONDUIT_NAME_STR "SMP"
#endif
#define GASNET_CORE_NAME GASNET_CONDUIT_NAME
#define GASNET_CORE_NAME_STR GASNET_CONDUIT_NAME_STR
#define GASNET_CORE_VERSION 1.0
#define GASNET_CORE_VERSION_STR "1.0"
#define GASNET_EXTENDED_NAME VGASNET
#define GASNET_EXTENDED_NAME_STR "VGASNET"
#define GASNET_EXTENDED_VERSION 1.0
#define GASNET_EXTENDED_VERSION_STR "1.0"

#define GASNET_NDEBUG 1
/* A segment is not mapped in other ranks, so nobody reaches it by an offset. */
#define GASNET_PSHM 0
#define GASNET_NULL_ARGV_OK VGASNET_NULL_ARGV_OK

#define GASNET_SEGMENT_LARGE VGASNET_SEGMENT_LARGE
#define GASNET_ALIGNED_SEGMENTS VGASNET_ALIGNED_SEGMENTS
#define GASNET_PAGESIZE VGASNET_PAGESIZE
#define GASNET_MAXNODES VGASNET_MAXNODES

/* Clients size tables by this. There is no limit on threads. */
#ifdef GASNET_PAR
#define GASNETI_MAX_THREADS 256
#else
#define GASNETI_MAX_THREADS 1
#endif

/* ---- types ---- */

typedef vgasnet_node_t gasnet_node_t;
typedef vgasnet_handler_t gasnet_handler_t;
typedef vgasnet_handlerarg_t gasnet_handlerarg_t;
typedef vgasnet_handlerentry_t gasnet_handlerentry_t;
typedef vgasnet_token_t gasnet_token_t;
typedef vgasnet_handle_t gasnet_handle_t;
typedef vgasnet_valget_handle_t gasnet_valget_handle_t;
typedef vgasnet_register_value_t gasnet_register_value_t;
typedef vgasnet_seginfo_t gasnet_seginfo_t;
typedef vgasnet_nodeinfo_t gasnet_nodeinfo_t;
typedef vgasnet_hsl_t gasnet_hsl_t;
typedef void *gasnet_threadinfo_t;

#define SIZEOF_GASNET_REGISTER_VALUE_T SIZEOF_VGASNET_REGISTER_VALUE_T
#define GASNET_INVALID_HANDLE VGASNET_INVALID_HANDLE
#define GASNET_HSL_INITIALIZER VGASNET_HSL_INITIALIZER

/* ---- constants ---- */

#define GASNET_OK VGASNET_OK
#define GASNET_ERR_NOT_INIT VGASNET_ERR_NOT_INIT
#define GASNET_ERR_RESOURCE VGASNET_ERR_RESOURCE
#define GASNET_ERR_BAD_ARG VGASNET_ERR_BAD_ARG
#define GASNET_ERR_NOT_READY VGASNET_ERR_NOT_READY
#define GASNET_ERR_BARRIER_MISMATCH VGASNET_ERR_BARRIER_MISMATCH

#define GASNET_BARRIERFLAG_ANONYMOUS VGASNET_BARRIERFLAG_ANONYMOUS
#define GASNET_BARRIERFLAG_MISMATCH VGASNET_BARRIERFLAG_MISMATCH
#define GASNET_BARRIERFLAG_UNNAMED VGASNET_BARRIERFLAG_UNNAMED
#define GASNET_BARRIERFLAG_IMAGES VGASNET_BARRIERFLAG_IMAGES

#define GASNET_WAIT_SPIN VGASNET_WAIT_SPIN
#define GASNET_WAIT_BLOCK VGASNET_WAIT_BLOCK
#define GASNET_WAIT_SPINBLOCK VGASNET_WAIT_SPINBLOCK

/* ---- macros in place of functions ---- */

#ifdef __cplusplus
extern "C" {
#endif

/* A client may define it: the largest segment that it wants to be offered, in bytes. */
extern uint64_t gasnet_max_segsize;

/* By these marks tools find in a program how its client was compiled. */
__attribute__((__used__)) static const char gasnet_ident_[] = "$GASNetConfig: (client) " GASNET_CONFIG_STRING " $\0"
                                                              "$GASNetThreadModel: GASNET_" GASNET_THREAD_MODE_ " $";

/* "GASNET_ERR_BAD_ARG" and the like. */
static inline const char *gasnet_ErrorName(int errval) {
    const char *name = vgasnet_ErrorName(errval);
    return name[0] == 'V' ? name + 1 : name;
}
#define gasnet_ErrorDesc vgasnet_ErrorDesc

#ifdef __cplusplus
}
#endif

/* GASNet's own variables for what these functions return; they can be read once gasnet_init has returned. */
#define gasneti_mynode vgasnet_mynode()
#define gasneti_nodes vgasnet_nodes()

/* Threads need no information from the library. These are a declaration, which may stand before others. */
#define GASNET_GET_THREADINFO() ((gasnet_threadinfo_t)0)
#if defined(__GNUC__)
#define GASNET_POST_THREADINFO(info) gasnet_threadinfo_t gasnet_threadinfo_ __attribute__((__unused__)) = (info)
#else
#define GASNET_POST_THREADINFO(info) gasnet_threadinfo_t gasnet_threadinfo_ = (info)
#endif
#define GASNET_BEGIN_FUNCTION() GASNET_POST_THREADINFO(GASNET_GET_THREADINFO())

#define GASNET_BLOCKUNTIL(cond) VGASNET_BLOCKUNTIL(cond)

#include "gasnet_counted.h"

#include "gasnet_vis.h"

#include "gasnet_coll.h"

#endif
