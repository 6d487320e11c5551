/* A hash table that is larger than memory, spread over the segments of all ranks. Each segment is one part of it: slots
 * of a key and a value, 8 bytes each. The hash of a key names the part and the slot. Where that is taken, the key is in
 * the next free slot of the part. So an insert goes to a random place: with small gets and puts, or with loads and
 * stores, which leave the page where it is.
 *
 *   cc -O2 -Iinclude examples/hash_table.c -o hash_table -Ltarget/release -lvgasnet -Wl,-rpath,$PWD/target/release
 *   VGASNET_POOL_SIZE=16M target/release/vgasnetrun -n 2 ./hash_table 1000000 puts
 *
 * puts: each rank inserts keys of its own, to whichever part they belong, by gets and puts. A slot that a get finds free
 *   is claimed by a compare-and-swap, since another rank may claim it at the same time.
 * stores: each rank inserts all keys of its own part by loads and stores.
 * mmap: the same on one rank, in a mapped file in place of a segment. To compare the two, give both as much memory,
 *   here 16 MiB for a table of 31 MiB. The rank needs some besides its pool:
 *
 *   export VGASNET_POOL_SIZE=8M VGASNET_PAGE_SIZE=16K
 *   systemd-run --user --scope -p MemoryMax=16M -p MemorySwapMax=0 ./hash_table 1000000 stores
 *   systemd-run --user --scope -p MemoryMax=16M -p MemorySwapMax=0 ./hash_table 1000000 mmap
 *
 * or run both, as root, from a shell in a cgroup with that limit:
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

/* Keys that a rank looks up in vain. */
#define ABSENT_KEYS 1000

struct slot {
    uint64_t key, value;
};

static vgasnet_node_t me, ranks;
static struct slot **parts;
static size_t slots; /* of a part */
static int by_stores;

/* Rank 0 says how the program is used, and its status is the job's. */
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

/* A positive number, or 0 if the text is none. */
static size_t number(const char *text) {
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    return *end == '\0' && text[0] != '-' && value <= INT32_MAX ? (size_t)value : 0;
}

/* ---- the table ---- */

/* The last step of splitmix64: no two words have the same result, and only that of 0 is 0. */
static uint64_t mix(uint64_t word) {
    word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
    return word ^ (word >> 31);
}

static vgasnet_node_t part_of(uint64_t key) { return (vgasnet_node_t)((mix(key) >> 32) * ranks >> 32); }

/* Where a search for a key begins in its part. */
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

/* Claims a slot for a key if it is free. Returns what it had: FREE, or a key. */
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

/* The value of a key, or 0 if it is not there. */
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

/* The keys are numbered from 1 on. The value of a key is its number. */
static uint64_t key_of(uint64_t number) { return mix(number); }

/* By gets and puts each rank inserts its own keys, by stores all that belong to its part. */
static void insert_all(uint64_t keys) {
    uint64_t first = by_stores ? 1 : me * keys + 1, end = by_stores ? ranks * keys + 1 : (me + 1) * keys + 1;
    for (uint64_t number = first; number < end; ++number)
        if (!by_stores || part_of(key_of(number)) == me) insert(key_of(number), number);
    barrier();
}

/* Looks up keys, which must be there, or must not. By loads it looks up those of the own part. */
static void look_up(uint64_t first, uint64_t end, int are_there) {
    for (uint64_t number = first; number < end; ++number) {
        if (by_stores && part_of(key_of(number)) != me) continue;
        if (value_of(key_of(number)) != (are_there ? number : 0)) fail("a wrong value for key number", number);
    }
}

/* By gets each rank looks up what the next one has inserted. */
static void look_up_all(uint64_t keys) {
    vgasnet_node_t next = (me + 1) % ranks;
    if (by_stores)
        look_up(1, ranks * keys + 1, 1);
    else
        look_up(next * keys + 1, (next + 1) * keys + 1, 1);
    barrier();
}

/* No key is there that nobody has inserted, nor one twice: the own part has as many as belong there. */
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
