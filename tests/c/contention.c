/* Ranks that contend for a page, the owner by loads and stores and the others by gets and puts: all make progress. A
 * rank that polls a word of its own segment by loads sees another rank's put. */
#include "local.h"

/* The operations of each rank on a page before the others stop. */
#define OPERATIONS 120
#define HANDOVERS 25

static vgasnet_node_t me, ranks;

/* Each rank increments its own word until every rank has reached the goal. No rank stops earlier, so each one gets
 * there against all others. */
static void fight(vgasnet_node_t home) {
    uint64_t *counts = (uint64_t *)allocate(ranks * sizeof *counts), least_count = 0, mine = 0;
    void *word = at(home, 8 * me);
    while (least_count < OPERATIONS) {
        if (home == me) {
            CHECK_EQ(load_word(word), mine);
            store_word(word, ++mine);
            for (vgasnet_node_t rank = 0; rank < ranks; ++rank) counts[rank] = load_word(at(me, 8 * rank));
        } else {
            CHECK_EQ(vgasnet_get_val(home, word, 8), mine);
            vgasnet_put_val(home, word, ++mine, 8);
            vgasnet_get(counts, home, at(home, 0), ranks * sizeof *counts);
        }
        least_count = counts[0];
        for (vgasnet_node_t rank = 1; rank < ranks; ++rank)
            if (counts[rank] < least_count) least_count = counts[rank];
    }
    barrier();
    CHECK_EQ(vgasnet_get_val(home, word, 8), mine);
    free(counts);
    barrier();
}

/* The flag of a handover, and bytes put before it. Both are on pages that change with each handover. */
static uintptr_t flag_at(uint64_t number) { return number % 3 * page_bytes() + 512; }
static uintptr_t bytes_at(uint64_t number) { return number % 2 * page_bytes() + page_bytes() - 100; }

static void hand_over(uint64_t number) {
    vgasnet_node_t next = (me + 1) % ranks;
    uint64_t words[8];
    for (uint64_t i = 0; i < 8; ++i) words[i] = mixed(me, number, i);
    vgasnet_put(next, at(next, bytes_at(number)), words, sizeof words);
    vgasnet_put_val(next, at(next, flag_at(number)), number, 8);
}

/* Only loads: no call into the library. */
static void take_over(uint64_t number) {
    const uint64_t *flag = (const uint64_t *)at(me, flag_at(number));
    vgasnet_node_t before = (me + ranks - 1) % ranks;
    uint64_t words[8];
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != number) {}
    memcpy(words, at(me, bytes_at(number)), sizeof words);
    for (uint64_t i = 0; i < 8; ++i) CHECK_EQ(words[i], mixed(before, number, i));
}

int main(int argc, char **argv) {
    start(&argc, &argv, 8 * pool_bytes());
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    for (vgasnet_node_t home = 0; home < ranks; ++home) fight(home);
    for (uint64_t number = 1; number <= HANDOVERS; ++number) {
        if (me == 0) hand_over(number);
        take_over(number);
        if (me != 0) hand_over(number);
    }
    return finish();
}
