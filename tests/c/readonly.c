/* Ranges declared read-only, phase after phase, with writes between. readonly PART
 *   phases   gets of all kinds by two threads of each rank, most of them from few places; each phase has new blocks
 *   kept     copies of an earlier phase are used again, except copies of a written page
 *   misuse   refused calls of begin, end and stats
 *   list     a list of gets from a range names one place twice, and then one outside
 *   broken R W P  rank R writes to a range declared by rank 0, in way W (put, store, atomic, list, value, set)
 *                 at place P: inside or start */
#include <pthread.h>

#include "local.h"

#define BLOCK ((size_t)4096)
#define PHASES 6
#define GETS 1500
#define RANGES 3
#define THREADS 2
#define PLACES 60
#define LEN_MAX ((size_t)70000)
#define PENDING 8

static vgasnet_node_t me, ranks;
static size_t segment_bytes;
static uint64_t seed;

static uint64_t drawn(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t state = seed ^ a * UINT64_C(0x9e3779b97f4a7c15) ^ b * UINT64_C(0xc2b2ae3d27d4eb4f) ^ c * UINT64_C(0x165667b19e3779f9);
    return random_word(&state);
}

/* Whether a block of a rank's segment is written before a phase. */
static int is_written(vgasnet_node_t rank, size_t block, uint64_t phase) {
    return phase == 0 || drawn(1 + rank, block, phase) % 4 == 0;
}

/* The phase of the last write to the block, at or before `phase`. */
static uint64_t version(vgasnet_node_t rank, size_t block, uint64_t phase) {
    while (!is_written(rank, block, phase)) --phase;
    return phase;
}

static uint64_t word_at(vgasnet_node_t rank, size_t word, uint64_t written) { return drawn(1000 + rank, word, written); }

/* The bytes of a segment in a phase. */
static void expect(unsigned char *bytes, vgasnet_node_t rank, size_t offset, size_t len, uint64_t phase) {
    for (size_t done = 0; done < len;) {
        size_t byte = (offset + done) % 8, more = least(8 - byte, len - done);
        uint64_t word = word_at(rank, (offset + done) / 8, version(rank, (offset + done) / BLOCK, phase));
        memcpy(bytes + done, (unsigned char *)&word + byte, more);
        done += more;
    }
}

/* Each block is written by some rank, in some way. */
static void write_blocks(uint64_t phase) {
    uint64_t words[BLOCK / 8];
    for (vgasnet_node_t rank = 0; rank < ranks; ++rank)
        for (size_t block = 0; block < segment_bytes / BLOCK; ++block) {
            uint64_t by = drawn(2000 + rank, block, phase);
            if (!is_written(rank, block, phase) || by % ranks != me) continue;
            for (size_t i = 0; i < BLOCK / 8; ++i) words[i] = word_at(rank, block * (BLOCK / 8) + i, phase);
            if (by / ranks % 3 == 0 && rank == me)
                for (size_t i = 0; i < BLOCK / 8; ++i) store_word(at(me, block * BLOCK + 8 * i), words[i]);
            else if (by / ranks % 3 == 1)
                for (size_t i = 0; i < BLOCK / 8; ++i) vgasnet_atomic_u64_nbi(NULL, rank, at(rank, block * BLOCK + 8 * i), VGASNET_ATOMIC_SWAP, words[i], 0);
            else
                vgasnet_put_bulk(rank, at(rank, block * BLOCK), words, BLOCK);
        }
    vgasnet_wait_syncnbi_all();
}

/* A third of the segment each, except for a few undeclared bytes at its end. */
static size_t range_start(unsigned range) { return range * (segment_bytes / RANGES); }
static size_t range_len(unsigned range) { return segment_bytes / RANGES - 100 * range; }

static vgasnet_readonly_options_t options_of(unsigned range) {
    vgasnet_readonly_options_t options = {sizeof options, 0, 0, 0};
    if (range == 1) options.object_bytes = 48, options.cache_bytes_max = (size_t)256 << 10;
    if (range == 2) options.get_bytes_max = 500, options.cache_bytes_max = (size_t)64 << 10;
    return options;
}

