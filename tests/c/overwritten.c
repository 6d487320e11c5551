/* One rank overwrites blocks while others get bytes of them. Each get sees the old bytes or the new bytes, and
 * nothing else. Rank 0 is the home. Its threads carry operations out, too. */
#include <pthread.h>

#include "local.h"

#define BLOCK ((size_t)4096)
#define RUN 4 /* blocks of a put */
#define TURNS 1000
#define THREADS 3
#define IN_STEP 16 /* turns between two barriers, so that ranks use the same blocks at about the same time */

static vgasnet_node_t me, ranks;
static size_t blocks;
static int is_over;

/* The words of a block before and after the overwriting. */
static uint64_t word_of(size_t block, int is_new) { return (uint64_t)block << 32 | (uint64_t)is_new << 16 | 0xabcd; }

static void put_blocks(size_t first, size_t count, int is_new) {
    uint64_t *words = (uint64_t *)allocate(count * BLOCK);
    for (size_t i = 0; i < count * BLOCK / 8; ++i) words[i] = word_of(first + i / (BLOCK / 8), is_new);
    vgasnet_put_bulk(0, at(0, first * BLOCK), words, count * BLOCK);
    free(words);
}

static void check_some(uint64_t *state, size_t first) {
    size_t block = first + (size_t)random_below(state, RUN), word = (size_t)random_below(state, BLOCK / 8);
    uint64_t is = vgasnet_get_val(0, at(0, block * BLOCK + word * 8), 8);
    if (is != word_of(block, 0)) CHECK_EQ(is, word_of(block, 1));
}

/* The blocks of a turn: the same for all ranks. */
static size_t first_of(uint64_t turn) { return (size_t)(mixed(95, turn, 0) % (blocks / RUN)) * RUN; }

static void *use_here(void *argument) {
    uint64_t state = *(uint64_t *)argument;
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) check_some(&state, (size_t)random_below(&state, blocks / RUN) * RUN);
    return NULL;
}

int main(int argc, char **argv) {
    size_t pages = 16 * pool_pages(), blocks_in_page = page_bytes() / BLOCK;
    start(&argc, &argv, pages * page_bytes());
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    blocks = pages * blocks_in_page;
    uint64_t state = mixed(96, me, 0), states[THREADS];
    pthread_t threads[THREADS];
    if (me == 0)
        for (size_t page = 0; page < pages; ++page) put_blocks(page * blocks_in_page, blocks_in_page, 0);
    barrier();
    for (int i = 0; me == 0 && i < THREADS; ++i) {
        states[i] = mixed(97, me, (uint64_t)i);
        CHECK(pthread_create(&threads[i], NULL, use_here, &states[i]) == 0);
    }
    for (uint64_t turn = 0; turn < TURNS; ++turn) {
        if (me == 1) put_blocks(first_of(turn), RUN, 1);
        for (int i = 0; me > 1 && i < 4; ++i) check_some(&state, first_of(turn));
        if (turn % IN_STEP == 0) barrier();
    }
    barrier();
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    for (int i = 0; me == 0 && i < THREADS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
    return finish();
}
