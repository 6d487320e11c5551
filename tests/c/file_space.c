/* Space, age and ends of shared files, as other programs see them. file_space PART DIRECTORY
 *   cut        another program cuts the open file
 *   holes      unwritten pages take no space, even beyond 4 GiB
 *   space      space is reserved, as far as there is some
 *   extended   a rank makes the file longer while others write its last bytes
 *   counts     statistics count the writes (VGASNET_STATS)
 *   listed     a new file is written by lists of pieces of its pages
 *   dies       a rank is killed while it writes small letters over synced large ones
 *   aged       unflushed bytes are on the disk after 5 s, without a call by any rank
 *   left       the same, after a thread that drove the engine has left it */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* SEEK_HOLE */
#endif
#include <pthread.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <time.h>

#include "pieces.h"

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

/* The first pages of the written ranges. Pages between the ranges are not written. */
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
        /* Includes the file system's own needs. */
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
    /* The write makes the file longer. */
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

/* One rank makes the file longer, while others write its last bytes. */
static void extended(void) {
    vgasnet_file_t file = opened_as(path, ALL_FLAGS);
    const uint64_t page = page_len;
    unsigned char byte = 7, is = 1;
    uint64_t size;
    size_t nread;
    for (uint64_t round = 1; round <= 50; ++round) {
        uint64_t end = round * 3 * page + round;
        if (round % ranks == me) {
            struct stat about;
            CHECK_EQ(vgasnet_file_extend(file, end), VGASNET_OK);
            CHECK_EQ(vgasnet_file_flush(file), VGASNET_OK);
            CHECK(stat(path, &about) == 0 && (uint64_t)about.st_size >= end);
        } else if ((round + 1) % ranks == me) CHECK_EQ(vgasnet_file_write_at(file, end - 1, &byte, 1), VGASNET_OK);
        barrier();
        CHECK_EQ(vgasnet_file_size(file, &size), VGASNET_OK);
        CHECK_EQ(size, end);
        CHECK_EQ(vgasnet_file_read_at(file, end - 1, &is, 1, &nread), VGASNET_OK);
        CHECK(nread == 1 && is == (ranks > 1 ? byte : 0));
        CHECK_EQ(vgasnet_file_read_at(file, end - page - round, &is, 1, &nread), VGASNET_OK);
        CHECK(nread == 1 && is == 0);
        barrier();
    }
    CHECK_EQ(vgasnet_file_extend(file, 5), VGASNET_OK);
    CHECK_EQ(vgasnet_file_extend(file, UINT64_MAX), VGASNET_ERR_BAD_ARG);
    CHECK_EQ(vgasnet_file_sync(file), VGASNET_OK);
    CHECK(blocks_bytes(50 * (3 * page + 1)) <= 100 * page);
    CHECK_EQ(vgasnet_file_set_size(file, 10), VGASNET_OK);
    if (me == 0) CHECK_EQ(vgasnet_file_extend(file, 20), VGASNET_OK);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    blocks_bytes(20);
    file = opened_as(path, VGASNET_FILE_READ);
    CHECK_EQ(vgasnet_file_extend(file, 30), VGASNET_ERR_BAD_ARG);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
}

