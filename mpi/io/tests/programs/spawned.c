/* Files written by a job and by the processes it spawns. spawned FILE PART COMMAND...
 *   alone     the children open the file by themselves, while the job has it open
 *   meanwhile the same, and both make the file at the same time
 *   merged    the job and its children open it together as well, the children first
 *   self      one rank of the job has the file open for itself, and another one spawns
 * COMMAND starts the children, with the library or without. They get "child" as the last argument.
 *
 * Piece n of the file is written by writer n modulo WRITERS: two ranks of the job, then two children. */
#define _GNU_SOURCE
#include "common.h"
#include <fcntl.h>
#include <unistd.h>

enum { JOB = 2, CHILDREN = 2, WRITERS = JOB + CHILDREN, PIECE = 100, ROUNDS = 200, BYTES = ROUNDS * WRITERS * PIECE };

static MPI_File file = MPI_FILE_NULL;
static MPI_Comm others = MPI_COMM_NULL, all;
static char found[BYTES + 1];

static char letter(int writer, int round) { return (char)(1 + mixed(17, (uint64_t)writer, (uint64_t)round) % 255); }

static void write_rounds(MPI_File to, int writer, int first, int last) {
    char bytes[PIECE];
    for (int round = first; round < last; ++round) {
        memset(bytes, letter(writer, round), PIECE);
        OK(MPI_File_write_at(to, (MPI_Offset)(round * WRITERS + writer) * PIECE, bytes, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
    }
}

static void expect_all(const char *what) {
    for (int at = 0; at < BYTES; ++at) {
        int piece = at / PIECE, is = found[at], expected = letter(piece % WRITERS, piece / WRITERS);
        if (is != expected) FAIL("%s: byte %d, of writer %d, is %d and not %d", what, at, piece % WRITERS, is, expected);
    }
}

static void read_all(MPI_File from) {
    MPI_Status status;
    int count;
    memset(found, 0, sizeof found);
    OK(MPI_File_read_at(from, 0, found, sizeof found, MPI_BYTE, &status));
    MPI_Get_count(&status, MPI_BYTE, &count);
    EQUAL(count, BYTES);
    expect_all("read");
}

static void open_by(MPI_Comm comm, const char *path, MPI_File *opened_file) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "vgasnet_cache", "enable");
    OK(MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, opened_file));
    MPI_Info_free(&info);
}

/* Whether a handle of another job would be told of this one. */
static int has_claim(const char *path) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = INT64_MAX - 8 - (1 << 16), .l_len = 1 << 16};
    int plain = open(path, O_RDWR);
    CHECK(plain >= 0 && fcntl(plain, F_OFD_GETLK, &lock) == 0);
    close(plain);
    return lock.l_type != F_UNLCK;
}

static void settle_both(void) {
    if (file != MPI_FILE_NULL) OK(MPI_File_sync(file));
    MPI_Barrier(all);
    if (file != MPI_FILE_NULL) OK(MPI_File_sync(file));
}

static void close_both(int is_child) {
    for (int turn = 0; turn < 2; ++turn) {
        if (turn == is_child && file != MPI_FILE_NULL) OK(MPI_File_close(&file));
        MPI_Barrier(all);
    }
}

/* Both sides. `first` rounds are written already. */
static void write_and_read(const char *path, const char *part, int is_child, int writer, int first) {
    MPI_File both;
    if (file != MPI_FILE_NULL) write_rounds(file, writer, first, ROUNDS / 2);
    if (strcmp(part, "merged") == 0) {
        open_by(all, path, &both);
        write_rounds(both, writer, ROUNDS / 2, ROUNDS);
        OK(MPI_File_sync(both));
        settle_both();
        OK(MPI_File_sync(both));
        read_all(both);
        OK(MPI_File_close(&file));
        MPI_Barrier(all);
        CHECK(!is_expected() || is_child || has_claim(path));
        MPI_Barrier(all);
        OK(MPI_File_close(&both));
    } else if (file != MPI_FILE_NULL) {
        write_rounds(file, writer, ROUNDS / 2, ROUNDS);
    }
    settle_both();
    if (file != MPI_FILE_NULL) {
        read_all(file);
        CHECK(!is_expected() || is_child || !is_cached(file));
    }
    close_both(is_child);
}

