/* Calls that the library refuses, or has to see through. corners PART FILE
 *   far       offsets that no file has
 *   handler   an error handler that calls success what has failed
 *   unclosed  MPI ends while a file is open
 *   other     the library is not for this MPI */
#include "common.h"

static MPI_File file;

static void far(const char *name) {
    char bytes[16] = "";
    const MPI_Offset most = INT64_MAX;
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
    MPI_Type_commit(&pair);
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    EQUAL(is_cached(file), is_expected());
    OK(MPI_File_set_view(file, 1000, pair, pair, "native", MPI_INFO_NULL));
    CHECK(MPI_File_write_at(file, most, bytes, 1, pair, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    CHECK(MPI_File_write_at(file, most / 16, bytes, 1, pair, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    CHECK(MPI_File_seek(file, most / 2, MPI_SEEK_SET) != MPI_SUCCESS);
    OK(MPI_File_write_at(file, rank, bytes, 1, pair, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    MPI_Type_free(&pair);
}

static void call_success(MPI_File *its, int *code, ...) {
    (void)its;
    *code = MPI_SUCCESS;
}

static void handler(const char *name) {
    MPI_Errhandler own;
    char other[4096];
    snprintf(other, sizeof other, "%s.none/there", name);
    MPI_File_create_errhandler(call_success, &own);
    MPI_File_set_errhandler(MPI_FILE_NULL, own);
    (void)MPI_File_open(MPI_COMM_WORLD, other, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    CHECK(file == MPI_FILE_NULL);
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    EQUAL(is_cached(file), is_expected());
    OK(MPI_File_close(&file));
    /* MPICH counts too few uses of the handler of MPI_FILE_NULL to free it. */
}

/* Another file is closed, and of a third there is a second handle. */
static void unclosed(const char *name) {
    MPI_File own;
    char text[8] = "bytes of", other[4096];
    snprintf(other, sizeof other, "%s.other", name);
    OK(MPI_File_open(MPI_COMM_WORLD, other, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &own));
    OK(MPI_File_close(&own));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR, MPI_INFO_NULL, &own));
    EQUAL(is_cached(file), is_expected());
    OK(MPI_File_write_at(file, 8 * rank, text, 8, MPI_CHAR, MPI_STATUS_IGNORE));
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    CHECK(argc == 3);
    if (strcmp(argv[1], "far") == 0) far(argv[2]);
    if (strcmp(argv[1], "handler") == 0) handler(argv[2]);
    if (strcmp(argv[1], "unclosed") == 0) unclosed(argv[2]);
    if (strcmp(argv[1], "other") == 0) handler(argv[2]);
    finish();
    return 0;
}
