/* One rank uses data of twice its pool, and the others wait: what it gives up stays in their pools, if VGASNET_IDLE_POOLS is not 0, and
 * is seldom read from the disk again. "gets", "loads", or "mixed": gets and puts at random places, at times by another rank. */
#include "check.h"

enum { ROUNDS = 6 };

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

static void check_reads(uint64_t reads, uint64_t kept) {
    int others = getenv("VGASNET_IDLE_POOLS") == NULL || strcmp(getenv("VGASNET_IDLE_POOLS"), "0") != 0;
    uint64_t frames = pool_bytes() / page_bytes();
    /* Without the others' pools each round reads at least what its own does not hold. */
    uint64_t alone = (ROUNDS - 1) * (pages - frames);
    if (others) CHECK(kept > 0 && reads < alone);
    else CHECK(kept == 0 && reads >= alone);
}

static void walk(int loads) {
    uint64_t reads = 0;
    if (vgasnet_mynode() == user) {
        write_all();
        read_all(loads);
        reads = statistics().disk_read.count;
        for (int round = 1; round < ROUNDS; ++round) read_all(loads);
        check_reads(statistics().disk_read.count - reads, statistics().offers_kept);
    }
    barrier();
}

/* Each round one rank gets and puts at random; the words are in memory, too, where the next one takes them over. */
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