static void check_file(const char *path) {
    FILE *plain = fopen(path, "rb");
    CHECK(plain != NULL);
    EQUAL(fread(found, 1, sizeof found, plain), BYTES);
    fclose(plain);
    expect_all("at the end");
}

static void be_child(const char *path, const char *part) {
    MPI_Comm_get_parent(&others);
    MPI_Intercomm_merge(others, strcmp(part, "merged") != 0, &all);
    open_by(MPI_COMM_WORLD, path, &file);
    write_and_read(path, part, 1, JOB + rank, 0);
}

/* Returns 0 if this MPI cannot spawn. */
static int spawn(char **command, char **arguments, MPI_Comm by) {
    char *argv[16];
    int count = 0, code;
    for (char **word = command + 1; *word != NULL && count < 8; ++word) argv[count++] = *word;
    for (char **word = arguments; word < command; ++word) argv[count++] = *word;
    argv[count++] = "child", argv[count] = NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(by, MPI_ERRORS_RETURN);
    code = MPI_Comm_spawn(command[0], argv, CHILDREN, MPI_INFO_NULL, 0, by, &others, MPI_ERRCODES_IGNORE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    return code == MPI_SUCCESS;
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    CHECK(argc >= 4);
    const char *path = argv[1], *part = argv[2];
    if (strcmp(argv[argc - 1], "child") == 0) {
        be_child(path, part);
        MPI_Comm_disconnect(&others);
        MPI_Finalize();
        return 0;
    }
    int is_self = strcmp(part, "self") == 0, is_meanwhile = strcmp(part, "meanwhile") == 0, first = is_meanwhile ? 0 : ROUNDS / 4;
    CHECK(ranks == JOB);
    if (!is_meanwhile && (!is_self || rank == 1)) {
        open_by(is_self ? MPI_COMM_SELF : MPI_COMM_WORLD, path, &file);
        CHECK(!is_expected() || is_cached(file));
        write_rounds(file, rank, 0, first);
        /* The other rank's pieces, as it has no handle. */
        if (is_self) write_rounds(file, 0, 0, ROUNDS);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_self) {
        /* One rank spawns. The other one has been left out, and meets the children by the file only. */
        MPI_Comm own;
        int can = 1;
        MPI_Comm_dup(MPI_COMM_SELF, &own);
        if (rank == 0) can = spawn(argv + 3, argv, own);
        MPI_Bcast(&can, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (!can) return puts("this MPI cannot spawn"), MPI_Finalize(), 0;
        if (rank == 0) {
            MPI_Intercomm_merge(others, 0, &all);
            MPI_Barrier(MPI_COMM_WORLD);
            write_and_read(path, part, 0, 0, 0);
        } else {
            write_rounds(file, 1, first, ROUNDS);
            OK(MPI_File_sync(file));
            MPI_Barrier(MPI_COMM_WORLD);
            CHECK(!is_expected() || !is_cached(file));
            OK(MPI_File_close(&file));
        }
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        if (!spawn(argv + 3, argv, MPI_COMM_WORLD)) return puts("this MPI cannot spawn"), MPI_Finalize(), 0;
        MPI_Intercomm_merge(others, strcmp(part, "merged") == 0, &all);
        if (is_meanwhile) open_by(MPI_COMM_WORLD, path, &file);
        write_and_read(path, part, 0, rank, first);
    }
    if (rank == 0) check_file(path);
    if (others != MPI_COMM_NULL) MPI_Comm_disconnect(&others);
    finish();
    return 0;
}
