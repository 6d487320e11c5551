/* The triad of the STREAM benchmark, a[i] = b[i] + s * c[i], on arrays in a segment, so they can be much larger than
 * memory. The loops are plain C. vgasnet fetches and evicts pages underneath.
 *
 *   cc -O2 -Iinclude examples/triad.c -o triad -Ltarget/release -lvgasnet -Wl,-rpath,$PWD/target/release
 *   VGASNET_POOL_SIZE=64M target/release/vgasnetrun -n 2 ./triad 256
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vgasnet.h>

#define MIB ((size_t)1 << 20)

static const double factor = 3;

/* Only rank 0 prints the usage, and its status becomes the job's. */
static int usage(int status) {
    if (vgasnet_mynode() != 0) return 0;
    fprintf(status == 0 ? stdout : stderr,
            "usage: triad [MIB [TIMES]]\n"
            "  MIB    size of each of the three arrays of a rank (default 64)\n"
            "  TIMES  how often the triad is computed; the best time counts (default 3)\n");
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

/* Parses a positive number; 0 if the text is not one. */
static size_t number(const char *text) {
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    return *end == '\0' && text[0] != '-' && value <= SIZE_MAX / (4 * MIB) ? (size_t)value : 0;
}

/* The values differ from element to element, so a page in the wrong place is detected. */
static void fill(double *b, double *c, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        b[i] = (double)i;
        c[i] = (double)(i % 1000);
    }
}

static void triad(double *a, const double *b, const double *c, size_t count) {
    for (size_t i = 0; i < count; ++i) a[i] = b[i] + factor * c[i];
}

/* The index of the first wrong value, or count if all are right. All values are whole numbers, so the sums are
 * exact. */
static size_t first_wrong(const double *a, size_t count) {
    size_t i = 0;
    while (i < count && a[i] == (double)i + factor * (double)(i % 1000)) ++i;
    return i;
}

/* With a barrier on either side of the loop, the slowest rank determines the time. */
static double timed_triad(double *a, double *b, double *c, size_t count) {
    size_t bytes = count * sizeof *b;
    barrier();
    double begin = seconds();
    /* Both arrays are read from start to end. With this advice read-ahead starts at the first miss. */
    vgasnet_advise(b, bytes, VGASNET_ADVISE_SEQUENTIAL);
    vgasnet_advise(c, bytes, VGASNET_ADVISE_SEQUENTIAL);
    triad(a, b, c, count);
    barrier();
    return seconds() - begin;
}

int main(int argc, char **argv) {
    if (vgasnet_init(&argc, &argv) != VGASNET_OK) return 1;
    vgasnet_node_t me = vgasnet_mynode(), ranks = vgasnet_nodes();
    size_t mib = argc > 1 ? number(argv[1]) : 64, times = argc > 2 ? number(argv[2]) : 3;
    if (argc > 1 && strcmp(argv[1], "--help") == 0) return usage(0);
    if (argc > 3 || mib == 0 || times == 0) return usage(2);

    size_t bytes = mib * MIB, count = bytes / sizeof(double);
    if (vgasnet_attach(NULL, 0, 3 * bytes, 0) != VGASNET_OK) return 1;
    vgasnet_seginfo_t *segments = (vgasnet_seginfo_t *)malloc(ranks * sizeof *segments);
    if (segments == NULL || vgasnet_getSegmentInfo(segments, (int)ranks) != VGASNET_OK) return 1;
    double *a = (double *)segments[me].addr, *b = a + count, *c = b + count;
    free(segments);

    fill(b, c, count);
    double best = 0;
    for (size_t i = 0; i < times; ++i) {
        double time = timed_triad(a, b, c, count);
        if (i == 0 || time < best) best = time;
    }
    size_t wrong = first_wrong(a, count);
    if (wrong < count) {
        fprintf(stderr, "triad: rank %u: a[%zu] is %g\n", me, wrong, a[wrong]);
        return 1;
    }
    if (me == 0)
        printf("triad on %u ranks, 3 x %zu MiB each: %.3f GB/s\n", ranks, mib,
               3e-9 * (double)bytes * (double)ranks / best);
    vgasnet_exit(0);
}
