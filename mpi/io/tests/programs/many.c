/* Many files at once, as many as plain MPI supports: each has its own bytes in the end. Prints the number of
 * descriptors per file on this rank. argv[1] is the beginning of their paths, argv[2] their number. */
#include "common.h"
#include <dirent.h>
#include <sys/stat.h>

enum { MAX = 1000, RANKS_MAX = 4 };
static MPI_File files[MAX];
static int serves[MAX];

static int descriptors(void) {
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(dir) != NULL) ++count;
    closedir(dir);
    return count;
}

static char *name_of(const char *begin, int i) {
    static char path[4096];
    snprintf(path, sizeof path, "%s%d", begin, i);
    return path;
}

int main(int argc, char **argv) {
    int count, cached = 0, before, after;
    start(&argc, &argv);
    count = atoi(argv[2]);
    CHECK(count <= MAX);
    before = descriptors();
    for (int i = 0; i < count; ++i) {
        int value = i * 100 + rank;
        OK(MPI_File_open(MPI_COMM_WORLD, name_of(argv[1], i), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &files[i]));
        serves[i] = is_cached(files[i]);
        cached += serves[i];
        OK(MPI_File_write_at(files[i], rank * (MPI_Offset)sizeof value, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    }
    after = descriptors();
    for (int i = 0; i < count; ++i) settle(files[i]);
    for (int i = 0; i < count; ++i) {
        int value = -1, other = (rank + 1) % ranks;
        OK(MPI_File_read_at(files[i], other * (MPI_Offset)sizeof value, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
        EQUAL(value, i * 100 + other);
        OK(MPI_File_close(&files[i]));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = rank; i < count; i += ranks) {
        struct stat about;
        EQUAL(stat(name_of(argv[1], i), &about), 0);
        EQUAL(about.st_size, ranks * (long)sizeof(int));
    }
    /* One rank prints: launchers break the lines of several ranks at any place. */
    int own[2] = {cached, (after - before) * 100 / count}, all[2 * RANKS_MAX];
    CHECK(ranks <= RANKS_MAX);
    MPI_Gather(own, 2, MPI_INT, all, 2, MPI_INT, 0, MPI_COMM_WORLD);
    for (int of = 0; rank == 0 && of < ranks; ++of)
        printf("rank %d: %d cached, %d descriptors a hundred\n", of, all[2 * of], all[2 * of + 1]);
    finish();
    return 0;
}
