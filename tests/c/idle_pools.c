/* One rank's working set is twice its pool, and the others wait. With VGASNET_IDLE_POOLS=1 their pools keep its
 * evicted pages, and it seldom reads them from the disk again.
 *   idle_pools gets | loads | mixed
 * mixed: gets and puts at random places, sometimes by another rank. */
#include "check.h"

enum { FEW_ROUNDS = 6, MANY_ROUNDS = 200 };

static size_t pages;
static vgasnet_node_t user;

static uintptr_t place(size_t page) { return page * page_bytes() + mixed(page, 0, 1) % (page_bytes() / 8) * 8; }

static void write_all(void) {
    for (size_t page = 0; page < pages; ++page) *(volatile uint64_t *)at(user, place(page)) = mixed(page, 0, 2);
}

static uint64_t word_of(int loads, size_t page) {
    uint64_t word;
    if (loads) return *(volatile uint64_t *)at(user, place(page));
    vgasnet_get(&word, user, at(user, place(page)), sizeof word);
    return word;
}

static void read_all(int loads) {
    for (size_t page = 0; page < pages; ++page) CHECK_EQ(word_of(loads, page), mixed(page, 0, 2));
}

/* Alone, a round reads at least the pages outside of the own pool. How soon others keep enough depends on when they
 * are asked. */
static void walk(int loads) {
    int others = getenv("VGASNET_IDLE_POOLS") != NULL, rounds = others ? MANY_ROUNDS : FEW_ROUNDS, fewer = 0;
    if (vgasnet_mynode() == user) {
        write_all();
        for (int round = 0; round < rounds && !fewer; ++round) {
            uint64_t before = statistics().disk_read.count;
            read_all(loads);
            fewer = statistics().disk_read.count - before < pages - pool_bytes() / page_bytes();
        }
        CHECK(fewer == others && (statistics().offers_kept > 0) == others);
    }
    barrier();
}

/* In each round one rank gets and puts at random. It also keeps the words in memory, and passes them to the next
 * rank. */
static void mix(void) {
    uint64_t state = number_from_environment("CHECK_SEED"), *words = (uint64_t *)calloc(pages, sizeof *words);
    CHECK(words != NULL);
    for (uint64_t round = 0; round < 12; ++round) {
        vgasnet_node_t who = (vgasnet_node_t)(round % 3 == 2 ? round % vgasnet_nodes() : user);
        for (size_t step = 0; step < 4 * pages; ++step) {
            size_t page = (size_t)random_below(&state, pages);
            uint64_t word, puts = random_below(&state, 3) == 0, next = random_word(&state);
            if (puts) words[page] = next;
            if (vgasnet_mynode() != who) continue;
            if (puts) vgasnet_put(user, at(user, place(page)), &next, sizeof next);
            vgasnet_get(&word, user, at(user, place(page)), sizeof word);
            CHECK_EQ(word, words[page]);
        }
        barrier();
    }
    free(words);
}

int main(int argc, char **argv) {
    start(&argc, &argv, 2 * pool_bytes());
    pages = 2 * pool_bytes() / page_bytes();
    user = vgasnet_nodes() - 1;
    if (argc > 1 && strcmp(argv[1], "mixed") == 0) mix();
    else walk(argc > 1 && strcmp(argv[1], "loads") == 0);
    return finish();
}
