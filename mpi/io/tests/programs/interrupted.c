/* SIGTERM to all ranks in the middle of writes: each write that had returned is in the file afterwards.
 * interrupted FILE LOG write: writes until the end, and counts completed records in LOG; check RANKS: compares the file with LOG. */
#include "common.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RECORD = 30000, RECORDS = 2000, RANKS_MAX = 64, SIGNALLED = 150 };

static volatile long *counts;
static int pids[RANKS_MAX];

static void map_log(const char *path) {
    int log = open(path, O_RDWR | O_CREAT, 0644);
    CHECK(log >= 0 && ftruncate(log, RANKS_MAX * sizeof *counts) == 0);
    counts = mmap(NULL, RANKS_MAX * sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, log, 0);
    CHECK(counts != MAP_FAILED);
}

static void fill(unsigned char *bytes, long record, int of) {
    for (int i = 0; i < RECORD; ++i) bytes[i] = (unsigned char)mixed(record, of, i / 64);
}

static MPI_Offset place(long record, int of, int all) { return ((record % RECORDS) * all + of) * (MPI_Offset)RECORD; }

static void *end_all(void *unused) {
    (void)unused;
    for (int at = 0; at < ranks; ++at)
        while (counts[at] < SIGNALLED) usleep(1000);
    for (int at = ranks; at-- > 0;) kill(pids[at], SIGTERM);
    return NULL;
}

static void write_on(const char *path) {
    static unsigned char bytes[RECORD];
    pthread_t killer;
    int own = getpid();
    MPI_File file = opened(path, MPI_MODE_CREATE | MPI_MODE_RDWR);
    CHECK(ranks <= RANKS_MAX);
    OK(MPI_Allgather(&own, 1, MPI_INT, pids, 1, MPI_INT, MPI_COMM_WORLD));
    if (rank == 0) CHECK(pthread_create(&killer, NULL, end_all, NULL) == 0);
    for (long record = 0;; ++record) {
        fill(bytes, record, rank);
        OK(MPI_File_write_at(file, place(record, rank, ranks), bytes, RECORD, MPI_BYTE, MPI_STATUS_IGNORE));
        counts[rank] = record + 1;
    }
}

static void check(const char *path, int all) {
    static unsigned char expected[RECORD], found[RECORD];
    int file = open(path, O_RDONLY);
    CHECK(file >= 0);
    for (int of = 0; of < all; ++of) {
        CHECK(counts[of] >= SIGNALLED);
        for (long record = counts[of] > RECORDS ? counts[of] - RECORDS + 1 : 0; record < counts[of]; ++record) {
            fill(expected, record, of);
            ssize_t count = pread(file, found, RECORD, place(record, of, all));
            if (count != RECORD || memcmp(found, expected, RECORD) != 0) FAIL("record %ld of rank %d is lost", record, of);
        }
    }
}

int main(int argc, char **argv) {
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(argc > 3);
    map_log(argv[2]);
    if (strcmp(argv[3], "write") == 0) write_on(argv[1]);
    CHECK(argc == 5);
    check(argv[1], atoi(argv[4]));
    finish();
    return 0;
}
