/* Effects of opens, and refused opens. shared_file_opens PART DIRECTORY
 *   mode     a new file that its mode denies to its owner is open on all ranks
 *   failed   one rank has no descriptor left: the file does not exist, or is unchanged
 *   far      a file of more pages than have numbers is refused
 *   twice    a rank has a file open for writing once at a time, and for reading any number of times
 *   teams    one of two teams, or jobs, has a file open for writing
 *   twins    two file systems have a file of the same number and time, and each rank sees one of them */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define BOTH (VGASNET_FILE_READ | VGASNET_FILE_WRITE)
#define CREATE (BOTH | VGASNET_FILE_CREATE)

static vgasnet_node_t me, ranks;
static vgasnet_file_t file;
static char path[4096];

/* A user without rights on other users' files. */
static void become_ordinary(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    const unsigned all = 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH;
    CHECK(syscall(SYS_capget, &header, data) == 0);
    data[0].effective &= ~all;
    data[0].permitted &= ~all;
    data[0].inheritable &= ~all;
    CHECK(syscall(SYS_capset, &header, data) == 0);
}

static int open_it(int flags, unsigned mode) {
    vgasnet_file_options_t options = {sizeof options, page_bytes(), 0, 0};
    return vgasnet_file_open(VGASNET_TEAM_ALL, path, flags, mode, &options, &file);
}

static void mode(void) {
    const unsigned modes[4] = {0400, 0200, 0, 0640};
    char bytes[100], is[100];
    memset(bytes, 'x', sizeof bytes);
    for (int i = 0; i < 4; ++i) {
        struct stat about;
        CHECK_EQ(open_it(CREATE | VGASNET_FILE_EXCLUSIVE, modes[i]), VGASNET_OK);
        CHECK_EQ(vgasnet_file_write_at(file, me * sizeof bytes, bytes, sizeof bytes), VGASNET_OK);
        barrier();
        CHECK_EQ(vgasnet_file_read_at(file, (me + 1) % ranks * sizeof is, is, sizeof is, NULL), VGASNET_OK);
        CHECK(memcmp(is, bytes, sizeof is) == 0);
        CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
        CHECK(stat(path, &about) == 0);
        CHECK_EQ(about.st_mode & 0700, modes[i] & 0700);
        CHECK_EQ(about.st_size, ranks * sizeof bytes);
        barrier();
        if (me == 0) CHECK(unlink(path) == 0);
        barrier();
    }
}

