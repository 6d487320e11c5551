/* A log written by all ranks and followed by one. Each record goes to a place taken from the file's shared pointer, so
 * no writer waits for another. Rank 0 reads the file from start to end as it grows.
 *
 *   cc -O2 -Iinclude examples/shared_log.c -o shared_log -Ltarget/release -lvgasnet -Wl,-rpath,$PWD/target/release
 *   VGASNET_PAGE_SIZE=256K target/release/vgasnetrun -n 4 ./shared_log log 10000
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vgasnet.h>

/* The mark is written last, so a reader that finds the mark finds a complete record. */
typedef struct {
    uint32_t writer, number;
    char text[52];
    uint32_t mark; /* 0 in an unwritten record */
} record_t;

#define MARK 0x106106u

static int usage(int status) {
    if (vgasnet_mynode() != 0) return 0;
    fprintf(status == 0 ? stdout : stderr,
            "usage: shared_log FILE [RECORDS]\n"
            "  FILE     the log, which is made anew\n"
            "  RECORDS  that each rank writes (default 1000)\n");
    return status;
}

static void barrier(void) {
    vgasnet_barrier_notify(0, VGASNET_BARRIERFLAG_ANONYMOUS);
    vgasnet_barrier_wait(0, VGASNET_BARRIERFLAG_ANONYMOUS);
}

static void write_or_end(vgasnet_file_t file, uint64_t offset, const void *from, size_t len) {
    if (vgasnet_file_write_at(file, offset, from, len) != VGASNET_OK) vgasnet_exit(1);
}

/* Reads a record. Returns whether the file has a complete one there. */
static int has_read(vgasnet_file_t file, uint64_t place, record_t *record) {
    size_t nread;
    if (vgasnet_file_read_at(file, place * sizeof *record, record, sizeof *record, &nread) != VGASNET_OK) vgasnet_exit(1);
    return nread == sizeof *record && record->mark == MARK;
}

/* Appends a record. The file's shared pointer counts records. */
static void append(vgasnet_file_t file, uint32_t number) {
    record_t record = {vgasnet_mynode(), number, "", 0};
    const uint32_t mark = MARK;
    uint64_t place;
    snprintf(record.text, sizeof record.text, "record %" PRIu32 " of rank %" PRIu32, number, record.writer);
    if (vgasnet_file_take(file, 1, &place) != VGASNET_OK) vgasnet_exit(1);
    write_or_end(file, place * sizeof record, &record, sizeof record);
    write_or_end(file, place * sizeof record + offsetof(record_t, mark), &mark, sizeof mark);
}

/* Reads the records in file order as they are written. Returns the number of records with unexpected content. */
static uint64_t follow(vgasnet_file_t file, uint64_t records) {
    uint64_t wrong = 0, at = 0;
    uint32_t *seen = (uint32_t *)calloc(vgasnet_nodes(), sizeof *seen);
    while (at < records) {
        record_t record;
        char text[sizeof record.text];
        /* The writer may have taken the place without having written yet. Only the mark of the first read counts: the
         * rest of the record may have been read before the mark was written, so it is read again. */
        if (!has_read(file, at, &record)) continue;
        has_read(file, at, &record);
        snprintf(text, sizeof text, "record %" PRIu32 " of rank %" PRIu32, record.number, record.writer);
        wrong += record.writer >= vgasnet_nodes() || strcmp(text, record.text) != 0 || record.number != seen[record.writer]++;
        ++at;
    }
    free(seen);
    return wrong;
}

int main(int argc, char **argv) {
    const int flags = VGASNET_FILE_READ | VGASNET_FILE_WRITE | VGASNET_FILE_CREATE | VGASNET_FILE_TRUNCATE;
    vgasnet_file_t file;
    unsigned long long records;
    char *end = (char *)"";
    uint64_t wrong = 0;
    if (vgasnet_init(&argc, &argv) != VGASNET_OK) return 1;
    if (vgasnet_attach(NULL, 0, 0, 0) != VGASNET_OK) return 1;
    if (argc == 2 && strcmp(argv[1], "--help") == 0) vgasnet_exit(usage(0));
    records = argc > 2 ? strtoull(argv[2], &end, 10) : 1000;
    if (argc < 2 || argc > 3 || *end != '\0' || records == 0 || records > UINT32_MAX) vgasnet_exit(usage(2));
    if (vgasnet_file_open(VGASNET_TEAM_ALL, argv[1], flags, 0644, NULL, &file) != VGASNET_OK) vgasnet_exit(1);
    barrier();
    for (uint32_t number = 0; number < records; ++number) append(file, number);
    if (vgasnet_mynode() == 0) wrong = follow(file, records * vgasnet_nodes());
    if (vgasnet_file_close(file) != VGASNET_OK) vgasnet_exit(1);
    if (vgasnet_mynode() == 0) printf("%llu records of %u ranks, %" PRIu64 " wrong\n", records, vgasnet_nodes(), wrong);
    vgasnet_exit(wrong > 0);
}
