/* The promises of a sync. shared_file_durable DIRECTORY
 * The C library's fsync and ftruncate are replaced: they record the order of calls, and fsync fails on request. */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

static unsigned now, file_synced, dir_synced, resized;
static int failures;

int fsync(int fd) {
    struct stat stat;
    int is_dir = fstat(fd, &stat) == 0 && S_ISDIR(stat.st_mode);
    *(is_dir ? &dir_synced : &file_synced) = ++now;
    if (!is_dir && failures > 0) {
        --failures;
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

int ftruncate(int fd, off_t size) {
    resized = ++now;
    return (int)syscall(SYS_ftruncate, fd, size);
}

int ftruncate64(int fd, off_t size) { return ftruncate(fd, size); }

static vgasnet_node_t me, ranks;
static vgasnet_file_t file;
static unsigned char bytes[73728];

/* Each rank has pages of its own: a page that moves between ranks is written whole, so more bytes would be doubtful
 * than were written. */
static uint64_t part(void) { return (uint64_t)me * (page_bytes() > 131072 ? page_bytes() : 131072); }

static void write_part(uint64_t from, size_t len) {
    CHECK_EQ(vgasnet_file_write_at(file, part() + from, bytes, len), VGASNET_OK);
}

static void sync_fails(int rank) {
    failures = rank < 0 || (vgasnet_node_t)rank == me;
    CHECK_EQ(vgasnet_file_sync(file), VGASNET_ERR_IO);
    CHECK_EQ(errno, EIO);
    CHECK_EQ(failures, 0);
}

static void sync_is_refused(void) {
    unsigned before = file_synced;
    CHECK_EQ(vgasnet_file_sync(file), VGASNET_ERR_IO);
    CHECK_EQ(errno, EIO);
    CHECK(file_synced > before);
}

static void sync_succeeds(void) {
    unsigned before = file_synced;
    CHECK_EQ(vgasnet_file_sync(file), VGASNET_OK);
    CHECK(file_synced > before);
}

/* The size is set before the call that makes it durable. */
static void new_file(void) {
    write_part(0, 5000);
    sync_succeeds();
    if (me == 0) {
        CHECK(resized > 0 && resized < file_synced);
        CHECK(dir_synced > 0);
    }
    dir_synced = 0;
    sync_succeeds();
    CHECK_EQ(dir_synced, 0);
}

static void written_again(void) {
    write_part(0, sizeof bytes);
    sync_fails(ranks - 1);
    sync_is_refused();
    sync_is_refused();
    if (me == 0) write_part(0, sizeof bytes);
    barrier();
    if (ranks > 1) sync_is_refused();
    if (me != 0) write_part(0, sizeof bytes);
    sync_succeeds();
    sync_succeeds();
}

static void in_pieces(void) {
    write_part(0, sizeof bytes);
    sync_fails(-1);
    for (size_t at = 0; at < sizeof bytes; at += 1000) {
        size_t len = sizeof bytes - at < 1000 ? sizeof bytes - at : 1000;
        if (at / 1000 % 2) {
            vgasnet_wait_syncnb(vgasnet_file_write_at_nb(file, part() + at, bytes + at, len));
        } else {
            CHECK_EQ(vgasnet_file_write_at(file, part() + at, bytes + at, len), VGASNET_OK);
        }
        if (at == 30000) sync_is_refused();
    }
    sync_succeeds();
}

/* A sync that fails again starts from the beginning. */
static void failed_again(void) {
    write_part(0, 4096);
    sync_fails(0);
    write_part(0, 4096);
    sync_fails(0);
    sync_is_refused();
    write_part(0, 4096);
    sync_succeeds();
}

static void cut(void) {
    write_part(0, 4096);
    sync_fails(-1);
    CHECK_EQ(vgasnet_file_set_size(file, 0), VGASNET_OK);
    sync_succeeds();
}

static void closed(void) {
    write_part(0, 4096);
    sync_fails(0);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_ERR_IO);
}

int main(int argc, char **argv) {
    char path[4096];
    uint64_t state = mixed(1, 2, 3);
    CHECK(argc > 1);
    start(&argc, &argv, pool_bytes());
    me = vgasnet_mynode();
    ranks = vgasnet_nodes();
    random_bytes(&state, bytes, sizeof bytes);
    snprintf(path, sizeof path, "%s/shared", argv[1]);
    vgasnet_file_options_t options = {sizeof options, page_bytes(), 0, 0};
    int flags = VGASNET_FILE_READ | VGASNET_FILE_WRITE | VGASNET_FILE_CREATE;
    CHECK_EQ(vgasnet_file_open(VGASNET_TEAM_ALL, path, flags, 0600, &options, &file), VGASNET_OK);
    new_file();
    written_again();
    in_pieces();
    failed_again();
    cut();
    closed();
    return finish();
}
