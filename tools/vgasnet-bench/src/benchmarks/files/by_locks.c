/* Files by pread and pwrite, each under a fcntl lock on its bytes. vgasnet provides the barriers. */
#include "io.h"
#include "ranks.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int file;
static size_t row_count;
static const struct io_row *view;
static uint64_t view_extent;

static void lock(short type, uint64_t offset, size_t len) {
    struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)offset, .l_len = (off_t)len};
    while (fcntl(file, F_SETLKW, &range) != 0)
        if (errno != EINTR) io_fail("fcntl");
}

/* One rank creates the file, so all open the same file. */
void io_open(const char *path, int flags) {
    int mode = flags & IO_WRITE ? O_RDWR : O_RDONLY;
    if ((flags & IO_NEW) && io_rank() == 0) file = open(path, mode | O_CREAT, 0644);
    io_barrier();
    if (!(flags & IO_NEW) || io_rank() != 0) file = open(path, mode);
    if (file < 0) io_fail("open");
}

void io_sync(void) {
    io_barrier();
    if (fsync(file) != 0) io_fail("fsync");
    io_barrier();
}

void io_close(void) {
    if (close(file) != 0) io_fail("close");
    io_barrier();
}

void io_write_at(uint64_t offset, const void *from, size_t len) {
    lock(F_WRLCK, offset, len);
    for (size_t done = 0; done < len;) {
        ssize_t wrote = pwrite(file, (const char *)from + done, len - done, (off_t)(offset + done));
        if (wrote <= 0) io_fail("pwrite");
        done += (size_t)wrote;
    }
    lock(F_UNLCK, offset, len);
}

void io_read_at(uint64_t offset, void *to, size_t len) {
    lock(F_RDLCK, offset, len);
    for (size_t done = 0; done < len;) {
        ssize_t got = pread(file, (char *)to + done, len - done, (off_t)(offset + done));
        if (got <= 0) io_fail("pread");
        done += (size_t)got;
    }
    lock(F_UNLCK, offset, len);
}

void io_write_all(uint64_t offset, const void *from, size_t len) {
    io_write_at(offset, from, len);
}

void io_view(size_t count, const struct io_row rows[], uint64_t extent) {
    row_count = count;
    view = rows;
    view_extent = extent;
}

void io_write_view(uint64_t nth, const void *memory) {
    for (size_t at = 0; at < row_count; ++at)
        io_write_at(nth * view_extent + view[at].in_file, (const char *)memory + view[at].in_memory, view[at].len);
}

void io_read_view(uint64_t nth, void *memory) {
    for (size_t at = 0; at < row_count; ++at)
        io_read_at(nth * view_extent + view[at].in_file, (char *)memory + view[at].in_memory, view[at].len);
}
