/* Random views, datatypes and accesses, from a seed. Bytes read and answers of calls go into a printed number. The
 * number and the file are the same with and without the library. mix FILE SEED ROUNDS */
#include "common.h"

enum { REGION = 1 << 20, ELEMENTS_MAX = 3000 };

static uint64_t seed, number, hash = 14695981039346656037u;

/* One random number common to all ranks, and one for each rank. */
static uint64_t common(uint64_t limit) { return mixed(seed, 1, number++) % limit; }
static uint64_t own(uint64_t limit) { return mixed(seed, 1000 + rank, number++) % limit; }

static void note(const void *bytes, size_t len) {
    for (size_t i = 0; i < len; ++i) hash = (hash ^ ((const unsigned char *)bytes)[i]) * 1099511628211u;
}

static void note_number(long long value) { note(&value, sizeof value); }

struct view {
    MPI_Datatype unit, tile;
    MPI_Offset displacement;
};

/* Views with disjoint bytes on all ranks. */
static struct view view_of(int kind) {
    struct view view = {MPI_INT, MPI_INT, (MPI_Offset)rank * REGION};
    int b = 1 + common(40), i, places[5], lens[5];
    MPI_Datatype other;
    switch (kind) {
    case 0: view.unit = view.tile = MPI_BYTE; break;
    case 1:
        MPI_Type_vector(1, b, b, MPI_INT, &other);
        MPI_Type_create_resized(other, 0, (MPI_Aint)b * ranks * 4, &view.tile);
        MPI_Type_free(&other);
        view.displacement = (MPI_Offset)rank * b * 4;
        break;
    case 2:
        for (i = 0; i < 5; ++i) places[i] = (i == 0 ? 0 : places[i - 1] + lens[i - 1]) + own(7), lens[i] = 1 + own(9);
        MPI_Type_indexed(5, lens, places, MPI_INT, &view.tile);
        break;
    case 3: {
        int sizes[2] = {1 + common(8), b * ranks}, parts[2], starts[2] = {0, b * rank}, order = common(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
        parts[0] = sizes[0], parts[1] = b;
        MPI_Type_create_subarray(2, sizes, parts, starts, order, MPI_DOUBLE, &view.tile);
        view.unit = MPI_DOUBLE;
        view.displacement = 24;
        break;
    }
    case 4: {
        int grid[2] = {1, ranks}, sizes[2] = {3 + common(9), 5 + common(20)}, order = common(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
        int how[2] = {MPI_DISTRIBUTE_NONE, common(2) ? MPI_DISTRIBUTE_CYCLIC : MPI_DISTRIBUTE_BLOCK};
        int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
        if (how[1] == MPI_DISTRIBUTE_CYCLIC) arguments[1] = 1 + common(3), sizes[1] += 3 * ranks;
        else sizes[1] = ranks * (2 + common(5));
        MPI_Type_create_darray(ranks, rank, 2, sizes, how, arguments, grid, order, MPI_INT, &view.tile);
        view.displacement = 8;
        break;
    }
    case 5: {
        int counts[2] = {1, 3};
        MPI_Aint at[2] = {0, 8};
        MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE};
        MPI_Type_create_struct(2, counts, at, types, &other);
        MPI_Type_create_resized(other, 0, 40, &view.unit);
        MPI_Type_free(&other);
        MPI_Type_contiguous(3, view.unit, &view.tile);
        break;
    }
    default:
        MPI_Type_create_hvector(2 + common(3), 1 + common(4), 64, MPI_DOUBLE, &other);
        MPI_Type_dup(other, &view.tile);
        MPI_Type_free(&other);
        view.unit = MPI_DOUBLE;
    }
    if (view.tile != view.unit) MPI_Type_commit(&view.tile);
    if (kind == 5) MPI_Type_commit(&view.unit);
    return view;
}

static void forget(struct view *view, int kind) {
    if (view->tile != view->unit) MPI_Type_free(&view->tile);
    if (kind == 5) MPI_Type_free(&view->unit);
}

/* Memory for some units: its datatype and count, and the bytes it may touch. */
struct memory {
    MPI_Datatype type;
    int count, is_made;
    unsigned char *bytes, *base;
    size_t len;
};

static struct memory memory_for(MPI_Datatype unit, int units, int way) {
    struct memory memory = {unit, units, 0, NULL, NULL, 0};
    MPI_Aint low, extent;
    MPI_Type_get_extent(unit, &low, &extent);
    memory.len = (size_t)extent * (units + 2) * 3 + 64;
    memory.bytes = malloc(memory.len);
    memory.base = memory.bytes + extent;
    if (way == 1 && units > 0) {
        MPI_Type_vector(units, 1, 2, unit, &memory.type);
    } else if (way == 2 && units > 0) {
        /* The second half lies before the first. */
        int half = units / 2, lens[2] = {units - half, half}, places[2] = {half, 0};
        MPI_Type_indexed(2, lens, places, unit, &memory.type);
    } else if (way == 3 && units > 0) {
        MPI_Datatype one;
        MPI_Aint at[1] = {-extent};
        MPI_Type_create_hindexed_block(1, 1, at, unit, &one);
        MPI_Type_create_resized(one, -extent, 3 * extent, &memory.type);
        MPI_Type_free(&one);
        memory.is_made = 1;
        MPI_Type_commit(&memory.type);
        return memory;
    } else {
        return memory;
    }
    MPI_Type_commit(&memory.type);
    memory.is_made = 1;
    memory.count = 1;
    return memory;
}

static void free_memory(struct memory *memory) {
    if (memory->is_made) MPI_Type_free(&memory->type);
    free(memory->bytes);
}

/* Collective accesses come first: all ranks use the same one. */
enum way { AT_ALL, ALL, IAT_ALL, IALL, SPLIT_AT, SPLIT, ORDERED, SPLIT_ORDERED, AT, INDIVIDUAL, IAT, I, SHARED_I, WAYS };

#define ACCESS(rw)                                                                                                     \
    static void rw##_by(MPI_File f, enum way way, MPI_Offset at, struct memory *m, MPI_Status *status) {               \
        MPI_Request request;                                                                                           \
        void *b = m->base;                                                                                             \
        int n = m->count;                                                                                              \
        MPI_Datatype t = m->type;                                                                                      \
        switch (way) {                                                                                                 \
        case AT_ALL: OK(MPI_File_##rw##_at_all(f, at, b, n, t, status)); break;                                        \
        case AT: OK(MPI_File_##rw##_at(f, at, b, n, t, status)); break;                                                \
        case IAT_ALL: OK(MPI_File_i##rw##_at_all(f, at, b, n, t, &request)); OK(MPI_Wait(&request, status)); break;    \
        case IAT: OK(MPI_File_i##rw##_at(f, at, b, n, t, &request)); OK(MPI_Wait(&request, status)); break;            \
        case SPLIT_AT:                                                                                                 \
            OK(MPI_File_##rw##_at_all_begin(f, at, b, n, t));                                                          \
            OK(MPI_File_##rw##_at_all_end(f, b, status));                                                              \
            break;                                                                                                     \
        case ORDERED: OK(MPI_File_##rw##_ordered(f, b, n, t, status)); break;                                          \
        case SPLIT_ORDERED:                                                                                            \
            OK(MPI_File_##rw##_ordered_begin(f, b, n, t));                                                             \
            OK(MPI_File_##rw##_ordered_end(f, b, status));                                                             \
            break;                                                                                                     \
        case SHARED_I:                                                                                                 \
            for (int who = 0; who < ranks; ++who) {                                                                    \
                if (who == rank) OK(MPI_File_i##rw##_shared(f, b, n, t, &request)), OK(MPI_Wait(&request, status));    \
                MPI_Barrier(MPI_COMM_WORLD);                                                                           \
            }                                                                                                          \
            break;                                                                                                     \
        default:                                                                                                       \
            OK(MPI_File_seek(f, at, MPI_SEEK_SET));                                                                    \
            if (way == ALL) OK(MPI_File_##rw##_all(f, b, n, t, status));                                               \
            else if (way == IALL) { OK(MPI_File_i##rw##_all(f, b, n, t, &request)); OK(MPI_Wait(&request, status)); }  \
            else if (way == SPLIT) {                                                                                   \
                OK(MPI_File_##rw##_all_begin(f, b, n, t));                                                             \
                OK(MPI_File_##rw##_all_end(f, b, status));                                                             \
            } else if (way == INDIVIDUAL) OK(MPI_File_##rw(f, b, n, t, status));                                       \
            else { OK(MPI_File_i##rw(f, b, n, t, &request)); OK(MPI_Wait(&request, status)); }                         \
        }                                                                                                              \
    }
ACCESS(write)
ACCESS(read)

/* In ordered accesses, and if ranks take turns, the shared pointer gives the place. So ranks with different views
 * have to begin at the same position. */
static int is_ordered(enum way way) { return way == ORDERED || way == SPLIT_ORDERED || way == SHARED_I; }

static void do_writes(MPI_File file, struct view *view, MPI_Offset *end) {
    int times = 1 + common(4);
    for (int i = 0; i < times; ++i) {
        enum way way = common(WAYS);
        int units = own(ELEMENTS_MAX), memory_way = own(4);
        MPI_Offset at = own(500);
        MPI_Status status;
        int count;
        struct memory memory = memory_for(view->unit, units, memory_way);
        for (size_t byte = 0; byte < memory.len; ++byte)
            memory.bytes[byte] = (unsigned char)mixed(seed * 64 + rank, number, byte);
        if (is_ordered(way)) OK(MPI_File_seek_shared(file, common(500), MPI_SEEK_SET));
        write_by(file, way, at, &memory, &status);
        MPI_Get_count(&status, memory.type, &count);
        /* Gaps in memory are not checked, but MPI may return any count for an empty transfer. */
        if (units > 0) note_number(count);
        if (at + units > *end) *end = at + units;
        free_memory(&memory);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void do_reads(MPI_File file, struct view *view, MPI_Offset end) {
    int times = 1 + common(6);
    for (int i = 0; i < times; ++i) {
        enum way way = common(WAYS);
        int units = own(ELEMENTS_MAX), memory_way = own(4), count;
        MPI_Offset at = own(end + 50), position, shared;
        MPI_Status status;
        struct memory memory = memory_for(view->unit, units, memory_way);
        memset(memory.bytes, 7, memory.len);
        if (is_ordered(way)) OK(MPI_File_seek_shared(file, common(500), MPI_SEEK_SET));
        read_by(file, way, at, &memory, &status);
        MPI_Get_elements(&status, view->unit == MPI_BYTE ? MPI_BYTE : memory.type, &count);
        if (units > 0) note_number(count);
        note(memory.bytes, memory.len);
        /* Other ranks move the shared pointer only before and after this. */
        MPI_Barrier(MPI_COMM_WORLD);
        OK(MPI_File_get_position(file, &position));
        OK(MPI_File_get_position_shared(file, &shared));
        MPI_Barrier(MPI_COMM_WORLD);
        note_number(position), note_number(shared);
        free_memory(&memory);
    }
}

int main(int argc, char **argv) {
    MPI_File file;
    MPI_Offset size, bytes;
    int rounds;
    start(&argc, &argv);
    CHECK(argc == 4);
    seed = strtoull(argv[2], NULL, 10), rounds = atoi(argv[3]);
    file = opened(argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR);
    /* Some MPIs leave arbitrary bytes in holes behind the end. */
    OK(MPI_File_set_size(file, (MPI_Offset)REGION * ranks));
    settle(file);
    for (int round = 0; round < rounds; ++round) {
        int kind = common(7);
        MPI_Offset end = 0;
        struct view view = view_of(kind);
        number = 1000 * (round + 1);
        OK(MPI_File_set_view(file, view.displacement, view.unit, view.tile, "native", MPI_INFO_NULL));
        do_writes(file, &view, &end);
        settle(file);
        number = 1000 * (round + 1) + 500;
        OK(MPI_File_get_size(file, &size));
        note_number(size);
        do_reads(file, &view, end);
        OK(MPI_File_get_byte_offset(file, 17, &bytes));
        note_number(bytes);
        MPI_Barrier(MPI_COMM_WORLD);
        forget(&view, kind);
        number = 1000 * (round + 1) + 900;
    }
    OK(MPI_File_close(&file));
    for (int who = 0; who < ranks; ++who) {
        if (who == rank) printf("rank %d: %016llx\n", rank, (unsigned long long)hash), fflush(stdout);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    finish();
    return 0;
}
