/* The thread mode of a GASNet client, and the headers included in each. */
#ifndef GASNET_MODE_H
#define GASNET_MODE_H

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

/* Clients expect GASNet's headers to include these. */
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

#endif
