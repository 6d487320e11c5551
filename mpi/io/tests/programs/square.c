/* Several handles of one file: every pair of (hint, communicator, name, mode), in any order of opens, writes, syncs,
 * new sizes and closes. Each write has its own bytes, next to bytes of others, so that at the end the file has all of
 * them. In every fifth round there is no file before, and every handle may make it. square DIRECTORY SEED FIRST ROUNDS
 *
 * A round is replayed by its number: square DIRECTORY SEED ROUND 1 */
#include "common.h"
#include <sys/stat.h>
#include <unistd.h>

enum { HINTS = 3, COMMS = 6, NAMES = 4, MODES = 4, KINDS = HINTS * COMMS * MODES, HANDLES = 3, STEPS = 24, BYTES_MAX = 1 << 18, SEQUENTIAL = 3 };

static const char *const hints[HINTS] = {NULL, "enable", "disable"};
static const char *const names[NAMES] = {"file", "hard", "soft", NULL};
static MPI_Comm comms[COMMS];
static char whole_path[4096];

/* The expected file. All ranks know it, since all know the plan. */
static char expected[BYTES_MAX], found[BYTES_MAX];
static long end, cursor, ordered;
static int has_sequential, is_absent;

static uint64_t state;
static unsigned chosen(unsigned below) {
    state = mixed(state, 7, 11);
    return (unsigned)(state >> 20) % below;
}

static struct handle {
    MPI_File file;
    int is_open, kind, comm, mode, members, first;
} handles[HANDLES];

static int is_mine(const struct handle *handle) { return handle->is_open && comms[handle->comm] != MPI_COMM_NULL; }

/* The ranks of a communicator: all, one, and parts that overlap or do not. */
static int has(int comm, int who) {
    switch (comm) {
    case 0: return 1;
    case 1: return who == 0;
    case 2: return who == ranks - 1;
    case 3: return who < (ranks + 1) / 2;
    case 4: return who >= ranks / 2;
    default: return who != ranks / 2 || ranks == 1;
    }
}

static void open_one(struct handle *handle, int kind) {
    static const int modes[MODES] = {MPI_MODE_RDWR, MPI_MODE_WRONLY, MPI_MODE_RDONLY, MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL};
    const char *name = names[chosen(NAMES)];
    MPI_Info info = MPI_INFO_NULL;
    handle->kind = kind, handle->comm = kind / HINTS % COMMS, handle->mode = kind / HINTS / COMMS;
    if (handle->mode == SEQUENTIAL && has_sequential++) handle->mode = 0;
    if (handle->mode == 2 && is_absent) handle->mode = 0;
    if (name == names[1] && is_absent) name = names[0];
    handle->is_open = 1, handle->members = 0, handle->first = -1;
    for (int who = 0; who < ranks; ++who) {
        if (has(handle->comm, who) && handle->members++ == 0) handle->first = who;
    }
    if (!is_mine(handle)) return;
    if (hints[kind % HINTS] != NULL) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "vgasnet_cache", (char *)hints[kind % HINTS]);
    }
    OK(MPI_File_open(comms[handle->comm], name != NULL ? name : whole_path, modes[handle->mode] | (is_absent ? MPI_MODE_CREATE : 0), info, &handle->file));
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
}

/* Each rank of the handle writes its own bytes. */
static void write_some(struct handle *handle, int step) {
    int how = (int)chosen(5), each = 1 + (int)chosen(chosen(4) == 0 ? 5000 : 60), place = 0;
    long at = cursor;
    char bytes[5001];
    if (handle->mode == 2) return;
    if (handle->mode == SEQUENTIAL) {
        if (ordered + (long)each * handle->members > 2000) return;
        at = ordered, ordered += (long)each * handle->members;
    } else {
        if (cursor + (long)each * handle->members > BYTES_MAX) return;
        cursor += (long)each * handle->members;
    }
    for (int who = 0; who < ranks; ++who) {
        if (!has(handle->comm, who)) continue;
        for (int byte = 0; byte < each; ++byte) expected[at + (long)each * place + byte] = (char)(1 + mixed((uint64_t)step, (uint64_t)who, (uint64_t)byte) % 255);
        if (who == rank) {
            long mine = at + (long)each * place;
            MPI_Request request;
            memcpy(bytes, expected + mine, (size_t)each);
            if (handle->mode == SEQUENTIAL) OK(MPI_File_write_ordered(handle->file, bytes, each, MPI_BYTE, MPI_STATUS_IGNORE));
            else if (how == 0) OK(MPI_File_write_at(handle->file, mine, bytes, each, MPI_BYTE, MPI_STATUS_IGNORE));
            else if (how == 1) OK(MPI_File_write_at_all(handle->file, mine, bytes, each, MPI_BYTE, MPI_STATUS_IGNORE));
            else if (how == 2) {
                OK(MPI_File_iwrite_at(handle->file, mine, bytes, each, MPI_BYTE, &request));
                OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            } else if (how == 3) {
                OK(MPI_File_seek(handle->file, mine, MPI_SEEK_SET));
                OK(MPI_File_write(handle->file, bytes, each, MPI_BYTE, MPI_STATUS_IGNORE));
            } else {
                OK(MPI_File_write_at_all_begin(handle->file, mine, bytes, each, MPI_BYTE));
                OK(MPI_File_write_at_all_end(handle->file, bytes, MPI_STATUS_IGNORE));
            }
        }
        ++place;
    }
    if (at + (long)each * handle->members > end) end = at + (long)each * handle->members;
}

