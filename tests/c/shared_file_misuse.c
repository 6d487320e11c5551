/* Refused calls about shared files, with a line each. shared_file_misuse PART DIRECTORY
 *   misuse   invalid arguments
 *   tiny     a pool of one page is too small
 *   late     the first rank waits for another in a call about a file, and VGASNET_CHECK=1 reports it */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static vgasnet_node_t me, ranks;
static char path[4096];

static void tiny(void) {
    vgasnet_file_t file;
    int flags = VGASNET_FILE_WRITE | VGASNET_FILE_CREATE;
    CHECK_EQ(vgasnet_file_open(VGASNET_TEAM_ALL, path, flags, 0600, NULL, &file), VGASNET_ERR_BAD_ARG);
    CHECK(access(path, F_OK) != 0);
}

/* The others come after the first rank has reported its wait: its stderr is a file until then. */
static void late(void) {
    char lines[4096 + 64], line[256] = "";
    struct stat about = {0};
    vgasnet_file_t file;
    int flags = VGASNET_FILE_WRITE | VGASNET_FILE_CREATE, stderr_before = dup(STDERR_FILENO), told;
    snprintf(lines, sizeof lines, "%s.lines", path);
    told = open(lines, O_RDWR | O_CREAT, 0600);
    CHECK_EQ(vgasnet_file_open(VGASNET_TEAM_ALL, path, flags, 0600, NULL, &file), VGASNET_OK);
    if (me == 0) CHECK(told >= 0 && dup2(told, STDERR_FILENO) == STDERR_FILENO);
    else {
        while (fstat(told, &about) == 0 && about.st_size == 0) sched_yield();
    }
    CHECK_EQ(vgasnet_file_sync(file), VGASNET_OK);
    CHECK(dup2(stderr_before, STDERR_FILENO) == STDERR_FILENO);
    CHECK(pread(told, line, sizeof line - 1, 0) > 0);
    CHECK(strstr(line, "vgasnet: rank 0: vgasnet_file_sync: ") && strstr(line, "other ranks of the team have not come for"));
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    close(told);
    close(stderr_before);
}

/* Ranks with different calls all get an error, and the file stays unchanged. */
static void differ(vgasnet_file_t file) {
    const int last = me == ranks - 1;
    char byte = 7;
    size_t nread;
    uint64_t size;
    CHECK_EQ(vgasnet_file_set_size(file, 10 + me), VGASNET_ERR_BAD_ARG);
    CHECK_EQ(vgasnet_file_preallocate(file, 10 + last), VGASNET_ERR_BAD_ARG);
    CHECK_EQ(vgasnet_file_set_atomic(file, last), VGASNET_ERR_BAD_ARG);
    CHECK_EQ(vgasnet_file_set_pointer(file, last), VGASNET_ERR_BAD_ARG);
    CHECK_EQ(last ? vgasnet_file_close(file) : vgasnet_file_sync(file), VGASNET_ERR_BAD_ARG);
    CHECK_EQ(last ? vgasnet_file_sync(file) : vgasnet_file_set_size(file, 0), VGASNET_ERR_BAD_ARG);
    CHECK_EQ(last ? vgasnet_file_set_pointer(file, 1) : vgasnet_file_set_atomic(file, 1), VGASNET_ERR_BAD_ARG);
    CHECK_EQ(vgasnet_file_size(file, &size), VGASNET_OK);
    CHECK_EQ(size, 0);
    barrier();
    if (last) CHECK_EQ(vgasnet_file_write_at(file, 0, &byte, 1), VGASNET_OK);
    CHECK_EQ(vgasnet_file_sync(file), VGASNET_OK);
    byte = 0;
    CHECK_EQ(vgasnet_file_read_at(file, 0, &byte, 1, &nread), VGASNET_OK);
    CHECK(nread == 1 && byte == 7);
    CHECK_EQ(vgasnet_file_set_size(file, 0), VGASNET_OK);
}

