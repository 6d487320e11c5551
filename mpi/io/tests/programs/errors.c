/* Invalid calls: prints the classes of their errors, which are MPI's own. errors FILE */
#include "common.h"

/* One line for a call: its description, and the class of its answer. */
static void tell(const char *what, int code) {
    int class;
    MPI_Error_class(code, &class);
    if (rank == 0) printf("%s: %d\n", what, class);
}

static int handled;

static void on_error(MPI_File *file, int *code, ...) {
    (void)file, (void)code;
    ++handled;
}

/* Open MPI writes parts of elementary types, MPICH does not. */
static void check_types(MPI_File file) {
    char text[12] = "twelve bytes";
    MPI_Datatype three;
    MPI_Type_contiguous(3, MPI_INT, &three);
    tell("a type that is not committed", MPI_File_write_at(file, 0, text, 1, three, MPI_STATUS_IGNORE));
    MPI_Type_commit(&three);
    tell("the same type", MPI_File_write_at(file, 100, text, 1, three, MPI_STATUS_IGNORE));
    MPI_Type_free(&three);
    OK(MPI_File_set_view(file, 200 + 100 * rank, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL));
    tell("part of an elementary type", MPI_File_write_at(file, 1, text, 12, MPI_BYTE, MPI_STATUS_IGNORE));
    tell("part of an elementary type, behind another", MPI_File_write(file, text, 5, MPI_BYTE, MPI_STATUS_IGNORE));
    tell("the rest", MPI_File_write(file, text + 5, 3, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
}

static void check_bytes(const char *name) {
    char bytes[400] = "";
    FILE *plain = fopen(name, "r");
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(plain != NULL);
    size_t len = fread(bytes, 1, sizeof bytes, plain);
    fclose(plain);
    if (rank == 0) printf("%zu bytes: %.12s %.8s %.12s\n", len, bytes + 100, bytes + 200, bytes + 308);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    MPI_File file;
    MPI_Errhandler handler;
    char bytes[16] = "";
    char name[4096];
    start(&argc, &argv);
    CHECK(argc == 2);
    snprintf(name, sizeof name, "%s.none/there", argv[1]);
    tell("no directory", MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    tell("no file", MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    OK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    EQUAL(is_cached(file), is_expected());
    tell("negative offset", MPI_File_write_at(file, -1, bytes, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    tell("negative count", MPI_File_read(file, bytes, -1, MPI_BYTE, MPI_STATUS_IGNORE));
    /* The class differs between MPIs. */
    CHECK(MPI_File_seek(file, -5, MPI_SEEK_SET) != MPI_SUCCESS);
    tell("negative size", MPI_File_set_size(file, -1));
    tell("fine", MPI_File_write(file, bytes, 3, MPI_BYTE, MPI_STATUS_IGNORE));
    check_types(file);
    OK(MPI_File_close(&file));
    check_bytes(argv[1]);
    OK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    MPI_File_create_errhandler(on_error, &handler);
    MPI_File_set_errhandler(file, handler);
    tell("write to a file that is read", MPI_File_write(file, bytes, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(handled > 0);
    OK(MPI_File_read(file, bytes, 3, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    tell("file that is there", MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    tell("write only", MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    tell("read a file that is written", MPI_File_read(file, bytes, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_write_at(file, 1 + rank, bytes, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    MPI_Errhandler_free(&handler);
    finish();
    return 0;
}
