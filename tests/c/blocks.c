/* Bytes written to the file after stores or puts to a part of each page: with "puts" a few bytes, with "stores"
 * whole pages. The segment is eight times the pool. Two rounds: pages never written, and pages read from the file. */
#include "check.h"

/* A put dirties a block. Clean bytes between two dirty blocks are written with them if they are fewer than the gap,
 * even across pages. */
static const size_t block_bytes = 4096, gap_bytes = 65536;

static size_t pages;

static uintptr_t place(size_t page, uint64_t round) {
    return page * page_bytes() + mixed(page, round, 1) % (page_bytes() / 8) * 8;
}

static vgasnet_stats_t now(void) {
    barrier();
    return statistics();
}

static void write_round(int stores, vgasnet_node_t target, uint64_t round) {
    for (size_t page = 0; page < pages; ++page) {
        uint64_t word = mixed(page, round, 2);
        if (stores) *(uint64_t *)at(target, place(page, round)) = word;
        else vgasnet_put(target, at(target, place(page, round)), &word, sizeof word);
    }
}

static void check_round(vgasnet_node_t target, uint64_t round) {
    for (size_t page = 0; page < pages; ++page) {
        uint64_t word;
        vgasnet_get(&word, target, at(target, place(page, round)), sizeof word);
        CHECK_EQ(word, mixed(page, round, 2));
    }
}

int main(int argc, char **argv) {
    uint64_t rounds = 2;
    start(&argc, &argv, 8 * pool_bytes());
    pages = 8 * pool_bytes() / page_bytes();
    int stores = argc > 1 && strcmp(argv[1], "stores") == 0;
    vgasnet_node_t me = vgasnet_mynode(), target = stores ? me : (me + 1) % vgasnet_nodes();
    for (uint64_t round = 0; round < rounds; ++round) {
        vgasnet_stats_t before = now();
        write_round(stores, target, round);
        vgasnet_stats_t after = now();
        uint64_t written = after.disk_write.count - before.disk_write.count;
        uint64_t bytes = after.disk_write_bytes - before.disk_write_bytes;
        /* The bytes of a write are counted shortly before the write, so a write in flight may count in different
         * rounds. */
        uint64_t frames = 2 * pool_bytes() / page_bytes();
        CHECK(written >= pages - frames);
        if (stores) CHECK(bytes >= (written - frames) * page_bytes() && bytes <= (written + frames) * page_bytes());
        else CHECK(bytes >= (written - frames) * block_bytes && bytes < (written + frames) * (block_bytes + gap_bytes));
    }
    for (uint64_t round = 0; round < rounds; ++round) check_round(me, round);
    return finish();
}
