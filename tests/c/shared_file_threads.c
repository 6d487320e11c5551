/* Threads of all ranks read and write a file while its size is set. shared_file_threads DIRECTORY */
#include <pthread.h>

#include "check.h"

#define THREADS 3
#define ROUNDS 40

static vgasnet_node_t me, ranks;
static vgasnet_file_t file;
static size_t page_len;
/* Bytes before `low` stay, and have the same values all the time. Bytes from there to `high` come and go. */
static size_t low, high;
static int is_over;

static unsigned char value_at(uint64_t offset) { return (unsigned char)(offset % 251 + 1); }

static void fill(unsigned char *bytes, uint64_t offset, size_t len) {
    for (size_t i = 0; i < len; ++i) bytes[i] = value_at(offset + i);
}

/* After `low` the file may be new there, or cut. */
static void check_read(const unsigned char *bytes, uint64_t offset, size_t len, size_t nread) {
    CHECK(nread <= len && (offset + len > low || nread == len));
    for (size_t i = 0; i < nread; ++i)
        CHECK(bytes[i] == value_at(offset + i) || (offset + i >= low && bytes[i] == 0));
}

static void *use(void *worker) {
    uint64_t state = mixed(1, me, (uint64_t)(uintptr_t)worker);
    unsigned char *bytes = (unsigned char *)allocate(3 * page_len);
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        size_t len = random_length(&state, 2 * page_len), nread = 0;
        uint64_t offset = random_below(&state, high - len), of_write = random_below(&state, low - len);
        vgasnet_file_run_t run[2] = {{offset, len / 2}, {offset + len / 2, len - len / 2}};
        vgasnet_memvec_t piece = {bytes, len};
        uint64_t size;
        switch (random_below(&state, 6)) {
        case 0:
            CHECK_EQ(vgasnet_file_readv_at(file, 2, run, 1, &piece, &nread), VGASNET_OK);
            check_read(bytes, offset, len, nread);
            break;
        case 1:
            fill(bytes, of_write, len);
            CHECK_EQ(vgasnet_file_write_at(file, of_write, bytes, len), VGASNET_OK);
            break;
        case 2:
            CHECK_EQ(vgasnet_file_size(file, &size), VGASNET_OK);
            CHECK(size >= low && size <= high);
            break;
        case 3:
            CHECK_EQ(vgasnet_file_lock(file, 0, low, 1), VGASNET_OK);
            CHECK_EQ(vgasnet_file_unlock(file, 0, low), VGASNET_OK);
            if (random_below(&state, 4) == 0) CHECK_EQ(vgasnet_file_flush(file), VGASNET_OK);
            break;
        default:
            CHECK_EQ(vgasnet_file_read_at(file, offset, bytes, len, &nread), VGASNET_OK);
            check_read(bytes, offset, len, nread);
        }
    }
    free(bytes);
    return NULL;
}

static void set_size(uint64_t wanted) {
    uint64_t size;
    CHECK_EQ(vgasnet_file_set_size(file, wanted), VGASNET_OK);
    CHECK_EQ(vgasnet_file_size(file, &size), VGASNET_OK);
    CHECK_EQ(size, wanted);
    barrier();
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    char path[4096];
    int flags = VGASNET_FILE_READ | VGASNET_FILE_WRITE | VGASNET_FILE_CREATE;
    vgasnet_file_options_t options = {sizeof options, 0, 0, 0};
    start(&argc, &argv, pool_bytes());
    CHECK(argc > 1);
    me = vgasnet_mynode();
    ranks = vgasnet_nodes();
    page_len = page_bytes();
    options.stripe_bytes = page_len;
    low = 5 * page_len + page_len / 3;
    high = 12 * page_len;
    snprintf(path, sizeof path, "%s/shared", argv[1]);
    CHECK_EQ(vgasnet_file_open(VGASNET_TEAM_ALL, path, flags, 0644, &options, &file), VGASNET_OK);
    unsigned char *bytes = (unsigned char *)allocate(high);
    fill(bytes, 0, high);
    CHECK_EQ(vgasnet_file_write_at(file, 0, bytes, low), VGASNET_OK);
    barrier();
    for (uintptr_t i = 0; i < THREADS; ++i) CHECK(pthread_create(&threads[i], NULL, use, (void *)i) == 0);
    for (uint64_t round = 0; round < ROUNDS; ++round) {
        set_size(high);
        for (int i = 0; i < 3; ++i) {
            uint64_t offset = low + mixed(2 + me, round, i) % (high - low - page_len);
            CHECK_EQ(vgasnet_file_write_at(file, offset, bytes + offset, mixed(3 + me, round, i) % page_len), VGASNET_OK);
        }
        barrier();
        set_size(low + mixed(4, round, 0) % (high - low));
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    free(bytes);
    return finish();
}
