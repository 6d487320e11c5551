/* Calls about many pages, and lists of many runs. Few of them wait for their pages at a time. shared_file_large PART
 * DIRECTORY
 *   calls    others read the bytes of one call, also in a job with a smaller pool
 *   unread   the disk fails one read (VGASNET_TEST_IO_ERROR): just one call of several fails */
#include <errno.h>

#include "check.h"

enum { PAGES = 9000, RUN_BYTES = 96 };

static vgasnet_node_t me, ranks;
static char path[4096];
static size_t bytes, page_len;

static vgasnet_file_t opened(void) {
    vgasnet_file_t file;
    int flags = VGASNET_FILE_READ | VGASNET_FILE_WRITE | VGASNET_FILE_CREATE;
    CHECK_EQ(vgasnet_file_open(VGASNET_TEAM_ALL, path, flags, 0600, NULL, &file), VGASNET_OK);
    return file;
}

static void check_all(vgasnet_file_t file, const unsigned char *model, unsigned char *is) {
    size_t nread = 0;
    memset(is, 0, bytes);
    CHECK_EQ(vgasnet_file_read_at(file, 0, is, bytes, &nread), VGASNET_OK);
    CHECK_EQ(nread, bytes);
    check_bytes(is, model, bytes, "all bytes in one call");
}

/* Runs in a page of its own each, in random order. The memory is in one piece. */
static void check_list(vgasnet_file_t file, const unsigned char *model, unsigned char *is) {
    vgasnet_file_run_t *runs = (vgasnet_file_run_t *)allocate(PAGES * sizeof *runs);
    vgasnet_memvec_t piece = {is, (size_t)PAGES * RUN_BYTES};
    size_t nread = 0;
    for (size_t i = 0; i < PAGES; ++i) {
        size_t page = i * 7919 % PAGES;
        runs[i].offset = page * page_len + (page * 64 + me * RUN_BYTES) % (page_len - RUN_BYTES);
        runs[i].len = RUN_BYTES;
    }
    CHECK_EQ(vgasnet_file_readv_at(file, PAGES, runs, 1, &piece, &nread), VGASNET_OK);
    CHECK_EQ(nread, piece.len);
    for (size_t i = 0; i < PAGES; ++i) check_bytes(is + i * RUN_BYTES, model + runs[i].offset, RUN_BYTES, "a run");
    free(runs);
}

static void calls(void) {
    vgasnet_file_t file = opened();
    unsigned char *model = (unsigned char *)allocate(bytes), *is = (unsigned char *)allocate(bytes);
    uint64_t state = mixed(3, 1, 4);
    random_bytes(&state, model, bytes);
    if (me == ranks - 1) CHECK_EQ(vgasnet_file_write_at(file, 0, model, bytes), VGASNET_OK);
    barrier();
    check_all(file, model, is);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    file = opened();
    check_list(file, model, is);
    vgasnet_handle_t handle = vgasnet_file_write_at_nb(file, bytes * me, model, bytes);
    vgasnet_wait_syncnb(handle);
    CHECK_EQ(vgasnet_file_sync(file), VGASNET_OK);
    check_all(file, model, is);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    free(model);
    free(is);
}

static void unread(void) {
    vgasnet_file_t file = opened();
    unsigned char *is = (unsigned char *)allocate(bytes);
    size_t nread = 0;
    unsigned failed = 0;
    memset(is, 7, bytes);
    CHECK_EQ(vgasnet_file_write_at(file, 0, is, bytes), VGASNET_OK);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    file = opened();
    for (int i = 0; i < 3; ++i) {
        int code = vgasnet_file_read_at(file, 0, is, bytes, &nread);
        if (code == VGASNET_OK) continue;
        CHECK_EQ(errno, EIO);
        ++failed;
    }
    CHECK_EQ(failed, 1);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    free(is);
}

int main(int argc, char **argv) {
    start(&argc, &argv, pool_bytes());
    CHECK_EQ(argc, 3);
    me = vgasnet_mynode();
    ranks = vgasnet_nodes();
    page_len = page_bytes();
    bytes = PAGES * page_len;
    snprintf(path, sizeof path, "%s/file", argv[2]);
    if (strcmp(argv[1], "calls") == 0) calls();
    if (strcmp(argv[1], "unread") == 0) unread();
    return finish();
}
