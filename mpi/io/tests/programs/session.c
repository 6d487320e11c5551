/* A file of a session is used after MPI_Finalize, and continues at its pointers. argv[2] is "only" for a program
 * that never calls MPI_Init. */
#include "common.h"

#if MPI_VERSION >= 4
enum { HALF = 10 };

static void expect_bytes(const char *path, const int *expected) {
    FILE *file = fopen(path, "rb");
    int found[2 * HALF];
    for (int r = 0; r < ranks; ++r) {
        CHECK(fread(found, sizeof found, 1, file) == 1);
        if (memcmp(found, expected, sizeof found) != 0) FAIL("the part of rank %d is wrong", r);
    }
    /* By the shared pointer: each rank's number twice. */
    for (int turn = 0; turn < 2; ++turn) {
        int sum = 0, number;
        for (int r = 0; r < ranks; ++r) {
            CHECK(fread(&number, sizeof number, 1, file) == 1);
            sum += number;
        }
        EQUAL(sum, ranks * (ranks + 1) / 2);
    }
    CHECK(fgetc(file) == EOF);
    fclose(file);
}

int main(int argc, char **argv) {
    int only = argc > 2 && strcmp(argv[2], "only") == 0, values[2 * HALF];
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    MPI_File file, shared;
    if (!only) MPI_Init(&argc, &argv);
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "files", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
    MPI_Comm_rank(comm, &rank), MPI_Comm_size(comm, &ranks);
    for (int i = 0; i < 2 * HALF; ++i) values[i] = i;
    OK(MPI_File_open(comm, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    EQUAL(is_cached(file), is_expected());
    OK(MPI_File_set_view(file, rank * (MPI_Offset)sizeof values, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_open(comm, argv[1], MPI_MODE_RDWR, MPI_INFO_NULL, &shared));
    OK(MPI_File_set_view(shared, ranks * (MPI_Offset)sizeof values, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int half = 0; half < 2; ++half) {
        int number = rank + 1;
        if (half == 1 && !only) OK(MPI_Finalize());
        OK(MPI_File_write(file, values + half * HALF, HALF, MPI_INT, MPI_STATUS_IGNORE));
        OK(MPI_File_write_shared(shared, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
        MPI_Barrier(comm);
    }
    OK(MPI_File_close(&shared));
    OK(MPI_File_close(&file));
    MPI_Barrier(comm);
    if (rank == 0) expect_bytes(argv[1], values), puts("done");
    fflush(stdout);
    MPI_Comm_free(&comm), MPI_Group_free(&group), MPI_Session_finalize(&session);
    return 0;
}
#else
int main(void) { return 0; }
#endif