/* ROMIO refuses it for read-only files. */
static void sync_one(struct handle *handle) {
    int code = is_mine(handle) ? MPI_File_sync(handle->file) : MPI_SUCCESS;
    if (handle->mode != 2) EQUAL(code, MPI_SUCCESS);
}

static void sync_all(void) {
    for (int one = 0; one < HANDLES; ++one) sync_one(&handles[one]);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void expect_same(const char *what, long bytes) {
    for (long at = 0; at < bytes; ++at) {
        if (found[at] != expected[at]) FAIL("%s: byte %ld of %ld is %d, not %d", what, at, bytes, found[at], expected[at]);
    }
}

/* After sync, barrier and sync each handle reads all ranks' writes. */
static void read_all(void) {
    MPI_Offset size;
    sync_all();
    sync_all();
    for (int one = 0; one < HANDLES; ++one) {
        MPI_Status status;
        int count;
        if (!is_mine(&handles[one]) || handles[one].mode == 1 || handles[one].mode == SEQUENTIAL) continue;
        OK(MPI_File_get_size(handles[one].file, &size));
        EQUAL(size, end);
        memset(found, -1, sizeof found);
        OK(MPI_File_read_at(handles[one].file, 0, found, (int)end, MPI_BYTE, &status));
        MPI_Get_count(&status, MPI_BYTE, &count);
        EQUAL(count, end);
        expect_same("read", end);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void make_longer(struct handle *handle) {
    long more = cursor + 1 + (long)chosen(9000);
    if (more > BYTES_MAX || handle->mode == 2 || handle->mode == SEQUENTIAL) return;
    cursor = more;
    if (cursor > end) end = cursor;
    sync_all();
    if (is_mine(handle)) OK(MPI_File_set_size(handle->file, end));
    sync_all();
}

static void close_one(struct handle *handle) {
    if (is_mine(handle)) OK(MPI_File_close(&handle->file));
    handle->is_open = 0;
}

static void check(void) {
    struct stat about;
    FILE *plain;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        CHECK(stat("file", &about) == 0);
        EQUAL(about.st_size, end);
        plain = fopen("file", "rb");
        CHECK(plain != NULL);
        EQUAL(fread(found, 1, (size_t)end, plain), end);
        fclose(plain);
        expect_same("at the end", end);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void play(uint64_t seed, int round) {
    state = mixed(seed, (uint64_t)round, 1);
    memset(expected, 0, sizeof expected);
    end = ordered = 0, has_sequential = 0, cursor = 2000, is_absent = round % 5 == 3;
    if (rank == 0) {
        FILE *made;
        unlink("file"), unlink("hard"), unlink("soft");
        if (!is_absent) CHECK((made = fopen("file", "wb")) != NULL && fclose(made) == 0 && link("file", "hard") == 0);
        CHECK(symlink("file", "soft") == 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    /* Consecutive rounds cover all pairs. */
    open_one(&handles[0], round % KINDS);
    for (int step = 1; step < STEPS; ++step) {
        struct handle *one = &handles[step == 1 ? 1 : chosen(HANDLES)];
        unsigned what = chosen(8);
        if (step == 1) open_one(one, round / KINDS % KINDS);
        else if (!one->is_open) open_one(one, (int)chosen(KINDS));
        else if (what < 4) write_some(one, step);
        else if (what == 4) sync_one(one);
        else if (what == 5) make_longer(one);
        else if (what == 6) read_all();
        else close_one(one);
        if (chosen(3) == 0) MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int one = 0; one < HANDLES; ++one) {
        if (handles[one].is_open) close_one(&handles[one]);
    }
    check();
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    CHECK(argc == 5 && chdir(argv[1]) == 0 && getcwd(whole_path, sizeof whole_path - 8) != NULL);
    strcat(whole_path, "/file");
    for (int comm = 0; comm < COMMS; ++comm) MPI_Comm_split(MPI_COMM_WORLD, has(comm, rank) ? 0 : MPI_UNDEFINED, rank, &comms[comm]);
    for (int round = atoi(argv[3]), last = round + atoi(argv[4]); round < last; ++round) {
        if (rank == 0 && getenv("SAY_ROUNDS")) fprintf(stderr, "round %d\n", round);
        play(strtoull(argv[2], NULL, 0), round);
    }
    for (int comm = 0; comm < COMMS; ++comm) if (comms[comm] != MPI_COMM_NULL) MPI_Comm_free(&comms[comm]);
    finish();
    return 0;
}
