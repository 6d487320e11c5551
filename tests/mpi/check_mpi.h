/* The common part of programs that pass addresses in the segment to MPI. */
#ifndef CHECK_MPI_H
#define CHECK_MPI_H

#include <mpi.h>

#include "../c/check.h"

/* Bytes of each of the two areas used by calls. */
static size_t area;

/* The place of the areas in the segment: not at the start of a page. */
#define FIRST 56

/* The calls of a test with its areas, in either memory. */
typedef void (*Calls)(char *in, char *out);

/* Reads or writes an area of the segment. */
static inline void load_area(void *to, const char *from) { vgasnet_get(to, vgasnet_mynode(), (void *)from, area); }
static inline void store_area(char *to, const void *from) { vgasnet_put(vgasnet_mynode(), to, (void *)from, area); }

/* Small numbers, so that sums and comparisons of any type make sense. */
static inline void fill(unsigned char *to, uint64_t seed) {
    uint64_t state = mixed(seed, vgasnet_mynode(), 1);
    size_t i;
    for (i = 0; i < area; i += 4) {
        int number = (int)random_below(&state, 1000);
        memcpy(to + i, &number, sizeof number);
    }
}

/* Makes the calls with areas in ordinary memory, then with one or both in the segment, and compares all bytes of
 * both areas, including bytes outside of any datatype. Brief: only with both areas in the segment. */
static inline void compare(const char *what, Calls calls, int is_brief) {
    static uint64_t seed;
    unsigned char *areas[6];
    int combination, i;
    for (i = 0; i < 6; ++i) areas[i] = (unsigned char *)allocate(area);
    for (combination = is_brief ? 3 : 1; combination < 4; ++combination) {
        char *segment_in = (char *)at(vgasnet_mynode(), FIRST), *segment_out = segment_in + area;
        ++seed;
        for (i = 0; i < 4; ++i) fill(areas[i], 2 * seed + (uint64_t)(i % 2));
        store_area(segment_in, areas[0]);
        store_area(segment_out, areas[1]);
        calls((char *)areas[0], (char *)areas[1]);
        calls(combination & 1 ? segment_in : (char *)areas[2], combination & 2 ? segment_out : (char *)areas[3]);
        load_area(areas[4], segment_in);
        load_area(areas[5], segment_out);
        check_bytes(combination & 1 ? areas[4] : areas[2], areas[0], area, what);
        check_bytes(combination & 2 ? areas[5] : areas[3], areas[1], area, what);
    }
    for (i = 0; i < 6; ++i) free(areas[i]);
}

#endif
