/* Threads append to a file while another thread syncs it, reserves space, or rescues it as if the job ended.
 *   shared_file_appends sync|preallocate|rescue DIRECTORY */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

#define WRITERS 2
#define ROUNDS 12

static vgasnet_node_t me, ranks;
static vgasnet_file_t file;
static size_t record_len, most_records;
static int is_over, may_start;

struct writer {
    unsigned number;
    size_t records;
};

static uint64_t place(unsigned writer, size_t record) { return ((record * ranks + me) * WRITERS + writer) * record_len; }

static unsigned char mark(unsigned writer, size_t record) { return (unsigned char)((record * 7 + writer + 3 * me) % 255 + 1); }

/* One waits for each record, the other keeps eight in flight. */
static void *append(void *arg) {
    struct writer *writer = (struct writer *)arg;
    int waits = writer->number == 0 || !may_start;
    unsigned char *bytes = (unsigned char *)allocate(8 * record_len);
    vgasnet_handle_t handle[8];
    size_t k = 0;
    while (k < most_records && !__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        for (int i = 0; i < 8; ++i, ++k) {
            unsigned char *record = bytes + (size_t)i * record_len;
            memset(record, mark(writer->number, k), record_len);
            if (waits)
                CHECK_EQ(vgasnet_file_write_at(file, place(writer->number, k), record, record_len), VGASNET_OK);
            else
                handle[i] = vgasnet_file_write_at_nb(file, place(writer->number, k), record, record_len);
        }
        if (!waits) vgasnet_wait_syncnb_all(handle, 8);
    }
    writer->records = k;
    free(bytes);
    return NULL;
}

/* Rescues the file again and again until the writers have ended. */
static void rescue(const pthread_t *threads) {
    int (*rescue_file)(vgasnet_file_t) = NULL;
    void *found = dlsym(RTLD_DEFAULT, "vgasnet_mpi_file_rescue");
    CHECK(found);
    memcpy(&rescue_file, &found, sizeof found);
    for (unsigned i = 0; i < WRITERS; ++i)
        while (pthread_tryjoin_np(threads[i], NULL) != 0) CHECK_EQ(rescue_file(file), VGASNET_OK);
}

static void check_records(const struct writer *writer, int descriptor) {
    unsigned char *bytes = (unsigned char *)allocate(record_len);
    for (size_t k = 0; k < writer->records; ++k) {
        size_t nread = 0;
        if (descriptor < 0)
            CHECK_EQ(vgasnet_file_read_at(file, place(writer->number, k), bytes, record_len, &nread), VGASNET_OK);
        else
            nread = (size_t)pread(descriptor, bytes, record_len, (off_t)place(writer->number, k));
        CHECK_EQ(nread, record_len);
        for (size_t i = 0; i < record_len; ++i) CHECK_EQ(bytes[i], mark(writer->number, k));
    }
    free(bytes);
}

int main(int argc, char **argv) {
    const int flags = VGASNET_FILE_READ | VGASNET_FILE_WRITE | VGASNET_FILE_CREATE | VGASNET_FILE_TRUNCATE;
    pthread_t threads[WRITERS];
    struct writer writers[WRITERS];
    char path[4096];
    start(&argc, &argv, pool_bytes());
    CHECK(argc > 2);
    me = vgasnet_mynode();
    ranks = vgasnet_nodes();
    may_start = strcmp(argv[1], "sync") == 0;
    record_len = page_bytes() / 3 + 100;
    most_records = 24 * pool_bytes() / record_len;
    snprintf(path, sizeof path, "%s/shared", argv[2]);
    vgasnet_file_options_t options = {sizeof options, page_bytes(), 0, 0};
    CHECK_EQ(vgasnet_file_open(VGASNET_TEAM_ALL, path, flags, 0644, &options, &file), VGASNET_OK);
    for (unsigned i = 0; i < WRITERS; ++i) {
        writers[i].number = i;
        CHECK(pthread_create(&threads[i], NULL, append, &writers[i]) == 0);
    }
    int rescues = strcmp(argv[1], "rescue") == 0;
    if (rescues) rescue(threads);
    for (uint64_t round = 0; round < ROUNDS && !rescues; ++round) {
        if (may_start)
            CHECK_EQ(vgasnet_file_sync(file), VGASNET_OK);
        else
            CHECK_EQ(vgasnet_file_preallocate(file, (round + 1) * record_len), VGASNET_OK);
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < WRITERS && !rescues; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
    for (unsigned i = 0; i < WRITERS; ++i) check_records(&writers[i], -1);
    barrier();
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    int descriptor = open(path, O_RDONLY);
    CHECK(descriptor >= 0);
    for (unsigned i = 0; i < WRITERS; ++i) check_records(&writers[i], descriptor);
    close(descriptor);
    return finish();
}
