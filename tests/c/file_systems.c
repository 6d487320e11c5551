/* Shared files on file systems that refuse. file_systems PART DIRECTORY FILE
 *   full       the disk is full, then has room again. FILE and the segments work all the time
 *   quota      the same for a user without room
 *   limit      the same for `ulimit -f`
 *   large      a write of very many pages is refused, and gives up early
 *   stolen     pages that could not be written move to another rank, and back
 *   lost       the disk is full when the file is closed
 *   longer     the disk is full, and the file is made longer, which takes no space until a flush
 *   shortened  the disk is full, and the file is cut to the available room
 *   readonly   the file system is read-only, with a file that has bytes
 *   rights     files that may not be read or written, and paths that are no files
 *   exclusive  two teams, and other jobs, create the same files: prints the files created by this job */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall, syncfs */
#endif
#include <errno.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include "pieces.h"

/* Takes the file system's space except for `left` bytes. */
static void fill_disk(size_t left) {
    struct statvfs about;
    int descriptor = open(in_directory("filler"), O_WRONLY | O_CREAT | O_EXCL, 0600);
    CHECK(descriptor >= 0 && statvfs(dir, &about) == 0);
    for (size_t bytes = about.f_bfree * about.f_frsize; bytes > left; bytes -= 4096) {
        static const char block[4096] = {1};
        if (write(descriptor, block, sizeof block) != (ssize_t)sizeof block) break;
    }
    fsync(descriptor);
    close(descriptor);
}

/* The segment, and another file on another disk, still work. */
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

static void remove_filler(void) { CHECK(me != 0 || unlink(in_directory("filler")) == 0); }

