/* How a file is closed. shared_file_closes PART DIRECTORY
 *   lost       nothing can be written: close names the lost bytes, and the file has its full length
 *   unsynced   close waits for unsynced operations */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

enum { PAGES = 6, LEN = 100 };

static vgasnet_node_t me, ranks;
static vgasnet_file_t file;
static char path[4096];

static off_t place(int page) { return (off_t)((page * ranks + me) * page_bytes() + 7); }

static void lost(void) {
    char bytes[LEN];
    struct stat about;
    memset(bytes, 'x', sizeof bytes);
    CHECK_EQ(vgasnet_file_write_at(file, (uint64_t)place(0), bytes, LEN), VGASNET_OK);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_ERR_IO);
    CHECK_EQ(errno, ENOSPC);
    CHECK(stat(path, &about) == 0);
    CHECK_EQ(about.st_size, (off_t)((ranks - 1) * page_bytes() + 7 + LEN));
}

static void unsynced(void) {
    char bytes[PAGES][LEN], is[LEN];
    vgasnet_handle_t handles[PAGES];
    memset(is, '.', LEN);
    /* One error line is enough. */
    for (int round = 0; round < 5; ++round) {
        for (int i = 0; i < PAGES; ++i) handles[i] = vgasnet_file_write_at_nb(file, (uint64_t)place(i), is, LEN);
        CHECK_EQ(vgasnet_file_set_size(file, (uint64_t)(PAGES + 1) * ranks * page_bytes()), VGASNET_OK);
        vgasnet_wait_syncnb_all(handles, PAGES);
    }
    for (int i = 0; i < PAGES; ++i) {
        memset(bytes[i], 'a' + i, LEN);
        handles[i] = vgasnet_file_write_at_nb(file, (uint64_t)place(i), bytes[i], LEN);
    }
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    int descriptor = open(path, O_RDONLY);
    for (int i = 0; i < PAGES; ++i) {
        CHECK_EQ(pread(descriptor, is, LEN, place(i)), LEN);
        CHECK(memcmp(is, bytes[i], LEN) == 0);
        vgasnet_wait_syncnb(handles[i]);
    }
    close(descriptor);
}

int main(int argc, char **argv) {
    CHECK(argc > 2);
    start(&argc, &argv, pool_bytes());
    me = vgasnet_mynode();
    ranks = vgasnet_nodes();
    snprintf(path, sizeof path, "%s/shared", argv[2]);
    vgasnet_file_options_t options = {sizeof options, page_bytes(), 0, 0};
    int flags = VGASNET_FILE_READ | VGASNET_FILE_WRITE | VGASNET_FILE_CREATE;
    CHECK_EQ(vgasnet_file_open(VGASNET_TEAM_ALL, path, flags, 0600, &options, &file), VGASNET_OK);
    if (strcmp(argv[1], "lost") == 0) lost();
    if (strcmp(argv[1], "unsynced") == 0) unsynced();
    return finish();
}
