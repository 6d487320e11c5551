/* Words scattered over large pages, few in each page, of segments sixteen pools long. scattered PART
 *   counted [0]  the statistics of puts and gets of the words; 0: VGASNET_SHIP is 0
 *   blocks       words in more blocks than a home keeps, between accesses that move pages
 *   one-disk     all ranks put to and get from rank 0
 *   shared [0]   all ranks put to the same page in rotation: it hardly moves
 *   home, owner  the last rank has the pages used by all others, as their home or from rank 0, and is killed */
#include <unistd.h>

#include "local.h"

#define BLOCK ((size_t)4096)
#define PUTS 12 /* per page; it would move after more */
#define GETS 4
#define OPERATIONS 3000
#define ROUNDS 200
/* Puts of a rank between two barriers. A rank may be the last of one round and the first of the next. After more
 * puts in a row the page would move to it. */
#define TURN 4

static vgasnet_node_t me, ranks;
static size_t pages, blocks_in_page;

/* Words of the ranks are adjacent. */
static void *word_in(vgasnet_node_t target, size_t block) { return at(target, block * BLOCK + 1000 + 8 * me); }

/* The same blocks of a page for all ranks. Blocks with puts have even numbers. */
static size_t block_of(size_t page, size_t number, int is_put) {
    size_t pairs = blocks_in_page / 2;
    return page * blocks_in_page + (size_t)(mixed(91, page, 0) + number * 37) % pairs * 2 + !is_put;
}

static void put_words(vgasnet_node_t target) {
    for (size_t number = 0; number < PUTS; ++number)
        for (size_t page = 0; page < pages; ++page)
            vgasnet_put_val(target, word_in(target, block_of(page, number, 1)), mixed(92, page, number), 8);
}

/* Words that were put, and unwritten words of the same pages. */
static void get_words(vgasnet_node_t target) {
    for (size_t number = 0; number < GETS; ++number)
        for (size_t page = 0; page < pages; ++page) {
            void *put = word_in(target, block_of(page, number, 1)), *other = word_in(target, block_of(page, number, 0));
            CHECK_EQ(vgasnet_get_val(target, put, 8), mixed(92, page, number));
            CHECK_EQ(vgasnet_get_val(target, other, 8), 0);
        }
}

static uint64_t misses(const vgasnet_stats_t *stats) {
    return stats->miss_own_disk.count + stats->miss_neighbour.count + stats->miss_other_host.count + stats->miss_zeros.count;
}

static uint64_t page_in_bytes(const vgasnet_stats_t *stats) {
    return stats->page_in_neighbour_bytes + stats->page_in_other_host_bytes;
}

/* Each rank uses the next rank's segment, so all have the same counts. */
static void check_shipped(const vgasnet_stats_t *before, const vgasnet_stats_t *after, uint64_t operations) {
    uint64_t elsewhere = ranks > 1 ? operations : 0;
    CHECK_EQ(after->shipped.count - before->shipped.count, elsewhere);
    CHECK_EQ(after->served_pieces - before->served_pieces, elsewhere);
    CHECK_EQ(after->in_blocks - before->in_blocks, operations);
    CHECK_EQ(misses(after), misses(before));
    CHECK_EQ(page_in_bytes(after), page_in_bytes(before));
    CHECK_EQ(after->hit_gets + after->hit_puts, before->hit_gets + before->hit_puts);
}

static void check_counts(int ships) {
    vgasnet_node_t target = (me + 1) % ranks;
    vgasnet_stats_t start = statistics();
    barrier();
    put_words(target);
    barrier();
    vgasnet_stats_t between = statistics();
    barrier();
    get_words(target);
    barrier();
    vgasnet_stats_t end = statistics();
    if (!ships) {
        CHECK_EQ(end.shipped.count + end.served_pieces + end.in_blocks, 0);
        CHECK_EQ(end.block_hits + end.block_reads + end.block_writes, 0);
        CHECK(misses(&end) > misses(&start));
        return;
    }
    check_shipped(&start, &between, PUTS * pages);
    check_shipped(&between, &end, 2 * GETS * pages);
    uint64_t gets = end.in_blocks - between.in_blocks, hits = end.block_hits - between.block_hits;
    /* Words without puts are known to be zeros. */
    CHECK(gets - hits >= GETS * pages && hits > 0);
    CHECK_EQ(end.block_reads - between.block_reads, gets - hits - GETS * pages);
    /* Dirty blocks are written behind when few other blocks are left. */
    CHECK(end.block_writes <= PUTS * pages);
    CHECK(end.disk_write_bytes <= PUTS * pages * BLOCK);
}

/* This rank's word of a block after `version` puts. */
static uint64_t expected(vgasnet_node_t target, size_t block, unsigned char version) {
    return version == 0 ? 0 : mixed((uint64_t)me << 32 | target, block, version);
}

