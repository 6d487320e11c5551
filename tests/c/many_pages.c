/* Loads and stores of random words, in a pool with more pages than the system allows mappings. */
#include <time.h>

#include "local.h"

static vgasnet_node_t me;
static size_t pages;
/* Uses of the page's word, and its stores. */
static uint32_t *uses, *stores;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void *word_at(size_t page) { return at(me, page * page_bytes() + page * 8 % page_bytes()); }
static uint64_t word_of(size_t page) { return stores[page] == 0 ? 0 : page << 32 | stores[page]; }

static void use_at_random(uint64_t *state, size_t accesses) {
    double begin = seconds();
    for (size_t i = 0; i < accesses; ++i) {
        size_t page = (size_t)random_below(state, pages);
        CHECK_EQ(load_word(word_at(page)), word_of(page));
        ++uses[page];
        if (random_below(state, 4) != 0) continue;
        ++stores[page];
        store_word(word_at(page), word_of(page));
    }
    size_t used = 0;
    for (size_t page = 0; page < pages; ++page) used += uses[page] > 0;
    printf("%zu accesses, %zu pages used so far: %.1f s\n", accesses, used, seconds() - begin);
}

int main(int argc, char **argv) {
    pages = pool_pages();
    start(&argc, &argv, pages * page_bytes());
    me = vgasnet_mynode();
    uses = (uint32_t *)allocate(pages * sizeof *uses);
    stores = (uint32_t *)allocate(pages * sizeof *stores);
    uint64_t state = mixed(29, me, 0);
    /* At first most accesses find a new page, later most find a mapped one. */
    use_at_random(&state, pages);
    use_at_random(&state, pages / 8);
    for (size_t page = 0; page < pages; ++page)
        if (stores[page] > 0) CHECK_EQ(load_word(word_at(page)), word_of(page));
    return finish();
}
