/* Numbers for atomic operations: their places, the results of operations on them, and one way to call each form of
 * each operation. */
#ifndef NUMBERS_H
#define NUMBERS_H

#include "local.h"

#define OPS 10
#define BLOCK ((size_t)4096)

/* Blocks with numbers: the first and the last of some pages of every segment. Each has groups of eight words. */
#define PAGES_USED 4
enum { FIRST = 0, OLDS = 10, MIDDLE = 31, SHARED = 40, ADJACENT = 41, TALLY = 42, LAST = 63 };

static inline size_t blocks_in_page(void) { return page_bytes() > BLOCK ? 2 : 1; }
static inline size_t block_count(void) { return vgasnet_nodes() * PAGES_USED * blocks_in_page(); }

/* The word of a rank. */
typedef struct {
    vgasnet_node_t rank;
    unsigned char *place;
} Word;

/* A word of a group of a block. The last group's words are counted from the end of the block. */
static inline Word word_at(size_t block, size_t group, size_t slot) {
    Word word;
    size_t of_rank = block % (PAGES_USED * blocks_in_page()), pages = 4 * pool_pages();
    size_t page = of_rank / blocks_in_page() * (pages / PAGES_USED);
    size_t offset = of_rank % blocks_in_page() * (page_bytes() - BLOCK) + 64 * group;
    CHECK(slot < 8);
    word.rank = (vgasnet_node_t)(block / (PAGES_USED * blocks_in_page()));
    word.place = (unsigned char *)at(word.rank, page * page_bytes() + offset + 8 * (group == LAST ? 7 - slot : slot));
    return word;
}

/* The result of an operation on a number, by the header's definition. */
static inline uint64_t applied(int op, uint64_t old, uint64_t operand, uint64_t compare, size_t len) {
    int is_less = len == 4 ? (int32_t)(uint32_t)operand < (int32_t)(uint32_t)old : (int64_t)operand < (int64_t)old;
    switch (op) {
    case VGASNET_ATOMIC_ADD: return len == 4 ? (uint32_t)(old + operand) : old + operand;
    case VGASNET_ATOMIC_AND: return old & operand;
    case VGASNET_ATOMIC_OR: return old | operand;
    case VGASNET_ATOMIC_XOR: return old ^ operand;
    case VGASNET_ATOMIC_SWAP: return operand;
    case VGASNET_ATOMIC_CAS: return old == compare ? operand : old;
    case VGASNET_ATOMIC_MIN: return operand < old ? operand : old;
    case VGASNET_ATOMIC_MAX: return operand > old ? operand : old;
    case VGASNET_ATOMIC_IMIN: return is_less ? operand : old;
    default: return is_less ? old : operand;
    }
}

/* One operation on a number of 4 or 8 bytes: blocking, explicit or implicit. Returns the handle of an explicit one. */
static inline vgasnet_handle_t operate(int form, void *old, Word number, int op, uint64_t operand, uint64_t compare,
                                       size_t len) {
    vgasnet_node_t rank = number.rank;
    void *word = number.place;
    uint32_t half = (uint32_t)operand, half_compare = (uint32_t)compare;
    if (form == 1 && len == 4) return vgasnet_atomic_u32_nb((uint32_t *)old, rank, word, op, half, half_compare);
    if (form == 1) return vgasnet_atomic_u64_nb((uint64_t *)old, rank, word, op, operand, compare);
    if (form == 2 && len == 4) vgasnet_atomic_u32_nbi((uint32_t *)old, rank, word, op, half, half_compare);
    else if (form == 2) vgasnet_atomic_u64_nbi((uint64_t *)old, rank, word, op, operand, compare);
    else if (len == 4) {
        half = vgasnet_atomic_u32(rank, word, op, half, half_compare);
        if (old != NULL) memcpy(old, &half, sizeof half);
    } else {
        operand = vgasnet_atomic_u64(rank, word, op, operand, compare);
        if (old != NULL) memcpy(old, &operand, sizeof operand);
    }
    return VGASNET_INVALID_HANDLE;
}

/* Mostly at the borders of signs and sizes. */
static inline uint64_t draw_number(uint64_t *state) {
    static const uint64_t borders[] = {0, 1, UINT64_MAX, UINT64_C(1) << 63, UINT64_C(1) << 31, UINT32_MAX, INT64_MAX};
    uint64_t number = random_word(state), which = random_below(state, 10);
    return which < sizeof borders / sizeof *borders ? borders[which] : number;
}

#endif
