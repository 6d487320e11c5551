/* Blocking calls of MPI with buffers in the segment: each has the same effect on all bytes as in ordinary memory. */
#include "check_mpi.h"

static int rank, ranks;
static MPI_Comm world;

/* Datatypes without and with gaps, with data in another order than in memory, and one for reductions with positions. */
enum { DENSE, VECTOR, REORDERED, PADDED, PAIR, TYPES };
static MPI_Datatype types[TYPES], type;
static MPI_Op sum, op;

/* The ints of an element of each int type, and the distance of elements, in bytes. */
static const int ints[TYPES][7] = {{0, -1}, {0, 4, 20, 24, 40, 44, -1}, {28, 0, 4, 12, 16, 20, -1}, {0, -1}, {-1}};
static const int distances[TYPES] = {4, 64, 32, 20, 16};
static int kind, elements;

static void add(void *from, void *to, int *count, MPI_Datatype *its) {
    int i, j;
    (void)its;
    for (i = 0; i < *count; ++i) {
        for (j = 0; ints[kind][j] >= 0; ++j) {
            int at = i * distances[kind] + ints[kind][j], a, b;
            memcpy(&a, (char *)from + at, sizeof a);
            memcpy(&b, (char *)to + at, sizeof b);
            a += b;
            memcpy((char *)to + at, &a, sizeof a);
        }
    }
}

static void make_types(void) {
    int places[3] = {7, 0, 3}, lengths[3] = {1, 2, 3}, i;
    MPI_Datatype vector;
    types[DENSE] = MPI_INT;
    types[PAIR] = MPI_DOUBLE_INT;
    MPI_Type_vector(3, 2, 5, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, 64, &types[VECTOR]);
    MPI_Type_indexed(3, lengths, places, MPI_INT, &types[REORDERED]);
    MPI_Type_create_resized(MPI_INT, -8, 20, &types[PADDED]);
    MPI_Type_free(&vector);
    for (i = VECTOR; i <= PADDED; ++i) MPI_Type_commit(&types[i]);
    MPI_Op_create(add, 1, &sum);
}

/* Elements of a block, if an area has one block for each rank. Calls with blocks of their own use half of them. */
static int share(void) { return elements / ranks; }
static int *counts, *places;

static void messages(char *in, char *out) {
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks, call, turn, size, bytes;
    void *attached, *ordinary = allocate(area);
    MPI_Request request;
    MPI_Type_size(type, &size);
    bytes = elements * size + MPI_BSEND_OVERHEAD;
    attached = allocate((size_t)bytes);
    MPI_Buffer_attach(attached, bytes);
    for (call = 0; call < 3 && ranks > 1; ++call) {
        for (turn = 0; turn < 2; ++turn) {
            /* Rank 0 begins, so that not all ranks wait for a receiver. */
            if (turn == (rank > 0)) {
                if (call == 0) MPI_Send(in, elements, type, next, call, world);
                if (call == 1) MPI_Ssend(in, elements, type, next, call, world);
                if (call == 2) MPI_Bsend(in, elements, type, next, call, world);
            } else {
                MPI_Recv(out, elements, type, before, call, world, MPI_STATUS_IGNORE);
            }
        }
    }
    MPI_Buffer_detach(&attached, &bytes);
    free(attached);
    MPI_Irecv(ordinary, elements * size, MPI_BYTE, before, 9, world, &request);
    MPI_Barrier(world);
    MPI_Rsend(in, elements, type, next, 9, world);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Sendrecv(ordinary, elements * size, MPI_BYTE, next, 8, out, elements, type, before, 8, world, MPI_STATUS_IGNORE);
    free(ordinary);
}

