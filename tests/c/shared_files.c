/* Shared files. shared_files PART DIRECTORY
 *   rounds     all ranks write pieces of a file and read the others' pieces, then sync, cut and open it again
 *   ends       ranks read a growing file to its end, without writing it
 *   segment    a segment is written to a file and read back
 *   steps      in atomic mode all ranks write the same bytes, each with its own mark, and no read sees two marks
 *   locks      all ranks add to numbers under locks
 *   append     teams made by ranks themselves append records by the shared pointer; atomic mode is turned on and off
 *   refreshed  others write and lengthen the file: the team reads the new bytes from the next sync on
 *   unread     the disk fails some reads (VGASNET_TEST_IO_ERROR): these reads fail, and the job goes on
 *   unwritten  the same for writes: sync and close fail, written bytes stay, and the next sync writes them */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

#define ROUNDS 5
#define PIECES 60
#define READS 80

static vgasnet_node_t me, ranks;
static char path[4096];
static unsigned char *model;
static size_t model_bytes, most_bytes, page_len;

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static uint64_t below(uint64_t a, uint64_t b, uint64_t c, uint64_t limit) { return mixed(a, b, c) % limit; }

/* The file and the model have the same bytes, as read by this rank. */
static void check_reads(vgasnet_file_t file, uint64_t round) {
    unsigned char *is = (unsigned char *)allocate(most_bytes);
    for (uint64_t i = 0; i < READS; ++i) {
        size_t offset = below(10 + me, round, i, model_bytes + 1), nread = 7;
        size_t wanted = i % 4 == 0 ? below(20 + me, round, i, 2 * page_len) : below(30 + me, round, i, 5000);
        wanted = least(wanted, most_bytes - offset);
        if (i % 5 == 4) {
            /* In two runs, the second before the first, into three pieces. */
            size_t half = wanted / 2, third = wanted / 3;
            size_t here = model_bytes > offset + half ? least(wanted - half, model_bytes - offset - half) : 0;
            vgasnet_file_run_t run[2] = {{offset + half, wanted - half}, {offset, half}};
            vgasnet_memvec_t piece[3] = {{is, third}, {is + third, third}, {is + 2 * third, wanted - 2 * third}};
            CHECK_EQ(vgasnet_file_readv_at(file, 2, run, 3, piece, &nread), VGASNET_OK);
            check_bytes(is, model + offset + half, here, "the second half");
            if (here == wanted - half) {
                CHECK_EQ(nread, wanted);
                check_bytes(is + here, model + offset, half, "the first half");
            } else {
                CHECK_EQ(nread, here);
            }
            continue;
        }
        if (i % 3 == 0) {
            vgasnet_wait_syncnb(vgasnet_file_read_at_nb(file, offset, is, wanted, &nread));
        } else {
            CHECK_EQ(vgasnet_file_read_at(file, offset, is, wanted, &nread), VGASNET_OK);
        }
        CHECK_EQ(nread, least(wanted, model_bytes - offset));
        check_bytes(is, model + offset, nread, "a read");
    }
    free(is);
}

/* All ranks know all written bytes, and each writes its part. */
static void write_pieces(vgasnet_file_t file, uint64_t round) {
    size_t end = most_bytes * (round + 1) / ROUNDS, at = 0;
    unsigned char *bytes = (unsigned char *)allocate(most_bytes);
    for (uint64_t k = 0; at < end; ++k) {
        size_t len = k % 7 == 0 ? below(1, round, k, 3 * page_len) : below(2, round, k, most_bytes / PIECES);
        uint64_t by = below(3, round, k, ranks + 1), state = mixed(4, round, k);
        len = least(len, end - at);
        random_bytes(&state, bytes, len);
        if (by < ranks && len > 0) {
            memcpy(model + at, bytes, len);
            if (at + len > model_bytes) model_bytes = at + len;
        }
        if (by == me && len > 0) {
            if (k % 5 == 4) {
                vgasnet_file_run_t run[3] = {{at + len / 2, len - len / 2}, {at, len / 4}, {at + len / 4, len / 2 - len / 4}};
                vgasnet_memvec_t piece[2] = {{bytes + len / 2, len - len / 2}, {bytes, len / 2}};
                CHECK_EQ(vgasnet_file_writev_at(file, 3, run, 2, piece), VGASNET_OK);
            } else if (k % 2 == 0) {
                CHECK_EQ(vgasnet_file_write_at(file, at, bytes, len), VGASNET_OK);
            } else {
                vgasnet_wait_syncnb(vgasnet_file_write_at_nb(file, at, bytes, len));
            }
        }
        at += len + (len == 0);
    }
    free(bytes);
}