static void declare(uint64_t phase) {
    for (vgasnet_node_t rank = 0; rank < ranks; ++rank)
        for (unsigned range = 0; range < RANGES; ++range) {
            vgasnet_readonly_options_t options = options_of(range);
            int flags = (range + rank) % 2 == 0 ? VGASNET_READONLY_KEEP : 0;
            /* Sometimes a range is not declared. */
            if (drawn(3000 + rank, range, phase) % 8 == 0) continue;
            CHECK(vgasnet_readonly_begin(rank, at(rank, range_start(range)), range_len(range), flags, range == 0 ? NULL : &options) == VGASNET_OK);
        }
}

/* Writes the same bytes again next to declared ranges. */
static void write_adjacent(uint64_t phase) {
    unsigned char bytes[200];
    for (vgasnet_node_t rank = 0; rank < ranks; ++rank)
        for (unsigned range = 1; range < RANGES; ++range) {
            size_t start = range_start(range) + range_len(range), len = 100 * range;
            expect(bytes, rank, start, len, phase);
            vgasnet_put(rank, at(rank, start), bytes, len);
        }
}

static void end_all(uint64_t phase) {
    for (vgasnet_node_t rank = 0; rank < ranks; ++rank)
        for (unsigned range = 0; range < RANGES; ++range)
            if (drawn(3000 + rank, range, phase) % 8 != 0)
                CHECK(vgasnet_readonly_end(rank, at(rank, range_start(range)), range_len(range)) == VGASNET_OK);
}

typedef struct {
    vgasnet_node_t rank;
    size_t offset, len;
} Get;

/* Mostly at one of few places, for the same bytes, or fewer, or more. */
static Get draw_get(uint64_t *state) {
    Get get;
    uint64_t place = random_below(state, 8) == 0 ? random_word(state) : random_below(state, PLACES);
    get.rank = (vgasnet_node_t)(drawn(4000, place, 0) % ranks);
    get.len = random_below(state, 3) != 0 ? (size_t)(drawn(4001, place, 0) % 600) : random_length(state, LEN_MAX);
    get.offset = (size_t)(drawn(4002, place, 0) % segment_bytes);
    get.offset = least(get.offset, segment_bytes - get.len);
    return get;
}

static void check_got(const Get *get, const unsigned char *got, uint64_t phase) {
    unsigned char *should = (unsigned char *)allocate(get->len);
    expect(should, get->rank, get->offset, get->len, phase);
    check_bytes(got, should, get->len, "a get in a phase");
    free(should);
}

static void get_value(const Get *get, unsigned char *to, int waits) {
    size_t len = get->len % 8 + 1;
    Get value_of = {get->rank, least(get->offset, segment_bytes - len), len};
    uint64_t value = 0;
    void *from = at(value_of.rank, value_of.offset);
    value = waits ? vgasnet_get_val(value_of.rank, from, len) : vgasnet_wait_syncnb_valget(vgasnet_get_nb_val(value_of.rank, from, len));
    memcpy(to, &value, len);
}

/* Two regions, or strided ones, which together are the whole. */
static void get_list(const Get *get, unsigned char *to, int is_strided) {
    unsigned char *from = (unsigned char *)at(get->rank, get->offset);
    if (is_strided) {
        size_t counts[2], stride = 24;
        counts[0] = 24, counts[1] = get->len / 24;
        vgasnet_gets_bulk(to, &stride, get->rank, from, &stride, counts, 1);
        vgasnet_get(to + get->len / 24 * 24, get->rank, from + get->len / 24 * 24, get->len % 24);
    } else {
        size_t half = get->len / 2;
        vgasnet_memvec_t here[2] = {{to + half, get->len - half}, {to, half}}, there[2] = {{from + half, get->len - half}, {from, half}};
        vgasnet_getv_bulk(2, here, get->rank, 2, there);
    }
}

typedef struct {
    uint64_t state, phase;
    unsigned char *bytes;
} Worker;

static void get_batch(Worker *worker) {
    Get gets[PENDING];
    vgasnet_handle_t handles[PENDING];
    unsigned form = (unsigned)random_below(&worker->state, 6);
    for (unsigned i = 0; i < PENDING; ++i) {
        unsigned char *to = worker->bytes + i * (LEN_MAX + 8);
        gets[i] = draw_get(&worker->state);
        void *from = at(gets[i].rank, gets[i].offset);
        handles[i] = VGASNET_INVALID_HANDLE;
        if (form == 0) handles[i] = vgasnet_get_nb(to, gets[i].rank, from, gets[i].len);
        if (form == 1) vgasnet_get_nbi_bulk(to, gets[i].rank, from, gets[i].len);
        if (form == 2) vgasnet_get_weighted(to, gets[i].rank, from, gets[i].len, (float)(1 + i));
        if (form == 3) vgasnet_get(to, gets[i].rank, from, gets[i].len);
        if (form == 4) get_list(&gets[i], to, i % 2);
        if (form == 5) {
            get_value(&gets[i], to, i % 2);
            gets[i].len = gets[i].len % 8 + 1;
            gets[i].offset = least(gets[i].offset, segment_bytes - gets[i].len);
        }
    }
    vgasnet_wait_syncnb_all(handles, PENDING);
    vgasnet_wait_syncnbi_gets();
    for (unsigned i = 0; i < PENDING; ++i) check_got(&gets[i], worker->bytes + i * (LEN_MAX + 8), worker->phase);
}

