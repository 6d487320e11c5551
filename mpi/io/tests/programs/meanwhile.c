/* Collective calls which ranks reach before and after others have written. meanwhile FILE PART
 *   end, current   the shared pointer is moved from the end of the file, or from its current value
 *   appended       a second handle of some ranks is opened to append
 *   longer         such a handle extends the file, and a rank writes there at once */
#include "common.h"

enum { ROUNDS = 40, BYTES = 5000 };

static MPI_File file;
static char bytes[BYTES];

/* The last rank writes before it arrives. */
static void moved(int whence) {
    for (int round = 1; round <= ROUNDS; ++round) {
        MPI_Offset at, first;
        if (rank == ranks - 1) {
            if (whence == MPI_SEEK_CUR) OK(MPI_File_write_shared(file, bytes, BYTES, MPI_CHAR, MPI_STATUS_IGNORE));
            else OK(MPI_File_write_at(file, (MPI_Offset)(round - 1) * BYTES, bytes, BYTES, MPI_CHAR, MPI_STATUS_IGNORE));
        }
        OK(MPI_File_seek_shared(file, 0, whence));
        OK(MPI_File_get_position_shared(file, &at));
        first = at;
        MPI_Bcast(&first, 1, MPI_OFFSET, 0, MPI_COMM_WORLD);
        EQUAL(at, first);
        EQUAL(at, (MPI_Offset)round * BYTES);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* The last rank extends the file until the others are done. */
static void appended(const char *name, MPI_Comm some) {
    int flag = rank < ranks - 1, is_over = 0;
    MPI_Request all = MPI_REQUEST_NULL;
    MPI_Offset at = BYTES;
    if (rank == ranks - 1) {
        OK(MPI_File_write_at(file, 0, bytes, BYTES, MPI_CHAR, MPI_STATUS_IGNORE));
        MPI_Barrier(MPI_COMM_WORLD);
        for (MPI_Ibarrier(MPI_COMM_WORLD, &all); !is_over; at += 100) {
            OK(MPI_File_write_at(file, at, bytes, 100, MPI_CHAR, MPI_STATUS_IGNORE));
            MPI_Test(&all, &is_over, MPI_STATUS_IGNORE);
        }
        return;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS && flag; ++round) {
        MPI_File second;
        MPI_Offset own, shared, least = 0, most = 0;
        OK(MPI_File_open(some, name, MPI_MODE_RDWR | MPI_MODE_APPEND, MPI_INFO_NULL, &second));
        EQUAL(is_cached(second), is_expected());
        OK(MPI_File_get_position(second, &own));
        OK(MPI_File_get_position_shared(second, &shared));
        MPI_Allreduce(&own, &least, 1, MPI_OFFSET, MPI_MIN, some);
        MPI_Allreduce(&shared, &most, 1, MPI_OFFSET, MPI_MAX, some);
        CHECK(least >= BYTES && own == least && shared == most && own == shared);
        OK(MPI_File_close(&second));
    }
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    MPI_Wait(&all, MPI_STATUS_IGNORE);
}

static void longer(const char *name, MPI_Comm some) {
    MPI_File second;
    if (rank == ranks - 1) return;
    OK(MPI_File_open(some, name, MPI_MODE_RDWR, MPI_INFO_NULL, &second));
    EQUAL(is_cached(second), is_expected());
    for (int round = 1; round <= ROUNDS; ++round) {
        const MPI_Offset end = (MPI_Offset)round * BYTES;
        MPI_Offset size;
        char is = 0;
        if (round % 2 == 0) OK(MPI_File_set_size(second, end));
        else OK(MPI_File_preallocate(second, end));
        OK(MPI_File_get_size(second, &size));
        EQUAL(size, end);
        if (rank == 1) OK(MPI_File_write_at(second, end - 1, "x", 1, MPI_CHAR, MPI_STATUS_IGNORE));
        MPI_Barrier(some);
        OK(MPI_File_read_at(second, end - 1, &is, 1, MPI_CHAR, MPI_STATUS_IGNORE));
        EQUAL(is, 'x');
        MPI_Barrier(some);
    }
    OK(MPI_File_close(&second));
}

int main(int argc, char **argv) {
    MPI_Comm some;
    start(&argc, &argv);
    CHECK(argc == 3);
    memset(bytes, 'b', BYTES);
    OK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    EQUAL(is_cached(file), is_expected());
    MPI_Comm_split(MPI_COMM_WORLD, rank == ranks - 1, rank, &some);
    if (strcmp(argv[2], "end") == 0) moved(MPI_SEEK_END);
    if (strcmp(argv[2], "current") == 0) moved(MPI_SEEK_CUR);
    if (strcmp(argv[2], "appended") == 0) appended(argv[1], some);
    if (strcmp(argv[2], "longer") == 0) longer(argv[1], some);
    MPI_Comm_free(&some);
    OK(MPI_File_close(&file));
    finish();
    return 0;
}
