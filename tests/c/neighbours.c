/* Small gets of pages that no rank holds, beside puts, stores and whole pages of all ranks. A record has one number in
 * all of its words, how often it has been written. In each round one rank writes; then all ranks read what was written.
 * A second thread of each rank reads meanwhile, and no word ever falls. */
#include <pthread.h>

#include "check.h"

#define WORDS 15
#define ROUNDS 24
#define WRITES 150
#define WATCHED 400

static vgasnet_node_t me, ranks;
static size_t records;
static int is_over;

/* Records lie across blocks now and then. */
static size_t record_place(uint64_t record) { return (size_t)record * 1000; }

/* The rank and the record written first, second and so on in a round. */
static vgasnet_node_t target_of(uint64_t round, uint64_t write) { return (vgasnet_node_t)(mixed(round, write, 1) % ranks); }
static uint64_t record_of(uint64_t round, uint64_t write) { return mixed(round, write, 2) % records; }

static void get_record(uint64_t *words, vgasnet_node_t rank, uint64_t record) {
    vgasnet_get(words, rank, at(rank, record_place(record)), WORDS * sizeof *words);
}

static void write_record(vgasnet_node_t rank, uint64_t record, uint64_t number, uint64_t way) {
    uint64_t words[WORDS];
    for (size_t at_word = 0; at_word < WORDS; ++at_word) words[at_word] = number;
    if (rank == me && way % 2 == 0) memcpy(at(rank, record_place(record)), words, sizeof words);
    else vgasnet_put(rank, at(rank, record_place(record)), words, sizeof words);
}

/* Reads some records again and again. */
static void *watch(void *unused) {
    uint64_t *seen = (uint64_t *)allocate(WATCHED * WORDS * sizeof *seen);
    uint64_t state = number_from_environment("CHECK_SEED") + me;
    while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
        uint64_t watched = random_below(&state, WATCHED), words[WORDS];
        get_record(words, (vgasnet_node_t)(mixed(watched, me, 3) % ranks), mixed(watched, me, 4) % records);
        for (size_t word = 0; word < WORDS; ++word) {
            CHECK(words[word] >= seen[watched * WORDS + word]);
            seen[watched * WORDS + word] = words[word];
        }
    }
    free(seen);
    return unused;
}

/* Moves whole pages through the pools, so that blocks and pages leave and come. */
static void move_pages(uint64_t round) {
    unsigned char *page = (unsigned char *)allocate(page_bytes());
    for (uint64_t turn = 0; turn < 3; ++turn) {
        uint64_t pages = 8 * pool_bytes() / page_bytes();
        vgasnet_node_t rank = (vgasnet_node_t)(mixed(round, turn, 5 + me) % ranks);
        vgasnet_get(page, rank, at(rank, (uintptr_t)(mixed(round, turn, 6 + me) % pages) * page_bytes()), page_bytes());
    }
    free(page);
}

int main(int argc, char **argv) {
    uint32_t *numbers;
    pthread_t watcher;
    start(&argc, &argv, 8 * pool_bytes());
    me = vgasnet_mynode();
    ranks = vgasnet_nodes();
    records = (8 * pool_bytes() - WORDS * 8) / 1000;
    numbers = (uint32_t *)allocate(ranks * records * sizeof *numbers);
    /* Every page has been written once, and most have left the pools. */
    memset(at(me, 0), 0, 8 * pool_bytes());
    barrier();
    CHECK(pthread_create(&watcher, NULL, watch, NULL) == 0);
    for (uint64_t round = 0; round < ROUNDS; ++round) {
        for (uint64_t write = 0; write < WRITES; ++write) {
            vgasnet_node_t rank = target_of(round, write);
            uint64_t record = record_of(round, write);
            uint64_t number = ++numbers[rank * records + record];
            if (round % ranks == me) write_record(rank, record, number, write);
        }
        barrier();
        for (uint64_t write = 0; write < WRITES; ++write) {
            uint64_t words[WORDS], record = record_of(round, (write * 7 + me) % WRITES);
            vgasnet_node_t rank = target_of(round, (write * 7 + me) % WRITES);
            get_record(words, rank, record);
            for (size_t word = 0; word < WORDS; ++word) CHECK_EQ(words[word], numbers[rank * records + record]);
        }
        if (round % 4 == 3) move_pages(round);
        barrier();
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
    CHECK(pthread_join(watcher, NULL) == 0);
    free(numbers);
    return finish();
}
