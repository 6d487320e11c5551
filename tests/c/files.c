/* Files, and the bytes of a segment several pools long: each call is made with segment memory and one file, and with
 * ordinary memory and another file. Results, error numbers, bytes and positions agree. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "local.h"

#define ROUNDS 400
#define VECTORS 7

/* One side of the comparison: a file and its memory. */
struct side {
    unsigned char *memory;
    int file;
    FILE *stream;
};

enum call { READ, PREAD, PREAD64, READV, PREADV, PREADV2, FREAD, WRITE, PWRITE, PWRITE64, WRITEV, PWRITEV, PWRITEV2, FWRITE, FPUTS, CALLS };

struct request {
    enum call call;
    /* The place of the bytes in memory, and the lengths of consecutive vectors, with gaps between them. */
    size_t start, len, lens[VECTORS];
    off_t at;
};

static size_t size;

static int vectors(const struct request *request, unsigned char *memory, struct iovec *to) {
    size_t at = request->start;
    int count = 0;
    for (; count < VECTORS && at + request->lens[count] <= size; ++count) {
        to[count].iov_base = memory + at;
        to[count].iov_len = request->lens[count];
        at += request->lens[count] + 100;
    }
    return count;
}

static ssize_t carry_out(const struct request *request, const struct side *side) {
    struct iovec all[VECTORS];
    unsigned char *memory = side->memory + request->start;
    int count = vectors(request, side->memory, all);
    size_t len = request->len;
    switch (request->call) {
    case READ: return read(side->file, memory, len);
    case PREAD: return pread(side->file, memory, len, request->at);
    case PREAD64: return pread64(side->file, memory, len, request->at);
    case READV: return readv(side->file, all, count);
    case PREADV: return preadv(side->file, all, count, request->at);
    case PREADV2: return preadv2(side->file, all, count, -1, 0);
    case FREAD: return (ssize_t)fread(memory, 7, len / 7, side->stream);
    case WRITE: return write(side->file, memory, len);
    case PWRITE: return pwrite(side->file, memory, len, request->at);
    case PWRITE64: return pwrite64(side->file, memory, len, request->at);
    case WRITEV: return writev(side->file, all, count);
    case PWRITEV: return pwritev(side->file, all, count, request->at);
    case PWRITEV2: return pwritev2(side->file, all, count, request->at, 0);
    case FWRITE: return (ssize_t)fwrite(memory, 3, len / 3, side->stream);
    case FPUTS: return fputs((const char *)memory, side->stream) < 0 ? -1 : 0;
    case CALLS: break;
    }
    return -1;
}

static struct request random_request(uint64_t *state) {
    struct request request;
    memset(&request, 0, sizeof request);
    request.call = (enum call)random_below(state, CALLS);
    request.start = (size_t)random_below(state, size);
    request.len = least(random_length(state, size), size - request.start);
    request.at = (off_t)random_below(state, size + size / 4);
    for (int i = 0; i < VECTORS; ++i) request.lens[i] = random_length(state, size / VECTORS);
    return request;
}

/* A file that vanishes when it is closed. */
static struct side open_side(unsigned char *memory) {
    struct side side;
    side.memory = memory;
    side.stream = tmpfile();
    CHECK(side.stream != NULL);
    side.file = fileno(side.stream);
    CHECK(ftruncate(side.file, (off_t)size) == 0);
    return side;
}

/* Makes the same call on both sides. */
static void compare(const struct request *request, const struct side *segment, const struct side *model) {
    if (request->call == FPUTS) {
        /* A long text, with its terminator. */
        model->memory[request->start + request->len - (request->len > 0)] = 0;
        segment->memory[request->start + request->len - (request->len > 0)] = 0;
    }
    errno = 0;
    ssize_t should = carry_out(request, model);
    int error = errno;
    errno = 0;
    ssize_t is = carry_out(request, segment);
    CHECK_EQ(is, should);
    CHECK_EQ(errno, error);
    CHECK_EQ(ftello(segment->stream), ftello(model->stream));
    CHECK_EQ(lseek(segment->file, 0, SEEK_CUR), lseek(model->file, 0, SEEK_CUR));
}

