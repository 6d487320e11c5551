/* Loads and stores of few words in large pages. Only blocks of the pages are read and mapped. partly PART
 *   counted [0]  the statistics of these accesses; 0: VGASNET_SHIP is 0
 *   all          threads load and store words of the own segment, between gets, puts and atomic operations
 *                of all ranks, and moves of whole pages */
#include <pthread.h>

#include "local.h"

#define BLOCK ((size_t)4096)
#define THREADS 3
#define OPERATIONS 4000
#define COPY ((size_t)16 << 10)

static vgasnet_node_t me, ranks;
static size_t pages, blocks_in_page;

static uint64_t misses(const vgasnet_stats_t *stats) { return stats->miss_own_disk.count + stats->miss_zeros.count; }

/* Leaves no page of the own segment in the pool. */
static void drop_all(void) {
    CHECK(vgasnet_advise(at(me, 0), pages * page_bytes(), VGASNET_ADVISE_DONTNEED) == VGASNET_OK);
    barrier();
}

static void *word_of(size_t page) {
    return at(me, page * page_bytes() + (size_t)(mixed(94, page, 0) % blocks_in_page) * BLOCK + 808);
}

static void write_all(void) {
    unsigned char *bytes = (unsigned char *)allocate(page_bytes());
    for (size_t page = 0; page < pages; ++page) {
        memset(bytes, (int)(page % 251), page_bytes());
        vgasnet_put_bulk(me, at(me, page * page_bytes()), bytes, page_bytes());
    }
    free(bytes);
    drop_all();
}

/* A word of a page without accesses since write_all. */
static uint64_t untouched(size_t page) { return UINT64_C(0x0101010101010101) * (page % 251); }

static void check_counts(int ships) {
    write_all();
    vgasnet_stats_t start = statistics();
    for (size_t page = 0; page < pages; ++page) CHECK_EQ(load_word(word_of(page)), untouched(page));
    vgasnet_stats_t loaded = statistics();
    for (size_t page = 0; page < pages; ++page) store_word(word_of(page), mixed(95, me, page));
    vgasnet_stats_t stored = statistics();
    uint64_t mapped = loaded.fault_block - start.fault_block, again = stored.fault_block - loaded.fault_block;
    if (ships) {
        /* A few pages may still be leaving the pool. */
        uint64_t whole = pages - mapped;
        CHECK(mapped <= pages && whole <= pool_pages());
        CHECK(loaded.disk_read_bytes - start.disk_read_bytes <= mapped * BLOCK + whole * page_bytes());
        CHECK(misses(&loaded) <= misses(&start) + whole);
        /* The other blocks were in memory. */
        CHECK(again >= mapped && again <= pages);
        CHECK_EQ(stored.disk_read_bytes - loaded.disk_read_bytes, (again - mapped) * BLOCK);
        CHECK_EQ(misses(&stored), misses(&loaded));
    } else {
        CHECK_EQ(stored.fault_block, 0);
        CHECK(loaded.disk_read_bytes - start.disk_read_bytes >= pages / 2 * page_bytes());
    }
    for (size_t page = 0; page < pages; ++page) {
        CHECK_EQ(load_word(word_of(page)), mixed(95, me, page));
        CHECK_EQ(vgasnet_get_val(me, word_of(page), 8), mixed(95, me, page));
    }
    if (ships) CHECK(statistics().fault_block <= stored.fault_block + pool_pages());
    /* Sequential reads fetch whole pages. */
    start = statistics();
    for (size_t i = 0; i < page_bytes() / 8; i += 8) CHECK_EQ(load_word(at(me, page_bytes() + 8 * i)), untouched(1));
    vgasnet_stats_t scanned = statistics();
    CHECK(misses(&scanned) <= misses(&start) + pool_pages() && scanned.fault_block <= start.fault_block + 8);
}

typedef struct {
    size_t number;
    unsigned char *versions, *bridges;
    uint64_t added;
} Worker;

static uint64_t expected(size_t number, size_t block, unsigned char version) {
    return version == 0 ? 0 : mixed((uint64_t)me << 32 | number, block, version);
}

/* A word of this thread. */
static unsigned char *place(size_t number, size_t block) { return (unsigned char *)at(me, block * BLOCK + 64 * number + 8); }

/* A word that all ranks add to. */
static unsigned char *tally(vgasnet_node_t rank, size_t block) {
    return (unsigned char *)at(rank, block * BLOCK + BLOCK - 16);
}

static void check_load(const Worker *worker, size_t block) {
    CHECK_EQ(load_word(place(worker->number, block)), expected(worker->number, block, worker->versions[block]));
}

