/* The access pattern of FLASH I/O: a checkpoint of 24 variables of doubles, and two plot files of 4 variables of
 * floats, at the centres and at the corners of cells. A rank has one contiguous piece of each variable. */
#include "io.h"
#include "pattern.h"
#include <stdio.h>
#include <stdlib.h>

/* Number of blocks of a rank. */
static uint64_t blocks_of(uint64_t rank) {
    return 80 + rank % 3;
}

/* Writes a file with this number of variables and bytes per block. */
static double write_file(const struct orders *orders, const char *end_of_name, uint64_t variables, uint64_t block_bytes) {
    char path[4096];
    uint64_t ranks = (uint64_t)io_ranks(), me = (uint64_t)io_rank(), before = 0, all = 0;
    for (uint64_t rank = 0; rank < ranks; ++rank) {
        if (rank < me) before += blocks_of(rank);
        all += blocks_of(rank);
    }
    snprintf(path, sizeof path, "%s%s", orders->path, end_of_name);
    size_t piece_bytes = blocks_of(me) * block_bytes;
    char *piece = (char *)allocate(piece_bytes);
    double begun = begin(path, IO_WRITE | IO_NEW);
    for (uint64_t variable = 0; variable < variables; ++variable) {
        uint64_t offset = (variable * all + before) * block_bytes;
        fill(offset, piece, piece_bytes);
        io_write_all(offset, piece, piece_bytes);
    }
    double seconds = end(orders, 1, begun);
    free(piece);
    return seconds;
}

struct times flash(const struct orders *orders) {
    uint64_t edge = orders->size, corners = edge + 1;
    struct times times = {0, 0};
    times.written += write_file(orders, "", 24, edge * edge * edge * sizeof(double));
    times.written += write_file(orders, ".centres", 4, edge * edge * edge * sizeof(float));
    times.written += write_file(orders, ".corners", 4, corners * corners * corners * sizeof(float));
    return times;
}
