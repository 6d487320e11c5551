/* The common part of programs that load from and store to their own segment. */
#ifndef LOCAL_H
#define LOCAL_H

#include "check.h"

/* The longest access by load_piece and store_piece. */
#define PIECE_MAX 16

/* Copies 1 to 16 bytes by the few instructions a compiler emits for a constant length. */
static inline void copy_piece(void *to, const void *from, size_t len) {
    switch (len) {
#define CASE(n) \
    case n: \
        memcpy(to, from, n); \
        return;
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8)
        CASE(9) CASE(10) CASE(11) CASE(12) CASE(13) CASE(14) CASE(15) CASE(16)
#undef CASE
    default:
        CHECK(!"a piece has 1 to 16 bytes");
    }
}

/* Words of the own segment: each call is one load or one store. */
static inline uint64_t load_word(const void *from) { return *(const volatile uint64_t *)from; }
static inline void store_word(void *to, uint64_t word) { *(volatile uint64_t *)to = word; }

static inline size_t pool_pages(void) { return pool_bytes() / page_bytes(); }

static inline size_t least(size_t a, size_t b) { return a < b ? a : b; }

#endif