static void check_files(const struct side *segment, const struct side *model) {
    unsigned char *is = (unsigned char *)allocate(1 << 16), *should = (unsigned char *)allocate(1 << 16);
    ssize_t len;
    CHECK(fflush(segment->stream) == 0 && fflush(model->stream) == 0);
    for (off_t at = 0; (len = pread(model->file, should, 1 << 16, at)) > 0; at += len) {
        CHECK_EQ(pread(segment->file, is, 1 << 16, at), len);
        check_bytes(is, should, (size_t)len, "the file");
    }
    free(is);
    free(should);
}

static void check_memory(const struct side *segment, const struct side *model) {
    unsigned char *is = (unsigned char *)allocate(size);
    vgasnet_get(is, vgasnet_mynode(), segment->memory, size);
    check_bytes(is, model->memory, size, "the segment");
    free(is);
}

static void check_errors(unsigned char *memory, int file) {
    /* Volatile, since compilers warn of calls they know to be wrong. */
    unsigned char *volatile nowhere = (unsigned char *)1;
    volatile int negative = -1;
    struct iovec bad[2];
    bad[0].iov_base = memory;
    bad[0].iov_len = 100;
    bad[1].iov_base = nowhere;
    bad[1].iov_len = 100;
    CHECK(read(-1, memory, 5) == -1 && errno == EBADF);
    CHECK(pwrite(file, memory, 5, -3) == -1 && errno == EINVAL);
    CHECK(writev(file, bad, negative) == -1 && errno == EINVAL);
    CHECK(lseek(file, 0, SEEK_SET) == 0);
    /* The bytes before the bad address are written. */
    CHECK_EQ(writev(file, bad, 2), 100);
    bad[1].iov_len = SIZE_MAX;
    CHECK(writev(file, bad, 2) == -1 && errno == EINVAL);
    CHECK(write(file, nowhere, 5) == -1 && errno == EFAULT);
    CHECK_EQ(read(file, memory, 0), 0);
    CHECK_EQ(pwrite(file, memory + size - 10, 20, 0), 10);
}

/* The kernel accepts aligned memory only, and gets it if the client's is aligned. */
static void check_direct(unsigned char *memory, uint64_t seed) {
    char name[200];
    snprintf(name, sizeof name, "%s/files-direct-%u", getenv("VGASNET_STORAGE_DIR"), (unsigned)getpid());
    int file = open(name, O_RDWR | O_CREAT | O_DIRECT, 0600);
    if (file < 0) {
        CHECK(errno == EINVAL);
        return;
    }
    CHECK(unlink(name) == 0);
    size_t len = size / 2 / 4096 * 4096;
    uint64_t state = mixed(seed, 7, 7);
    random_bytes(&state, memory, len);
    CHECK_EQ(pwrite(file, memory, len, 0), len);
    CHECK_EQ(pread(file, memory + len, len, 0), len);
    CHECK(memcmp(memory, memory + len, len) == 0);
    CHECK(close(file) == 0);
}

int main(int argc, char **argv) {
    size = pool_pages() * 3 * page_bytes();
    start(&argc, &argv, size);
    uint64_t state = mixed(31, vgasnet_mynode(), 0);
    unsigned char *memory = (unsigned char *)at(vgasnet_mynode(), 0), *copy = (unsigned char *)allocate(size);
    random_bytes(&state, copy, size);
    memcpy(memory, copy, size);
    struct side segment = open_side(memory), model = open_side(copy);
    for (int round = 0; round < ROUNDS; ++round) {
        struct request request = random_request(&state);
        if (random_below(&state, 3) == 0) {
            off_t to = (off_t)random_below(&state, size);
            CHECK(fseeko(segment.stream, to, SEEK_SET) == 0 && fseeko(model.stream, to, SEEK_SET) == 0);
        }
        compare(&request, &segment, &model);
        if (round % 40 == 0) check_files(&segment, &model), check_memory(&segment, &model);
    }
    check_files(&segment, &model);
    check_memory(&segment, &model);
    /* The compiler may replace one of these calls with the other. */
    CHECK(fflush(stdout) == 0);
    strcpy((char *)memory + 3 * page_bytes() - 5, "across a border");
    CHECK(puts((const char *)memory + 3 * page_bytes() - 5) >= 0);
    check_errors(memory, segment.file);
    check_direct(memory, vgasnet_mynode());
    CHECK(fclose(segment.stream) == 0 && fclose(model.stream) == 0);
    free(copy);
    return finish();
}
