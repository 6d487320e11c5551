/* A five-point stencil on a grid larger than memory. Each rank keeps a block of rows in its segment. In each step it
 * puts its outermost rows into the segments of its neighbours, then updates its own rows with plain loops over the
 * segment.
 *
 *   cc -O2 -Iinclude examples/stencil.c -o stencil -Ltarget/release -lvgasnet -Wl,-rpath,$PWD/target/release
 *   VGASNET_POOL_SIZE=16M target/release/vgasnetrun -n 4 ./stencil 4096 4096 10
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vgasnet.h>

/* The whole grid. The rows above and below it are fixed, and so are the first and the last column. */
struct grid {
    size_t rows, columns, steps;
};

static vgasnet_node_t me, ranks;
static vgasnet_seginfo_t *segments;

/* Only rank 0 prints the usage, and its status becomes the job's. */
static int usage(int status) {
    if (vgasnet_mynode() != 0) return 0;
    fprintf(status == 0 ? stdout : stderr,
            "usage: stencil [ROWS COLUMNS STEPS [nocheck]]\n"
            "  ROWS, COLUMNS  size of the grid of doubles (default 1024 1024)\n"
            "  STEPS          how often it is relaxed (default 6)\n"
            "  nocheck        do not compute the same in ordinary memory to compare\n");
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
    return *end == '\0' && text[0] != '-' && value < UINT32_MAX ? (size_t)value : 0;
}

static size_t first_row_of(const struct grid *grid, vgasnet_node_t rank) { return grid->rows * rank / ranks; }

static size_t rows_of(const struct grid *grid, vgasnet_node_t rank) {
    return first_row_of(grid, rank + 1) - first_row_of(grid, rank);
}

/* Size of a block: the rank's rows and one row of each neighbour. */
static size_t block_bytes(const struct grid *grid, vgasnet_node_t rank) {
    return (rows_of(grid, rank) + 2) * grid->columns * sizeof(double);
}

/* A row of one of a rank's two blocks. Row 0 is the neighbour's row above the rank's first. */
static double *row_of(const struct grid *grid, vgasnet_node_t rank, size_t block, size_t row) {
    char *base = (char *)segments[rank].addr + block * block_bytes(grid, rank);
    return (double *)(void *)base + row * grid->columns;
}

/* Sets the initial values of a row of the grid. Row 0 is the fixed row above the grid. */
static void begin_row(double *row, size_t index, size_t columns) {
    for (size_t i = 0; i < columns; ++i) row[i] = (double)((index * 7919 + i * 104729) % 1009);
}

static void relax_row(double *to, const double *above, const double *row, const double *below, size_t columns) {
    to[0] = row[0], to[columns - 1] = row[columns - 1];
    for (size_t i = 1; i + 1 < columns; ++i) to[i] = 0.25 * (above[i] + below[i] + row[i - 1] + row[i + 1]);
}

static void begin(const struct grid *grid) {
    for (size_t block = 0; block < 2; ++block)
        for (size_t row = 0; row < rows_of(grid, me) + 2; ++row)
            begin_row(row_of(grid, me, block, row), first_row_of(grid, me) + row, grid->columns);
}

/* The source of a put may lie in the caller's own segment. */
static void put_outer_rows(const struct grid *grid, size_t block) {
    size_t row_bytes = grid->columns * sizeof(double), rows = rows_of(grid, me);
    if (me > 0) {
        vgasnet_node_t above = me - 1;
        double *to = row_of(grid, above, block, rows_of(grid, above) + 1);
        vgasnet_put_nbi_bulk(above, to, row_of(grid, me, block, 1), row_bytes);
    }
    if (me + 1 < ranks)
        vgasnet_put_nbi_bulk(me + 1, row_of(grid, me + 1, block, 0), row_of(grid, me, block, rows), row_bytes);
    vgasnet_wait_syncnbi_puts();
}

/* Relaxes from one block into the other and back. One barrier a step is enough: in the next step a neighbour puts into
 * the other block, and before it puts into this one again it waits for this rank at the next barrier. */
static void run(const struct grid *grid) {
    for (size_t step = 0; step < grid->steps; ++step) {
        size_t from = step % 2, to = 1 - from;
        put_outer_rows(grid, from);
        barrier();
        for (size_t row = 1; row <= rows_of(grid, me); ++row)
            relax_row(row_of(grid, me, to, row), row_of(grid, me, from, row - 1), row_of(grid, me, from, row),
                      row_of(grid, me, from, row + 1), grid->columns);
    }
}

/* Computes the same in ordinary memory. Returns 0 if this rank's rows are equal to it bit for bit. */
static int compare(const struct grid *grid) {
    size_t row_bytes = grid->columns * sizeof(double), first = first_row_of(grid, me), row;
    double *from = (double *)malloc((grid->rows + 2) * row_bytes), *to = (double *)malloc((grid->rows + 2) * row_bytes);
    if (from == NULL || to == NULL) {
        fprintf(stderr, "stencil: rank %u: no memory to compare in; try nocheck\n", me);
        return 1;
    }
    for (row = 0; row < grid->rows + 2; ++row) {
        begin_row(from + row * grid->columns, row, grid->columns);
        begin_row(to + row * grid->columns, row, grid->columns);
    }
    for (size_t step = 0; step < grid->steps; ++step) {
        for (row = 1; row <= grid->rows; ++row) {
            double *above = from + (row - 1) * grid->columns;
            relax_row(to + row * grid->columns, above, above + grid->columns, above + 2 * grid->columns, grid->columns);
        }
        double *relaxed = to;
        to = from, from = relaxed;
    }
    for (row = 1; row <= rows_of(grid, me); ++row)
        if (memcmp(row_of(grid, me, grid->steps % 2, row), from + (first + row) * grid->columns, row_bytes) != 0) break;
    free(from);
    free(to);
    if (row <= rows_of(grid, me)) fprintf(stderr, "stencil: rank %u: row %zu is wrong\n", me, first + row - 1);
    return row <= rows_of(grid, me);
}

static int start(const struct grid *grid) {
    if (vgasnet_attach(NULL, 0, 2 * block_bytes(grid, me), 0) != VGASNET_OK) return 1;
    segments = (vgasnet_seginfo_t *)malloc(ranks * sizeof *segments);
    return segments == NULL || vgasnet_getSegmentInfo(segments, (int)ranks) != VGASNET_OK;
}

int main(int argc, char **argv) {
    if (vgasnet_init(&argc, &argv) != VGASNET_OK) return 1;
    me = vgasnet_mynode(), ranks = vgasnet_nodes();
    if (argc > 1 && strcmp(argv[1], "--help") == 0) return usage(0);
    struct grid grid = {1024, 1024, 6};
    if (argc > 3) grid.rows = number(argv[1]), grid.columns = number(argv[2]), grid.steps = number(argv[3]);
    int check = argc < 5, understood = argc == 1 || argc == 4 || (argc == 5 && strcmp(argv[4], "nocheck") == 0);
    if (!understood || grid.rows < ranks || grid.columns < 3 || grid.steps == 0) return usage(2);

    if (start(&grid) != 0) return 1;
    begin(&grid);
    barrier();
    double began = seconds();
    run(&grid);
    barrier();
    double time = seconds() - began;
    if (check && compare(&grid) != 0) return 1;
    barrier();
    if (me == 0)
        printf("stencil on %u ranks, %zu steps on %zu x %zu: %.1f million points/s%s\n", ranks, grid.steps, grid.rows,
               grid.columns, 1e-6 * (double)grid.rows * (double)grid.columns * (double)grid.steps / time,
               check ? ", as in memory" : "");
    vgasnet_exit(0);
}
