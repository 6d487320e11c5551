/* A shared file in pieces, written by ranks in rotation, and seen by other programs. */
#ifndef PIECES_H
#define PIECES_H

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

#define PIECES 96

static const int ALL_FLAGS = VGASNET_FILE_READ | VGASNET_FILE_WRITE | VGASNET_FILE_CREATE | VGASNET_FILE_TRUNCATE;
static vgasnet_node_t me, ranks;
static char path[4096];
static const char *dir;
static size_t page_len, piece_len;

/* Another path in the directory. */
static inline const char *in_directory(const char *name) {
    static char other[4096 + 64];
    snprintf(other, sizeof other, "%s/%s", dir, name);
    return other;
}

static inline vgasnet_file_t opened_as(const char *which, int flags) {
    vgasnet_file_options_t options = {sizeof options, page_len, 0, 0};
    vgasnet_file_t file = NULL;
    CHECK_EQ(vgasnet_file_open(VGASNET_TEAM_ALL, which, flags, 0644, &options, &file), VGASNET_OK);
    return file;
}

static inline void fill_piece(unsigned char *bytes, uint64_t piece) {
    uint64_t state = mixed(1, piece, 7);
    random_bytes(&state, bytes, piece_len);
}

/* Checks a piece as read by this rank. */
static inline void check_piece(vgasnet_file_t file, uint64_t piece) {
    unsigned char *is = (unsigned char *)allocate(piece_len), *should = (unsigned char *)allocate(piece_len);
    size_t nread;
    fill_piece(should, piece);
    CHECK_EQ(vgasnet_file_read_at(file, piece * piece_len, is, piece_len, &nread), VGASNET_OK);
    CHECK_EQ(nread, piece_len);
    check_bytes(is, should, piece_len, "a piece");
    free(is);
    free(should);
}

/* Writes this rank's pieces from `first` on until one is refused. Returns the next. */
static inline uint64_t write_pieces(vgasnet_file_t file, uint64_t first) {
    unsigned char *bytes = (unsigned char *)allocate(piece_len);
    uint64_t piece = first;
    for (; piece < PIECES; ++piece) {
        if (piece % ranks != me) continue;
        fill_piece(bytes, piece);
        if (vgasnet_file_write_at(file, piece * piece_len, bytes, piece_len) != VGASNET_OK) break;
    }
    free(bytes);
    return piece;
}

/* Prints the runs of blocks missing in the file system, of the pieces written by this rank. */
static inline void print_lacking(uint64_t written) {
    unsigned char *is = (unsigned char *)allocate(piece_len), *should = (unsigned char *)allocate(piece_len);
    int descriptor = open(path, O_RDONLY);
    CHECK(descriptor >= 0);
    for (uint64_t piece = me; piece < written; piece += ranks) {
        memset(is, 0, piece_len);
        CHECK(pread(descriptor, is, piece_len, (off_t)(piece * piece_len)) >= 0);
        fill_piece(should, piece);
        for (size_t at = 0; at < piece_len; at += 4096)
            if (memcmp(is + at, should + at, 4096) != 0) printf("lacks %zu\n", (size_t)(piece * piece_len + at));
    }
    close(descriptor);
    free(is);
    free(should);
}

static inline void check_on_disk(void) {
    unsigned char *is = (unsigned char *)allocate(piece_len), *should = (unsigned char *)allocate(piece_len);
    int descriptor = open(path, O_RDONLY);
    struct stat about;
    CHECK(descriptor >= 0 && fstat(descriptor, &about) == 0);
    CHECK_EQ(about.st_size, PIECES * piece_len);
    for (uint64_t piece = 0; piece < PIECES; ++piece) {
        CHECK_EQ(pread(descriptor, is, piece_len, (off_t)(piece * piece_len)), piece_len);
        fill_piece(should, piece);
        check_bytes(is, should, piece_len, "the file");
    }
    close(descriptor);
    free(is);
    free(should);
}

/* Calls init and attach, and takes the directory of the file from the command line: PART DIRECTORY ... */
static inline void start_with_file(int argc, char **argv, int args) {
    start(&argc, &argv, 3 * pool_bytes() / 2);
    CHECK(argc > args);
    me = vgasnet_mynode();
    ranks = vgasnet_nodes();
    page_len = page_bytes();
    piece_len = page_len / 4 < 4096 ? 4096 : page_len / 4;
    dir = argv[2];
    snprintf(path, sizeof path, "%s/shared", dir);
}

#endif