static void *work(void *argument) {
    Worker *worker = (Worker *)argument;
    worker->bytes = (unsigned char *)allocate(PENDING * (LEN_MAX + 8));
    for (int i = 0; i < GETS / PENDING; ++i) get_batch(worker);
    free(worker->bytes);
    return NULL;
}

static void check_stats(int saw_hits) {
    vgasnet_readonly_stats_t stats;
    uint64_t gets;
    CHECK(vgasnet_readonly_stats(&stats, sizeof stats) == VGASNET_OK);
    CHECK(vgasnet_readonly_stats(&stats, sizeof stats) == VGASNET_OK);
    CHECK(vgasnet_readonly_stats((vgasnet_readonly_stats_t *)&gets, sizeof gets) == VGASNET_OK);
    CHECK_EQ(gets, stats.gets);
    CHECK(stats.hits + stats.partial + stats.joined + stats.direct + stats.conflicting + stats.capacity + stats.failing <= stats.gets);
    CHECK(stats.bytes_used <= stats.bytes_max);
    CHECK(!saw_hits || (stats.hits > 0 && stats.bytes_hit > 0));
}

static void run_phases(void) {
    pthread_t threads[THREADS];
    Worker workers[THREADS];
    for (uint64_t phase = 0; phase < PHASES; ++phase) {
        write_blocks(phase);
        barrier();
        declare(phase);
        for (unsigned i = 0; i < THREADS; ++i) {
            workers[i].state = drawn(5000 + me, i, phase), workers[i].phase = phase;
            CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
        }
        write_adjacent(phase);
        for (unsigned i = 0; i < THREADS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
        end_all(phase);
        barrier();
    }
    /* A pool with room for everything makes copies needless. */
    check_stats(segment_bytes > 2 * pool_bytes());
}

/* All ranks have written the last rank's segment, so some may still write it without a message. */
static void break_promise(vgasnet_node_t breaker, const char *way, const char *place) {
    vgasnet_node_t target = ranks - 1;
    size_t start = page_bytes() / 2 + 8, len = segment_bytes - page_bytes();
    char *there = (char *)at(target, strcmp(place, "start") == 0 ? start + 16 : start + 2 * page_bytes());
    uint64_t word = 1;
    for (size_t page = me; page < segment_bytes / page_bytes(); page += ranks)
        vgasnet_memset(target, at(target, page * page_bytes()), (int)(page % 100 + 7), page_bytes());
    barrier();
    if (me == 0) CHECK(vgasnet_readonly_begin(target, at(target, start), len, 0, NULL) == VGASNET_OK);
    barrier();
    CHECK(vgasnet_get_val(target, there, 8) != 1);
    barrier();
    if (me == breaker) {
        vgasnet_memvec_t here = {&word, sizeof word}, remote = {there, sizeof word};
        if (strcmp(way, "put") == 0) vgasnet_put(target, there, &word, sizeof word);
        if (strcmp(way, "store") == 0) store_word(there, word);
        if (strcmp(way, "atomic") == 0) vgasnet_atomic_u64(target, there, VGASNET_ATOMIC_SWAP, word, 0);
        if (strcmp(way, "list") == 0) vgasnet_putv_bulk(target, 1, &remote, 1, &here);
        if (strcmp(way, "value") == 0) vgasnet_put_val(target, there, word, 8);
        if (strcmp(way, "set") == 0) vgasnet_memset(target, there, 0, 8);
    }
    barrier();
    if (me == 0) vgasnet_readonly_end(target, at(target, start), len);
    barrier();
}

#define KEPT_PAGES 20
#define WORDS_IN_PAGE ((size_t)1)

/* Gets words of the last rank's pages. One page has another number than the others. Returns the fetched words, and
 * counts the hits. A page fetched too often moves here as a whole, and its gets are neither. */
static uint64_t get_words(size_t changed, uint64_t number, uint64_t *hits) {
    vgasnet_node_t target = ranks - 1;
    static const size_t order[KEPT_PAGES] = {0, 13, 6, 18, 3, 10, 16, 8, 1, 14, 5, 19, 11, 2, 17, 7, 12, 4, 15, 9};
    vgasnet_readonly_stats_t before, after;
    CHECK(vgasnet_readonly_begin(target, at(target, 0), segment_bytes, VGASNET_READONLY_KEEP, NULL) == VGASNET_OK);
    CHECK(vgasnet_readonly_stats(&before, sizeof before) == VGASNET_OK);
    /* In an order without streams. */
    for (size_t i = 0; i < WORDS_IN_PAGE; ++i)
        for (size_t k = 0; k < KEPT_PAGES; ++k) {
            size_t page = order[k];
            CHECK_EQ(vgasnet_get_val(target, at(target, page * page_bytes() + BLOCK * i + 16), 8), page == changed ? number : page);
        }
    CHECK(vgasnet_readonly_stats(&after, sizeof after) == VGASNET_OK);
    CHECK(vgasnet_readonly_end(target, at(target, 0), segment_bytes) == VGASNET_OK);
    *hits = after.hits - before.hits;
    return after.gets - after.hits - (before.gets - before.hits);
}

/* The last rank writes its own pages, and waits until they are written back. From then on all gets are hits, except
 * on the page changed since the last phase. */
static void keep(void) {
    uint64_t hits = 0, is_over = 0;
    for (size_t page = 0; page < KEPT_PAGES && me == ranks - 1; ++page)
        for (size_t i = 0; i < WORDS_IN_PAGE; ++i) vgasnet_put_val(me, at(me, page * page_bytes() + BLOCK * i + 16), page, 8);
    CHECK(vgasnet_advise(at(me, 0), segment_bytes, VGASNET_ADVISE_DONTNEED) == VGASNET_OK);
    for (uint64_t phase = 0; !is_over; ++phase) {
        size_t changed = phase % KEPT_PAGES;
        CHECK(phase < KEPT_PAGES);
        /* The page of the previous phase gets its old number again. */
        for (size_t i = 0; i < WORDS_IN_PAGE && me == ranks - 1; ++i) {
            size_t last = (changed + KEPT_PAGES - 1) % KEPT_PAGES;
            vgasnet_put_val(me, at(me, last * page_bytes() + BLOCK * i + 16), last, 8);
            vgasnet_put_val(me, at(me, changed * page_bytes() + BLOCK * i + 16), 1000 + phase, 8);
        }
        barrier();
        if (me == 0) {
            uint64_t misses = get_words(changed, 1000 + phase, &hits);
            CHECK(phase > 0 || (misses == KEPT_PAGES * WORDS_IN_PAGE && hits == 0));
            is_over = misses <= 2 * WORDS_IN_PAGE && hits >= KEPT_PAGES / 2 * WORDS_IN_PAGE;
            vgasnet_put_val(ranks - 1, at(ranks - 1, segment_bytes - 8), is_over, 8);
        }
        barrier();
        is_over = vgasnet_get_val(ranks - 1, at(ranks - 1, segment_bytes - 8), 8);
        barrier();
    }
}

#define REFUSED(call) CHECK((call) == VGASNET_ERR_BAD_ARG)

static void misuse(void) {
    vgasnet_readonly_stats_t stats;
    vgasnet_readonly_options_t options = {sizeof options, 0, 0, 0};
    char *start_of = (char *)at(0, 0);
    REFUSED(vgasnet_readonly_begin(ranks, start_of, 8, 0, NULL));
    REFUSED(vgasnet_readonly_begin(0, start_of, segment_bytes + 1, 0, NULL));
    REFUSED(vgasnet_readonly_begin(0, start_of - 8, 8, 0, NULL));
    REFUSED(vgasnet_readonly_begin(0, start_of, 0, 0, NULL));
    REFUSED(vgasnet_readonly_begin(0, start_of, 8, 2, NULL));
    options.struct_bytes = 8;
    REFUSED(vgasnet_readonly_begin(0, start_of, 8, 0, &options));
    options.struct_bytes = sizeof options, options.cache_bytes_max = 1000;
    REFUSED(vgasnet_readonly_begin(0, start_of, 8, 0, &options));
    options.cache_bytes_max = ((size_t)64 << 30) + 1;
    REFUSED(vgasnet_readonly_begin(0, start_of, 8, 0, &options));
    options.cache_bytes_max = 0, options.get_bytes_max = 65537;
    REFUSED(vgasnet_readonly_begin(0, start_of, 8, 0, &options));
    options.get_bytes_max = 64, options.object_bytes = 65;
    REFUSED(vgasnet_readonly_begin(0, start_of, 8, 0, &options));
    REFUSED(vgasnet_readonly_end(0, start_of, 8));
    CHECK(vgasnet_readonly_begin(0, start_of + 64, 64, 0, NULL) == VGASNET_OK);
    REFUSED(vgasnet_readonly_begin(0, start_of + 64, 64, 0, NULL));
    REFUSED(vgasnet_readonly_begin(0, start_of, 65, 0, NULL));
    REFUSED(vgasnet_readonly_begin(0, start_of + 127, 8, VGASNET_READONLY_KEEP, NULL));
    REFUSED(vgasnet_readonly_end(0, start_of + 64, 63));
    CHECK(vgasnet_readonly_begin(0, start_of + 128, 64, 0, NULL) == VGASNET_OK);
    CHECK(vgasnet_readonly_begin(0, start_of, 64, 0, NULL) == VGASNET_OK);
    CHECK(vgasnet_readonly_end(0, start_of + 64, 64) == VGASNET_OK);
    REFUSED(vgasnet_readonly_end(0, start_of + 64, 64));
    CHECK(vgasnet_readonly_end(0, start_of, 64) == VGASNET_OK);
    CHECK(vgasnet_readonly_end(0, start_of + 128, 64) == VGASNET_OK);
    for (size_t i = 0; i < 9; ++i) {
        options.cache_bytes_max = (size_t)(70 + i) << 10, options.object_bytes = 0;
        int code = vgasnet_readonly_begin(0, start_of + 64 * i, 64, 0, &options);
        CHECK(code == (i < 7 ? VGASNET_OK : VGASNET_ERR_BAD_ARG));
        if (code == VGASNET_OK) CHECK(vgasnet_readonly_end(0, start_of + 64 * i, 64) == VGASNET_OK);
    }
    REFUSED(vgasnet_readonly_stats(NULL, sizeof stats));
    REFUSED(vgasnet_readonly_stats(&stats, 0));
    REFUSED(vgasnet_readonly_stats(&stats, 12));
    REFUSED(vgasnet_readonly_stats(&stats, sizeof stats + 8));
}

/* The second get joins the first. */
static void get_list_with_error(void) {
    uint64_t got[3];
    char *there = (char *)at(1, 0);
    vgasnet_memvec_t to[3], from[3] = {{there, 8}, {there, 8}, {there + segment_bytes, 8}};
    for (size_t i = 0; i < 3; ++i) to[i] = (vgasnet_memvec_t){&got[i], 8};
    barrier();
    if (me != 0) return;
    CHECK(vgasnet_readonly_begin(1, there, segment_bytes, 0, NULL) == VGASNET_OK);
    vgasnet_getv_bulk(3, to, 1, 3, from);
    CHECK(!"a get outside the segment ends the job");
}

int main(int argc, char **argv) {
    if (vgasnet_init(&argc, &argv) != VGASNET_OK) return 1;
    segment_bytes = least(24 * page_bytes(), (size_t)6 << 20) / page_bytes() * page_bytes();
    if (segment_bytes < 5 * page_bytes()) segment_bytes = 5 * page_bytes();
    CHECK(vgasnet_attach(NULL, 0, segment_bytes, 0) == VGASNET_OK);
    (void)at(0, 0);
    me = vgasnet_mynode(), ranks = vgasnet_nodes(), seed = mixed(9, 9, 9);
    CHECK(argc > 1);
    if (strcmp(argv[1], "phases") == 0) run_phases();
    if (strcmp(argv[1], "kept") == 0) keep();
    if (strcmp(argv[1], "misuse") == 0) misuse();
    if (strcmp(argv[1], "list") == 0) get_list_with_error();
    if (strcmp(argv[1], "broken") == 0) {
        CHECK(argc > 4);
        break_promise((vgasnet_node_t)atoi(argv[2]), argv[3], argv[4]);
    }
    return finish();
}