/* Adjacent blocks with words of this thread. */
static void check_copy(const Worker *worker, size_t block, unsigned char *copy) {
    size_t count = least(COPY / BLOCK, pages * blocks_in_page - block);
    vgasnet_get_bulk(copy, me, at(me, block * BLOCK), count * BLOCK);
    for (size_t i = 0; i < count; ++i) {
        uint64_t word;
        memcpy(&word, copy + i * BLOCK + 64 * worker->number + 8, sizeof word);
        CHECK_EQ(word, expected(worker->number, block + i, worker->versions[block + i]));
    }
}

/* A word of this thread in two blocks, perhaps of two pages. */
static void use_bridge(Worker *worker, size_t block) {
    if (block == 0 || block % THREADS != worker->number) return;
    unsigned char *bridge = (unsigned char *)at(me, block * BLOCK - 4);
    uint64_t word, next;
    copy_piece(&word, bridge, sizeof word);
    CHECK_EQ(word, expected(THREADS, block, worker->bridges[block]));
    ++worker->bridges[block];
    next = expected(THREADS, block, worker->bridges[block]);
    copy_piece(bridge, &next, sizeof next);
}

static void add(Worker *worker, vgasnet_node_t rank, size_t block) {
    vgasnet_atomic_fetch_add_u64(rank, tally(rank, block), 1);
    ++worker->added;
}

static void put_word(Worker *worker, size_t block) {
    ++worker->versions[block];
    vgasnet_put_val(me, place(worker->number, block), expected(worker->number, block, worker->versions[block]), 8);
    check_load(worker, block);
}

static void store_one(Worker *worker, size_t block) {
    check_load(worker, block);
    ++worker->versions[block];
    store_word(place(worker->number, block), expected(worker->number, block, worker->versions[block]));
    if (block % 3 == 0) check_load(worker, block);
}

static void use_block(Worker *worker, uint64_t *state, unsigned char *copy) {
    size_t block = (size_t)random_below(state, pages * blocks_in_page);
    uint64_t what = random_below(state, 128);
    if (what == 0) {
        CHECK(vgasnet_advise(at(me, block * BLOCK), BLOCK, VGASNET_ADVISE_WILLNEED) == VGASNET_OK);
    } else if (what < 5) {
        check_copy(worker, block, copy);
    } else if (what < 20) {
        uint64_t word = vgasnet_get_val(me, place(worker->number, block), 8);
        CHECK_EQ(word, expected(worker->number, block, worker->versions[block]));
    } else if (what < 35) {
        put_word(worker, block);
    } else if (what < 60) {
        add(worker, (vgasnet_node_t)random_below(state, ranks), block);
    } else if (what < 90) {
        use_bridge(worker, block);
    } else {
        store_one(worker, block);
    }
}

static void *work(void *argument) {
    Worker *worker = (Worker *)argument;
    unsigned char *copy = (unsigned char *)allocate(COPY);
    uint64_t state = mixed(96, me, worker->number);
    for (int i = 0; i < OPERATIONS; ++i) use_block(worker, &state, copy);
    free(copy);
    return NULL;
}

static void use_all(void) {
    pthread_t threads[THREADS];
    Worker workers[THREADS];
    size_t blocks = pages * blocks_in_page;
    for (size_t i = 0; i < THREADS; ++i) {
        workers[i].number = i, workers[i].added = 0;
        workers[i].versions = (unsigned char *)allocate(blocks), workers[i].bridges = (unsigned char *)allocate(blocks);
        CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    uint64_t added = 0, found = 0;
    for (size_t i = 0; i < THREADS; ++i) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        added += workers[i].added;
    }
    barrier();
    for (size_t block = 0; block < blocks; ++block) {
        for (size_t i = 0; i < THREADS; ++i) check_load(&workers[i], block);
        found += load_word(tally(me, block));
    }
    barrier();
    /* All additions minus all sums found, in the first word of rank 0. The result must be 0. */
    vgasnet_atomic_fetch_add_u64(0, at(0, 0), added - found);
    barrier();
    CHECK_EQ(vgasnet_get_val(0, at(0, 0), 8), 0);
    for (size_t i = 0; i < THREADS; ++i) free(workers[i].versions), free(workers[i].bridges);
}

int main(int argc, char **argv) {
    CHECK(argc > 1);
    pages = 8 * pool_pages(), blocks_in_page = page_bytes() / BLOCK;
    start(&argc, &argv, pages * page_bytes());
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    if (strcmp(argv[1], "counted") == 0) check_counts(argc == 2);
    if (strcmp(argv[1], "all") == 0) use_all();
    return finish();
}
