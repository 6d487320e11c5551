/* Shared files on file systems that refuse. file_systems PART DIRECTORY FILE
 *   full       the disk is full, then has room again. FILE goes on meanwhile, and so do the segments
 *   limit      the same for `ulimit -f`
 *   lost       the disk is full when the file is closed
 *   readonly   the file system is read-only, with a file that has bytes
 *   rights     files that may not be read or written, and what is no file
 *   exclusive  two teams, and other jobs, make the same files: prints which this job has made
 *   cut        another program cuts the file while it is open
 *   holes      pages that nobody writes take no space, also behind 4 GiB
 *   aged       what nobody flushes is on the disk after 5 s, though no rank calls the library meanwhile
 *   space      space is taken ahead, as far as there is some: prints whether it was */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* SEEK_HOLE */
#endif
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#define PIECES 96

static const int ALL_FLAGS = VGASNET_FILE_READ | VGASNET_FILE_WRITE | VGASNET_FILE_CREATE | VGASNET_FILE_TRUNCATE;
static vgasnet_node_t me, ranks;
static char path[4096];
static const char *dir;
static size_t page_len, piece_len;

/* Another path, in the directory. */
static const char *beside(const char *name) {
    static char other[4096 + 64];
    snprintf(other, sizeof other, "%s/%s", dir, name);
    return other;
}

static vgasnet_file_t opened_as(const char *which, int flags) {
    vgasnet_file_options_t options = {sizeof options, page_len, 0, 0};
    vgasnet_file_t file = NULL;
    CHECK_EQ(vgasnet_file_open(VGASNET_TEAM_ALL, which, flags, 0644, &options, &file), VGASNET_OK);
    return file;
}

static void fill_piece(unsigned char *bytes, uint64_t piece) {
    uint64_t state = mixed(1, piece, 7);
    random_bytes(&state, bytes, piece_len);
}