/* The bytes seen by another program. */
static void check_on_disk(void) {
    unsigned char *is = (unsigned char *)allocate(model_bytes);
    struct stat about;
    int descriptor = open(path, O_RDONLY);
    CHECK(descriptor >= 0 && fstat(descriptor, &about) == 0);
    CHECK_EQ(about.st_size, model_bytes);
    CHECK_EQ(pread(descriptor, is, model_bytes, 0), model_bytes);
    check_bytes(is, model, model_bytes, "the file");
    close(descriptor);
    free(is);
}

static vgasnet_file_t opened(int flags) {
    vgasnet_file_options_t options = {sizeof options, page_len * 2, 0, 0};
    vgasnet_file_t file = NULL;
    CHECK_EQ(vgasnet_file_open(VGASNET_TEAM_ALL, path, flags, 0644, &options, &file), VGASNET_OK);
    CHECK(file != NULL);
    return file;
}

static void rounds(void) {
    vgasnet_file_t file = opened(VGASNET_FILE_READ | VGASNET_FILE_WRITE | VGASNET_FILE_CREATE | VGASNET_FILE_TRUNCATE);
    uint64_t size;
    for (uint64_t round = 0; round < ROUNDS; ++round) {
        write_pieces(file, round);
        barrier();
        check_reads(file, round);
        CHECK_EQ(vgasnet_file_size(file, &size), VGASNET_OK);
        CHECK_EQ(size, model_bytes);
        if (round % 2 == 1) {
            CHECK_EQ(vgasnet_file_sync(file), VGASNET_OK);
            check_on_disk();
        }
        barrier();
    }
    CHECK_EQ(vgasnet_file_flush(file), VGASNET_OK);
    for (int advice = 1; advice <= 4; ++advice)
        CHECK_EQ(vgasnet_file_advise(file, me * page_len, (me + 2) * page_len + 5, advice), VGASNET_OK);
    check_reads(file, 49);
    barrier();
    model_bytes = model_bytes / 2 + 17;
    CHECK_EQ(vgasnet_file_set_size(file, model_bytes), VGASNET_OK);
    check_reads(file, 50);
    barrier();
    memset(model + model_bytes, 0, 3 * page_len);
    model_bytes += 2 * page_len + 5;
    CHECK_EQ(vgasnet_file_set_size(file, model_bytes), VGASNET_OK);
    check_reads(file, 51);
    barrier();
    write_pieces(file, 1);
    barrier();
    check_reads(file, 52);
    CHECK_EQ(vgasnet_file_error(file, NULL), VGASNET_OK);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    check_on_disk();
    file = opened(VGASNET_FILE_READ);
    check_reads(file, 53);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
}

/* Rank 0 appends. The others read to the end, again and again. */
static void ends(void) {
    vgasnet_file_t file = opened(VGASNET_FILE_READ | VGASNET_FILE_WRITE | VGASNET_FILE_CREATE | VGASNET_FILE_TRUNCATE);
    uint64_t at = 0, records = 300;
    uint64_t record[5];
    if (me == 0) {
        for (uint64_t k = 0; k < records; ++k) {
            for (int i = 0; i < 5; ++i) record[i] = mixed(k, (uint64_t)i, 9);
            CHECK_EQ(vgasnet_file_write_at(file, k * sizeof record, record, sizeof record), VGASNET_OK);
        }
    } else {
        while (at < records) {
            size_t nread;
            CHECK_EQ(vgasnet_file_read_at(file, at * sizeof record, record, sizeof record, &nread), VGASNET_OK);
            CHECK(nread == 0 || nread == sizeof record);
            if (nread == 0) continue;
            for (int i = 0; i < 5; ++i) CHECK_EQ(record[i], mixed(at, (uint64_t)i, 9));
            ++at;
        }
    }
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
}

