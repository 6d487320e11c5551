/* MPI's answers about an open file and its pointers: sizes, positions, the end, modes, atomicity, shared pointers.
 * ways FILE */
#include "common.h"

static const char *path;

static MPI_Offset size_of(MPI_File file) {
    MPI_Offset size;
    OK(MPI_File_get_size(file, &size));
    return size;
}

static MPI_Offset position_of(MPI_File file) {
    MPI_Offset position;
    OK(MPI_File_get_position(file, &position));
    return position;
}

static MPI_Offset shared_position_of(MPI_File file) {
    MPI_Offset position;
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_get_position_shared(file, &position));
    MPI_Barrier(MPI_COMM_WORLD);
    return position;
}

static int count_of(MPI_Status *status, MPI_Datatype type) {
    int count;
    MPI_Get_count(status, type, &count);
    return count;
}

static void sizes(void) {
    MPI_File file = opened(path, MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Status status;
    char bytes[100];
    memset(bytes, 'a' + rank, sizeof bytes);
    if (rank == ranks - 1) OK(MPI_File_write_at(file, 1000, bytes, 100, MPI_BYTE, &status)), EQUAL(count_of(&status, MPI_BYTE), 100);
    MPI_Barrier(MPI_COMM_WORLD);
    EQUAL(size_of(file), 1100);
    OK(MPI_File_read_at(file, 1050, bytes, 100, MPI_BYTE, &status));
    EQUAL(count_of(&status, MPI_BYTE), 50);
    EQUAL(bytes[0], 'a' + ranks - 1);
    OK(MPI_File_read_at(file, 999, bytes, 2, MPI_BYTE, &status));
    EQUAL(bytes[0], 0), EQUAL(bytes[1], 'a' + ranks - 1);
    OK(MPI_File_read_at(file, 5000, bytes, 10, MPI_BYTE, &status));
    EQUAL(count_of(&status, MPI_BYTE), 0);
    OK(MPI_File_read_at(file, 0, bytes, 0, MPI_BYTE, &status));
    EQUAL(count_of(&status, MPI_BYTE), 0);
    OK(MPI_File_read_at(file, 0, bytes, 10, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_set_size(file, 1020));
    EQUAL(size_of(file), 1020);
    OK(MPI_File_set_size(file, 70000));
    OK(MPI_File_read_at(file, 1010, bytes, 20, MPI_BYTE, &status));
    EQUAL(bytes[9], 'a' + ranks - 1), EQUAL(bytes[10], 0);
    OK(MPI_File_preallocate(file, 50000));
    EQUAL(size_of(file), 70000);
    OK(MPI_File_preallocate(file, 90000));
    EQUAL(size_of(file), 90000);
    OK(MPI_File_read_at(file, 1010, bytes, 10, MPI_BYTE, &status));
    EQUAL(bytes[9], 'a' + ranks - 1);
    OK(MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL);
}

static void pointers(void) {
    MPI_File file = opened(path, MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Datatype tile;
    MPI_Offset bytes;
    int numbers[6] = {rank, rank, rank, rank, rank, rank};
    OK(MPI_File_set_size(file, 4 * 100));
    MPI_Type_vector(2, 2, 5, MPI_INT, &tile); /* ints 0, 1, 5, 6 of 7 */
    MPI_Type_commit(&tile);
    OK(MPI_File_set_view(file, 8, MPI_INT, tile, "native", MPI_INFO_NULL));
    EQUAL(position_of(file), 0);
    OK(MPI_File_seek(file, 3, MPI_SEEK_SET));
    OK(MPI_File_seek(file, 2, MPI_SEEK_CUR));
    EQUAL(position_of(file), 5);
    OK(MPI_File_get_byte_offset(file, 6, &bytes));
    EQUAL(bytes, 8 + 28 + 20);
    OK(MPI_File_seek(file, -1, MPI_SEEK_END));
    EQUAL(position_of(file), 98 / 7 * 4 - 1);
    OK(MPI_File_seek(file, 1, MPI_SEEK_SET));
    OK(MPI_File_write(file, numbers, 6, MPI_INT, MPI_STATUS_IGNORE));
    EQUAL(position_of(file), 7);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    EQUAL(position_of(file), 0);
    EQUAL(shared_position_of(file), 0);
    OK(MPI_File_write_shared(file, numbers, 2, MPI_INT, MPI_STATUS_IGNORE));
    EQUAL(shared_position_of(file), 8 * ranks);
    OK(MPI_File_write_ordered(file, numbers, rank + 1, MPI_INT, MPI_STATUS_IGNORE));
    EQUAL(shared_position_of(file), 8 * ranks + 4 * ranks * (ranks + 1) / 2);
    settle(file);
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read_shared(file, numbers, 2, MPI_INT, MPI_STATUS_IGNORE));
    EQUAL(numbers[0], numbers[1]);
    EQUAL(shared_position_of(file), 8 * ranks);
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_CUR));
    OK(MPI_File_read_ordered(file, numbers, rank + 1, MPI_INT, MPI_STATUS_IGNORE));
    for (int i = 0; i <= rank; ++i) EQUAL(numbers[i < 6 ? i : 5], rank);
    OK(MPI_File_seek_shared(file, -4, MPI_SEEK_END));
    EQUAL(shared_position_of(file), 396);
    MPI_Type_free(&tile);
    OK(MPI_File_close(&file));
    /* In append mode both pointers of a file are at its end. */
    file = opened(path, MPI_MODE_RDWR | MPI_MODE_APPEND);
    EQUAL(position_of(file), 400);
    EQUAL(shared_position_of(file), 400);
    OK(MPI_File_close(&file));
}

