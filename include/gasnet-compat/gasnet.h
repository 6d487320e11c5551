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

#include "gasnet_mode.h"

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

#include "gasnet_types.h"

/* By these marks tools find in a program how its client was compiled. */
__attribute__((__used__)) static const char gasnet_ident_[] = "$GASNetConfig: (client) " GASNET_CONFIG_STRING " $\0"
                                                              "$GASNetThreadModel: GASNET_" GASNET_THREAD_MODE_ " $";

#include "gasnet_counted.h"

#include "gasnet_vis.h"

#include "gasnet_coll.h"

#endif