static void exchanges(char *in, char *out) {
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks, count, half = elements / 2, size, bytes;
    void *ordinary = allocate(area);
    MPI_Status status;
    MPI_Message message;
    MPI_Request request;
    MPI_Type_size(type, &size);
    /* The length ends within an element of several parts. */
    bytes = half * size + (kind == VECTOR || kind == REORDERED ? size - 4 : 0);
    MPI_Sendrecv(in, elements, type, next, 1, out, elements, type, before, 1, world, MPI_STATUS_IGNORE);
    /* Shorter than the room for it. The other bytes stay unchanged. */
    MPI_Sendrecv(in, half, type, before, 2, out, elements, type, next, 2, world, &status);
    MPI_Get_count(&status, type, &count);
    CHECK_EQ(count, half);
    CHECK_EQ(status.MPI_SOURCE, next);
    MPI_Sendrecv_replace(out, elements, type, next, 3, before, 3, world, &status);
    MPI_Get_count(&status, type, &count);
    CHECK_EQ(count, elements);
    MPI_Sendrecv(in, half, type, MPI_PROC_NULL, 2, out, elements, type, MPI_PROC_NULL, 2, world, MPI_STATUS_IGNORE);
    MPI_Isend(ordinary, bytes, MPI_BYTE, next, 4, world, &request);
    MPI_Mprobe(before, 4, world, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(out, elements, type, &message, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK_EQ(count, bytes);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(ordinary);
}

static void truncated(char *in, char *out) {
    MPI_Comm strict;
    int class, error;
    MPI_Request request;
    void *ordinary = allocate(area);
    (void)in;
    MPI_Comm_dup(MPI_COMM_SELF, &strict);
    MPI_Comm_set_errhandler(strict, MPI_ERRORS_RETURN);
    MPI_Isend(ordinary, 8, MPI_INT, 0, 1, strict, &request);
    error = MPI_Recv(out, 4, MPI_INT, 0, 1, strict, MPI_STATUS_IGNORE);
    MPI_Error_class(error, &class);
    CHECK_EQ(class, MPI_ERR_TRUNCATE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    /* MPI decides about the message. */
    MPI_Isend(ordinary, 4, MPI_INT, 0, 1, strict, &request);
    MPI_Recv(out, 4, MPI_INT, 0, 1, strict, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&strict);
    free(ordinary);
}

static void one_to_all(char *in, char *out) {
    int root;
    for (root = 0; root < ranks; root += ranks > 2 ? 2 : 1) {
        MPI_Bcast(rank == root ? in : out, elements, type, root, world);
        MPI_Scatter(in, share(), type, out, share(), type, root, world);
        MPI_Scatterv(in, counts, places, type, out, counts[rank], type, root, world);
        MPI_Gather(in, share(), type, out, share(), type, root, world);
        MPI_Gatherv(in, counts[rank], type, out, counts, places, type, root, world);
        MPI_Scatter(in, share(), type, rank == root ? MPI_IN_PLACE : out, share(), type, root, world);
        MPI_Gather(rank == root ? MPI_IN_PLACE : in, share(), type, out, share(), type, root, world);
        MPI_Gatherv(rank == root ? MPI_IN_PLACE : in, counts[rank], type, out, counts, places, type, root, world);
    }
}

static void all_to_all(char *in, char *out) {
    int *bytes = (int *)allocate((size_t)ranks * sizeof *bytes), i;
    MPI_Datatype *each = (MPI_Datatype *)allocate((size_t)ranks * sizeof *each);
    int *same = (int *)allocate((size_t)ranks * sizeof *same);
    for (i = 0; i < ranks; ++i) bytes[i] = places[i] * distances[kind], each[i] = type, same[i] = counts[rank];
    MPI_Allgather(in, share(), type, out, share(), type, world);
    MPI_Allgatherv(in, counts[rank], type, out, counts, places, type, world);
    MPI_Alltoall(in, share(), type, out, share(), type, world);
    MPI_Alltoallv(in, counts, places, type, out, same, places, type, world);
    MPI_Alltoallw(in, counts, bytes, each, out, same, bytes, each, world);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, share(), type, world);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, counts, places, type, world);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, share(), type, world);
    free(bytes), free(each), free(same);
}

static void reductions(char *in, char *out) {
    int root = ranks - 1;
    MPI_Reduce(in, out, elements, type, op, root, world);
    MPI_Allreduce(in, out, elements, type, op, world);
    MPI_Scan(in, out, elements, type, op, world);
    MPI_Exscan(in, out, elements, type, op, world);
    MPI_Reduce_scatter_block(in, out, share(), type, op, world);
    MPI_Reduce_scatter(in, out, counts, type, op, world);
    MPI_Reduce_local(in, out, elements, type, op);
}

static void reductions_in_place(char *in, char *out) {
    /* MPICH 4.0 crashes in place at another root than 0. */
    int root = 0;
    (void)in;
    MPI_Reduce(rank == root ? MPI_IN_PLACE : out, out, elements, type, op, root, world);
    MPI_Allreduce(MPI_IN_PLACE, out, elements, type, op, world);
    MPI_Scan(MPI_IN_PLACE, out, elements, type, op, world);
    MPI_Exscan(MPI_IN_PLACE, out, elements, type, op, world);
}