/* Ranges of a few pages, and lists of pieces of many: each read sees one writer's mark. */
static void steps(void) {
    const int flags = VGASNET_FILE_READ | VGASNET_FILE_WRITE | VGASNET_FILE_CREATE | VGASNET_FILE_TRUNCATE | VGASNET_FILE_ATOMIC;
    size_t len = 5 * page_len / 2, nread;
    unsigned char *bytes = (unsigned char *)allocate(len);
    vgasnet_file_run_t run[8];
    vgasnet_memvec_t piece = {bytes, 8 * 100};
    vgasnet_file_t file = opened(flags);
    if (me == 0) CHECK_EQ(vgasnet_file_write_at(file, 0, bytes, len), VGASNET_OK);
    for (unsigned i = 0; i < 8; ++i) {
        run[i].offset = 4 * page_len + i * (3 * page_len / 2);
        run[i].len = 100;
    }
    if (me == 0) CHECK_EQ(vgasnet_file_writev_at(file, 8, run, 1, &piece), VGASNET_OK);
    barrier();
    for (uint64_t i = 0; i < 60; ++i) {
        int is_list = below(60 + me, 1, i, 2) == 0, is_write = below(61 + me, 1, i, 2) == 0;
        size_t all = is_list ? piece.len : len;
        memset(bytes, (int)(1 + i % 20 * ranks + me), all);
        if (is_write) {
            CHECK_EQ(is_list ? vgasnet_file_writev_at(file, 8, run, 1, &piece) : vgasnet_file_write_at(file, 0, bytes, len), VGASNET_OK);
        } else {
            CHECK_EQ(is_list ? vgasnet_file_readv_at(file, 8, run, 1, &piece, &nread) : vgasnet_file_read_at(file, 0, bytes, len, &nread), VGASNET_OK);
            CHECK_EQ(nread, all);
            for (size_t at = 1; at < all; ++at) CHECK_EQ(bytes[at], bytes[0]);
        }
    }
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    free(bytes);
}

/* Every second rank, from the last one down. */
static vgasnet_team_handle_t half_of(vgasnet_node_t *members, uint32_t tag) {
    vgasnet_node_t rank[64], count = 0;
    vgasnet_team_handle_t team;
    for (vgasnet_node_t i = ranks; i-- > 0;)
        if (i % 2 == me % 2) rank[count++] = i;
    team = vgasnet_coll_team_of(count, rank, tag);
    CHECK_EQ(vgasnet_coll_team_size(team), count);
    CHECK_EQ(rank[vgasnet_coll_team_node2rank(team, me)], me);
    *members = count;
    return team;
}

static void append(void) {
    const int flags = VGASNET_FILE_READ | VGASNET_FILE_WRITE | VGASNET_FILE_CREATE | VGASNET_FILE_TRUNCATE;
    const uint64_t records = 100, from = 3;
    snprintf(path + strlen(path), 10, "%u", me % 2);
    for (uint32_t tag = 0; tag < 3; ++tag) {
        vgasnet_node_t members;
        vgasnet_team_handle_t team = half_of(&members, tag);
        vgasnet_file_t file;
        uint64_t at, sum = 0;
        CHECK_EQ(vgasnet_file_open(team, path, flags, 0600, NULL, &file), VGASNET_OK);
        vgasnet_coll_team_free(team);
        CHECK_EQ(vgasnet_file_set_atomic(file, tag == 1), VGASNET_OK);
        CHECK_EQ(vgasnet_file_set_pointer(file, from), VGASNET_OK);
        for (uint64_t i = 0; i < records; ++i) {
            uint64_t record = me * records + i;
            CHECK_EQ(vgasnet_file_take(file, 1, &at), VGASNET_OK);
            CHECK_EQ(vgasnet_file_write_at(file, at * sizeof record, &record, sizeof record), VGASNET_OK);
        }
        CHECK_EQ(vgasnet_file_sync(file), VGASNET_OK);
        CHECK_EQ(vgasnet_file_take(file, 0, &at), VGASNET_OK);
        CHECK_EQ(at, from + records * members);
        for (uint64_t i = from; i < at; ++i) {
            uint64_t record;
            CHECK_EQ(vgasnet_file_read_at(file, i * sizeof record, &record, sizeof record, NULL), VGASNET_OK);
            sum += record;
        }
        for (vgasnet_node_t i = me % 2; i < ranks; i += 2) sum -= records * (i * records) + records * (records - 1) / 2;
        CHECK_EQ(sum, 0);
        CHECK_EQ(vgasnet_file_take(file, 0, NULL), VGASNET_OK);
        if (members > 1) {
            CHECK_EQ(vgasnet_file_set_pointer(file, me), VGASNET_ERR_BAD_ARG);
            CHECK_EQ(vgasnet_file_set_atomic(file, me < 2), VGASNET_ERR_BAD_ARG);
        }
        CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    }
}

