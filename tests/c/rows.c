/* Rows of a matrix, which lie at equal distances, are read ahead in blocks: forwards and backwards, at home and at a
 * neighbour. rows [own|near]: with statistics, which tell it. */
#include "check.h"

#define ROW_BYTES 2000
#define PITCH_BYTES 200704

static vgasnet_node_t me, ranks;
static int is_counted, is_near;

static uint64_t word_at(vgasnet_node_t rank, size_t offset) { return ((uint64_t)rank + 1) << 40 | offset; }

static uint64_t blocks_ahead(void) { return is_counted ? statistics().block_ahead : 0; }

/* Returns the blocks that were read ahead meanwhile. */
static uint64_t read_rows(vgasnet_node_t rank, size_t first, size_t rows, int is_backwards) {
    unsigned char row[ROW_BYTES];
    uint64_t before = blocks_ahead();
    for (size_t i = 0; i < rows; ++i) {
        size_t offset = (first + (is_backwards ? rows - 1 - i : i)) * PITCH_BYTES;
        vgasnet_get(row, rank, at(rank, offset), sizeof row);
        for (size_t at_word = 0; at_word < ROW_BYTES / 8; ++at_word) {
            uint64_t word;
            memcpy(&word, row + at_word * 8, sizeof word);
            CHECK_EQ(word, word_at(rank, offset + at_word * 8));
        }
    }
    return blocks_ahead() - before;
}

int main(int argc, char **argv) {
    const size_t bytes = 8 * pool_bytes(), rows = bytes / PITCH_BYTES;
    start(&argc, &argv, bytes);
    is_near = argc > 1 && strcmp(argv[1], "near") == 0;
    is_counted = is_near || (argc > 1 && strcmp(argv[1], "own") == 0);
    me = vgasnet_mynode();
    ranks = vgasnet_nodes();
    for (size_t offset = 0; offset < bytes; offset += 8) *(uint64_t *)at(me, offset) = word_at(me, offset);
    barrier();
    /* Pages in the pools are read there. A row has at most two blocks. */
    uint64_t ahead = read_rows(me, 0, rows / 2, 0);
    if (is_counted) CHECK(ahead >= rows / 6 && ahead <= rows + 32);
    barrier();
    ahead = read_rows((me + 1) % ranks, rows / 2, rows / 2, 1);
    if (is_near) CHECK(ahead >= rows / 6 && ahead <= rows + 32);
    barrier();
    /* At random places nothing is. */
    uint64_t state = number_from_environment("CHECK_SEED") + me, word;
    ahead = blocks_ahead();
    for (size_t i = 0; i < 500; ++i) {
        size_t offset = random_below(&state, bytes / 8) * 8;
        vgasnet_get(&word, me, at(me, offset), sizeof word);
        CHECK_EQ(word, word_at(me, offset));
    }
    CHECK(blocks_ahead() - ahead < 50);
    return finish();
}