/* In mode atomic no rank reads a part of another's write call. */
static void atomicity(void) {
    MPI_File file = opened(path, MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Datatype tile;
    enum { PIECES = 50, TIMES = 20 };
    int flag = 1, numbers[PIECES];
    OK(MPI_File_get_atomicity(file, &flag));
    EQUAL(flag, 0);
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_get_atomicity(file, &flag));
    EQUAL(flag, 1);
    MPI_Type_vector(PIECES, 1, 3000, MPI_INT, &tile);
    MPI_Type_commit(&tile);
    OK(MPI_File_set_view(file, 0, MPI_INT, tile, "native", MPI_INFO_NULL));
    for (int i = 0; i < TIMES; ++i) {
        for (int k = 0; k < PIECES; ++k) numbers[k] = 1 + rank + 100 * i;
        OK(MPI_File_write_at(file, 0, numbers, PIECES, MPI_INT, MPI_STATUS_IGNORE));
        OK(MPI_File_read_at(file, 0, numbers, PIECES, MPI_INT, MPI_STATUS_IGNORE));
        for (int k = 1; k < PIECES; ++k) EQUAL(numbers[k], numbers[0]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_set_atomicity(file, 0));
    MPI_Type_free(&tile);
    OK(MPI_File_close(&file));
}

/* Files of some ranks, several at a time, deleted on close. */
static void groups(void) {
    MPI_Comm half;
    MPI_File mine, ours, both;
    MPI_Offset size;
    char name[4096];
    int number = rank;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    snprintf(name, sizeof name, "%s.half%d", path, rank % 2);
    OK(MPI_File_open(half, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &ours));
    EQUAL(is_cached(ours), is_expected());
    both = opened(path, MPI_MODE_CREATE | MPI_MODE_RDWR);
    snprintf(name, sizeof name, "%s.own%d", path, rank);
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &mine));
    /* Patterns do not apply to files opened by one rank of several alone. */
    EQUAL(is_cached(mine), is_expected() && ranks == 1);
    OK(MPI_File_write(mine, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_write_at(both, 4 * rank, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_write_ordered(ours, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    settle(both);
    OK(MPI_File_get_size(ours, &size));
    MPI_Comm_size(half, &number);
    EQUAL(size, 4 * number);
    OK(MPI_File_read_at(ours, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    EQUAL(number, (ranks - 1) - ((ranks - 1) % 2 != rank % 2));
    OK(MPI_File_read_at(both, 4 * (ranks - 1 - rank), &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    EQUAL(number, ranks - 1 - rank);
    OK(MPI_File_close(&mine));
    OK(MPI_File_delete(name, MPI_INFO_NULL));
    OK(MPI_File_close(&ours));
    OK(MPI_File_close(&both));
    snprintf(name, sizeof name, "%s.half%d", path, rank % 2);
    EQUAL(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &mine) == MPI_SUCCESS, 0);
    MPI_Comm_free(&half);
}

/* Other programs see synced bytes in the file, and a large file does not change without writes. */
static void others(void) {
    MPI_File file = opened(path, MPI_MODE_CREATE | MPI_MODE_RDWR);
    const MPI_Offset far = ((MPI_Offset)5 << 30) + 12345;
    long long number = 1000 + rank;
    OK(MPI_File_write_at_all(file, far + 8 * rank, &number, 1, MPI_LONG_LONG, MPI_STATUS_IGNORE));
    settle(file);
    if (rank == 0) {
        FILE *plain = fopen(path, "rb");
        CHECK(plain != NULL && fseeko(plain, far + 8 * (ranks - 1), SEEK_SET) == 0);
        EQUAL(fread(&number, 8, 1, plain), 1);
        EQUAL(number, 1000 + ranks - 1);
        EQUAL(fread(&number, 1, 1, plain), 0);
        fclose(plain);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_close(&file));
}

/* Cases the library leaves to MPI, which has the file open, too. */
static void asked(void) {
    MPI_File file = opened(path, MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Datatype tile, unit_is, tile_is;
    MPI_Group group, world;
    MPI_Offset displacement;
    MPI_Aint extent;
    MPI_Info info;
    char representation[MPI_MAX_DATAREP_STRING];
    int mode, same, numbers[4] = {rank, rank, rank, rank};
    OK(MPI_File_get_amode(file, &mode));
    EQUAL(mode, MPI_MODE_CREATE | MPI_MODE_RDWR);
    OK(MPI_File_get_group(file, &group));
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_compare(group, world, &same);
    EQUAL(same, MPI_IDENT);
    MPI_Group_free(&group), MPI_Group_free(&world);
    OK(MPI_File_get_type_extent(file, MPI_DOUBLE, &extent));
    EQUAL(extent, 8);
    MPI_Type_vector(2, 1, 3, MPI_INT, &tile);
    MPI_Type_commit(&tile);
    OK(MPI_File_set_view(file, 8 + 64 * rank, MPI_INT, tile, "native", MPI_INFO_NULL));
    OK(MPI_File_get_view(file, &displacement, &unit_is, &tile_is, representation));
    EQUAL(displacement, 8 + 64 * rank);
    CHECK(unit_is == MPI_INT && strcmp(representation, "native") == 0);
    MPI_Type_free(&tile_is);
    /* An info set later neither ends caching nor begins it. */
    MPI_Info_create(&info);
    MPI_Info_set(info, "vgasnet_cache", is_expected() ? "disable" : "enable");
    OK(MPI_File_set_info(file, info));
    MPI_Info_free(&info);
    EQUAL(is_cached(file), is_expected());
    OK(MPI_File_write_all(file, numbers, 4, MPI_INT, MPI_STATUS_IGNORE));
    settle(file);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 8 + 64 * (ranks - 1) + 16, numbers, 4, MPI_BYTE, MPI_STATUS_IGNORE));
    EQUAL(numbers[0], ranks - 1);
    MPI_Type_free(&tile);
    OK(MPI_File_close(&file));
}

/* Representations unknown to the library are MPI's. */
static void representations(void) {
    MPI_File file = opened(path, MPI_MODE_CREATE | MPI_MODE_RDWR);
    int number = 5 + rank;
    OK(MPI_File_write_at(file, 4 * rank, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    settle(file);
    /* Open MPI has only the native one. */
    if (MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "internal", MPI_INFO_NULL) != MPI_SUCCESS)
        OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "NATIVE", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, ranks - 1 - rank, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    EQUAL(number, 5 + ranks - 1 - rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL) == MPI_SUCCESS) {
        EQUAL(is_cached(file), 0);
        OK(MPI_File_read_at(file, rank, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
        CHECK(number == 5 + rank || number == (5 + rank) << 24);
    }
    MPI_File_close(&file);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    CHECK(argc == 3);
    path = argv[1];
    if (strcmp(argv[2], "sizes") == 0) sizes();
    if (strcmp(argv[2], "pointers") == 0) pointers();
    if (strcmp(argv[2], "atomicity") == 0) atomicity();
    if (strcmp(argv[2], "groups") == 0) groups();
    if (strcmp(argv[2], "others") == 0) others();
    if (strcmp(argv[2], "asked") == 0) asked();
    if (strcmp(argv[2], "representations") == 0) representations();
    finish();
    return 0;
}