/* Changes each number under a lock of its own bytes, or of all. */
static void locks(void) {
    const uint64_t numbers = 5, times = 40;
    uint64_t sum = 0, number = 0, added = 0;
    vgasnet_file_t file = opened(VGASNET_FILE_READ | VGASNET_FILE_WRITE | VGASNET_FILE_CREATE | VGASNET_FILE_TRUNCATE);
    if (me == 0)
        for (uint64_t i = 0; i < numbers; ++i) CHECK_EQ(vgasnet_file_write_at(file, i * 3 * page_len, &number, sizeof number), VGASNET_OK);
    barrier();
    for (uint64_t i = 0; i < times; ++i) {
        uint64_t at = below(70 + me, 1, i, numbers) * 3 * page_len, more = below(71 + me, 1, i, 9);
        int is_all = i % 8 == 7;
        uint64_t from = is_all ? 0 : at, len = is_all ? 100 * page_len : sizeof number;
        CHECK_EQ(vgasnet_file_lock(file, from, len, 1), VGASNET_OK);
        CHECK_EQ(vgasnet_file_read_at(file, at, &number, sizeof number, NULL), VGASNET_OK);
        number += more;
        CHECK_EQ(vgasnet_file_write_at(file, at, &number, sizeof number), VGASNET_OK);
        CHECK_EQ(vgasnet_file_unlock(file, from, len), VGASNET_OK);
        if (i % 5 == 0) {
            CHECK_EQ(vgasnet_file_lock(file, at, 7, 0), VGASNET_OK);
            CHECK_EQ(vgasnet_file_unlock(file, at, 7), VGASNET_OK);
        }
    }
    barrier();
    for (uint64_t i = 0; i < numbers; ++i) {
        CHECK_EQ(vgasnet_file_read_at(file, i * 3 * page_len, &number, sizeof number, NULL), VGASNET_OK);
        sum += number;
    }
    for (vgasnet_node_t rank = 0; rank < ranks; ++rank)
        for (uint64_t i = 0; i < times; ++i) added += below(71 + rank, 1, i, 9);
    CHECK_EQ(sum, added);
    CHECK_EQ(vgasnet_file_unlock(file, 1, 2), VGASNET_ERR_BAD_ARG);
    CHECK_EQ(vgasnet_file_lock(file, 1, 0, 0), VGASNET_ERR_BAD_ARG);
    CHECK_EQ(vgasnet_file_lock(file, 1, UINT64_MAX, 0), VGASNET_ERR_BAD_ARG);
    CHECK_EQ(vgasnet_file_lock(file, 5, 5, 0), VGASNET_OK); /* close releases it */
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
}

static void segment(void) {
    vgasnet_seginfo_t info[64];
    vgasnet_file_t file = opened(VGASNET_FILE_READ | VGASNET_FILE_WRITE | VGASNET_FILE_CREATE | VGASNET_FILE_TRUNCATE);
    size_t len, nread;
    uint64_t *words;
    vgasnet_getSegmentInfo(info, (int)ranks);
    len = info[0].size / 8 * 8;
    words = (uint64_t *)info[me].addr;
    for (size_t i = 0; i < len / 8; ++i) words[i] = mixed(me, i, 5);
    CHECK_EQ(vgasnet_file_write_at(file, me * len, words, len), VGASNET_OK);
    barrier();
    CHECK_EQ(vgasnet_file_read_at(file, (me + 1) % ranks * len, words, len, &nread), VGASNET_OK);
    CHECK_EQ(nread, len);
    for (size_t i = 0; i < len / 8; ++i) CHECK_EQ(words[i], mixed((me + 1) % ranks, i, 5));
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
}

/* Rank 0 makes the file without vgasnet. */
static void make_file(void) {
    uint64_t state = mixed(1, 2, 3);
    model_bytes = most_bytes - 100;
    random_bytes(&state, model, model_bytes);
    if (me == 0) {
        int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        CHECK(descriptor >= 0);
        CHECK_EQ(pwrite(descriptor, model, model_bytes, 0), model_bytes);
        close(descriptor);
    }
    barrier();
}

