/* A store is never lost or torn: a rank stores words and the others get them, and the others put words and the rank
 * loads them. Each word counts up. A reader finds it whole, and never decreasing. */
#include "local.h"

#define STEPS 120
/* Words of one writer in a page. */
#define PLACES 3
#define VISITS 6

static vgasnet_node_t me, ranks;
static size_t pages;
/* The last count seen in a word. */
static uint32_t *seen;

static size_t index_of(vgasnet_node_t target, size_t page, vgasnet_node_t writer, size_t place) {
    return ((target * pages + page) * ranks + writer) * PLACES + place;
}

/* Words of all writers are adjacent, at the start, in the middle and at the end of a page. */
static void *word_at(vgasnet_node_t target, size_t page, vgasnet_node_t writer, size_t place) {
    size_t begins[PLACES];
    begins[0] = 0, begins[1] = page_bytes() / 2 - 64, begins[2] = page_bytes() - ranks * 8;
    return at(target, page * page_bytes() + begins[place] + writer * 8);
}

/* A count, and a half computed from it to detect torn words. */
static uint64_t word_of(size_t index, uint32_t count) {
    uint64_t state = index * STEPS + count;
    return count == 0 ? 0 : (uint64_t)count << 32 | (uint32_t)random_word(&state);
}

static void check_word(size_t index, uint64_t word) {
    uint32_t count = (uint32_t)(word >> 32);
    CHECK_EQ(word, word_of(index, count));
    CHECK(count >= seen[index] && count <= STEPS);
    seen[index] = count;
}

/* All words of this rank in a page: stored in the own segment, put into another. */
static void write_page(vgasnet_node_t target, size_t page, uint32_t count) {
    for (size_t place = 0; place < PLACES; ++place) {
        uint64_t word = word_of(index_of(target, page, me, place), count);
        void *there = word_at(target, page, me, place);
        if (target == me) store_word(there, word);
        if (target != me) vgasnet_put(target, there, &word, sizeof word);
    }
}

/* All words of a place: loaded from the own segment, got from another one by one or all at once. */
static void read_place(uint64_t *state, vgasnet_node_t target, size_t page, size_t place) {
    uint64_t *words = (uint64_t *)allocate(ranks * sizeof *words);
    int at_once = random_below(state, 2) == 0;
    if (target != me && at_once) vgasnet_get(words, target, word_at(target, page, 0, place), ranks * sizeof *words);
    for (vgasnet_node_t writer = 0; writer < ranks; ++writer) {
        void *there = word_at(target, page, writer, place);
        if (target == me) words[writer] = load_word(there);
        if (target != me && !at_once) words[writer] = vgasnet_get_val(target, there, 8);
        check_word(index_of(target, page, writer, place), words[writer]);
    }
    free(words);
}

int main(int argc, char **argv) {
    pages = 2 * pool_pages();
    start(&argc, &argv, pages * page_bytes());
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    seen = (uint32_t *)allocate(index_of(ranks, 0, 0, 0) * sizeof *seen);
    uint64_t state = mixed(22, me, 0);
    for (uint32_t count = 1; count <= STEPS; ++count) {
        for (size_t page = 0; page < pages; ++page) write_page(me, page, count);
        for (int i = 0; i < VISITS; ++i) {
            vgasnet_node_t target = (vgasnet_node_t)random_below(&state, ranks);
            size_t page = (size_t)random_below(&state, pages);
            if (target != me) write_page(target, page, count);
            read_place(&state, target, page, (size_t)random_below(&state, PLACES));
            read_place(&state, me, page, (size_t)random_below(&state, PLACES));
        }
    }
    for (vgasnet_node_t target = 0; target < ranks; ++target)
        for (size_t page = 0; page < pages; ++page) write_page(target, page, STEPS);
    barrier();
    for (vgasnet_node_t target = 0; target < ranks; ++target)
        for (size_t page = 0; page < pages; ++page)
            for (size_t place = 0; place < PLACES; ++place) read_place(&state, target, page, place);
    for (size_t i = 0; i < index_of(ranks, 0, 0, 0); ++i) CHECK_EQ(seen[i], STEPS);
    return finish();
}