/* Refused bytes stay in memory and reach the disk later: each rank calls `give`, which removes the cause. */
static void go_on_after(vgasnet_file_t file, vgasnet_file_t other, int expected, void (*give)(void)) {
    int errno_value = 0;
    uint64_t written = write_pieces(file, 0);
    /* One error line is enough. */
    for (int again = 0; again < 100 && written < PIECES; ++again) CHECK(write_pieces(file, written) == written);
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

/* Writes a file of at most `most` bytes, as far as the user may. Returns its length. */
static size_t write_filler(size_t most) {
    static const char block[65536] = {1};
    size_t len = 0;
    int descriptor = open(in_directory("filler"), O_WRONLY | O_CREAT | O_EXCL, 0600);
    CHECK(descriptor >= 0);
    for (ssize_t written; len < most && (written = write(descriptor, block, sizeof block)) > 0;) len += (size_t)written;
    CHECK(len >= most || errno == EDQUOT);
    CHECK(syncfs(descriptor) == 0);
    close(descriptor);
    return len;
}

/* The file system frees the quota only when the removal is on the disk. */
static void remove_counted_filler(void) {
    int descriptor = open(dir, O_RDONLY);
    remove_filler();
    CHECK(descriptor >= 0 && syncfs(descriptor) == 0);
    close(descriptor);
}

/* Takes the user's quota except for `left` bytes. */
static void fill_quota(size_t left) {
    size_t all = write_filler(SIZE_MAX);
    remove_counted_filler();
    write_filler(all - left);
}

static void quota(const char *elsewhere) {
    vgasnet_file_t file = opened_as(path, ALL_FLAGS), other = opened_as(elsewhere, ALL_FLAGS);
    if (me == 0) fill_quota(PIECES * piece_len / 4);
    barrier();
    go_on_after(file, other, EDQUOT, remove_counted_filler);
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

/* Pages that miss in two rounds of a transfer. */
enum { LARGE_PAGES = 8192 };

/* Each error is one attempted page. */
static uint64_t errors_of(vgasnet_file_t file) {
    uint64_t errors = 0;
    CHECK_EQ(vgasnet_file_error_count(file, &errors), VGASNET_OK);
    return errors;
}

static void large(void) {
    vgasnet_file_t file = opened_as(path, ALL_FLAGS);
    size_t len = LARGE_PAGES * page_len;
    unsigned char *bytes = (unsigned char *)allocate(len);
    vgasnet_file_run_t run[2] = {{0, len / 2}, {len / 2, len / 2}};
    vgasnet_memvec_t memory = {bytes, len};
    uint64_t errors;
    memset(bytes, 7, len);
    limit_files(0);
    CHECK_EQ(vgasnet_file_write_at(file, 0, bytes, len), VGASNET_ERR_IO);
    errors = errors_of(file);
    CHECK(errors >= LARGE_PAGES / 2 && errors < LARGE_PAGES);
    unlimited();
    CHECK_EQ(vgasnet_file_sync(file), VGASNET_OK);
    limit_files(0);
    errors = errors_of(file);
    CHECK_EQ(vgasnet_file_writev_at(file, 2, run, 1, &memory), VGASNET_ERR_IO);
    CHECK(errors_of(file) - errors < LARGE_PAGES);
    unlimited();
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    free(bytes);
}

static void write_and_flush(vgasnet_file_t file, uint64_t at, unsigned char *bytes, int value, int flushed) {
    memset(bytes, value, page_len);
    CHECK_EQ(vgasnet_file_write_at(file, at, bytes, page_len), VGASNET_OK);
    CHECK_EQ(vgasnet_file_flush(file), flushed);
}

/* For two ranks with eight frames. An unwritable page stays in the pool, unless another rank has written it since.
 * Otherwise the page of the ninth file would find no frame. */
static void stolen(void) {
    enum { FILES = 12 };
    const uint64_t at = 64 << 20;
    unsigned char *bytes = (unsigned char *)allocate(page_len);
    vgasnet_file_t files[FILES];
    for (int nth = 0; nth < FILES; ++nth) {
        char name[16];
        snprintf(name, sizeof name, "file-%d", nth);
        files[nth] = opened_as(in_directory(name), ALL_FLAGS);
        CHECK_EQ(vgasnet_file_set_size(files[nth], at + page_len), VGASNET_OK);
        limit_files(at);
        barrier();
        if (me == 0) write_and_flush(files[nth], at, bytes, 1, VGASNET_ERR_IO);
        barrier();
        unlimited();
        barrier();
        if (me == 1) write_and_flush(files[nth], at, bytes, 2, VGASNET_OK);
        barrier();
        if (me == 0) {
            CHECK_EQ(vgasnet_file_read_at(files[nth], at, bytes, page_len, NULL), VGASNET_OK);
            CHECK(bytes[0] == 2 && bytes[page_len - 1] == 2);
        }
    }
    for (int nth = 0; nth < FILES; ++nth) CHECK_EQ(vgasnet_file_close(files[nth]), VGASNET_OK);
    free(bytes);
}

static int open_fails(const char *which, int flags) {
    vgasnet_file_t file;
    int code = vgasnet_file_open(VGASNET_TEAM_ALL, which, flags, 0644, NULL, &file);
    if (code == VGASNET_OK) CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    return code;
}

static void longer(void) {
    vgasnet_file_t file = opened_as(path, ALL_FLAGS);
    const uint64_t size = 1000 * page_len + 5;
    unsigned char *bytes = (unsigned char *)allocate(page_len), *is = (unsigned char *)allocate(page_len);
    struct stat about;
    memset(bytes, 'a' + (int)me, page_len);
    CHECK_EQ(vgasnet_file_write_at(file, me * page_len, bytes, page_len), VGASNET_OK);
    CHECK_EQ(vgasnet_file_sync(file), VGASNET_OK);
    if (me == 0) fill_disk(0);
    barrier();
    CHECK_EQ(vgasnet_file_extend(file, size), VGASNET_OK);
    /* The file needs a block for the longer size, and gets none. */
    CHECK_EQ(vgasnet_file_flush(file), VGASNET_OK);
    CHECK(stat(path, &about) == 0 && (uint64_t)about.st_size < size);
    memset(bytes, 'A' + (int)me, page_len);
    CHECK_EQ(vgasnet_file_write_at(file, me * page_len, bytes, page_len), VGASNET_OK);
    CHECK_EQ(vgasnet_file_sync(file), VGASNET_OK);
    CHECK_EQ(vgasnet_file_flush(file), VGASNET_OK);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    CHECK(stat(path, &about) == 0);
    CHECK_EQ(about.st_size, size);
    int descriptor = open(path, O_RDONLY);
    CHECK_EQ(pread(descriptor, is, page_len, (off_t)(me * page_len)), page_len);
    check_bytes(is, bytes, page_len, "what was written on a full disk");
    close(descriptor);
    barrier();
    if (me == 0) remove_filler();
    free(bytes);
    free(is);
}

static void shortened(void) {
    const uint64_t kept = PIECES / 8, size = kept * piece_len + 100;
    unsigned char *is = (unsigned char *)allocate(piece_len), *should = (unsigned char *)allocate(piece_len);
    uint64_t found;
    vgasnet_file_t file = opened_as(path, ALL_FLAGS);
    CHECK_EQ(write_pieces(file, PIECES / 2), PIECES);
    CHECK_EQ(vgasnet_file_sync(file), VGASNET_OK);
    if (me == 0) fill_disk(0);
    barrier();
    /* A hole has no room. Refused bytes are written again once the other bytes have room. */
    uint64_t written = write_pieces(file, 0);
    barrier();
    CHECK_EQ(vgasnet_file_sync(file), VGASNET_ERR_IO);
    CHECK_EQ(vgasnet_file_set_size(file, size), VGASNET_OK);
    CHECK_EQ(vgasnet_file_sync(file), VGASNET_OK);
    if (written < kept) write_pieces(file, written);
    CHECK_EQ(vgasnet_file_set_size(file, size), VGASNET_OK);
    CHECK_EQ(vgasnet_file_sync(file), VGASNET_OK);
    CHECK_EQ(vgasnet_file_size(file, &found), VGASNET_OK);
    CHECK_EQ(found, size);
    for (uint64_t piece = 0; piece < kept; ++piece) check_piece(file, piece);
    /* The bytes beyond the old end do not reappear. */
    CHECK_EQ(vgasnet_file_set_size(file, size + 2 * page_len), VGASNET_OK);
    memset(should, 0, piece_len);
    for (uint64_t at = size; at < size + 2 * page_len; at += piece_len / 2) {
        CHECK_EQ(vgasnet_file_read_at(file, at, is, piece_len / 2, NULL), VGASNET_OK);
        check_bytes(is, should, piece_len / 2, "behind the end");
    }
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    barrier();
    remove_filler();
    free(is);
    free(should);
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
    CHECK_EQ(open_fails(in_directory("new"), ALL_FLAGS), VGASNET_ERR_IO);
}

/* Drops this thread's capabilities, so that permissions of files apply. */
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
        CHECK(mkfifo(in_directory("fifo"), 0600) == 0 && mkdir(in_directory("dir"), 0700) == 0);
        CHECK(symlink("loop", in_directory("loop")) == 0 && symlink("no/where", in_directory("nowhere")) == 0);
        for (int i = 0; i < 3; ++i) {
            static const mode_t modes[3] = {0444, 0200, 0000};
            static const char *const names[3] = {"read", "write", "none"};
            int descriptor = open(in_directory(names[i]), O_WRONLY | O_CREAT, 0600);
            CHECK(descriptor >= 0 && write(descriptor, "bytes", 5) == 5 && fchmod(descriptor, modes[i]) == 0);
            close(descriptor);
        }
    }
    barrier();
    for (int flags = VGASNET_FILE_READ; flags <= (VGASNET_FILE_READ | VGASNET_FILE_WRITE); ++flags) {
        int more = flags & VGASNET_FILE_WRITE ? VGASNET_FILE_CREATE : 0;
        CHECK_EQ(open_fails(in_directory("fifo"), flags | more), VGASNET_ERR_IO);
        CHECK_EQ(open_fails(in_directory("dir"), flags | more), VGASNET_ERR_IO);
        CHECK_EQ(open_fails(in_directory("loop"), flags | more), VGASNET_ERR_IO);
        CHECK_EQ(open_fails(in_directory("nowhere"), flags | more), VGASNET_ERR_IO);
        CHECK_EQ(open_fails(in_directory("read/below"), flags | more), VGASNET_ERR_IO);
    }
    CHECK_EQ(open_fails(in_directory("fifo"), ALL_FLAGS | VGASNET_FILE_EXCLUSIVE), VGASNET_ERR_IO);
    give_rights_up();
    CHECK_EQ(open_fails(in_directory("read"), VGASNET_FILE_READ), VGASNET_OK);
    CHECK_EQ(open_fails(in_directory("read"), VGASNET_FILE_WRITE), VGASNET_ERR_IO);
    CHECK_EQ(open_fails(in_directory("read"), VGASNET_FILE_READ | VGASNET_FILE_WRITE), VGASNET_ERR_IO);
    CHECK_EQ(open_fails(in_directory("write"), VGASNET_FILE_READ), VGASNET_ERR_IO);
    CHECK_EQ(open_fails(in_directory("none"), VGASNET_FILE_WRITE), VGASNET_ERR_IO);
    /* Partly written blocks could not be read. */
    CHECK_EQ(open_fails(in_directory("write"), VGASNET_FILE_WRITE), VGASNET_ERR_IO);
    CHECK_EQ(open_fails(in_directory("write"), VGASNET_FILE_WRITE | VGASNET_FILE_TRUNCATE), VGASNET_ERR_IO);
    CHECK_EQ(chmod(in_directory("write"), 0600), 0);
    barrier();
    file = opened_as(in_directory("write"), VGASNET_FILE_READ);
    CHECK_EQ(vgasnet_file_read_at(file, 0, &byte, 1, NULL), VGASNET_OK);
    CHECK_EQ(byte, 'b');
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
}

