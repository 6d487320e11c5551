/* A hash table larger than memory, spread over the segments of all ranks. Each segment is one part of the table, an
 * array of slots with a key and a value of 8 bytes each. The hash of a key determines the part and the slot. If the
 * slot is taken, the key goes to the next free slot of the part.
 *
 * Inserts go to random places. They use either small gets and puts, which work on a page without moving it, or loads
 * and stores.
 *
 *   cc -O2 -Iinclude examples/hash_table.c -o hash_table -Ltarget/release -lvgasnet -Wl,-rpath,$PWD/target/release
 *   VGASNET_POOL_SIZE=16M target/release/vgasnetrun -n 2 ./hash_table 1000000 puts
 *
 * puts: each rank inserts its own keys into any part by gets and puts. Two ranks may find the same free slot at the
 *   same time, so a slot is claimed by a compare-and-swap.
 * stores: each rank inserts the keys of its own part by loads and stores.
 * mmap: like stores, on one rank and in a mapped file instead of a segment. For a fair comparison give both the same
 *   memory, here 16 MiB for a table of 31 MiB. The rank needs some memory outside its pool:
 *
 *   export VGASNET_POOL_SIZE=8M VGASNET_PAGE_SIZE=16K
 *   systemd-run --user --scope -p MemoryMax=16M -p MemorySwapMax=0 ./hash_table 1000000 stores
 *   systemd-run --user --scope -p MemoryMax=16M -p MemorySwapMax=0 ./hash_table 1000000 mmap
 *
 * or run both as root from a shell in a cgroup with this limit:
 *
 *   mkdir /sys/fs/cgroup/small && cd /sys/fs/cgroup/small && echo 16M >memory.max && echo $$ >cgroup.procs
 */
#include "mapped_file.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vgasnet.h>

/* The key of a free slot. */
#define FREE 0

/* Number of lookups of absent keys by each rank. */
#define ABSENT_KEYS 1000

struct slot {
    uint64_t key, value;
};

static vgasnet_node_t me, ranks;
static struct slot **parts;
static size_t slots; /* in each part */
static int by_stores;

