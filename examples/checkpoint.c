/* A checkpoint. All ranks write a table, spread over their segments, to one file. A later job with any number of ranks
 * reads it back. The table may be larger than memory in both jobs.
 *
 *   cc -O2 -Iinclude examples/checkpoint.c -o checkpoint -Ltarget/release -lvgasnet -Wl,-rpath,$PWD/target/release
 *   VGASNET_POOL_SIZE=64M target/release/vgasnetrun -n 4 ./checkpoint write table 256
 *   VGASNET_POOL_SIZE=64M target/release/vgasnetrun -n 3 ./checkpoint read table
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vgasnet.h>

#define MIB ((uint64_t)1 << 20)

/* The header of the file. */
typedef struct {
    char name[8];
    uint64_t words;
} head_t;

static const char name[8] = "vgtable";

static int usage(int status) {
    if (vgasnet_mynode() != 0) return 0;
    fprintf(status == 0 ? stdout : stderr,
            "usage: checkpoint write FILE [MIB]\n"
            "       checkpoint read FILE\n"
            "  FILE  the checkpoint\n"
            "  MIB   size of the table (default 64)\n");
    return status;
}

static uint64_t value(uint64_t word) { return (word + 1) * UINT64_C(0x9e3779b97f4a7c15); }

/* Returns the index of the first word in this rank's share of the table, and the number of words in `*count`. */
static uint64_t share(uint64_t words, uint64_t *count) {
    uint64_t each = (words + vgasnet_nodes() - 1) / vgasnet_nodes(), first = each * vgasnet_mynode();
    *count = first >= words ? 0 : words - first < each ? words - first : each;
    return first;
}

static uint64_t *attached(uint64_t words) {
    vgasnet_seginfo_t *segments = (vgasnet_seginfo_t *)malloc(vgasnet_nodes() * sizeof *segments);
    uint64_t *own;
    if (vgasnet_attach(NULL, 0, (words / vgasnet_nodes() + 1) * sizeof *own, 0) != VGASNET_OK) exit(1);
    vgasnet_getSegmentInfo(segments, (int)vgasnet_nodes());
    own = (uint64_t *)segments[vgasnet_mynode()].addr;
    free(segments);
    return own;
}

static vgasnet_file_t opened(const char *path, int flags) {
    vgasnet_file_t file;
    if (vgasnet_file_open(VGASNET_TEAM_ALL, path, flags, 0644, NULL, &file) != VGASNET_OK) vgasnet_exit(1);
    return file;
}

static void closed(vgasnet_file_t file) {
    if (vgasnet_file_close(file) != VGASNET_OK) vgasnet_exit(1);
}

static void write_table(const char *path, uint64_t words) {
    uint64_t *own = attached(words), count, first = share(words, &count);
    head_t head;
    vgasnet_file_t file = opened(path, VGASNET_FILE_WRITE | VGASNET_FILE_CREATE | VGASNET_FILE_TRUNCATE);
    for (uint64_t i = 0; i < count; ++i) own[i] = value(first + i);
    memcpy(head.name, name, sizeof name);
    head.words = words;
    if (vgasnet_mynode() == 0 && vgasnet_file_write_at(file, 0, &head, sizeof head) != VGASNET_OK) vgasnet_exit(1);
    if (vgasnet_file_write_at(file, sizeof head + first * sizeof *own, own, count * sizeof *own) != VGASNET_OK) vgasnet_exit(1);
    if (vgasnet_file_sync(file) != VGASNET_OK) vgasnet_exit(1);
    closed(file);
    if (vgasnet_mynode() == 0) printf("%" PRIu64 " words written by %u ranks\n", words, vgasnet_nodes());
}

/* The size of the table. It is needed before segments are attached, so plain C input reads it from the header. */
static uint64_t words_of(const char *path) {
    head_t head;
    FILE *file = fopen(path, "rb");
    size_t has_head = file != NULL && fread(&head, sizeof head, 1, file) == 1 && memcmp(head.name, name, sizeof name) == 0;
    if (file != NULL) fclose(file);
    return has_head ? head.words : 0;
}

static void read_table(const char *path) {
    uint64_t words = words_of(path), count, first = share(words, &count), wrong = 0, *own;
    size_t nread = 0;
    vgasnet_file_t file;
    if (words == 0) {
        fprintf(stderr, "checkpoint: %s is no checkpoint; write one first\n", path);
        exit(1);
    }
    own = attached(words);
    file = opened(path, VGASNET_FILE_READ);
    if (vgasnet_file_read_at(file, sizeof(head_t) + first * sizeof *own, own, count * sizeof *own, &nread) != VGASNET_OK) vgasnet_exit(1);
    closed(file);
    for (uint64_t i = 0; i < count; ++i) wrong += own[i] != value(first + i);
    if (wrong > 0 || nread != count * sizeof *own) {
        fprintf(stderr, "checkpoint: rank %u: %" PRIu64 " words are wrong\n", vgasnet_mynode(), wrong);
        vgasnet_exit(1);
    }
    if (vgasnet_mynode() == 0) printf("%" PRIu64 " words read by %u ranks\n", words, vgasnet_nodes());
}

int main(int argc, char **argv) {
    char *end = (char *)"";
    unsigned long long mib;
    int is_write;
    if (vgasnet_init(&argc, &argv) != VGASNET_OK) return 1;
    if (argc == 2 && strcmp(argv[1], "--help") == 0) vgasnet_exit(usage(0));
    is_write = argc > 1 && strcmp(argv[1], "write") == 0;
    mib = argc > 3 ? strtoull(argv[3], &end, 10) : 64;
    if (argc < 3 || argc > (is_write ? 4 : 3) || (!is_write && strcmp(argv[1], "read") != 0) || *end != '\0' || mib == 0 || mib > 1u << 24)
        vgasnet_exit(usage(2));
    if (is_write) write_table(argv[2], mib * MIB / sizeof(uint64_t));
    else read_table(argv[2]);
    vgasnet_barrier_notify(0, VGASNET_BARRIERFLAG_ANONYMOUS);
    vgasnet_barrier_wait(0, VGASNET_BARRIERFLAG_ANONYMOUS);
    vgasnet_exit(0);
}
