/* Files by vgasnet_file_*. */
#include "io.h"
#include "pattern.h"
#include "ranks.h"

static vgasnet_file_t file;
static vgasnet_file_run_t *runs;
static vgasnet_memvec_t *pieces;
static size_t row_count;
static const struct io_row *view;
static uint64_t view_extent;

static void check(int result, const char *what) {
    if (result != VGASNET_OK) io_fail(what);
}

void io_open(const char *path, int flags) {
    int mode = (flags & IO_READ ? VGASNET_FILE_READ : 0) | (flags & IO_WRITE ? VGASNET_FILE_WRITE : 0);
    if (flags & IO_NEW) mode |= VGASNET_FILE_CREATE;
    if (flags & IO_ATOMIC) mode |= VGASNET_FILE_ATOMIC;
    check(vgasnet_file_open(VGASNET_TEAM_ALL, path, mode, 0644, NULL, &file), "open");
}

void io_sync(void) {
    check(vgasnet_file_sync(file), "sync");
}

void io_close(void) {
    check(vgasnet_file_close(file), "close");
}

void io_write_at(uint64_t offset, const void *from, size_t len) {
    check(vgasnet_file_write_at(file, offset, from, len), "write");
}

void io_read_at(uint64_t offset, void *to, size_t len) {
    size_t nread;
    check(vgasnet_file_read_at(file, offset, to, len, &nread), "read");
    if (nread != len) io_fail("the end of the file");
}

void io_write_all(uint64_t offset, const void *from, size_t len) {
    io_write_at(offset, from, len);
}

void io_view(size_t count, const struct io_row rows[], uint64_t extent) {
    free(runs);
    free(pieces);
    runs = (vgasnet_file_run_t *)allocate(count * sizeof *runs);
    pieces = (vgasnet_memvec_t *)allocate(count * sizeof *pieces);
    row_count = count;
    view = rows;
    view_extent = extent;
}

/* Fills the lists with the nth occurrence of the rows. */
static void list(uint64_t nth, const void *memory) {
    for (size_t at = 0; at < row_count; ++at) {
        runs[at].offset = nth * view_extent + view[at].in_file;
        runs[at].len = view[at].len;
        pieces[at].addr = (char *)memory + view[at].in_memory;
        pieces[at].len = view[at].len;
    }
}

void io_write_view(uint64_t nth, const void *memory) {
    list(nth, memory);
    check(vgasnet_file_writev_at(file, row_count, runs, row_count, pieces), "write of rows");
}

void io_read_view(uint64_t nth, void *memory) {
    list(nth, memory);
    check(vgasnet_file_readv_at(file, row_count, runs, row_count, pieces, NULL), "read of rows");
}