static void exclusive(void) {
    vgasnet_team_handle_t team = vgasnet_coll_team_split(VGASNET_TEAM_ALL, me % 2, me / 2, NULL);
    for (unsigned k = 0; k < 20; ++k) {
        char name[32], byte = (char)k;
        vgasnet_file_t file;
        int code;
        snprintf(name, sizeof name, "made-%u", k);
        code = vgasnet_file_open(team, in_directory(name), VGASNET_FILE_WRITE | VGASNET_FILE_CREATE | VGASNET_FILE_EXCLUSIVE, 0600, NULL, &file);
        CHECK(code == VGASNET_OK || code == VGASNET_ERR_IO);
        if (code != VGASNET_OK) continue;
        CHECK_EQ(vgasnet_file_write_at(file, me, &byte, 1), VGASNET_OK);
        CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
        if (me / 2 == 0) printf("made %u\n", k);
    }
}

int main(int argc, char **argv) {
    start_with_file(argc, argv, 3);
    if (strcmp(argv[1], "full") == 0) full(argv[3]);
    if (strcmp(argv[1], "quota") == 0) quota(argv[3]);
    if (strcmp(argv[1], "lost") == 0) lost();
    if (strcmp(argv[1], "limit") == 0) limit(argv[3]);
    if (strcmp(argv[1], "large") == 0) large();
    if (strcmp(argv[1], "stolen") == 0) stolen();
    if (strcmp(argv[1], "longer") == 0) longer();
    if (strcmp(argv[1], "shortened") == 0) shortened();
    if (strcmp(argv[1], "readonly") == 0) readonly();
    if (strcmp(argv[1], "rights") == 0) rights();
    if (strcmp(argv[1], "exclusive") == 0) exclusive();
    return finish();
}