static void misuse(void) {
    vgasnet_file_t file = NULL;
    vgasnet_file_options_t options = {sizeof options, 0, 0, 0};
    const int write = VGASNET_FILE_READ | VGASNET_FILE_WRITE;
    char byte = 0, name[5000], other[sizeof path + 8];
    size_t nread;
    uint64_t size;
#define REFUSED(code, flags, where, given) \
    CHECK_EQ(vgasnet_file_open(VGASNET_TEAM_ALL, where, flags, 0600, given, &file), code)
    REFUSED(VGASNET_ERR_IO, VGASNET_FILE_READ, path, NULL);
    CHECK_EQ(errno, ENOENT);
    REFUSED(VGASNET_ERR_BAD_ARG, 0, path, NULL);
    REFUSED(VGASNET_ERR_BAD_ARG, 1 << 20, path, NULL);
    REFUSED(VGASNET_ERR_BAD_ARG, VGASNET_FILE_READ | VGASNET_FILE_CREATE, path, NULL);
    REFUSED(VGASNET_ERR_BAD_ARG, write | VGASNET_FILE_EXCLUSIVE, path, NULL);
    REFUSED(VGASNET_ERR_BAD_ARG, write, "", NULL);
    REFUSED(VGASNET_ERR_IO, write, "/", NULL);
    CHECK_EQ(errno, EISDIR);
    REFUSED(VGASNET_ERR_IO, write, "/dev/null", NULL);
    snprintf(other, sizeof other, "%s-other", path);
    memset(name, 'a', sizeof name);
    name[0] = '/';
    name[4999] = 0;
    REFUSED(VGASNET_ERR_IO, write, name, NULL);
    name[300] = 0;
    REFUSED(VGASNET_ERR_IO, write | VGASNET_FILE_CREATE, name, NULL);
    options.struct_bytes = 3;
    REFUSED(VGASNET_ERR_BAD_ARG, write, path, &options);
    options.struct_bytes = sizeof options;
    options.stripe_bytes = 4097;
    REFUSED(VGASNET_ERR_BAD_ARG, write, path, &options);
    options.stripe_bytes = 0;
    if (ranks > 1) {
        REFUSED(VGASNET_ERR_BAD_ARG, me == 1 ? write : write | VGASNET_FILE_CREATE, path, &options);
        REFUSED(VGASNET_ERR_BAD_ARG, me == 1 ? 0 : write | VGASNET_FILE_CREATE, path, &options);
        /* A rank finds an error before it asks the others, which wait for it nevertheless. */
        REFUSED(VGASNET_ERR_BAD_ARG, me == 1 ? 1 << 20 : write | VGASNET_FILE_CREATE, path, &options);
        REFUSED(VGASNET_ERR_BAD_ARG, write | VGASNET_FILE_CREATE, me == 0 ? NULL : path, &options);
        options.stripe_bytes = me == 1 ? page_bytes() : 0;
        REFUSED(VGASNET_ERR_BAD_ARG, write | VGASNET_FILE_CREATE, path, &options);
        options.stripe_bytes = 0;
        REFUSED(VGASNET_ERR_BAD_ARG, write | VGASNET_FILE_CREATE, me == 1 ? other : path, &options);
        options.flags = me == 1;
        REFUSED(VGASNET_ERR_BAD_ARG, write | VGASNET_FILE_CREATE, path, &options);
        options.flags = 0;
        CHECK_EQ(vgasnet_file_open(VGASNET_TEAM_ALL, path, write | VGASNET_FILE_CREATE, 0600, NULL, me == 1 ? NULL : &file),
                 VGASNET_ERR_BAD_ARG);
    }
    REFUSED(VGASNET_OK, write | VGASNET_FILE_CREATE, path, &options);
    REFUSED(VGASNET_ERR_IO, write | VGASNET_FILE_CREATE | VGASNET_FILE_EXCLUSIVE, path, &options);
    CHECK_EQ(vgasnet_file_read_at(file, UINT64_MAX, &byte, 1, &nread), VGASNET_ERR_BAD_ARG);
    CHECK_EQ(vgasnet_file_read_at(file, 0, NULL, 1, &nread), VGASNET_ERR_BAD_ARG);
    CHECK_EQ(vgasnet_file_read_at(file, 5, &byte, 1, &nread), VGASNET_OK);
    CHECK_EQ(nread, 0);
    CHECK_EQ(vgasnet_file_write_at(file, 1000, NULL, 0), VGASNET_OK);
    vgasnet_wait_syncnb(vgasnet_file_write_at_nb(file, 1000, NULL, 0));
    CHECK_EQ(vgasnet_file_writev_at(file, 0, NULL, 0, NULL), VGASNET_OK);
    CHECK_EQ(vgasnet_file_writev_at(file, 1, NULL, 0, NULL), VGASNET_ERR_BAD_ARG);
    CHECK_EQ(vgasnet_file_readv_at(file, 0, NULL, 1, NULL, &nread), VGASNET_ERR_BAD_ARG);
    CHECK_EQ(vgasnet_file_size(file, &size), VGASNET_OK);
    CHECK_EQ(size, 0); /* an empty write makes no file longer */
    CHECK_EQ(vgasnet_file_size(file, NULL), VGASNET_ERR_BAD_ARG);
    CHECK_EQ(vgasnet_file_advise(file, 0, 10, 9), VGASNET_ERR_BAD_ARG);
    CHECK_EQ(vgasnet_file_advise(file, 5, UINT64_MAX, 1), VGASNET_ERR_BAD_ARG);
    if (ranks > 1) differ(file);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_ERR_BAD_ARG);
    CHECK_EQ(vgasnet_file_read_at((vgasnet_file_t)(uintptr_t)77, 0, &byte, 1, &nread), VGASNET_ERR_BAD_ARG);
    options.stripe_bytes = (size_t)1 << 60; /* more than a file has: all of it has one home */
    REFUSED(VGASNET_OK, write, path, &options);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    CHECK_EQ(vgasnet_file_read_at(NULL, 0, &byte, 1, &nread), VGASNET_ERR_BAD_ARG);
    CHECK_EQ(vgasnet_file_close(NULL), VGASNET_ERR_BAD_ARG);
    REFUSED(VGASNET_OK, VGASNET_FILE_READ, path, NULL);
    CHECK_EQ(vgasnet_file_write_at(file, 0, &byte, 1), VGASNET_ERR_BAD_ARG);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    REFUSED(VGASNET_OK, VGASNET_FILE_WRITE, path, NULL);
    CHECK_EQ(vgasnet_file_read_at(file, 0, &byte, 1, &nread), VGASNET_ERR_BAD_ARG);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
}

int main(int argc, char **argv) {
    /* A segment would need more pages than the test has. */
    int is_tiny = argc > 1 && strcmp(argv[1], "tiny") == 0;
    start(&argc, &argv, is_tiny ? 0 : 3 * pool_bytes() / 2);
    CHECK(argc > 2);
    me = vgasnet_mynode();
    ranks = vgasnet_nodes();
    snprintf(path, sizeof path, "%s/shared", argv[2]);
    if (strcmp(argv[1], "misuse") == 0) misuse();
    if (is_tiny) tiny();
    if (strcmp(argv[1], "late") == 0) late();
    return finish();
}
