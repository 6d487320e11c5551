/* Two threads of each rank, each with a file of its own on the same ranks, sync and resize it. shared_file_teams
 * DIRECTORY */
#include <pthread.h>

#include "check.h"

#define FILES 2
#define ROUNDS 60

static vgasnet_node_t me, ranks;
static vgasnet_file_t files[FILES];

static void *use(void *arg) {
    const size_t k = (size_t)(uintptr_t)arg, len = k == 0 ? 17 : 1000;
    const vgasnet_file_t file = files[k];
    char bytes[1000], is[1000];
    uint64_t size, wanted = 0;
    size_t nread;
    memset(bytes, 'a' + (int)k, sizeof bytes);
    for (uint64_t i = 0; i < ROUNDS; ++i) {
        CHECK_EQ(vgasnet_file_write_at(file, (i * ranks + me) * len, bytes, len), VGASNET_OK);
        if (i % 3 != k) CHECK_EQ(vgasnet_file_sync(file), VGASNET_OK);
        wanted = (i + 1) * ranks * len;
        CHECK_EQ(vgasnet_file_set_size(file, wanted), VGASNET_OK);
    }
    CHECK_EQ(vgasnet_file_size(file, &size), VGASNET_OK);
    CHECK_EQ(size, wanted);
    for (uint64_t i = 0; i < ROUNDS * ranks; ++i) {
        CHECK_EQ(vgasnet_file_read_at(file, i * len, is, len, &nread), VGASNET_OK);
        CHECK_EQ(nread, len);
        CHECK(memcmp(is, bytes, len) == 0);
    }
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    return NULL;
}

int main(int argc, char **argv) {
    const int flags = VGASNET_FILE_READ | VGASNET_FILE_WRITE | VGASNET_FILE_CREATE | VGASNET_FILE_TRUNCATE;
    pthread_t threads[FILES];
    char path[4096];
    start(&argc, &argv, pool_bytes());
    CHECK(argc > 1);
    me = vgasnet_mynode();
    ranks = vgasnet_nodes();
    for (int k = 0; k < FILES; ++k) {
        snprintf(path, sizeof path, "%s/shared%d", argv[1], k);
        CHECK_EQ(vgasnet_file_open(VGASNET_TEAM_ALL, path, flags, 0644, NULL, &files[k]), VGASNET_OK);
    }
    for (uintptr_t k = 0; k < FILES; ++k) CHECK(pthread_create(&threads[k], NULL, use, (void *)k) == 0);
    for (int k = 0; k < FILES; ++k) CHECK(pthread_join(threads[k], NULL) == 0);
    return finish();
}