/* A piece is there, as this rank reads the file. */
static void check_piece(vgasnet_file_t file, uint64_t piece) {
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
static uint64_t write_pieces(vgasnet_file_t file, uint64_t first) {
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

/* Prints the runs of blocks that the file system lacks, of the pieces that this rank has written. */
static void print_lacking(uint64_t written) {
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

static void check_on_disk(void) {
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

/* Takes the file system's space but for so much. */
static void fill_disk(size_t left) {
    struct statvfs about;
    int descriptor = open(beside("filler"), O_WRONLY | O_CREAT | O_EXCL, 0600);
    CHECK(descriptor >= 0 && statvfs(dir, &about) == 0);
    for (size_t bytes = about.f_bfree * about.f_frsize; bytes > left; bytes -= 4096) {
        static const char block[4096] = {1};
        if (write(descriptor, block, sizeof block) != (ssize_t)sizeof block) break;
    }
    fsync(descriptor);
    close(descriptor);
}

/* The segment and another file, which is on another disk, go on. */
static void check_others(vgasnet_file_t other, uint64_t round) {
    vgasnet_seginfo_t info[64];
    uint64_t word = mixed(me, round, 3), is = 0;
    vgasnet_node_t next = (me + 1) % ranks;
    vgasnet_getSegmentInfo(info, (int)ranks);
    for (size_t at = 0; at + page_len <= info[next].size; at += page_len) {
        vgasnet_put(next, (char *)info[next].addr + at, &word, sizeof word);
        vgasnet_get(&is, next, (char *)info[next].addr + at, sizeof is);
        CHECK_EQ(is, word);
    }
    for (uint64_t at = 0; at < 40; ++at)
        CHECK_EQ(vgasnet_file_write_at(other, (at * ranks + me) * 512 % (4 * page_len), &word, sizeof word), VGASNET_OK);
    CHECK_EQ(vgasnet_file_sync(other), VGASNET_OK);
}

static void remove_filler(void) { CHECK(me != 0 || unlink(beside("filler")) == 0); }

/* What is refused is there nevertheless, and goes to the disk once it may: `give` is called by each rank, and takes the refusal away. */
static void go_on_after(vgasnet_file_t file, vgasnet_file_t other, int expected, void (*give)(void)) {
    int errno_value = 0;
    uint64_t written = write_pieces(file, 0);
    barrier();
    CHECK_EQ(vgasnet_file_sync(file), VGASNET_ERR_IO);
    barrier();
    print_lacking(written);
    for (uint64_t piece = me; piece < written; piece += ranks) check_piece(file, piece);
    for (uint64_t round = 0; round < 3; ++round) check_others(other, round);
    CHECK_EQ(vgasnet_file_sync(file), VGASNET_ERR_IO);
    if (vgasnet_file_error(file, &errno_value) != VGASNET_OK) CHECK_EQ(errno_value, expected);
    barrier();
    give();
    barrier();
    CHECK_EQ(vgasnet_file_sync(file), VGASNET_OK);
    CHECK_EQ(write_pieces(file, written), PIECES);
    CHECK_EQ(vgasnet_file_sync(file), VGASNET_OK);
    check_on_disk();
    for (uint64_t piece = 0; piece < PIECES; ++piece) check_piece(file, piece);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    CHECK_EQ(vgasnet_file_close(other), VGASNET_OK);
    check_on_disk();
}

static void full(const char *elsewhere) {
    vgasnet_file_t file = opened_as(path, ALL_FLAGS), other = opened_as(elsewhere, ALL_FLAGS);
    if (me == 0) fill_disk(PIECES * piece_len / 4);
    barrier();
    go_on_after(file, other, ENOSPC, remove_filler);
}

static void lost(void) {
    vgasnet_file_t file = opened_as(path, ALL_FLAGS);
    uint64_t written;
    if (me == 0) fill_disk(PIECES * piece_len / 4);
    barrier();
    written = write_pieces(file, 0);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_ERR_IO);
    print_lacking(written);
    barrier();
    remove_filler();
    barrier();
    file = opened_as(path, ALL_FLAGS);
    CHECK_EQ(write_pieces(file, 0), PIECES);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    check_on_disk();
}

static void limit_files(rlim_t most) {
    struct rlimit limits;
    CHECK(getrlimit(RLIMIT_FSIZE, &limits) == 0);
    limits.rlim_cur = most;
    CHECK(setrlimit(RLIMIT_FSIZE, &limits) == 0);
}

static void unlimited(void) { limit_files(RLIM_INFINITY); }

static void limit(const char *elsewhere) {
    vgasnet_file_t file, other = opened_as(elsewhere, ALL_FLAGS);
    limit_files(PIECES * piece_len * 3 / 4); /* more than the segment has */
    file = opened_as(path, ALL_FLAGS);
    CHECK_EQ(vgasnet_file_preallocate(file, PIECES * piece_len), VGASNET_ERR_IO);
    CHECK_EQ(vgasnet_file_set_size(file, PIECES * piece_len), VGASNET_ERR_IO);
    go_on_after(file, other, EFBIG, unlimited);
}

static int open_fails(const char *which, int flags) {
    vgasnet_file_t file;
    int code = vgasnet_file_open(VGASNET_TEAM_ALL, which, flags, 0644, NULL, &file);
    if (code == VGASNET_OK) CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    return code;
}

static void readonly(void) {
    unsigned char byte;
    size_t nread;
    vgasnet_file_t file = opened_as(path, VGASNET_FILE_READ);
    for (uint64_t at = 0; at < 3 * page_len; at += 1000) {
        CHECK_EQ(vgasnet_file_read_at(file, at, &byte, 1, &nread), VGASNET_OK);
        CHECK_EQ(nread, 1);
        CHECK_EQ(byte, 'r');
    }
    CHECK_EQ(vgasnet_file_sync(file), VGASNET_OK);
    CHECK_EQ(vgasnet_file_set_size(file, 1), VGASNET_ERR_BAD_ARG);
    CHECK_EQ(vgasnet_file_preallocate(file, 1), VGASNET_ERR_BAD_ARG);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    CHECK_EQ(open_fails(path, VGASNET_FILE_READ | VGASNET_FILE_WRITE), VGASNET_ERR_IO);
    CHECK_EQ(open_fails(path, VGASNET_FILE_WRITE), VGASNET_ERR_IO);
    CHECK_EQ(open_fails(beside("new"), ALL_FLAGS), VGASNET_ERR_IO);
}

/* This thread may do no more than the permissions of a file say. */
static void give_rights_up(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    CHECK(syscall(SYS_capget, &header, data) == 0);
    data[0].effective &= ~(1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH);
    CHECK(syscall(SYS_capset, &header, data) == 0);
}

static void rights(void) {
    vgasnet_file_t file;
    char byte = 'x';
    if (me == 0) {
        CHECK(mkfifo(beside("fifo"), 0600) == 0 && mkdir(beside("dir"), 0700) == 0);
        CHECK(symlink("loop", beside("loop")) == 0 && symlink("no/where", beside("nowhere")) == 0);
        for (int i = 0; i < 3; ++i) {
            static const mode_t modes[3] = {0444, 0200, 0000};
            static const char *const names[3] = {"read", "write", "none"};
            int descriptor = open(beside(names[i]), O_WRONLY | O_CREAT, 0600);
            CHECK(descriptor >= 0 && write(descriptor, "bytes", 5) == 5 && fchmod(descriptor, modes[i]) == 0);
            close(descriptor);
        }
    }
    barrier();
    for (int flags = VGASNET_FILE_READ; flags <= (VGASNET_FILE_READ | VGASNET_FILE_WRITE); ++flags) {
        int more = flags & VGASNET_FILE_WRITE ? VGASNET_FILE_CREATE : 0;
        CHECK_EQ(open_fails(beside("fifo"), flags | more), VGASNET_ERR_IO);
        CHECK_EQ(open_fails(beside("dir"), flags | more), VGASNET_ERR_IO);
        CHECK_EQ(open_fails(beside("loop"), flags | more), VGASNET_ERR_IO);
        CHECK_EQ(open_fails(beside("nowhere"), flags | more), VGASNET_ERR_IO);
        CHECK_EQ(open_fails(beside("read/below"), flags | more), VGASNET_ERR_IO);
    }
    CHECK_EQ(open_fails(beside("fifo"), ALL_FLAGS | VGASNET_FILE_EXCLUSIVE), VGASNET_ERR_IO);
    give_rights_up();
    CHECK_EQ(open_fails(beside("read"), VGASNET_FILE_READ), VGASNET_OK);
    CHECK_EQ(open_fails(beside("read"), VGASNET_FILE_WRITE), VGASNET_ERR_IO);
    CHECK_EQ(open_fails(beside("read"), VGASNET_FILE_READ | VGASNET_FILE_WRITE), VGASNET_ERR_IO);
    CHECK_EQ(open_fails(beside("write"), VGASNET_FILE_READ), VGASNET_ERR_IO);
    CHECK_EQ(open_fails(beside("none"), VGASNET_FILE_WRITE), VGASNET_ERR_IO);
    file = opened_as(beside("write"), VGASNET_FILE_WRITE | VGASNET_FILE_TRUNCATE);
    for (uint64_t at = 0; at < 2 * page_len; at += page_len)
        CHECK_EQ(vgasnet_file_write_at(file, at + me, &byte, 1), VGASNET_OK);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    CHECK_EQ(chmod(beside("write"), 0600), 0);
    file = opened_as(beside("write"), VGASNET_FILE_READ);
    for (uint64_t at = 0; at < 2 * page_len; at += page_len) {
        CHECK_EQ(vgasnet_file_read_at(file, at + me, &byte, 1, NULL), VGASNET_OK);
        CHECK_EQ(byte, 'x');
    }
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
}

static void exclusive(void) {
    vgasnet_team_handle_t team = vgasnet_coll_team_split(VGASNET_TEAM_ALL, me % 2, me / 2, NULL);
    for (unsigned k = 0; k < 20; ++k) {
        char name[32], byte = (char)k;
        vgasnet_file_t file;
        int code;
        snprintf(name, sizeof name, "made-%u", k);
        code = vgasnet_file_open(team, beside(name), VGASNET_FILE_WRITE | VGASNET_FILE_CREATE | VGASNET_FILE_EXCLUSIVE, 0600, NULL, &file);
        CHECK(code == VGASNET_OK || code == VGASNET_ERR_IO);
        if (code != VGASNET_OK) continue;
        CHECK_EQ(vgasnet_file_write_at(file, me, &byte, 1), VGASNET_OK);
        CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
        if (me / 2 == 0) printf("made %u\n", k);
    }
}

static void cut(void) {
    const uint64_t kept = 3 * page_len + 100;
    unsigned char *is = (unsigned char *)allocate(piece_len), *should = (unsigned char *)allocate(piece_len);
    vgasnet_file_t file = opened_as(path, ALL_FLAGS);
    CHECK_EQ(write_pieces(file, 0), PIECES);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    file = opened_as(path, VGASNET_FILE_READ | VGASNET_FILE_WRITE);
    for (uint64_t piece = me; piece < PIECES; piece += 7) check_piece(file, piece);
    barrier();
    CHECK(me != 0 || truncate(path, (off_t)kept) == 0);
    barrier();
    for (uint64_t piece = 0; piece < PIECES; ++piece) {
        size_t nread;
        int code = vgasnet_file_read_at(file, piece * piece_len, is, piece_len, &nread);
        CHECK(code == VGASNET_OK || code == VGASNET_ERR_IO);
        if (code != VGASNET_OK) continue;
        fill_piece(should, piece);
        for (size_t at = 0; at < nread; ++at)
            CHECK(is[at] == should[at] || (is[at] == 0 && piece * piece_len + at >= kept));
    }
    barrier();
    CHECK_EQ(write_pieces(file, 0), PIECES);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    check_on_disk();
    free(is);
    free(should);
}

/* The first page of each that is written, and then none until the next. */
static const uint64_t PAGES_AT[4] = {0, UINT64_C(1) << 20, (UINT64_C(4) << 30) - 4096, UINT64_C(6) << 30};

static void holes(void) {
    vgasnet_file_t file = opened_as(path, ALL_FLAGS);
    uint64_t size, should = 0;
    for (int i = 0; i < 4; ++i) {
        uint64_t at = PAGES_AT[i] / page_len * page_len + me * 8, word = mixed((uint64_t)i, me, 1);
        CHECK_EQ(vgasnet_file_write_at(file, at, &word, sizeof word), VGASNET_OK);
        should = PAGES_AT[i] / page_len * page_len + ranks * 8;
    }
    barrier();
    CHECK_EQ(vgasnet_file_size(file, &size), VGASNET_OK);
    CHECK_EQ(size, should);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    if (me == 0) {
        struct stat about;
        int descriptor = open(path, O_RDONLY);
        CHECK(descriptor >= 0 && fstat(descriptor, &about) == 0);
        CHECK_EQ(about.st_size, should);
        /* With what the file system needs for itself. */
        CHECK((uint64_t)about.st_blocks * 512 <= 4 * page_len + 65536);
        for (int i = 0; i < 3; ++i) {
            uint64_t from = PAGES_AT[i] / page_len * page_len, next = PAGES_AT[i + 1] / page_len * page_len;
            off_t hole = lseek(descriptor, (off_t)from, SEEK_HOLE);
            CHECK(hole > 0 && (uint64_t)hole <= from + page_len);
            CHECK_EQ(lseek(descriptor, hole, SEEK_DATA), next);
        }
        close(descriptor);
    }
    barrier();
    file = opened_as(path, VGASNET_FILE_READ | VGASNET_FILE_WRITE);
    for (int i = 0; i < 4; ++i) {
        uint64_t word = 1, start = PAGES_AT[i] / page_len * page_len;
        vgasnet_node_t other = (me + 1) % ranks;
        CHECK_EQ(vgasnet_file_read_at(file, start + other * 8, &word, sizeof word, NULL), VGASNET_OK);
        CHECK_EQ(word, mixed((uint64_t)i, other, 1));
        if (i == 3) break;
        CHECK_EQ(vgasnet_file_read_at(file, start + 3 * page_len, &word, sizeof word, NULL), VGASNET_OK);
        CHECK_EQ(word, 0);
    }
    /* It grows. */
    CHECK_EQ(vgasnet_file_write_at(file, should + me, "y", 1), VGASNET_OK);
    barrier();
    CHECK_EQ(vgasnet_file_size(file, &size), VGASNET_OK);
    CHECK_EQ(size, should + ranks);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
}

static uint64_t blocks_bytes(uint64_t size) {
    struct stat about;
    CHECK(stat(path, &about) == 0);
    CHECK_EQ(about.st_size, size);
    return (uint64_t)about.st_blocks * 512;
}

static void space(void) {
    const uint64_t all = PIECES * piece_len, more = all + 3 * page_len + 10;
    struct statvfs about;
    vgasnet_file_t file = opened_as(path, ALL_FLAGS);
    uint64_t size;
    unsigned char byte = 1;
    CHECK_EQ(vgasnet_file_preallocate(file, page_len), VGASNET_OK);
    CHECK(blocks_bytes(page_len) >= page_len);
    /* Bytes, holes, and bytes again, some of them not yet written. */
    CHECK_EQ(vgasnet_file_set_size(file, 0), VGASNET_OK);
    for (uint64_t piece = 0; piece < PIECES; ++piece) {
        unsigned char *bytes;
        if (piece % ranks != me || piece % 8 >= 4) continue;
        bytes = (unsigned char *)allocate(piece_len);
        fill_piece(bytes, piece);
        CHECK_EQ(vgasnet_file_write_at(file, piece * piece_len, bytes, piece_len), VGASNET_OK);
        free(bytes);
    }
    CHECK_EQ(vgasnet_file_preallocate(file, more), VGASNET_OK);
    CHECK(blocks_bytes(more) >= more);
    CHECK_EQ(vgasnet_file_size(file, &size), VGASNET_OK);
    CHECK_EQ(size, more);
    CHECK_EQ(vgasnet_file_preallocate(file, 10), VGASNET_OK);
    for (uint64_t piece = 0; piece < PIECES; ++piece) {
        if (piece % 8 < 4) check_piece(file, piece);
        else {
            CHECK_EQ(vgasnet_file_read_at(file, piece * piece_len + piece_len / 2, &byte, 1, NULL), VGASNET_OK);
            CHECK_EQ(byte, 0);
        }
    }
    CHECK_EQ(vgasnet_file_preallocate(file, me), ranks > 1 ? VGASNET_ERR_BAD_ARG : VGASNET_OK);
    CHECK_EQ(vgasnet_file_preallocate(file, UINT64_MAX), VGASNET_ERR_BAD_ARG);
    barrier();
    /* More than there is, where that is little. */
    CHECK(statvfs(dir, &about) == 0);
    if (about.f_blocks * about.f_frsize < UINT64_C(1) << 30) {
        CHECK_EQ(vgasnet_file_preallocate(file, UINT64_C(1) << 30), VGASNET_ERR_IO);
        CHECK(blocks_bytes(more) < more + 65536);
    }
    barrier();
    CHECK_EQ(write_pieces(file, 0), PIECES);
    CHECK_EQ(vgasnet_file_set_size(file, all), VGASNET_OK);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    check_on_disk();
}

static double now(void) {
    struct timespec time;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &time) == 0);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void aged(void) {
    const size_t at = 2 * me * page_len;
    unsigned char *is = (unsigned char *)allocate(piece_len), *should = (unsigned char *)allocate(piece_len);
    vgasnet_file_t file = opened_as(path, ALL_FLAGS);
    int descriptor = open(path, O_RDONLY);
    double begin = now();
    CHECK(descriptor >= 0);
    fill_piece(should, me);
    CHECK_EQ(vgasnet_file_write_at(file, at, should, piece_len), VGASNET_OK);
    while (pread(descriptor, is, piece_len, (off_t)at) != (ssize_t)piece_len || memcmp(is, should, piece_len) != 0) {
        CHECK(now() < begin + 100);
        usleep(20000);
    }
    CHECK(now() > begin + 4.9);
    close(descriptor);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    free(is);
    free(should);
}

int main(int argc, char **argv) {
    start(&argc, &argv, 3 * pool_bytes() / 2);
    CHECK(argc > 3);
    me = vgasnet_mynode();
    ranks = vgasnet_nodes();
    page_len = page_bytes();
    piece_len = page_len / 4 < 4096 ? 4096 : page_len / 4;
    dir = argv[2];
    snprintf(path, sizeof path, "%s/shared", dir);
    if (strcmp(argv[1], "full") == 0) full(argv[3]);
    if (strcmp(argv[1], "lost") == 0) lost();
    if (strcmp(argv[1], "limit") == 0) limit(argv[3]);
    if (strcmp(argv[1], "readonly") == 0) readonly();
    if (strcmp(argv[1], "rights") == 0) rights();
    if (strcmp(argv[1], "exclusive") == 0) exclusive();
    if (strcmp(argv[1], "cut") == 0) cut();
    if (strcmp(argv[1], "holes") == 0) holes();
    if (strcmp(argv[1], "aged") == 0) aged();
    if (strcmp(argv[1], "space") == 0) space();
    return finish();
}
