/* Threads write a range while atomic mode is turned on and off. While it is on, no read sees half of a write.
 * shared_file_modes DIRECTORY */
#include <pthread.h>

#include "check.h"

#define PAGES 12
#define ROUNDS 25

static vgasnet_node_t me, ranks;
static vgasnet_file_t file;
static size_t len;
static int is_over;

static void *write_all(void *unused) {
    char *bytes = (char *)allocate(len);
    (void)unused;
    for (unsigned i = 0; !__atomic_load_n(&is_over, __ATOMIC_RELAXED); ++i) {
        memset(bytes, (int)(1 + (i * ranks + me) % 100), len);
        CHECK_EQ(vgasnet_file_write_at(file, 0, bytes, len), VGASNET_OK);
    }
    free(bytes);
    return NULL;
}

static void read_all(char *bytes) {
    size_t nread;
    CHECK_EQ(vgasnet_file_read_at(file, 0, bytes, len, &nread), VGASNET_OK);
    CHECK_EQ(nread, len);
}

int main(int argc, char **argv) {
    const int flags = VGASNET_FILE_READ | VGASNET_FILE_WRITE | VGASNET_FILE_CREATE | VGASNET_FILE_TRUNCATE;
    char path[4096];
    pthread_t thread;
    start(&argc, &argv, pool_bytes());
    CHECK(argc > 1);
    me = vgasnet_mynode();
    ranks = vgasnet_nodes();
    len = PAGES * page_bytes();
    snprintf(path, sizeof path, "%s/shared", argv[1]);
    CHECK_EQ(vgasnet_file_open(VGASNET_TEAM_ALL, path, flags, 0644, NULL, &file), VGASNET_OK);
    char *bytes = (char *)allocate(len), *before = (char *)allocate(len);
    memset(bytes, 1, len);
    CHECK_EQ(vgasnet_file_write_at(file, 0, bytes, len), VGASNET_OK);
    CHECK(pthread_create(&thread, NULL, write_all, NULL) == 0);
    for (int round = 0; round < ROUNDS; ++round) {
        CHECK_EQ(vgasnet_file_set_atomic(file, 1), VGASNET_OK);

        read_all(before);
        for (int i = 0; i < 4; ++i) {
            read_all(bytes);
            /* Bytes written in halves before may be there until the next write of the whole range, which is atomic
             * now. */
            if (memcmp(bytes, before, len) == 0) continue;
            for (size_t at = 1; at < len; ++at) CHECK_EQ(bytes[at], bytes[0]);
        }
        CHECK_EQ(vgasnet_file_set_atomic(file, 0), VGASNET_OK);
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    free(before);
    free(bytes);
    return finish();
}
