/* Checks that end the job, for programs of any interface. Valid as C99 and as C++. */
#ifndef CHECKS_H
#define CHECKS_H

#include <inttypes.h>
#include <stdio.h>

#include "vgasnet.h"

#define CHECK(condition) \
    do { \
        if (!(condition)) check_failed(__FILE__, __LINE__, #condition); \
    } while (0)

/* Both sides are unsigned. */
#define CHECK_EQ(is, should) check_equal(__FILE__, __LINE__, #is, (uint64_t)(is), (uint64_t)(should))

static inline void check_failed(const char *file, int line, const char *what) {
    fprintf(stderr, "check: rank %u: %s:%d: %s does not hold\n", vgasnet_mynode(), file, line, what);
    vgasnet_exit(1);
}

static inline void check_equal(const char *file, int line, const char *what, uint64_t is, uint64_t should) {
    if (is == should) return;
    fprintf(stderr, "check: rank %u: %s:%d: %s is %#" PRIx64 " and should be %#" PRIx64 "\n", vgasnet_mynode(), file,
            line, what, is, should);
    vgasnet_exit(1);
}

#endif
