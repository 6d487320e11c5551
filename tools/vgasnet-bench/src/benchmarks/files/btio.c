/* The access pattern of NPB's BT-IO: 5 doubles at each point of a cube. The number of ranks is a square, and each rank
 * has one diagonal cell in each slice. Dumps of the cube are appended to a file. Afterwards the file is read back. */
#include "io.h"
#include "pattern.h"
#include <stdlib.h>

#define VALUES 5
#define GHOSTS 2 /* points around a cell, only in memory */

struct block {
    uint64_t n, dump_bytes, memory_bytes;
    size_t row_count;
    struct io_row *rows;
};

/* The first of `n` points in part `at` of `parts`. If the division is uneven, the first parts have one point more. */
static uint64_t first_of(uint64_t n, uint64_t parts, uint64_t at) {
    uint64_t more = n % parts;
    return n / parts * at + (at < more ? at : more);
}

/* Adds the rows of a cell. They start at `memory_bytes` in memory. */
static void add_cell(struct block *block, uint64_t parts, const uint64_t cell[3]) {
    uint64_t first[3], size[3], n = block->n;
    for (int axis = 0; axis < 3; ++axis) {
        first[axis] = first_of(n, parts, cell[axis]);
        size[axis] = first_of(n, parts, cell[axis] + 1) - first[axis];
    }
    uint64_t width = size[0] + 2 * GHOSTS, height = size[1] + 2 * GHOSTS;
    for (uint64_t z = 0; z < size[2]; ++z) {
        for (uint64_t y = 0; y < size[1]; ++y) {
            struct io_row *row = &block->rows[block->row_count++];
            uint64_t point = ((first[2] + z) * n + first[1] + y) * n + first[0];
            uint64_t place = ((z + GHOSTS) * height + y + GHOSTS) * width + GHOSTS;
            row->in_file = point * VALUES * sizeof(double);
            row->in_memory = block->memory_bytes + place * VALUES * sizeof(double);
            row->len = size[0] * VALUES * sizeof(double);
        }
    }
    block->memory_bytes += width * height * (size[2] + 2 * GHOSTS) * VALUES * sizeof(double);
}

static struct block block_of(uint64_t n) {
    uint64_t ranks = (uint64_t)io_ranks(), me = (uint64_t)io_rank(), parts = 1;
    while (parts * parts < ranks) ++parts;
    if (parts * parts != ranks) io_fail("the number of ranks is no square");
    struct block block = {n, n * n * n * VALUES * sizeof(double), 0, 0, NULL};
    /* An upper bound: each part of an axis may have one point more. */
    block.rows = (struct io_row *)allocate(parts * (n / parts + 1) * (n / parts + 1) * sizeof *block.rows);
    uint64_t cell[3] = {me % parts, me / parts, 0};
    for (uint64_t slice = 0; slice < parts; ++slice) {
        cell[2] = slice;
        add_cell(&block, parts, cell);
        cell[0] = (cell[0] + 1) % parts;
        cell[1] = (cell[1] + parts - 1) % parts;
    }
    return block;
}

static void write_dumps(const struct block *block, uint64_t dumps, char *memory, int is_full) {
    for (uint64_t dump = 0; dump < dumps; ++dump) {
        uint64_t base = dump * block->dump_bytes;
        for (size_t at = 0; at < block->row_count; ++at) {
            const struct io_row *row = &block->rows[at];
            fill(base + row->in_file, memory + row->in_memory, row->len);
            if (!is_full) io_write_at(base + row->in_file, memory + row->in_memory, row->len);
        }
        if (is_full) io_write_view(dump, memory);
    }
}

static void read_dumps(const struct block *block, uint64_t dumps, char *memory, int is_full) {
    for (uint64_t dump = 0; dump < dumps; ++dump) {
        uint64_t base = dump * block->dump_bytes;
        if (is_full) io_read_view(dump, memory);
        for (size_t at = 0; at < block->row_count; ++at) {
            const struct io_row *row = &block->rows[at];
            if (!is_full) io_read_at(base + row->in_file, memory + row->in_memory, row->len);
            check_filled(base + row->in_file, memory + row->in_memory, row->len);
        }
    }
}

static struct times btio(const struct orders *orders, int is_full) {
    struct times times;
    struct block block = block_of(orders->size);
    char *memory = (char *)allocate(block.memory_bytes);
    double begun = begin(orders->path, IO_WRITE | IO_NEW);
    if (is_full) io_view(block.row_count, block.rows, block.dump_bytes);
    write_dumps(&block, orders->unit, memory, is_full);
    times.written = end(orders, 1, begun);
    begun = begin(orders->path, IO_READ);
    if (is_full) io_view(block.row_count, block.rows, block.dump_bytes);
    read_dumps(&block, orders->unit, memory, is_full);
    times.read = end(orders, 0, begun);
    free(memory);
    free(block.rows);
    return times;
}

/* With views and collective calls, one call per dump. */
struct times btio_full(const struct orders *orders) {
    return btio(orders, 1);
}

/* One call per row. */
struct times btio_simple(const struct orders *orders) {
    return btio(orders, 0);
}
