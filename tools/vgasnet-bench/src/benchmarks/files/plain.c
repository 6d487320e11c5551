/* Sequential blocks, and rows written round robin by the ranks. */
#include "io.h"
#include "pattern.h"
#include <stdlib.h>

/* One word in each stride has its position. All other words equal the first block's, so almost all work is I/O. */
#define MARK_STRIDE 4096

/* Each rank has the blocks of a part of the file. A single rank writes and reads the file from start to end. */
struct times sequential(const struct orders *orders) {
    uint64_t part = orders->size / (uint64_t)io_ranks(), first = part * (uint64_t)io_rank();
    char *block = (char *)allocate(orders->unit);
    struct times times;
    fill(0, block, orders->unit);
    double begun = begin(orders->path, IO_WRITE);
    for (uint64_t at = 0; at < part; at += orders->unit) {
        for (uint64_t mark = 0; mark < orders->unit; mark += MARK_STRIDE) fill(first + at + mark, block + mark, 8);
        io_write_at(first + at, block, orders->unit);
    }
    times.written = end(orders, 1, begun);
    begun = begin(orders->path, IO_READ);
    for (uint64_t at = 0; at < part; at += orders->unit) {
        io_read_at(first + at, block, orders->unit);
        for (uint64_t mark = 0; mark < orders->unit; mark += MARK_STRIDE) check_filled(first + at + mark, block + mark, 8);
    }
    times.read = end(orders, 0, begun);
    free(block);
    return times;
}

/* Rows of `unit` bytes belong to the ranks round robin, so each page has rows of all ranks. A barrier follows each row:
 * otherwise chance would determine how many rows a rank writes before the next rank's turn. */
struct times rows(const struct orders *orders) {
    uint64_t ranks = (uint64_t)io_ranks(), me = (uint64_t)io_rank(), count = orders->size / (ranks * orders->unit);
    char *row = (char *)allocate(orders->unit);
    double begun = begin(orders->path, IO_WRITE | IO_NEW);
    for (uint64_t at = 0; at < count; ++at) {
        uint64_t offset = (at * ranks + me) * orders->unit;
        fill(offset, row, orders->unit);
        io_write_at(offset, row, orders->unit);
        io_barrier();
    }
    struct times times = {end(orders, 1, begun), 0};
    free(row);
    return times;
}
