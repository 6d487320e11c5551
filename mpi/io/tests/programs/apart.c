/* Two jobs write one file. The first one caches it; the second one, without vgasnet, writes behind the first one's end.
 * The variable JOB is "first", "second", or "session": after MPI_Finalize. apart FILE */
#include "common.h"
#include "waiting.inc"

enum { PLACE = 1 << 20, BYTES = 8 };

static void be_first(const char *path) {
    MPI_File file = opened(path, MPI_MODE_CREATE | MPI_MODE_RDWR);
    OK(MPI_File_write_at(file, (MPI_Offset)rank * BYTES, "cached..", BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) make_mark(path, ".owned");
    CHECK(wait_for_mark(path, ".closed", 60));
    OK(MPI_File_close(&file));
    finish();
}

static void be_second(const char *path, MPI_Comm comm) {
    MPI_File file;
    CHECK(wait_for_mark(path, ".owned", 60));
    OK(MPI_File_open(comm, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_write_at(file, (MPI_Offset)(rank + 1) * PLACE, "served..", BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    MPI_Barrier(comm);
    if (rank == 0) make_mark(path, ".closed");
}

int main(int argc, char **argv) {
    const char *job = getenv("JOB");
    start(&argc, &argv);
    CHECK(argc == 2 && job != NULL);
    if (strcmp(job, "first") == 0) {
        be_first(argv[1]);
    } else if (strcmp(job, "second") == 0) {
        be_second(argv[1], MPI_COMM_WORLD);
        MPI_Finalize();
    } else {
#if MPI_VERSION >= 4
        MPI_Session session;
        MPI_Group group;
        MPI_Comm comm;
        OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
        OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
        OK(MPI_Comm_create_from_group(group, "files", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
        MPI_Finalize();
        be_second(argv[1], comm);
        MPI_Comm_free(&comm), MPI_Group_free(&group), MPI_Session_finalize(&session);
#endif
    }
    return 0;
}
