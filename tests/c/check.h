/* The common part of all test programs: checks that end the job, random numbers, start and barrier. Valid as C99 and
 * as C++. */
#ifndef CHECK_H
#define CHECK_H

#include <stdlib.h>
#include <string.h>

#include "checks.h"

/* Compares bytes of a get with the bytes put before. */
static inline void check_bytes(const unsigned char *is, const unsigned char *should, size_t len, const char *what) {
    size_t at = 0;
    if (memcmp(is, should, len) == 0) return;
    while (is[at] == should[at]) ++at;
    fprintf(stderr, "check: rank %u: %s: byte %zu of %zu is %#x and should be %#x\n", vgasnet_mynode(), what, at, len,
            is[at], should[at]);
    vgasnet_exit(1);
}

/* A number set by the test harness. */
static inline uint64_t number_from_environment(const char *name) {
    const char *text = getenv(name);
    if (text == NULL) {
        fprintf(stderr, "check: %s is not set\n", name);
        exit(1);
    }
    return strtoull(text, NULL, 10);
}

/* splitmix64 */
static inline uint64_t random_word(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* From 0 to limit - 1, nearly uniform. */
static inline uint64_t random_below(uint64_t *state, uint64_t limit) { return random_word(state) % limit; }

static inline void random_bytes(uint64_t *state, unsigned char *to, size_t len) {
    uint64_t word;
    for (; len >= sizeof word; len -= sizeof word, to += sizeof word) {
        word = random_word(state);
        memcpy(to, &word, sizeof word);
    }
    word = random_word(state);
    memcpy(to, &word, len);
}

/* A word that depends on all three arguments. */
static inline uint64_t mixed(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t state = number_from_environment("CHECK_SEED");
    state = random_word(&state) ^ a;
    state = random_word(&state) ^ b;
    state = random_word(&state) ^ c;
    return random_word(&state);
}

static inline size_t page_bytes(void) { return (size_t)number_from_environment("CHECK_PAGE_BYTES"); }
static inline size_t pool_bytes(void) { return (size_t)number_from_environment("CHECK_POOL_BYTES"); }

/* Mostly short, sometimes as long as `most`; every length from 0 to 64 is likely. */
static inline size_t random_length(uint64_t *state, size_t most) {
    uint64_t limit = random_below(state, 8) == 0 ? most + 1 : random_below(state, 4) == 0 ? 5000 : 65;
    size_t len = (size_t)random_below(state, limit);
    return len < most ? len : most;
}

static inline void *allocate(size_t len) {
    void *memory = calloc(1, len + 1);
    CHECK(memory != NULL);
    return memory;
}

/* The address `offset` bytes into a rank's segment. */
static inline void *at(vgasnet_node_t rank, uintptr_t offset) {
    static vgasnet_seginfo_t *segments = NULL;
    if (segments == NULL) {
        int count = (int)vgasnet_nodes();
        vgasnet_seginfo_t *table = (vgasnet_seginfo_t *)allocate((size_t)count * sizeof *table);
        CHECK(vgasnet_getSegmentInfo(table, count) == VGASNET_OK);
        segments = table;
    }
    return (void *)((uintptr_t)segments[rank].addr + offset);
}

static inline void barrier(void) {
    vgasnet_barrier_notify(0, VGASNET_BARRIERFLAG_ANONYMOUS);
    CHECK(vgasnet_barrier_wait(0, VGASNET_BARRIERFLAG_ANONYMOUS) == VGASNET_OK);
}

/* Calls init and attach, with a segment of this size. */
static inline void start(int *argc, char ***argv, uintptr_t segment_bytes) {
    if (vgasnet_init(argc, argv) != VGASNET_OK) exit(1);
    CHECK(vgasnet_attach(NULL, 0, segment_bytes, 0) == VGASNET_OK);
    (void)at(0, 0);
}

/* The counters of this rank. */
static inline vgasnet_stats_t statistics(void) {
    vgasnet_stats_t stats;
    CHECK(vgasnet_stats(&stats, sizeof stats) == VGASNET_OK);
    CHECK_EQ(stats.size_bytes, sizeof stats);
    return stats;
}

static inline int finish(void) {
    barrier();
    vgasnet_exit(0);
    return 1;
}

#endif