static void refreshed(void) {
    vgasnet_file_t file;
    uint64_t size;
    make_file();
    model_bytes /= 2;
    if (me == 0) CHECK_EQ(truncate(path, model_bytes), 0);
    barrier();
    file = opened(VGASNET_FILE_READ);
    for (uint64_t round = 0; round < ROUNDS; ++round) {
        uint64_t state = mixed(round, 2, 3);
        check_reads(file, round);
        barrier();
        model_bytes = round == 3 ? page_len + 5 : most_bytes - 10 * round;
        random_bytes(&state, model, model_bytes);
        if (me == ranks - 1) {
            int descriptor = open(path, O_WRONLY);
            CHECK_EQ(pwrite(descriptor, model, model_bytes, 0), model_bytes);
            CHECK_EQ(ftruncate(descriptor, model_bytes), 0);
            close(descriptor);
        }
        barrier();
        CHECK_EQ(vgasnet_file_sync(file), VGASNET_OK);
        CHECK_EQ(vgasnet_file_size(file, &size), VGASNET_OK);
        CHECK_EQ(size, model_bytes);
    }
    check_reads(file, ROUNDS);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
}

/* Each rank's disk fails a few reads. */
static void unread(void) {
    vgasnet_file_t file;
    unsigned failed = 0;
    int errno_value = 0;
    uint64_t errors;
    make_file();
    file = opened(VGASNET_FILE_READ | VGASNET_FILE_WRITE);
    for (uint64_t i = 0; i < 400; ++i) {
        unsigned char is[3000];
        size_t offset = below(40 + me, 1, i, model_bytes - sizeof is), nread = 0;
        int code;
        if (i % 7 == 6) {
            code = vgasnet_file_write_at(file, offset / 100 * 100 + me, model + offset / 100 * 100 + me, 1);
        } else {
            code = vgasnet_file_read_at(file, offset, is, sizeof is, &nread);
            if (code == VGASNET_OK) {
                CHECK_EQ(nread, sizeof is);
                check_bytes(is, model + offset, nread, "a read beside others that fail");
            }
        }
        if (code != VGASNET_OK) {
            int why = errno;
            CHECK_EQ(code, VGASNET_ERR_IO);
            CHECK_EQ(why, EIO);
            ++failed;
        }
    }
    printf("rank %u: %u failed\n", me, failed);
    CHECK_EQ(vgasnet_file_error(file, &errno_value), failed > 0 ? VGASNET_ERR_IO : VGASNET_OK);
    CHECK_EQ(errno_value, failed > 0 ? EIO : 0);
    CHECK_EQ(vgasnet_file_error_count(file, &errors), VGASNET_OK);
    CHECK(errors >= failed && (errors > 0) == (failed > 0));
    barrier();
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    if (me == 0) check_on_disk();
}

static void unwritten(void) {
    vgasnet_file_t file = opened(VGASNET_FILE_READ | VGASNET_FILE_WRITE | VGASNET_FILE_CREATE | VGASNET_FILE_TRUNCATE);
    size_t len = most_bytes / ranks / 1000;
    unsigned refused = 0, syncs = 0;
    uint64_t state = mixed(1, 2, 4);
    model_bytes = 1000 * len * ranks;
    random_bytes(&state, model, model_bytes);
    for (size_t k = 0; k < 1000; ++k) {
        /* All ranks in each page, or each in its own. */
        size_t at = k % 2 == 0 ? (k * ranks + me) * len : ((k - 1) * ranks + ranks + me) * len;
        while (vgasnet_file_write_at(file, at, model + at, len) != VGASNET_OK) {
            ++refused;
            if (refused % 2 == 0) vgasnet_file_flush(file);
            CHECK(refused < 100);
        }
    }
    while (vgasnet_file_sync(file) != VGASNET_OK) CHECK(++syncs < 100);
    printf("rank %u: %u refused, %u syncs\n", me, refused, syncs);
    check_on_disk();
    check_reads(file, 70);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    check_on_disk();
}

int main(int argc, char **argv) {
    start(&argc, &argv, 3 * pool_bytes() / 2);
    CHECK(argc > 2);
    me = vgasnet_mynode();
    ranks = vgasnet_nodes();
    page_len = page_bytes();
    most_bytes = 24 * page_len;
    model = (unsigned char *)allocate(most_bytes + 4 * page_len);
    snprintf(path, sizeof path, "%s/shared", argv[2]);
    if (strcmp(argv[1], "rounds") == 0) rounds();
    if (strcmp(argv[1], "ends") == 0) ends();
    if (strcmp(argv[1], "segment") == 0) segment();
    if (strcmp(argv[1], "steps") == 0) steps();
    if (strcmp(argv[1], "locks") == 0) locks();
    if (strcmp(argv[1], "append") == 0) append();
    if (strcmp(argv[1], "refreshed") == 0) refreshed();
    if (strcmp(argv[1], "unread") == 0) unread();
    if (strcmp(argv[1], "unwritten") == 0) unwritten();
    return finish();
}
