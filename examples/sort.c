/* An out-of-core sort over all ranks. Afterwards every word of a rank is less than every word of the next rank.
 *
 * Each rank puts its words straight into the segments of their destinations. It sorts the received words in runs that
 * fit into the pool, with the C library's qsort on the segment. Then it merges the runs by plain loads and stores.
 *
 *   cc -O2 -Iinclude examples/sort.c -o sort -Ltarget/release -lvgasnet -Wl,-rpath,$PWD/target/release
 *   VGASNET_POOL_SIZE=16M VGASNET_PAGE_SIZE=256K target/release/vgasnetrun -n 4 ./sort 64 8
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vgasnet.h>

#define WORDS_PER_MIB (((size_t)1 << 20) / sizeof(uint64_t))

/* Words sent to a rank by one put. */
#define BATCH 4096

/* The layout of a segment, the same on all ranks. */
struct layout {
    size_t words;    /* of input on this rank */
    size_t capacity; /* room for received words: shares of random words are nearly equal, not exactly */
    size_t run;      /* in a run */
};

/* Compares two sets of words independently of their order. */
struct checksum {
    uint64_t words, sum, squares;
};

static vgasnet_node_t me, ranks;
static vgasnet_seginfo_t *segments;

/* Only rank 0 prints the usage, and its status becomes the job's. */
static int usage(int status) {
    if (vgasnet_mynode() != 0) return 0;
    fprintf(status == 0 ? stdout : stderr,
            "usage: sort [MIB [RUN_MIB]]\n"
            "  MIB      size of what each rank begins with (default 16)\n"
            "  RUN_MIB  how much is sorted at a time: not more than the pool, and not so little that the\n"
            "           runs are more than the pool's pages (default 2)\n");
    return status;
}

