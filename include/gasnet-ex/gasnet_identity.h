/* What a client of GASNet-EX may ask the preprocessor about the library. Clients include gasnetex.h. */
#ifndef GASNET_IDENTITY_H
#define GASNET_IDENTITY_H

#include <vgasnet/version.h>

#define GASNET_VERSION GASNET_SPEC_VERSION_MAJOR
/* Of the library, and of this client: the library is the same for all thread modes. */
#define GASNET_CONFIG_STRING VGASNET_CONFIG_STRING ",EX=0.19,THREADMODEL=" GASNET_THREAD_MODE_

/* The library chooses its transport when the job starts. Clients have the name of a network at compile time: of smp they would believe
 * that ranks can load from each other's segments. */
#if defined GASNET_CONDUIT_MPI
#undef GASNET_CONDUIT_MPI
#define GASNET_CONDUIT_MPI 1
#define GASNET_CONDUIT_NAME MPI
#define GASNET_CONDUIT_NAME_STR "MPI"
#else
#undef GASNET_CONDUIT_UDP
#define GASNET_CONDUIT_UDP 1
#define GASNET_CONDUIT_NAME UDP
#define GASNET_CONDUIT_NAME_STR "UDP"
#endif
#define GASNET_CORE_NAME GASNET_CONDUIT_NAME
#define GASNET_CORE_NAME_STR GASNET_CONDUIT_NAME_STR
#define GASNET_CORE_VERSION 2.0
#define GASNET_CORE_VERSION_STR "2.0"
#define GASNET_EXTENDED_NAME VGASNET
#define GASNET_EXTENDED_NAME_STR "VGASNET"
#define GASNET_EXTENDED_VERSION 2.0
#define GASNET_EXTENDED_VERSION_STR "2.0"

#define GASNET_NDEBUG 1
#define GASNET_NULL_ARGV_OK VGASNET_NULL_ARGV_OK

#define GASNET_SEGMENT_LARGE VGASNET_SEGMENT_LARGE
#define GASNET_ALIGNED_SEGMENTS VGASNET_ALIGNED_SEGMENTS
#define GASNET_PAGESIZE VGASNET_PAGESIZE
#define GASNET_MAXNODES VGASNET_MAXNODES
#define GASNET_MAXEPS 1

/* Handlers run in threads of the client only. */
#define GASNET_HIDDEN_AM_CONCURRENCY_LEVEL 0

#define GASNET_SUPPORTS_TI_SRCRANK 1
#define GASNET_SUPPORTS_TI_EP 1
#define GASNET_SUPPORTS_TI_ENTRY 1
#define GASNET_SUPPORTS_TI_IS_REQ 1
#define GASNET_SUPPORTS_TI_IS_LONG 1

#define GASNET_HAVE_MK_CLASS_HOST 1

/* Clients size tables by this. There is no limit on threads. */
#ifdef GASNET_PAR
#define GASNETI_MAX_THREADS 256
#else
#define GASNETI_MAX_THREADS 1
#endif

/* By these marks tools find in a program how its client was compiled, and which network it was told. They are in a section whose equal
 * texts the linker merges: some tools take a mark that is there twice for two answers. */
#define GASNET_MARK_(text) \
    __asm__(".pushsection .rodata.gasnet_ident,\"aMS\",@progbits,1\n\t.asciz \"" text "\"\n\t.popsection")
GASNET_MARK_("$GASNetConfig: (client) " GASNET_CONFIG_STRING " $");
GASNET_MARK_("$GASNetThreadModel: GASNET_" GASNET_THREAD_MODE_ " $");
GASNET_MARK_("$GASNetConduitName: " GASNET_CONDUIT_NAME_STR " $");
GASNET_MARK_("$GASNetSegment: GASNET_SEGMENT_LARGE $");
GASNET_MARK_("$GASNetEXAPIVersion: 0.19 $");

#include "gex_helpers.h"

#endif