static void packing(char *in, char *out) {
    int at = 16, size, half = elements / 2;
    MPI_Type_size(type, &size);
    /* The packed data fits: an area has more bytes than its elements. */
    MPI_Pack(in, half, type, out, (int)area, &at, world);
    CHECK_EQ(at, 16 + half * size);
    at = 16;
    MPI_Unpack(out, (int)area, &at, in, half, type, world);
    CHECK_EQ(at, 16 + half * size);
}

static void files(char *in, char *out) {
    static int number;
    char name[600];
    MPI_File file;
    MPI_Status status;
    int count, size, half = elements / 2;
    MPI_Offset at;
    MPI_Type_size(type, &size);
    at = (MPI_Offset)rank * elements * size;
    snprintf(name, sizeof name, "%s/mpi-file-%d", getenv("VGASNET_STORAGE_DIR"), number++);
    CHECK(MPI_File_open(world, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file) ==
          MPI_SUCCESS);
    MPI_File_write_at(file, at, in, half, type, MPI_STATUS_IGNORE);
    MPI_File_write_at_all(file, at + half * size, in, elements - half, type, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(world);
    MPI_File_read_at(file, at, out, elements, type, MPI_STATUS_IGNORE);
    MPI_File_read_at_all(file, at, out, half, type, &status);
    MPI_Get_count(&status, type, &count);
    CHECK_EQ(count, half);
    MPI_File_seek(file, at, MPI_SEEK_SET);
    MPI_File_write(file, in, half, type, MPI_STATUS_IGNORE);
    MPI_File_write_all(file, in, elements - half, type, MPI_STATUS_IGNORE);
    MPI_Barrier(world);
    /* More than there is: the file ends within an element. */
    MPI_File_seek(file, (MPI_Offset)(ranks - 1) * elements * size + half * size + 1, MPI_SEEK_SET);
    MPI_File_read(file, out, elements, type, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    /* MPICH reports a full read for types with gaps. */
    CHECK(kind != DENSE || count == (elements - half) * size - 1);
    MPI_File_seek(file, at, MPI_SEEK_SET);
    MPI_File_read_all(file, out, elements, type, MPI_STATUS_IGNORE);
    MPI_Barrier(world);
    MPI_File_close(&file);
}

static void shared_files(char *in, char *out) {
    static int number;
    char name[600];
    MPI_File file;
    int turn;
    snprintf(name, sizeof name, "%s/mpi-shared-%d", getenv("VGASNET_STORAGE_DIR"), number++);
    CHECK(MPI_File_open(world, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file) ==
          MPI_SUCCESS);
    MPI_File_write_ordered(file, in, share(), type, MPI_STATUS_IGNORE);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_read_ordered(file, out, share(), type, MPI_STATUS_IGNORE);
    for (turn = 0; turn < ranks; ++turn) {
        if (turn == rank) MPI_File_write_shared(file, in, share(), type, MPI_STATUS_IGNORE);
        MPI_Barrier(world);
    }
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    for (turn = 0; turn < ranks; ++turn) {
        if (turn == rank) MPI_File_read_shared(file, out, share(), type, MPI_STATUS_IGNORE);
        MPI_Barrier(world);
    }
    MPI_File_close(&file);
}

/* Between two groups. The root's own group has no part. */
static void between_groups(char *in, char *out) {
    MPI_Comm half, both;
    int group = rank % 2, root, mine;
    if (ranks < 2) return;
    MPI_Comm_split(world, group, rank, &half);
    MPI_Intercomm_create(half, 0, world, 1 - group, 5, &both);
    MPI_Comm_rank(half, &mine);
    for (root = 0; root < 2; ++root) {
        int to = root != group ? 0 : mine == 0 ? MPI_ROOT : MPI_PROC_NULL;
        MPI_Bcast(to == MPI_ROOT ? in : out, elements, type, to, both);
        MPI_Gather(in, share(), type, out, share(), type, to, both);
        MPI_Scatter(in, share(), type, out, share(), type, to, both);
        MPI_Reduce(in, out, elements, type, op, to, both);
    }
    MPI_Allgather(in, share(), type, out, share(), type, both);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

/* A datatype with addresses: of both areas, and of ordinary memory. */
static void absolute(char *in, char *out) {
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks, i, count;
    int lengths[3] = {2, 1, 3}, mine = rank, theirs = -1;
    MPI_Aint from[3], to[3];
    MPI_Datatype all[3] = {type, MPI_INT, type}, sent, got;
    MPI_Status status;
    MPI_Get_address(in, &from[0]);
    MPI_Get_address(&mine, &from[1]);
    MPI_Get_address(in + area / 2, &from[2]);
    MPI_Get_address(out + area / 2, &to[0]);
    MPI_Get_address(&theirs, &to[1]);
    MPI_Get_address(out, &to[2]);
    MPI_Type_create_struct(3, lengths, from, all, &sent);
    MPI_Type_create_struct(3, lengths, to, all, &got);
    MPI_Type_commit(&sent);
    MPI_Type_commit(&got);
    for (i = 0; i < 2; ++i) {
        MPI_Sendrecv(MPI_BOTTOM, 1, sent, next, i, MPI_BOTTOM, 1, got, before, i, world, &status);
        CHECK_EQ(theirs, before);
        MPI_Get_count(&status, got, &count);
        CHECK_EQ(count, 1);
    }
    MPI_Bcast(MPI_BOTTOM, 1, rank == 0 ? sent : got, 0, world);
    CHECK_EQ(rank == 0 || theirs == 0, 1);
    MPI_Type_free(&sent);
    MPI_Type_free(&got);
}

#if MPI_VERSION >= 4
static void large_counts(char *in, char *out) {
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks, i;
    MPI_Count *large = (MPI_Count *)allocate((size_t)ranks * sizeof *large);
    MPI_Aint *at = (MPI_Aint *)allocate((size_t)ranks * sizeof *at);
    for (i = 0; i < ranks; ++i) large[i] = counts[i], at[i] = places[i];
    MPI_Sendrecv_c(in, elements, type, next, 1, out, elements, type, before, 1, world, MPI_STATUS_IGNORE);
    MPI_Allgatherv_c(in, counts[rank], type, out, large, at, type, world);
    MPI_Bcast_c(rank == 0 ? in : out, elements, type, 0, world);
    MPI_Allreduce_c(in, out, elements, type, op, world);
    free(large), free(at);
}
#endif

static void compare_all(int large) {
    /* Each kind of buffer, and each call, but not all combinations. */
    int is_brief = ranks > 2 || large != (kind == VECTOR);
    compare("one to all", one_to_all, is_brief);
    compare("all to all", all_to_all, is_brief);
    compare("reductions", reductions, is_brief);
    compare("reductions in place", reductions_in_place, is_brief);
    compare("packing", packing, is_brief);
    /* MPICH 4.0 overestimates the length of these in MPI_Bsend, MPI_Sendrecv_replace and files. */
    if (kind != PAIR) {
        compare("exchanges", exchanges, is_brief);
        compare("messages", messages, is_brief);
        compare("files", files, is_brief);
        compare("shared files", shared_files, is_brief);
    }
    compare("between groups", between_groups, is_brief);
    compare("absolute addresses", absolute, is_brief);
#if MPI_VERSION >= 4
    compare("large counts", large_counts, is_brief);
#endif
}

int main(int argc, char **argv) {
    int i, large;
    MPI_Init(&argc, &argv);
    area = pool_bytes() * 3 / 2;
    start(&argc, &argv, 2 * area + 4096);
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &ranks);
    make_types();
    counts = (int *)allocate((size_t)ranks * sizeof *counts);
    places = (int *)allocate((size_t)ranks * sizeof *places);
    for (kind = 0; kind < TYPES; ++kind) {
        type = types[kind];
        op = kind == DENSE ? MPI_SUM : kind == PAIR ? MPI_MAXLOC : sum;
        for (large = 0; large < (kind <= VECTOR ? 2 : 1); ++large) {
            elements = large ? (int)(area / 2) / distances[kind] * 2 - 2 : 3 * ranks;
            for (i = 0; i < ranks; ++i) counts[i] = share() - i % 2, places[i] = (ranks - 1 - i) * share();
            compare_all(large);
        }
    }
    compare("truncated", truncated, 0);
    MPI_Op_free(&sum);
    for (i = VECTOR; i <= PADDED; ++i) MPI_Type_free(&types[i]);
    free(counts), free(places);
    MPI_Comm_free(&world);
    barrier();
    MPI_Finalize();
    return 0;
}