static void barrier(void) {
    vgasnet_barrier_notify(0, VGASNET_BARRIERFLAG_ANONYMOUS);
    vgasnet_barrier_wait(0, VGASNET_BARRIERFLAG_ANONYMOUS);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void fail(const char *what) {
    fprintf(stderr, "sort: rank %u: %s\n", me, what);
    vgasnet_exit(1);
}

/* Parses a positive number; 0 if the text is not one. */
static size_t number(const char *text) {
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    return *end == '\0' && text[0] != '-' && value < UINT32_MAX ? (size_t)value : 0;
}

/* ---- layout ---- */

/* At the start of each segment: the number of words from each rank. */
static uint64_t *counts_of(vgasnet_node_t rank) { return (uint64_t *)segments[rank].addr; }

/* Next, on rank 0: the checksums of all ranks, before and after. */
static struct checksum *checksums(void) { return (struct checksum *)(void *)(counts_of(0) + ranks); }

static size_t header_words(void) { return ranks + 2 * ranks * sizeof(struct checksum) / sizeof(uint64_t); }

/* The words before the exchange; afterwards, room for the merged words. */
static uint64_t *words_of(vgasnet_node_t rank) { return counts_of(rank) + header_words(); }

/* The words received from all ranks. */
static uint64_t *received_of(const struct layout *layout, vgasnet_node_t rank) {
    return words_of(rank) + layout->capacity;
}

/* ---- words ---- */

/* splitmix64 */
static uint64_t random_word(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The destination rank of a word. The words are uniform, so equal ranges have nearly equal shares. For other
 * distributions take the borders of the ranges from a sample. */
static vgasnet_node_t rank_of(uint64_t word) { return (vgasnet_node_t)((word >> 32) * ranks >> 32); }

static void add(struct checksum *checksum, uint64_t word) {
    checksum->words += 1, checksum->sum += word, checksum->squares += word * word;
}

static void fill(const struct layout *layout, struct checksum *before) {
    uint64_t *words = words_of(me), state = me;
    for (size_t i = 0; i < layout->words; ++i) add(before, words[i] = random_word(&state));
}

/* ---- exchange ---- */

/* The place of this rank's words in another rank's receive buffer: behind the words of the lower ranks. */
static size_t place_at(const struct layout *layout, vgasnet_node_t rank) {
    uint64_t total = 0, place = 0, *counts = (uint64_t *)malloc(ranks * sizeof *counts);
    if (counts == NULL) fail("no memory");
    vgasnet_get(counts, rank, counts_of(rank), ranks * sizeof *counts);
    for (vgasnet_node_t i = 0; i < ranks; ++i) {
        if (i == me) place = total;
        total += counts[i];
    }
    free(counts);
    if (total > layout->capacity) fail("the words are too uneven for the room that there is");
    return (size_t)place;
}

/* Tells every rank the number of words coming from this rank. */
static void announce(const struct layout *layout) {
    const uint64_t *words = words_of(me);
    uint64_t *counts = (uint64_t *)calloc(ranks, sizeof *counts);
    if (counts == NULL) fail("no memory");
    for (size_t i = 0; i < layout->words; ++i) ++counts[rank_of(words[i])];
    for (vgasnet_node_t rank = 0; rank < ranks; ++rank)
        vgasnet_put_val(rank, counts_of(rank) + me, counts[rank], sizeof *counts);
    free(counts);
    barrier();
}

/* Words waiting to be sent to a rank. */
struct outbox {
    uint64_t words[BATCH];
    size_t filled;
    uint64_t *to;
};

/* The source of a put without _bulk may be overwritten as soon as the put returns. */
static void flush(struct outbox *outbox, vgasnet_node_t rank) {
    vgasnet_put_nbi(rank, outbox->to, outbox->words, outbox->filled * sizeof(uint64_t));
    outbox->to += outbox->filled, outbox->filled = 0;
}

/* Sends every word to its rank, a batch at a time. Returns the number of words received. */
static size_t exchange(const struct layout *layout) {
    const uint64_t *words = words_of(me);
    uint64_t total = 0;
    struct outbox *outboxes = (struct outbox *)calloc(ranks, sizeof *outboxes);
    if (outboxes == NULL) fail("no memory");
    for (vgasnet_node_t rank = 0; rank < ranks; ++rank)
        outboxes[rank].to = received_of(layout, rank) + place_at(layout, rank);
    for (size_t i = 0; i < layout->words; ++i) {
        vgasnet_node_t rank = rank_of(words[i]);
        struct outbox *outbox = &outboxes[rank];
        outbox->words[outbox->filled++] = words[i];
        if (outbox->filled == BATCH) flush(outbox, rank);
    }
    for (vgasnet_node_t rank = 0; rank < ranks; ++rank) flush(&outboxes[rank], rank);
    vgasnet_wait_syncnbi_puts();
    free(outboxes);
    barrier();
    for (vgasnet_node_t rank = 0; rank < ranks; ++rank) total += counts_of(me)[rank];
    return (size_t)total;
}

/* ---- sorting ---- */

static int compare(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static void sort_runs(const struct layout *layout, uint64_t *words, size_t count) {
    for (size_t i = 0; i < count; i += layout->run)
        qsort(words + i, count - i < layout->run ? count - i : layout->run, sizeof *words, compare);
}

/* A run during the merge. The run with the smallest head is at the top of the heap. */
struct run {
    uint64_t head;
    const uint64_t *next, *end;
};

static void sift_down(struct run *heap, size_t count, size_t at) {
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && heap[child + 1].head < heap[child].head) ++child;
        if (heap[at].head <= heap[child].head) return;
        struct run other = heap[at];
        heap[at] = heap[child], heap[child] = other;
    }
}

/* Merges sorted runs. The working set is one page of each run and one page of the result. */
static void merge(const struct layout *layout, uint64_t *to, const uint64_t *words, size_t count) {
    size_t runs = (count + layout->run - 1) / layout->run;
    struct run *heap = (struct run *)malloc((runs + 1) * sizeof *heap);
    if (heap == NULL) fail("no memory");
    for (size_t i = 0; i < runs; ++i) {
        const uint64_t *first = words + i * layout->run;
        heap[i].head = *first, heap[i].next = first + 1;
        heap[i].end = i + 1 < runs ? first + layout->run : words + count;
    }
    for (size_t i = runs; i-- > 0;) sift_down(heap, runs, i);
    while (runs > 0) {
        *to++ = heap[0].head;
        if (heap[0].next == heap[0].end) {
            heap[0] = heap[--runs];
        } else {
            heap[0].head = *heap[0].next++;
        }
        sift_down(heap, runs, 0);
    }
    free(heap);
}

/* ---- check ---- */

static void check_order(const uint64_t *words, size_t count, struct checksum *after) {
    for (size_t i = 0; i < count; ++i) {
        if (rank_of(words[i]) != me) fail("a word of another rank");
        if (i > 0 && words[i] < words[i - 1]) fail("words are not in order");
        add(after, words[i]);
    }
}

/* Checks that no word was lost or added. */
static void check_sums(struct checksum before, struct checksum after) {
    vgasnet_put(0, &checksums()[2 * me], &before, sizeof before);
    vgasnet_put(0, &checksums()[2 * me + 1], &after, sizeof after);
    barrier();
    if (me != 0) return;
    struct checksum left = {0, 0, 0};
    for (vgasnet_node_t rank = 0; rank < ranks; ++rank) {
        const struct checksum *pair = &checksums()[2 * rank];
        left.words += pair[0].words - pair[1].words;
        left.sum += pair[0].sum - pair[1].sum;
        left.squares += pair[0].squares - pair[1].squares;
    }
    if (left.words != 0 || left.sum != 0 || left.squares != 0) fail("these are not the words of the begin");
}

static int start(const struct layout *layout) {
    if (vgasnet_attach(NULL, 0, (header_words() + 2 * layout->capacity) * sizeof(uint64_t), 0) != VGASNET_OK) return 1;
    segments = (vgasnet_seginfo_t *)malloc(ranks * sizeof *segments);
    return segments == NULL || vgasnet_getSegmentInfo(segments, (int)ranks) != VGASNET_OK;
}

int main(int argc, char **argv) {
    if (vgasnet_init(&argc, &argv) != VGASNET_OK) return 1;
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    if (argc > 1 && strcmp(argv[1], "--help") == 0) return usage(0);
    size_t mib = argc > 1 ? number(argv[1]) : 16, run_mib = argc > 2 ? number(argv[2]) : 2;
    if (argc > 3 || mib == 0 || run_mib == 0) return usage(2);

    struct layout layout = {mib * WORDS_PER_MIB, mib * WORDS_PER_MIB * 9 / 8, run_mib * WORDS_PER_MIB};
    struct checksum before = {0, 0, 0}, after = {0, 0, 0};
    if (start(&layout) != 0) return 1;
    fill(&layout, &before);
    barrier();
    double began = seconds();
    announce(&layout);
    size_t count = exchange(&layout);
    sort_runs(&layout, received_of(&layout, me), count);
    merge(&layout, words_of(me), received_of(&layout, me), count);
    barrier();
    double time = seconds() - began;
    check_order(words_of(me), count, &after);
    check_sums(before, after);
    if (me == 0) printf("sorted %u x %zu MiB in %.1f s, %.1f MiB/s\n", ranks, mib, time, (double)(ranks * mib) / time);
    vgasnet_exit(0);
}