static void check_word(vgasnet_node_t target, size_t block, unsigned char version) {
    uint64_t word;
    vgasnet_get(&word, target, word_in(target, block), sizeof word);
    CHECK_EQ(word, expected(target, block, version));
}

/* A get too long to be carried out at the page's rank: the page moves. */
static void check_long(vgasnet_node_t target, size_t first, const unsigned char *versions, unsigned char *got) {
    size_t count = least(32, blocks_in_page);
    vgasnet_get_bulk(got, target, at(target, first * BLOCK), count * BLOCK);
    for (size_t i = 0; i < count; ++i) {
        uint64_t word;
        memcpy(&word, got + i * BLOCK + 1000 + 8 * me, sizeof word);
        CHECK_EQ(word, expected(target, first + i, versions[first + i]));
    }
}

static void use_block(uint64_t *state, unsigned char *all_versions, unsigned char *got) {
    vgasnet_node_t target = (vgasnet_node_t)random_below(state, ranks);
    unsigned char *versions = all_versions + target * pages * blocks_in_page;
    size_t page = (size_t)random_below(state, pages), first = page * blocks_in_page;
    size_t block = first + (size_t)random_below(state, blocks_in_page);
    switch (random_below(state, 64)) {
    case 0:
        check_long(target, first, versions, got);
        break;
    case 1:
        if (target == me) store_word(word_in(me, block), expected(me, block, ++versions[block]));
        break;
    case 2:
        CHECK(vgasnet_advise(at(me, page * page_bytes()), page_bytes(), VGASNET_ADVISE_DONTNEED) == VGASNET_OK);
        break;
    case 3:
    case 4:
        check_word(target, block, versions[block]);
        break;
    default:
        ++versions[block];
        vgasnet_put_val(target, word_in(target, block), expected(target, block, versions[block]), 8);
        if (block % 2 == 0) check_word(target, block, versions[block]);
    }
}

static void use_blocks(void) {
    size_t blocks = pages * blocks_in_page;
    unsigned char *versions = (unsigned char *)allocate(ranks * blocks), *got = (unsigned char *)allocate(32 * BLOCK);
    uint64_t state = mixed(93, me, 0);
    for (int i = 0; i < OPERATIONS; ++i) use_block(&state, versions, got);
    barrier();
    for (size_t block = 0; block < ranks * blocks; ++block)
        if (versions[block] != 0) check_word((vgasnet_node_t)(block / blocks), block % blocks, versions[block]);
}

/* Ranks put to adjacent bytes. A page moves until all ranks know that they write it in rotation. */
static void share_page(int ships) {
    vgasnet_stats_t before = statistics();
    for (uint64_t round = 0; round < ROUNDS; ++round) {
        for (uint64_t put = 0; put < TURN; ++put) vgasnet_put_val(0, at(0, me * TURN + put), round, 1);
        barrier();
    }
    vgasnet_stats_t after = statistics();
    for (size_t put = 0; put < ranks * TURN; ++put) CHECK_EQ(vgasnet_get_val(0, at(0, put), 1), ROUNDS - 1);
    void *sum = at(0, page_bytes());
    vgasnet_atomic_fetch_add_u64(0, sum, page_in_bytes(&after) - page_in_bytes(&before));
    barrier();
    uint64_t moved = vgasnet_get_val(0, sum, 8) / page_bytes();
    if (ships) CHECK(moved <= 4 * ranks);
    else CHECK(moved >= ROUNDS);
}

/* All ranks but the last use words of one page for ever. The last waits to be killed. */
static void use_for_ever(int is_owner) {
    vgasnet_node_t home = is_owner ? 0 : ranks - 1;
    if (me == ranks - 1) {
        unsigned char *bytes = (unsigned char *)allocate(page_bytes());
        if (is_owner) vgasnet_put_bulk(home, at(home, 0), bytes, page_bytes());
        free(bytes);
    }
    barrier();
    if (me == ranks - 1) {
        printf("ready %ld\n", (long)getpid()), fflush(stdout);
        for (;;) pause();
    }
    for (;;) vgasnet_atomic_fetch_add_u64(home, at(home, 8 * me), 1);
}

int main(int argc, char **argv) {
    pages = 16 * pool_pages(), blocks_in_page = page_bytes() / BLOCK;
    start(&argc, &argv, pages * page_bytes());
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    CHECK(argc > 1);
    int ships = argc == 2;
    if (strcmp(argv[1], "counted") == 0) check_counts(ships);
    if (strcmp(argv[1], "blocks") == 0) use_blocks();
    if (strcmp(argv[1], "one-disk") == 0) put_words(0), get_words(0);
    if (strcmp(argv[1], "shared") == 0) share_page(ships);
    if (strcmp(argv[1], "home") == 0) use_for_ever(0);
    if (strcmp(argv[1], "owner") == 0) use_for_ever(1);
    return finish();
}
