/* An array larger than memory. Each rank fills its segment with plain stores and reads it back with plain loads. Then
 * it gets the whole segment of the next rank. Every word is checked.
 *
 *   cc -O2 -Iinclude examples/larger_than_memory.c -o larger_than_memory -Ltarget/release -lvgasnet -Wl,-rpath,$PWD/target/release
 *   VGASNET_POOL_SIZE=64M target/release/vgasnetrun -n 2 ./larger_than_memory 512
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vgasnet.h>

#define MIB ((size_t)1 << 20)
#define BLOCK (4 * MIB)

static int usage(int status) {
    if (vgasnet_mynode() != 0) return 0;
    fprintf(status == 0 ? stdout : stderr,
            "usage: larger_than_memory [MIB [ROUNDS]]\n"
            "  MIB     size of each rank's segment, a multiple of 4 (default 256)\n"
            "  ROUNDS  how often all is done (default 1)\n");
    return status;
}

static void barrier(void) {
    vgasnet_barrier_notify(0, VGASNET_BARRIERFLAG_ANONYMOUS);
    vgasnet_barrier_wait(0, VGASNET_BARRIERFLAG_ANONYMOUS);
}

/* Parses a positive number; 0 if the text is not one. */
static size_t number(const char *text) {
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    return *end == '\0' && text[0] != '-' && value <= SIZE_MAX / MIB ? (size_t)value : 0;
}

static uint64_t word_of(vgasnet_node_t rank, size_t round, size_t at) {
    return ((uint64_t)rank << 48) + ((uint64_t)round << 40) + at;
}

static void store_all(uint64_t *mine, size_t words, vgasnet_node_t me, size_t round) {
    for (size_t at = 0; at < words; ++at) mine[at] = word_of(me, round, at);
}

/* Ends the job at the first wrong word. */
static void check(const uint64_t *words, size_t count, vgasnet_node_t of, size_t round, size_t first) {
    for (size_t at = 0; at < count; ++at) {
        if (words[at] == word_of(of, round, first + at)) continue;
        fprintf(stderr, "rank %u: word %zu of rank %u is wrong\n", vgasnet_mynode(), first + at, of);
        vgasnet_exit(1);
    }
}

static void get_all(uint64_t *block, vgasnet_node_t from, char *segment, size_t bytes, size_t round) {
    for (size_t at = 0; at < bytes; at += BLOCK) {
        vgasnet_get(block, from, segment + at, BLOCK);
        check(block, BLOCK / sizeof *block, from, round, at / sizeof *block);
    }
}

/* Resident memory of this process in MiB, shared pages divided among their mappings (Pss). 0 if the system does not
 * report it. */
static size_t memory_mib(void) {
    unsigned long kib = 0;
    char line[128];
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL && sscanf(line, "Pss: %lu", &kib) != 1) continue;
    if (file != NULL) fclose(file);
    return kib >> 10;
}

int main(int argc, char **argv) {
    if (vgasnet_init(&argc, &argv) != VGASNET_OK) return 1;
    size_t mib = argc > 1 ? number(argv[1]) : 256, rounds = argc > 2 ? number(argv[2]) : 1;
    if (argc > 1 && strcmp(argv[1], "--help") == 0) return usage(0);
    if (argc > 3 || mib == 0 || mib % 4 != 0 || rounds == 0) return usage(2);

    vgasnet_node_t me = vgasnet_mynode(), ranks = vgasnet_nodes(), next = (me + 1) % ranks;
    size_t bytes = mib * MIB;
    if (vgasnet_attach(NULL, 0, bytes, 0) != VGASNET_OK) return 1;
    vgasnet_seginfo_t *segments = (vgasnet_seginfo_t *)malloc(ranks * sizeof *segments);
    uint64_t *block = (uint64_t *)malloc(BLOCK);
    if (segments == NULL || block == NULL || vgasnet_getSegmentInfo(segments, (int)ranks) != VGASNET_OK) return 1;

    uint64_t *mine = (uint64_t *)segments[me].addr;
    if (rounds > 1) fprintf(stderr, "rank %u is process %d\n", me, (int)getpid());
    for (size_t round = 0; round < rounds; ++round) {
        store_all(mine, bytes / sizeof *mine, me, round);
        check(mine, bytes / sizeof *mine, me, round, 0);
        barrier();
        if (ranks > 1) get_all(block, next, (char *)segments[next].addr, bytes, round);
        barrier();
    }
    size_t memory = memory_mib();
    barrier();
    printf("rank %u of %u: %zu MiB stored and loaded%s, every word is right; memory in use: %zu MiB\n", me, ranks, mib,
           ranks > 1 ? ", as many got from the next rank" : "", memory);
    free(block);
    free(segments);
    vgasnet_exit(0);
}
