/* Common part of the programs: a page from another rank's pool. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vgasnet.h>

#define ROUNDS 5

static size_t page_bytes;
static size_t pages;
static vgasnet_node_t me;
static vgasnet_seginfo_t segments[2];

static void check(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "pages: rank %d: %s\n", (int)me, what);
    vgasnet_exit(1);
}

static void meet(void) {
    vgasnet_barrier_notify(0, VGASNET_BARRIERFLAG_ANONYMOUS);
    check(vgasnet_barrier_wait(0, VGASNET_BARRIERFLAG_ANONYMOUS) == VGASNET_OK, "a barrier failed");
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Prints a name and microseconds on stdout. */
static void sample(const char *name, double seconds) {
    printf("%s %.1f\n", name, seconds * 1e6);
}

static char *page(size_t number) {
    return (char *)segments[0].addr + number * page_bytes;
}

/* Rank 1 becomes the owner of all pages in rank 0's segment, so rank 0 has no page left. */
static void give_away(int round) {
    size_t at;
    uint64_t word;
    for (at = 0; me == 1 && at < pages; ++at) {
        word = at * 1000 + (uint64_t)round;
        vgasnet_put(0, page(at), &word, sizeof word);
    }
    meet();
}

/* Gets a word of each page, which fetches the whole page. In forward order read-ahead fetches pages early, backwards it
 * does not. */
static void fetch(int round, int backwards) {
    size_t step, at;
    uint64_t word;
    double begin, start = now();
    for (step = 0; me == 0 && step < pages; ++step) {
        at = backwards ? pages - 1 - step : step;
        begin = now();
        vgasnet_get(&word, 0, page(at), sizeof word);
        if (backwards) sample("page_of_a_peer", now() - begin);
        check(word == at * 1000 + (uint64_t)round, "other bytes than were put");
    }
    if (me == 0 && !backwards) sample("page_of_a_peer_ahead", (now() - start) / (double)pages);
    meet();
}

/* vgasnet_init and vgasnet_attach for two ranks. Only the first has a segment. */
static void start_vgasnet(int *argc, char ***argv) {
    check(vgasnet_init(argc, argv) == VGASNET_OK, "init failed");
    me = vgasnet_mynode();
    check(vgasnet_nodes() == 2, "start two ranks");
    check(vgasnet_attach(NULL, 0, me == 0 ? pages * page_bytes : 0, 0) == VGASNET_OK, "attach failed");
    check(vgasnet_getSegmentInfo(segments, 2) == VGASNET_OK, "no segments");
}
