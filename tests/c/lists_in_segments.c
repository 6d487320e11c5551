/* Lists of addresses in the segments themselves. Each rank puts words into the next rank's page with the end of its
 * list, while the rank before does the same to it. So no rank may keep a page to itself while it waits for the next
 * part of its list. */
#include "check.h"

enum { ENTRIES = 4096, ROUNDS = 40 };

int main(int argc, char **argv) {
    vgasnet_node_t me, next;
    size_t page, half;
    void **to, **from;
    uint64_t *words, *mine;
    start(&argc, &argv, 4 * pool_bytes());
    me = vgasnet_mynode(), next = (me + 1) % vgasnet_nodes();
    page = page_bytes();
    half = ENTRIES / 2 * sizeof *to;
    /* Both lists end in the second page, and the targets are there, too. */
    to = (void **)at(me, page - half);
    from = (void **)allocate(ENTRIES * sizeof *from);
    words = (uint64_t *)allocate(ENTRIES * sizeof *words);
    mine = (uint64_t *)at(me, 2 * page - ENTRIES * sizeof *mine);
    CHECK(page + half <= 2 * page - ENTRIES * sizeof *mine);
    for (size_t i = 0; i < ENTRIES; ++i) {
        to[i] = at(next, 2 * page - (i + 1) * sizeof *mine);
        from[i] = &words[i];
    }
    barrier();
    for (uint64_t round = 0; round < ROUNDS; ++round) {
        for (size_t i = 0; i < ENTRIES; ++i) words[i] = mixed(me, round, i);
        vgasnet_puti_bulk(next, ENTRIES, to, sizeof *words, ENTRIES, from, sizeof *words);
        /* Other pages for the pool. */
        for (size_t at_page = 2; at_page < 4 * pool_bytes() / page; ++at_page) {
            vgasnet_get(&words[0], me, at(me, at_page * page), sizeof words[0]);
        }
        barrier();
        for (size_t i = 0; i < ENTRIES; ++i) {
            vgasnet_node_t before = (me + vgasnet_nodes() - 1) % vgasnet_nodes();
            CHECK_EQ(mine[ENTRIES - 1 - i], mixed(before, round, i));
        }
        barrier();
    }
    return finish();
}
