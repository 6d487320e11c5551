/* A second handle of all ranks cuts the file, or opens a new file of the same name. cut FILE PART */
#include "common.h"
#include <sys/stat.h>

enum { LEN = 5000, LEFT = 100 };

static const char *path;
static char bytes[LEN], found[LEN];

static MPI_File again(int mode) {
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file));
    EQUAL(is_cached(file), is_expected());
    return file;
}

static void write_own(MPI_File file, int letter) {
    memset(bytes, letter + rank, LEN);
    OK(MPI_File_write_at(file, (MPI_Offset)LEN * rank, bytes, LEN, MPI_BYTE, MPI_STATUS_IGNORE));
    settle(file);
}

/* Number of existing bytes of a rank's part. */
static int read_of(MPI_File file, int who) {
    MPI_Status status;
    int count;
    OK(MPI_File_read_at(file, (MPI_Offset)LEN * who, found, LEN, MPI_BYTE, &status));
    MPI_Get_count(&status, MPI_BYTE, &count);
    return count;
}

static void expect_size(MPI_File file, MPI_Offset bytes) {
    MPI_Offset size;
    OK(MPI_File_get_size(file, &size));
    EQUAL(size, bytes);
}

static void cut(void) {
    struct stat about;
    MPI_File first = opened(path, MPI_MODE_CREATE | MPI_MODE_RDWR), second;
    write_own(first, 'a');
    second = again(MPI_MODE_RDWR);
    EQUAL(read_of(second, ranks - 1), LEN);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_set_size(second, LEFT));
    expect_size(first, LEFT);
    EQUAL(read_of(first, 0), LEFT);
    CHECK(found[0] == 'a' && found[LEFT - 1] == 'a');
    if (ranks > 1) EQUAL(read_of(first, 1), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    /* Bytes cut off are zeros after the file is extended again. */
    OK(MPI_File_set_size(first, LEN));
    EQUAL(read_of(second, 0), LEN);
    CHECK(found[LEFT] == 0 && found[LEN - 1] == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_set_size(second, 0));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == ranks - 1) OK(MPI_File_write_at(first, 0, "new", 3, MPI_BYTE, MPI_STATUS_IGNORE));
    settle(first);
    OK(MPI_File_close(&second));
    OK(MPI_File_close(&first));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(stat(path, &about) == 0);
    EQUAL(about.st_size, 3);
}

static void replaced(void) {
    MPI_File first = opened(path, MPI_MODE_CREATE | MPI_MODE_RDWR), second;
    write_own(first, 'a');
    if (rank == 0) OK(MPI_File_delete(path, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    second = again(MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR);
    expect_size(second, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    write_own(second, 'A');
    for (int who = 0; who < ranks; ++who) {
        EQUAL(read_of(first, who), LEN);
        CHECK(found[0] == 'a' + who && found[LEN - 1] == 'a' + who);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    write_own(first, 'n');
    OK(MPI_File_close(&first));
    OK(MPI_File_close(&second));
    second = again(MPI_MODE_RDONLY);
    expect_size(second, (MPI_Offset)LEN * ranks);
    for (int who = 0; who < ranks; ++who) {
        EQUAL(read_of(second, who), LEN);
        CHECK(found[0] == 'A' + who && found[LEN - 1] == 'A' + who);
    }
    OK(MPI_File_close(&second));
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    CHECK(argc == 3);
    path = argv[1];
    if (strcmp(argv[2], "cut") == 0) cut();
    else replaced();
    finish();
    return 0;
}