static void space(void) {
    const uint64_t all = PIECES * piece_len, more = all + 3 * page_len + 10;
    struct statvfs about;
    vgasnet_file_t file = opened_as(path, ALL_FLAGS);
    uint64_t size;
    unsigned char byte = 1;
    CHECK_EQ(vgasnet_file_preallocate(file, page_len), VGASNET_OK);
    CHECK(blocks_bytes(page_len) >= page_len);
    /* Bytes, holes, and bytes again, some of them still unwritten. */
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
    /* On a small file system, more than it has. */
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

/* Each rank writes and reads pieces of its own. The sums over all homes match the program's counts. */
static void counts(void) {
    uint64_t pieces = 20, sums[2], moved[2] = {0, 0};
    vgasnet_stats_t before = statistics(), after;
    vgasnet_file_t file = opened_as(path, ALL_FLAGS);
    unsigned char *bytes = (unsigned char *)allocate(piece_len);
    for (uint64_t k = 0; k < pieces; ++k) {
        fill_piece(bytes, k);
        CHECK_EQ(vgasnet_file_write_at(file, (k * ranks + me) * piece_len, bytes, piece_len), VGASNET_OK);
        if (k % 4 == 0) CHECK_EQ(vgasnet_file_read_at(file, (k * ranks + me) * piece_len, bytes, 100, NULL), VGASNET_OK);
    }
    CHECK_EQ(vgasnet_file_lock(file, 0, 10, 1), VGASNET_OK);
    CHECK_EQ(vgasnet_file_unlock(file, 0, 10), VGASNET_OK);
    CHECK_EQ(vgasnet_file_sync(file), VGASNET_OK);
    barrier();
    after = statistics();
    CHECK_EQ(after.file_writes - before.file_writes, pieces);
    CHECK_EQ(after.file_write_bytes - before.file_write_bytes, pieces * piece_len);
    CHECK_EQ(after.file_reads - before.file_reads, pieces / 4);
    CHECK_EQ(after.file_read_bytes - before.file_read_bytes, 100 * pieces / 4);
    CHECK_EQ(after.wait_lock.count - before.wait_lock.count, 1);
    CHECK_EQ(after.file_refused, 0);
    CHECK(after.file_hits + after.file_shipped <= 2 * (pieces + pieces / 4));
    sums[0] = after.file_disk_write_bytes - before.file_disk_write_bytes;
    sums[1] = after.file_disk_writes - before.file_disk_writes;
    CHECK(after.file_coalesced <= sums[1] && sums[1] * 4096 <= sums[0]);
    CHECK(after.drain_bytes <= after.spill_bytes);
    for (int i = 0; i < 2; ++i) {
        for (vgasnet_node_t rank = 0; rank < ranks; ++rank) {
            uint64_t its = sums[i];
            vgasnet_coll_broadcast(VGASNET_TEAM_ALL, &its, rank, &sums[i], sizeof its, VGASNET_COLL_LOCAL | VGASNET_COLL_IN_ALLSYNC | VGASNET_COLL_OUT_ALLSYNC);
            moved[i] += its;
        }
    }
    CHECK(moved[0] >= pieces * piece_len * ranks && moved[1] > 0);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    free(bytes);
}

/* A new file is written in order by lists of quarters of pages. A page written half filled would be read back. */
static void listed(void) {
    const size_t call_len = pool_bytes() / 2, run_len = page_len / 4, runs = call_len / run_len;
    vgasnet_file_run_t *run = (vgasnet_file_run_t *)allocate(runs * sizeof *run);
    unsigned char *bytes = (unsigned char *)allocate(call_len);
    vgasnet_memvec_t memory = {bytes, call_len};
    vgasnet_file_t file = opened_as(path, ALL_FLAGS);
    vgasnet_stats_t before = statistics(), after;
    memset(bytes, 7, call_len);
    for (size_t call = 0; call < 8; ++call) {
        for (size_t i = 0; i < runs; ++i) run[i] = (vgasnet_file_run_t){call * call_len + i * run_len, run_len};
        CHECK_EQ(vgasnet_file_writev_at(file, runs, run, 1, &memory), VGASNET_OK);
    }
    CHECK_EQ(vgasnet_file_sync(file), VGASNET_OK);
    after = statistics();
    CHECK(after.file_disk_read_bytes - before.file_disk_read_bytes <= call_len);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    free(run);
    free(bytes);
}

static void dies(void) {
    unsigned char *bytes = (unsigned char *)allocate(piece_len);
    vgasnet_file_t file = opened_as(path, ALL_FLAGS);
    for (int is_small = 0; is_small < 2; ++is_small) {
        for (uint64_t piece = me; piece < PIECES; piece += ranks) {
            memset(bytes, (is_small ? 'a' : 'A') + (int)(piece % 26), piece_len);
            CHECK_EQ(vgasnet_file_write_at(file, piece * piece_len, bytes, piece_len), VGASNET_OK);
            if (is_small && me == 0 && piece > PIECES / 2) raise(SIGKILL);
        }
        if (!is_small) CHECK_EQ(vgasnet_file_sync(file), VGASNET_OK);
    }
    barrier();
}

static double now(void) {
    struct timespec time;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &time) == 0);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void *meet(void *unused) {
    barrier();
    return unused;
}

/* Writes while another thread of this rank drives, in a barrier that the first rank enters last. Faults make the
 * helper look in the meantime. */
static void write_during_drive(vgasnet_file_t file, size_t offset, const unsigned char *bytes) {
    const unsigned char is_written = 1;
    volatile unsigned char *own = (volatile unsigned char *)at(me, 0);
    pthread_t thread;
    if (me == 0) {
        CHECK_EQ(vgasnet_file_write_at(file, offset, bytes, piece_len), VGASNET_OK);
        for (vgasnet_node_t rank = 1; rank < ranks; ++rank)
            while (own[rank] == 0) usleep(1000);
        barrier();
        return;
    }
    CHECK(pthread_create(&thread, NULL, meet, NULL) == 0);
    usleep(200000); /* the thread drives by then; if not, the test proves less */
    for (size_t page = 0; page < 3 * pool_bytes() / 2 / page_len; ++page) own[page * page_len + 64] = 1;
    CHECK_EQ(vgasnet_file_write_at(file, offset, bytes, piece_len), VGASNET_OK);
    vgasnet_put(0, at(0, me), (void *)&is_written, 1);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void aged(int is_during_drive) {
    const size_t at = 2 * me * page_len;
    unsigned char *is = (unsigned char *)allocate(piece_len), *should = (unsigned char *)allocate(piece_len);
    vgasnet_file_t file = opened_as(path, ALL_FLAGS);
    int descriptor = open(path, O_RDONLY);
    double begin = now();
    CHECK(descriptor >= 0);
    fill_piece(should, me);
    if (is_during_drive)
        write_during_drive(file, at, should);
    else
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
    start_with_file(argc, argv, 2);
    if (strcmp(argv[1], "cut") == 0) cut();
    if (strcmp(argv[1], "holes") == 0) holes();
    if (strcmp(argv[1], "space") == 0) space();
    if (strcmp(argv[1], "extended") == 0) extended();
    if (strcmp(argv[1], "counts") == 0) counts();
    if (strcmp(argv[1], "listed") == 0) listed();
    if (strcmp(argv[1], "dies") == 0) dies();
    if (strcmp(argv[1], "aged") == 0) aged(0);
    if (strcmp(argv[1], "left") == 0) aged(1);
    return finish();
}