/* Rank 1 opens with no descriptor to spare. */
static void open_with_one_short(int flags) {
    struct rlimit before, none;
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    none = before;
    none.rlim_cur = 1;
    if (me == 1) CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    CHECK_EQ(open_it(flags, 0600), VGASNET_ERR_IO);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

static void failed(void) {
    char is[100];
    struct stat before, after;
    open_with_one_short(CREATE);
    CHECK(access(path, F_OK) != 0 && errno == ENOENT);
    barrier();
    if (me == 0) {
        int descriptor = open(path, O_WRONLY | O_CREAT, 0600);
        CHECK_EQ(write(descriptor, "what was there", 14), 14);
        close(descriptor);
    }
    barrier();
    CHECK(stat(path, &before) == 0);
    open_with_one_short(CREATE | VGASNET_FILE_TRUNCATE);
    barrier();
    CHECK(stat(path, &after) == 0);
    CHECK(before.st_mtim.tv_sec == after.st_mtim.tv_sec && before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
    CHECK_EQ(open_it(BOTH, 0), VGASNET_OK);
    CHECK_EQ(vgasnet_file_read_at(file, 0, is, 14, NULL), VGASNET_OK);
    CHECK(memcmp(is, "what was there", 14) == 0);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    CHECK_EQ(open_it(BOTH | VGASNET_FILE_TRUNCATE, 0), VGASNET_OK);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    CHECK(stat(path, &after) == 0);
    CHECK_EQ(after.st_size, 0);
}

static void twice(void) {
    vgasnet_file_t first, reader;
    char is[5];
    CHECK_EQ(open_it(CREATE | VGASNET_FILE_TRUNCATE, 0600), VGASNET_OK);
    first = file;
    CHECK_EQ(vgasnet_file_write_at(first, me * 5, "first", 5), VGASNET_OK);
    /* Neither truncated nor open. */
    CHECK_EQ(open_it(BOTH | VGASNET_FILE_TRUNCATE, 0), VGASNET_ERR_IO);
    CHECK_EQ(errno, EBUSY);
    CHECK_EQ(open_it(VGASNET_FILE_READ, 0), VGASNET_OK);
    reader = file;
    CHECK_EQ(vgasnet_file_close(first), VGASNET_OK);
    CHECK_EQ(open_it(BOTH, 0), VGASNET_OK);
    CHECK_EQ(vgasnet_file_sync(reader), VGASNET_OK);
    for (int i = 0; i < 2; ++i) {
        CHECK_EQ(vgasnet_file_read_at(i == 0 ? reader : file, (me + 1) % ranks * 5, is, 5, NULL), VGASNET_OK);
        CHECK(memcmp(is, "first", 5) == 0);
    }
    CHECK_EQ(vgasnet_file_close(reader), VGASNET_OK);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
}

/* The first rank is a team, and the others are one. A living child of the first rank has no part in the file. */
static void teams(void) {
    vgasnet_team_handle_t mine = vgasnet_coll_team_split(VGASNET_TEAM_ALL, me == 0 ? 0 : 1, me, NULL);
    int ends[2], is_first = me == 0, flags = CREATE | VGASNET_FILE_TRUNCATE;
    char byte = 'x', is;
    pid_t child;
    CHECK(pipe(ends) == 0);
    if (is_first) {
        CHECK_EQ(vgasnet_file_open(mine, path, flags, 0600, NULL, &file), VGASNET_OK);
        CHECK_EQ(vgasnet_file_write_at(file, 0, &byte, 1), VGASNET_OK);
        CHECK_EQ(vgasnet_file_flush(file), VGASNET_OK);
    }
    barrier();
    if (!is_first) {
        CHECK_EQ(vgasnet_file_open(mine, path, flags, 0600, NULL, &file), VGASNET_ERR_IO);
        CHECK_EQ(errno, EBUSY);
        CHECK_EQ(vgasnet_file_open(mine, path, VGASNET_FILE_READ, 0, NULL, &file), VGASNET_OK);
        CHECK_EQ(vgasnet_file_read_at(file, 0, &is, 1, NULL), VGASNET_OK);
        CHECK_EQ(is, byte);
        CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    }
    barrier();
    child = fork();
    if (child == 0) _exit(close(ends[1]) == 0 && read(ends[0], &is, 1) == 0 ? 0 : 1);
    CHECK(child > 0);
    if (is_first) CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    barrier();
    for (int team = 1; team >= 0; --team) {
        if (is_first == !team) {
            CHECK_EQ(vgasnet_file_open(mine, path, BOTH, 0, NULL, &file), VGASNET_OK);
            CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
        }
        barrier();
    }
    close(ends[1]);
    CHECK(waitpid(child, NULL, 0) == child);
}

/* A name used by no other test: most file systems have no file this long. */
static void far(const char *directory) {
    const char *name = strrchr(directory, '/');
    const uint64_t most = UINT32_MAX * (uint64_t)page_bytes();
    uint64_t size;
    snprintf(path, sizeof path, "/dev/shm/far-%s", name == NULL ? directory : name + 1);
    if (me == 0) {
        int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
        CHECK(descriptor >= 0 && ftruncate(descriptor, (off_t)most + 1) == 0);
        close(descriptor);
    }
    barrier();
    CHECK_EQ(open_it(VGASNET_FILE_READ, 0), VGASNET_ERR_BAD_ARG);
    CHECK_EQ(open_it(BOTH, 0), VGASNET_ERR_BAD_ARG);
    barrier();
    if (me == 0) CHECK(truncate(path, (off_t)most) == 0);
    barrier();
    CHECK_EQ(open_it(BOTH, 0), VGASNET_OK);
    CHECK_EQ(vgasnet_file_size(file, &size), VGASNET_OK);
    CHECK_EQ(size, most);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    barrier();
    if (me == 0) CHECK(unlink(path) == 0);
}

/* Each rank mounts a file system of its own under the directory. */
static void mount_one(const char *directory) {
    const struct timespec times[2] = {{1700000000, 0}, {1700000000, 0}};
    cpu_set_t all, one;
    CHECK(unshare(CLONE_NEWNS) == 0);
    CHECK(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    CHECK(mount("none", directory, "tmpfs", 0, NULL) == 0);
    snprintf(path, sizeof path, "%s/shared", directory);
    /* Each processor has its own numbers for files. */
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    CPU_ZERO(&one);
    for (int i = 0; CPU_COUNT(&one) == 0; ++i)
        if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    CHECK(descriptor >= 0 && ftruncate(descriptor, 1 << 20) == 0 && futimens(descriptor, times) == 0);
    close(descriptor);
    CHECK(sched_setaffinity(0, sizeof all, &all) == 0);
}

/* Only the first rank does I/O, for all ranks. */
static void twins(void) {
    uint64_t value = 0, pages = (1 << 20) / page_bytes();
    CHECK_EQ(open_it(BOTH, 0), VGASNET_OK);
    for (uint64_t i = me; i < pages; i += ranks) CHECK_EQ(vgasnet_file_write_at(file, i * page_bytes(), &i, sizeof i), VGASNET_OK);
    CHECK_EQ(vgasnet_file_close(file), VGASNET_OK);
    int descriptor = open(path, O_RDONLY);
    for (uint64_t i = 0; i < pages; ++i) {
        CHECK_EQ(pread(descriptor, &value, sizeof value, (off_t)(i * page_bytes())), sizeof value);
        CHECK_EQ(value, me == 0 ? i : 0);
    }
    close(descriptor);
}

int main(int argc, char **argv) {
    CHECK(argc > 2);
    if (strcmp(argv[1], "mode") == 0) become_ordinary();
    if (strcmp(argv[1], "twins") == 0) mount_one(argv[2]);
    start(&argc, &argv, pool_bytes());
    me = vgasnet_mynode();
    ranks = vgasnet_nodes();
    snprintf(path, sizeof path, "%s/shared", argv[2]);
    if (strcmp(argv[1], "mode") == 0) mode();
    if (strcmp(argv[1], "failed") == 0) failed();
    if (strcmp(argv[1], "far") == 0) far(argv[2]);
    if (strcmp(argv[1], "twice") == 0) twice();
    if (strcmp(argv[1], "teams") == 0) teams();
    if (strcmp(argv[1], "twins") == 0) twins();
    return finish();
}