/* Only rank 0 prints the usage, and its status becomes the job's. */
static int usage(int status) {
    if (vgasnet_mynode() != 0) return 0;
    fprintf(status == 0 ? stdout : stderr,
            "usage: hash_table [KEYS [puts|stores|mmap]]\n"
            "  KEYS    that each rank inserts, at most 2147483647; its part has twice as many slots, of 16 bytes\n"
            "          (default 50000)\n"
            "  puts    insert by gets and puts, into the parts of all ranks (default)\n"
            "  stores  insert by loads and stores, each rank into its own part\n"
            "  mmap    as stores, into a mapped file in place of a segment; of one rank only\n");
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

static void fail(const char *what, uint64_t number) {
    fprintf(stderr, "hash_table: rank %u: %s: %" PRIu64 "\n", me, what, number);
    vgasnet_exit(1);
}

/* Parses a positive number; 0 if the text is not one. */
static size_t number(const char *text) {
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    return *end == '\0' && text[0] != '-' && value <= INT32_MAX ? (size_t)value : 0;
}

/* ---- the table ---- */

/* The last step of splitmix64. It is a bijection and maps only 0 to 0, so a mixed key is never FREE. */
static uint64_t mix(uint64_t word) {
    word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
    return word ^ (word >> 31);
}

static vgasnet_node_t part_of(uint64_t key) { return (vgasnet_node_t)((mix(key) >> 32) * ranks >> 32); }

/* The slot where the search for a key starts. */
static size_t first_slot_of(uint64_t key) { return (size_t)((mix(key) & UINT32_MAX) * slots >> 32); }

static uint64_t read_word(vgasnet_node_t part, uint64_t *at) {
    return by_stores ? *at : vgasnet_get_val(part, at, sizeof *at);
}

static void write_word(vgasnet_node_t part, uint64_t *at, uint64_t word) {
    if (by_stores)
        *at = word;
    else
        vgasnet_put_val(part, at, word, sizeof *at);
}

/* Claims the slot for a key if it is free. Returns its previous key, or FREE. */
static uint64_t claim(vgasnet_node_t part, struct slot *slot, uint64_t key) {
    uint64_t found = read_word(part, &slot->key);
    if (found != FREE) return found;
    if (!by_stores) return vgasnet_atomic_cas_u64(part, &slot->key, FREE, key);
    slot->key = key;
    return found;
}

static void insert(uint64_t key, uint64_t value) {
    vgasnet_node_t part = part_of(key);
    size_t at = first_slot_of(key);
    for (size_t tried = 0; tried < slots; ++tried, at = at + 1 < slots ? at + 1 : 0) {
        struct slot *slot = &parts[part][at];
        uint64_t found = claim(part, slot, key);
        if (found == FREE || found == key) {
            write_word(part, &slot->value, value);
            return;
        }
    }
    fail("a part is full, that of rank", part);
}

/* The value of a key, or 0 if the key is absent. */
static uint64_t value_of(uint64_t key) {
    vgasnet_node_t part = part_of(key);
    size_t at = first_slot_of(key);
    for (size_t tried = 0; tried < slots; ++tried, at = at + 1 < slots ? at + 1 : 0) {
        struct slot *slot = &parts[part][at];
        uint64_t found = read_word(part, &slot->key);
        if (found == key) return read_word(part, &slot->value);
        if (found == FREE) return 0;
    }
    return 0;
}

/* ---- the work ---- */

/* Keys are numbered from 1. The value of a key is its number. */
static uint64_t key_of(uint64_t number) { return mix(number); }

/* With gets and puts, each rank inserts its own keys. With stores, it inserts the keys of its own part. */
static void insert_all(uint64_t keys) {
    uint64_t first = by_stores ? 1 : me * keys + 1, end = by_stores ? ranks * keys + 1 : (me + 1) * keys + 1;
    for (uint64_t number = first; number < end; ++number)
        if (!by_stores || part_of(key_of(number)) == me) insert(key_of(number), number);
    barrier();
}

/* Looks up keys and checks that they are present or absent. With loads, a rank skips the keys of other parts. */
static void look_up(uint64_t first, uint64_t end, int are_there) {
    for (uint64_t number = first; number < end; ++number) {
        if (by_stores && part_of(key_of(number)) != me) continue;
        if (value_of(key_of(number)) != (are_there ? number : 0)) fail("a wrong value for key number", number);
    }
}

/* With gets, each rank looks up the keys inserted by the next rank. */
static void look_up_all(uint64_t keys) {
    vgasnet_node_t next = (me + 1) % ranks;
    if (by_stores)
        look_up(1, ranks * keys + 1, 1);
    else
        look_up(next * keys + 1, (next + 1) * keys + 1, 1);
    barrier();
}

/* Checks that the own part has exactly the inserted keys: none is missing, duplicated or foreign. */
static void check_count(uint64_t keys) {
    uint64_t expected = 0, taken = 0;
    for (uint64_t number = 1; number <= ranks * keys; ++number) expected += part_of(key_of(number)) == me;
    for (size_t at = 0; at < slots; ++at) taken += parts[me][at].key != FREE;
    if (taken != expected) fail("the number of slots with a key in the own part is wrong", taken);
}

static int start(int is_mapped) {
    uintptr_t bytes = slots * sizeof(struct slot);
    if (vgasnet_attach(NULL, 0, is_mapped ? 0 : bytes, 0) != VGASNET_OK) return 1;
    vgasnet_seginfo_t *segments = (vgasnet_seginfo_t *)malloc(ranks * sizeof *segments);
    parts = (struct slot **)malloc(ranks * sizeof *parts);
    if (segments == NULL || parts == NULL || vgasnet_getSegmentInfo(segments, (int)ranks) != VGASNET_OK) return 1;
    for (vgasnet_node_t rank = 0; rank < ranks; ++rank) parts[rank] = (struct slot *)segments[rank].addr;
    free(segments);
    if (is_mapped) parts[me] = (struct slot *)mapped_file(bytes);
    return parts[me] == NULL;
}

int main(int argc, char **argv) {
    if (vgasnet_init(&argc, &argv) != VGASNET_OK) return 1;
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    if (argc > 1 && strcmp(argv[1], "--help") == 0) return usage(0);
    uint64_t keys = argc > 1 ? number(argv[1]) : 50000;
    const char *way = argc > 2 ? argv[2] : "puts";
    int by_puts = strcmp(way, "puts") == 0, is_mapped = strcmp(way, "mmap") == 0;
    by_stores = is_mapped || strcmp(way, "stores") == 0;
    if (argc > 3 || keys == 0 || !(by_puts || by_stores) || (is_mapped && ranks > 1)) return usage(2);

    slots = (size_t)(2 * keys);
    if (start(is_mapped) != 0) return 1;
    barrier();
    double began = seconds();
    insert_all(keys);
    double inserted = seconds();
    look_up_all(keys);
    double found = seconds();
    look_up(ranks * keys + 1, ranks * keys + 1 + ABSENT_KEYS, 0);
    check_count(keys);
    barrier();
    double all = (double)ranks * (double)keys;
    if (me == 0)
        printf("hash table on %u ranks, by %s: %.0f keys in %.1f MiB, %.0f inserts/s, %.0f lookups/s\n", ranks, way,
               all, all * 2 * sizeof(struct slot) / (1 << 20), all / (inserted - began), all / (found - inserted));
    vgasnet_exit(0);
}
