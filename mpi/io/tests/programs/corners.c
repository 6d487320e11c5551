/* Calls that the library must refuse or handle specially. corners PART FILE
 *   far       offsets beyond any file
 *   handler   an error handler that turns a failure into success
 *   some      an open that fails on the last rank, for lack of the file's directory
 *   unclosed  MPI ends while a file is open
 *   left      the program ends by exit, with two handles of the file
 *   unheard   the same if stderr cannot be written
 *   unread    the same if stderr is a pipe without a reader
 *   other     the library is not for this MPI
 *   gone      the first rank ends by exit(0) without MPI_Finalize, and the others wait for it
 *   all-gone  all ranks do
 *   again     the disk fails a few times while operations go on; later ones succeed
 *   second    a second handle: its views and modes may not bypass the pages of the first. In the end it gets one that only MPI
 *             can serve */
#include "common.h"
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

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

/* A rank that gets a handle nevertheless has one of MPI's. Its close would wait for the others, so it stays open. */
static void some(const char *name) {
    MPI_File own = MPI_FILE_NULL;
    const int is_last = rank == ranks - 1;
    char other[4096];
    snprintf(other, sizeof other, "%s.none/there", name);
    int code = MPI_File_open(MPI_COMM_WORLD, is_last ? other : name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &own);
    CHECK(!is_last || code != MPI_SUCCESS);
    CHECK(code != MPI_SUCCESS || !is_cached(own));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    EQUAL(is_cached(file), is_expected());
    OK(MPI_File_write_at(file, 8 * rank, "together", 8, MPI_CHAR, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
}

/* Another file is closed, and a third one has a second handle. */
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

static void left(const char *name) {
    MPI_File second;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR, MPI_INFO_NULL, &second));
    EQUAL(is_cached(file), is_expected());
    EQUAL(is_cached(second), is_expected());
    OK(MPI_File_write_at(file, 0, "synced", 6, MPI_CHAR, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(file));
    OK(MPI_File_write_at(file, 6, "and not", 7, MPI_CHAR, MPI_STATUS_IGNORE));
    exit(3);
}

static void say_ended(void) { CHECK(write(STDOUT_FILENO, "ended\n", 6) == 6); }

/* The same if the line about it cannot be written. Exit handlers registered before the library's run after its part. */
static void unheard(const char *name) {
    CHECK(atexit(say_ended) == 0 && dup2(open("/dev/full", O_WRONLY), STDERR_FILENO) == STDERR_FILENO);
    left(name);
}

/* The same if nobody reads it. */
static void unread(const char *name) {
    int ends[2];
    CHECK(atexit(say_ended) == 0 && pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    CHECK(signal(SIGPIPE, SIG_DFL) != SIG_ERR && close(ends[0]) == 0 && close(ends[1]) == 0);
    left(name);
}

/* MPI's launcher notices, or does not, as without the library. */
static void gone(const char *name) {
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_write_at(file, 4 * rank, "gone", 4, MPI_CHAR, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    if (rank == 0) exit(0);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void all_gone(const char *name) {
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_close(&file));
    exit(0);
}

enum { STEP = 1 << 20, STEPS = 40 };

static void again(const char *name) {
    char bytes[100];
    int failed = 0, last = MPI_SUCCESS;
    if (rank == 0) {
        FILE *made = fopen(name, "w");
        CHECK(made != NULL && ftruncate(fileno(made), (off_t)STEP * STEPS) == 0);
        for (int step = 0; step < STEPS; ++step) {
            memset(bytes, 'A' + step, sizeof bytes);
            CHECK(fseek(made, (long)step * STEP, SEEK_SET) == 0 && fwrite(bytes, sizeof bytes, 1, made) == 1);
        }
        CHECK(fclose(made) == 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    /* At completion a request is no longer tied to a file, so the file's error handler does not get its error. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    EQUAL(is_cached(file), is_expected());
    for (int step = 0; step < STEPS; ++step) {
        MPI_Request request;
        MPI_Status status;
        int moved;
        OK(MPI_File_iread_at(file, (MPI_Offset)step * STEP, bytes, sizeof bytes, MPI_BYTE, &request));
        last = MPI_Wait(&request, &status);
        failed += last != MPI_SUCCESS;
        if (last != MPI_SUCCESS) continue;
        MPI_Get_count(&status, MPI_BYTE, &moved);
        EQUAL(moved, sizeof bytes);
        CHECK(bytes[0] == 'A' + step && bytes[99] == 'A' + step);
    }
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(failed > 0 && last == MPI_SUCCESS);
    OK(MPI_File_close(&file));
}

static void second(const char *name) {
    MPI_File own, both;
    char bytes[16];
    int flag;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR, MPI_INFO_NULL, &own));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR, MPI_INFO_NULL, &both));
    EQUAL(is_cached(both) && is_cached(own), is_expected());
    OK(MPI_File_write_at(file, 16 * rank, "sixteen bytes in", 16, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at(own, 16 * rank, bytes, 16, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(memcmp(bytes, "sixteen bytes in", 16) == 0);
    OK(MPI_File_set_atomicity(both, 1));
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_set_atomicity(file, 0));
    OK(MPI_File_get_atomicity(both, &flag));
    EQUAL(flag, 1);
    OK(MPI_File_get_atomicity(file, &flag));
    EQUAL(flag, 0);
    /* MPI itself may refuse it. */
    if (MPI_File_set_view(own, 0, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL) == MPI_SUCCESS) CHECK(!is_cached(own));
    OK(MPI_File_close(&both));
    OK(MPI_File_close(&own));
    OK(MPI_File_close(&file));
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    CHECK(argc == 3);
    if (strcmp(argv[1], "far") == 0) far(argv[2]);
    if (strcmp(argv[1], "handler") == 0) handler(argv[2]);
    if (strcmp(argv[1], "some") == 0) some(argv[2]);
    if (strcmp(argv[1], "unclosed") == 0) unclosed(argv[2]);
    if (strcmp(argv[1], "left") == 0) left(argv[2]);
    if (strcmp(argv[1], "unheard") == 0) unheard(argv[2]);
    if (strcmp(argv[1], "unread") == 0) unread(argv[2]);
    if (strcmp(argv[1], "gone") == 0) gone(argv[2]);
    if (strcmp(argv[1], "all-gone") == 0) all_gone(argv[2]);
    if (strcmp(argv[1], "again") == 0) again(argv[2]);
    if (strcmp(argv[1], "second") == 0) second(argv[2]);
    if (strcmp(argv[1], "other") == 0) handler(argv[2]);
    finish();
    return 0;
}
