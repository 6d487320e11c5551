/* Calls of some ranks about a file that more ranks have cached. some PART FILE
 *   cut      some ranks cut the file
 *   atomic   some ranks set mode atomic
 *   view     some ranks set a view that only MPI can serve
 *   pointer  some ranks open the file by another name, and use their shared pointer */
#include "common.h"

static MPI_File file, part;
static MPI_Comm some;
static int is_some, members;
static char bytes[100];

/* All ranks have the file open, and the first half of them by a second handle as well. */
static void begin(const char *name, const char *other) {
    members = ranks < 2 ? 1 : ranks / 2;
    is_some = rank < members;
    MPI_Comm_split(MPI_COMM_WORLD, is_some, rank, &some);
    file = opened(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
    memset(bytes, 'a' + rank, sizeof bytes);
    OK(MPI_File_write_at(file, 100 * rank, bytes, 100, MPI_BYTE, MPI_STATUS_IGNORE));
    settle(file);
    if (other != name && rank == 0) CHECK(rename(name, other) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!is_some) return;
    OK(MPI_File_open(some, other, MPI_MODE_RDWR, MPI_INFO_NULL, &part));
    EQUAL(is_cached(part), is_expected());
}

static void cut(void) {
    MPI_Offset size;
    if (is_some) {
        OK(MPI_File_set_size(part, 10));
        OK(MPI_File_get_size(part, &size));
        EQUAL(size, 10);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_get_size(file, &size));
    EQUAL(size, 10);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == ranks - 1) OK(MPI_File_write_at(file, 50, "behind", 6, MPI_BYTE, MPI_STATUS_IGNORE));
    settle(file);
    OK(MPI_File_read_at(file, 0, bytes, 56, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(bytes[0] == 'a' && bytes[9] == 'a' && bytes[10] == 0 && bytes[49] == 0 && memcmp(bytes + 50, "behind", 6) == 0);
}

enum { LONG = 60000, ROUNDS = 30 };

/* Each read finds the bytes of one write. */
static void atomic(void) {
    static char mine[LONG], theirs[LONG];
    int flag;
    if (is_some) {
        OK(MPI_File_set_atomicity(part, 1));
        OK(MPI_File_get_atomicity(part, &flag));
        EQUAL(flag, 1);
        for (int i = 0; i < ROUNDS; ++i) {
            memset(mine, 'a' + (rank + i) % 26, LONG);
            OK(MPI_File_write_at(part, 0, mine, LONG, MPI_BYTE, MPI_STATUS_IGNORE));
            OK(MPI_File_read_at(part, 0, theirs, LONG, MPI_BYTE, MPI_STATUS_IGNORE));
            /* Open MPI 4.1 does not keep it. */
            for (int at = 1; at < LONG && is_expected(); ++at) CHECK(theirs[at] == theirs[0]);
        }
        OK(MPI_File_set_atomicity(part, 0));
    }
}

static void view(void) {
    int number = 0x01020304, code = MPI_SUCCESS, is_set = 0;
    MPI_Offset at;
    if (is_some) {
        OK(MPI_File_set_atomicity(part, 0));
        code = MPI_File_set_view(part, 4, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL);
        is_set = code == MPI_SUCCESS;
        if (rank == 0) puts(is_set ? "set" : "refused");
        /* MPICH refuses it, before and after. */
        if (!is_set) EQUAL(is_cached(part), is_expected());
        if (is_set) {
            CHECK(!is_cached(part));
            OK(MPI_File_seek(part, rank, MPI_SEEK_SET));
            OK(MPI_File_write(part, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
            OK(MPI_File_get_position(part, &at));
            EQUAL(at, rank + 1);
            OK(MPI_File_sync(part));
        }
    }
    MPI_Bcast(&is_set, 1, MPI_INT, 0, MPI_COMM_WORLD);
    settle(file);
    OK(MPI_File_read_at(file, 0, bytes, 100, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(memcmp(bytes, "aaaa", 4) == 0);
    CHECK(memcmp(bytes + 4 * members, is_set ? "\1\2\3\4" : "aaaa", 4) == 0);
}

static void pointer(void) {
    MPI_Offset at;
    if (is_some) {
        OK(MPI_File_seek_shared(part, 1000, MPI_SEEK_SET));
        for (int i = 0; i < 10; ++i) OK(MPI_File_write_shared(part, bytes, 100, MPI_BYTE, MPI_STATUS_IGNORE));
        /* To MPICH an ordered write of some rank is not behind the others' calls before. */
        MPI_Barrier(some);
        OK(MPI_File_write_ordered(part, bytes, 100, MPI_BYTE, MPI_STATUS_IGNORE));
        MPI_Barrier(some);
        OK(MPI_File_get_position_shared(part, &at));
        EQUAL(at, 1000 + 1100 * members);
        MPI_Barrier(some);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    settle(file);
    OK(MPI_File_get_size(file, &at));
    EQUAL(at, 1000 + 1100 * members);
    OK(MPI_File_read_at(file, 1000 + 1000 * members, bytes, 100, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(bytes[0] == 'a' && bytes[99] == 'a');
}

int main(int argc, char **argv) {
    char other[4096];
    start(&argc, &argv);
    CHECK(argc == 3);
    snprintf(other, sizeof other, "%s.other", argv[2]);
    const int is_pointer = strcmp(argv[1], "pointer") == 0;
    begin(argv[2], is_pointer ? other : argv[2]);
    if (strcmp(argv[1], "cut") == 0) cut();
    if (strcmp(argv[1], "atomic") == 0) atomic();
    if (strcmp(argv[1], "view") == 0) view();
    if (is_pointer) pointer();
    if (is_some) OK(MPI_File_close(&part));
    OK(MPI_File_close(&file));
    MPI_Comm_free(&some);
    if (is_pointer && rank == 0) CHECK(rename(other, argv[2]) == 0);
    finish();
    return 0;
}
