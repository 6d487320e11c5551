/* All ranks contend for one page. Each has its own counters in it: no count is lost or decreases. */
#include "check.h"

#define ROUNDS 150

static vgasnet_node_t me, ranks;

/* Adjacent bytes in the middle of the page, and words at its end that cross into the next page. */
static void *byte_of(vgasnet_node_t rank) { return at(0, page_bytes() / 2 + rank); }
static void *word_of(vgasnet_node_t rank) { return at(0, page_bytes() - 4 + 8 * rank); }

int main(int argc, char **argv) {
    start(&argc, &argv, 3 * page_bytes());
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    uint64_t *seen = (uint64_t *)allocate(ranks * sizeof *seen);
    uint64_t state = mixed(8, me, 0);
    barrier();
    for (uint64_t count = 0; count < ROUNDS; ++count) {
        CHECK_EQ(vgasnet_get_val(0, byte_of(me), 1), count & 0xff);
        CHECK_EQ(vgasnet_get_val(0, word_of(me), 8), count);
        vgasnet_put_val(0, byte_of(me), count + 1, 1);
        vgasnet_wait_syncnb(vgasnet_put_nb_val(0, word_of(me), count + 1, 8));
        /* Another rank's low-order half is in one page, and each put changes it at once. */
        vgasnet_node_t other = (vgasnet_node_t)random_below(&state, ranks);
        uint64_t now = vgasnet_get_val(0, word_of(other), 4);
        CHECK(now >= seen[other] && now <= ROUNDS);
        seen[other] = now;
    }
    barrier();
    for (vgasnet_node_t rank = 0; rank < ranks; ++rank) {
        CHECK_EQ(vgasnet_get_val(0, byte_of(rank), 1), ROUNDS & 0xff);
        CHECK_EQ(vgasnet_get_val(0, word_of(rank), 8), ROUNDS);
    }
    return finish();
}
