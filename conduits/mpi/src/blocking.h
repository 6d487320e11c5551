/* The blocking calls of MPI with a buffer in the segment. Included twice: with counts of type int, and of type
 * MPI_Count (MPI 4, names ending in _c).
 *
 * OURS(name), THEIRS(name), SAID(name): the function here, MPI's, and its name for users. COUNT, DISPLACEMENT: the
 * types of counts and of displacements. */

#define SEND(name) \
    int OURS(name)(const void *from, COUNT count, MPI_Datatype type, int to, int tag, MPI_Comm comm) { \
        struct stand_in in; \
        vgasnet_mpi_take(&in, SAID(name), from, count, type, READ | MAY_BE_BOTTOM); \
        return done(&in, NULL, THEIRS(name)(in.buffer, count, in.type, to, tag, comm)); \
    }

SEND(Send)
SEND(Ssend)
SEND(Bsend)
SEND(Rsend)

int OURS(Recv)(void *to, COUNT count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status) {
    struct stand_in out;
    MPI_Status own = initial(status);
    vgasnet_mpi_take(&out, SAID(Recv), to, count, type, WRITE | MAY_BE_BOTTOM);
    return received(NULL, &out, THEIRS(Recv)(out.buffer, count, out.type, from, tag, comm, &own), &own, status);
}

int OURS(Mrecv)(void *to, COUNT count, MPI_Datatype type, MPI_Message *message, MPI_Status *status) {
    struct stand_in out;
    MPI_Status own = initial(status);
    vgasnet_mpi_take(&out, SAID(Mrecv), to, count, type, WRITE | MAY_BE_BOTTOM);
    return received(NULL, &out, THEIRS(Mrecv)(out.buffer, count, out.type, message, &own), &own, status);
}

int OURS(Sendrecv)(const void *from, COUNT count, MPI_Datatype type, int receiver, int tag, void *to, COUNT to_count,
                   MPI_Datatype to_type, int sender, int to_tag, MPI_Comm comm, MPI_Status *status) {
    struct stand_in in, out;
    MPI_Status own = initial(status);
    int error;
    vgasnet_mpi_take(&in, SAID(Sendrecv), from, count, type, READ | MAY_BE_BOTTOM);
    vgasnet_mpi_take(&out, SAID(Sendrecv), to, to_count, to_type, WRITE | MAY_BE_BOTTOM);
    error = THEIRS(Sendrecv)(in.buffer, count, in.type, receiver, tag, out.buffer, to_count, out.type, sender, to_tag,
                             comm, &own);
    return received(&in, &out, error, &own, status);
}

int OURS(Sendrecv_replace)(void *both, COUNT count, MPI_Datatype type, int receiver, int tag, int sender, int to_tag,
                           MPI_Comm comm, MPI_Status *status) {
    struct stand_in out;
    MPI_Status own = initial(status);
    int error;
    vgasnet_mpi_take(&out, SAID(Sendrecv_replace), both, count, type, READ | WRITE | MAY_BE_BOTTOM);
    error = THEIRS(Sendrecv_replace)(out.buffer, count, out.type, receiver, tag, sender, to_tag, comm, &own);
    return received(NULL, &out, error, &own, status);
}

int OURS(Bcast)(void *buffer, COUNT count, MPI_Datatype type, int root, MPI_Comm comm) {
    struct stand_in it;
    int use = is_root(comm, root) ? READ : is_leaf(comm, root) ? WRITE : UNUSED, error;
    vgasnet_mpi_take(&it, SAID(Bcast), buffer, count, type, use == UNUSED ? use : use | MAY_BE_BOTTOM);
    error = THEIRS(Bcast)(it.buffer, count, it.type, root, comm);
    return done(use == WRITE ? NULL : &it, use == WRITE ? &it : NULL, error);
}

int OURS(Reduce)(const void *from, void *to, COUNT count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
    struct stand_in in, out;
    vgasnet_mpi_take(&in, SAID(Reduce), from, count, type, is_leaf(comm, root) ? READ : UNUSED);
    vgasnet_mpi_take(&out, SAID(Reduce), to, count, type, is_root(comm, root) ? result(from) : UNUSED);
    return done(&in, &out, THEIRS(Reduce)(in.buffer, out.buffer, count, type, op, root, comm));
}

#define REDUCE_TO_ALL(name, to_use) \
    int OURS(name)(const void *from, void *to, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) { \
        struct stand_in in, out; \
        int use = to_use, error; \
        vgasnet_mpi_take(&in, SAID(name), from, count, type, READ); \
        vgasnet_mpi_take(&out, SAID(name), to, count, type, use); \
        error = THEIRS(name)(in.buffer, out.buffer, count, type, op, comm); \
        if (use == SCRATCH) vgasnet_mpi_drop(&out); \
        return done(&in, use == SCRATCH ? NULL : &out, error); \
    }

REDUCE_TO_ALL(Allreduce, result(from))
REDUCE_TO_ALL(Scan, result(from))
/* Rank 0 gets no result: its buffer is unchanged. */
REDUCE_TO_ALL(Exscan, rank_in(comm) > 0 || from == MPI_IN_PLACE ? result(from) : SCRATCH)

int OURS(Reduce_local)(const void *from, void *both, COUNT count, MPI_Datatype type, MPI_Op op) {
    struct stand_in in, out;
    vgasnet_mpi_take(&in, SAID(Reduce_local), from, count, type, READ);
    vgasnet_mpi_take(&out, SAID(Reduce_local), both, count, type, READ | WRITE);
    return done(&in, &out, THEIRS(Reduce_local)(in.buffer, out.buffer, count, type, op));
}

/* In place, the result is shorter than the source. */
int OURS(Reduce_scatter)(const void *from, void *to, const COUNT counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    struct stand_in in, out;
    MPI_Count all = 0, mine = counts[rank_in(comm)];
    int i, ranks;
    PMPI_Comm_size(comm, &ranks);
    for (i = 0; i < ranks; ++i) all += counts[i];
    vgasnet_mpi_take(&in, SAID(Reduce_scatter), from, all, type, READ);
    vgasnet_mpi_take(&out, SAID(Reduce_scatter), to, from == MPI_IN_PLACE ? all : mine, type, result(from));
    return done_with(&in, &out, THEIRS(Reduce_scatter)(in.buffer, out.buffer, counts, type, op, comm), mine, type);
}

int OURS(Reduce_scatter_block)(const void *from, void *to, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    struct stand_in in, out;
    int ranks, error;
    PMPI_Comm_size(comm, &ranks);
    vgasnet_mpi_take(&in, SAID(Reduce_scatter_block), from, (MPI_Count)count * ranks, type, READ);
    vgasnet_mpi_take(&out, SAID(Reduce_scatter_block), to, (MPI_Count)count * (from == MPI_IN_PLACE ? ranks : 1), type,
                     result(from));
    error = THEIRS(Reduce_scatter_block)(in.buffer, out.buffer, count, type, op, comm);
    return done_with(&in, &out, error, count, type);
}

/* A block for each peer. `types` has one type for each; otherwise all have `type`, and displacements count its
 * extents. */
static struct region *OURS(blocks)(const char *call, int peers, const COUNT counts[], const DISPLACEMENT at[],
                                   MPI_Datatype type, const MPI_Datatype types[]) {
    struct region *regions = malloc(sizeof *regions * ((size_t)peers + 1));
    MPI_Count low, extent = 1;
    int i;
    if (regions == NULL) vgasnet_mpi_refuse(call, "there is no memory for the list of blocks");
    if (types == NULL && type != MPI_DATATYPE_NULL) PMPI_Type_get_extent_x(type, &low, &extent);
    for (i = 0; i < peers; ++i)
        regions[i] = (struct region){(MPI_Aint)(at[i] * extent), counts[i], types == NULL ? type : types[i]};
    return regions;
}

/* Blocks one side of a collective call may omit. */
static void OURS(take_blocks)(struct stand_in *it, const char *call, const void *buffer, int peers,
                              const COUNT counts[], const DISPLACEMENT at[], MPI_Datatype type,
                              const MPI_Datatype types[], int use) {
    if (use == UNUSED || buffer == MPI_IN_PLACE) vgasnet_mpi_take(it, call, buffer, 0, MPI_BYTE, UNUSED);
    else vgasnet_mpi_take_regions(it, call, buffer, OURS(blocks)(call, peers, counts, at, type, types), peers, use);
}

int OURS(Gather)(const void *from, COUNT count, MPI_Datatype type, void *to, COUNT to_count, MPI_Datatype to_type,
                 int root, MPI_Comm comm) {
    struct stand_in in, out;
    int error;
    vgasnet_mpi_take(&in, SAID(Gather), from, count, type, is_leaf(comm, root) ? READ : UNUSED);
    vgasnet_mpi_take(&out, SAID(Gather), to, is_root(comm, root) ? (MPI_Count)to_count * peers(comm) : 0, to_type,
                     is_root(comm, root) ? result(from) : UNUSED);
    error = THEIRS(Gather)(in.buffer, count, type, out.buffer, to_count, to_type, root, comm);
    return done(&in, &out, error);
}

int OURS(Gatherv)(const void *from, COUNT count, MPI_Datatype type, void *to, const COUNT to_counts[],
                  const DISPLACEMENT at[], MPI_Datatype to_type, int root, MPI_Comm comm) {
    struct stand_in in, out;
    int error;
    vgasnet_mpi_take(&in, SAID(Gatherv), from, count, type, is_leaf(comm, root) ? READ : UNUSED);
    OURS(take_blocks)(&out, SAID(Gatherv), to, peers(comm), to_counts, at, to_type, NULL,
                      is_root(comm, root) ? result(from) : UNUSED);
    error = THEIRS(Gatherv)(in.buffer, count, type, out.buffer, to_counts, at, to_type, root, comm);
    return done(&in, &out, error);
}

int OURS(Scatter)(const void *from, COUNT count, MPI_Datatype type, void *to, COUNT to_count, MPI_Datatype to_type,
                  int root, MPI_Comm comm) {
    struct stand_in in, out;
    int error;
    vgasnet_mpi_take(&in, SAID(Scatter), from, is_root(comm, root) ? (MPI_Count)count * peers(comm) : 0, type,
                     is_root(comm, root) ? READ : UNUSED);
    vgasnet_mpi_take(&out, SAID(Scatter), to, to_count, to_type, is_leaf(comm, root) ? WRITE : UNUSED);
    error = THEIRS(Scatter)(in.buffer, count, type, out.buffer, to_count, to_type, root, comm);
    return done(&in, &out, error);
}

int OURS(Scatterv)(const void *from, const COUNT counts[], const DISPLACEMENT at[], MPI_Datatype type, void *to,
                   COUNT to_count, MPI_Datatype to_type, int root, MPI_Comm comm) {
    struct stand_in in, out;
    int error;
    OURS(take_blocks)(&in, SAID(Scatterv), from, peers(comm), counts, at, type, NULL,
                      is_root(comm, root) ? READ : UNUSED);
    vgasnet_mpi_take(&out, SAID(Scatterv), to, to_count, to_type, is_leaf(comm, root) ? WRITE : UNUSED);
    error = THEIRS(Scatterv)(in.buffer, counts, at, type, out.buffer, to_count, to_type, root, comm);
    return done(&in, &out, error);
}

int OURS(Allgather)(const void *from, COUNT count, MPI_Datatype type, void *to, COUNT to_count, MPI_Datatype to_type,
                    MPI_Comm comm) {
    struct stand_in in, out;
    vgasnet_mpi_take(&in, SAID(Allgather), from, count, type, READ);
    vgasnet_mpi_take(&out, SAID(Allgather), to, (MPI_Count)to_count * peers(comm), to_type, result(from));
    return done(&in, &out, THEIRS(Allgather)(in.buffer, count, type, out.buffer, to_count, to_type, comm));
}

int OURS(Allgatherv)(const void *from, COUNT count, MPI_Datatype type, void *to, const COUNT to_counts[],
                     const DISPLACEMENT at[], MPI_Datatype to_type, MPI_Comm comm) {
    struct stand_in in, out;
    vgasnet_mpi_take(&in, SAID(Allgatherv), from, count, type, READ);
    OURS(take_blocks)(&out, SAID(Allgatherv), to, peers(comm), to_counts, at, to_type, NULL, result(from));
    return done(&in, &out, THEIRS(Allgatherv)(in.buffer, count, type, out.buffer, to_counts, at, to_type, comm));
}

int OURS(Alltoall)(const void *from, COUNT count, MPI_Datatype type, void *to, COUNT to_count, MPI_Datatype to_type,
                   MPI_Comm comm) {
    struct stand_in in, out;
    int error;
    vgasnet_mpi_take(&in, SAID(Alltoall), from, from == MPI_IN_PLACE ? 0 : (MPI_Count)count * peers(comm), type, READ);
    vgasnet_mpi_take(&out, SAID(Alltoall), to, (MPI_Count)to_count * peers(comm), to_type, result(from));
    error = THEIRS(Alltoall)(in.buffer, count, type, out.buffer, to_count, to_type, comm);
    return done(&in, &out, error);
}

int OURS(Alltoallv)(const void *from, const COUNT counts[], const DISPLACEMENT at[], MPI_Datatype type, void *to,
                    const COUNT to_counts[], const DISPLACEMENT to_at[], MPI_Datatype to_type, MPI_Comm comm) {
    struct stand_in in, out;
    int error;
    OURS(take_blocks)(&in, SAID(Alltoallv), from, peers(comm), counts, at, type, NULL, READ);
    OURS(take_blocks)(&out, SAID(Alltoallv), to, peers(comm), to_counts, to_at, to_type, NULL, result(from));
    error = THEIRS(Alltoallv)(in.buffer, counts, at, type, out.buffer, to_counts, to_at, to_type, comm);
    return done(&in, &out, error);
}

int OURS(Alltoallw)(const void *from, const COUNT counts[], const DISPLACEMENT at[], const MPI_Datatype types[],
                    void *to, const COUNT to_counts[], const DISPLACEMENT to_at[], const MPI_Datatype to_types[],
                    MPI_Comm comm) {
    struct stand_in in, out;
    int error;
    OURS(take_blocks)(&in, SAID(Alltoallw), from, peers(comm), counts, at, MPI_BYTE, types, READ);
    OURS(take_blocks)(&out, SAID(Alltoallw), to, peers(comm), to_counts, to_at, MPI_BYTE, to_types, result(from));
    error = THEIRS(Alltoallw)(in.buffer, counts, at, types, out.buffer, to_counts, to_at, to_types, comm);
    return done(&in, &out, error);
}

int OURS(Pack)(const void *from, COUNT count, MPI_Datatype type, void *to, COUNT bytes, COUNT *at, MPI_Comm comm) {
    struct stand_in in, out;
    COUNT before = *at;
    int error;
    vgasnet_mpi_take(&in, SAID(Pack), from, count, type, READ | MAY_BE_BOTTOM);
    take_bytes(&out, SAID(Pack), to, before, bytes - before, WRITE);
    error = THEIRS(Pack)(in.buffer, count, in.type, out.buffer, bytes, at, comm);
    return done_with(&in, &out, error, *at - before, MPI_BYTE);
}

int OURS(Unpack)(const void *from, COUNT bytes, COUNT *at, void *to, COUNT count, MPI_Datatype type, MPI_Comm comm) {
    struct stand_in in, out;
    COUNT packed = bytes - *at, most;
    if (THEIRS(Pack_size)(count, type, comm, &most) == MPI_SUCCESS && most < packed) packed = most;
    take_bytes(&in, SAID(Unpack), from, *at, packed, READ);
    vgasnet_mpi_take(&out, SAID(Unpack), to, count, type, WRITE | MAY_BE_BOTTOM);
    return done(&in, &out, THEIRS(Unpack)(in.buffer, bytes, at, out.buffer, count, out.type, comm));
}

#define FILE_READ(name) \
    int OURS(name)(MPI_File file, void *to, COUNT count, MPI_Datatype type, MPI_Status *status) { \
        struct stand_in out; \
        MPI_Status own = initial(status); \
        vgasnet_mpi_take(&out, SAID(name), to, count, type, use_in_file_read(type) | MAY_BE_BOTTOM); \
        return received(NULL, &out, THEIRS(name)(file, out.buffer, count, out.type, &own), &own, status); \
    }

#define FILE_READ_AT(name) \
    int OURS(name)(MPI_File file, MPI_Offset at, void *to, COUNT count, MPI_Datatype type, MPI_Status *status) { \
        struct stand_in out; \
        MPI_Status own = initial(status); \
        vgasnet_mpi_take(&out, SAID(name), to, count, type, use_in_file_read(type) | MAY_BE_BOTTOM); \
        return received(NULL, &out, THEIRS(name)(file, at, out.buffer, count, out.type, &own), &own, status); \
    }

#define FILE_WRITE(name) \
    int OURS(name)(MPI_File file, const void *from, COUNT count, MPI_Datatype type, MPI_Status *status) { \
        struct stand_in in; \
        vgasnet_mpi_take(&in, SAID(name), from, count, type, READ | MAY_BE_BOTTOM); \
        return done(&in, NULL, THEIRS(name)(file, in.buffer, count, in.type, status)); \
    }

#define FILE_WRITE_AT(name) \
    int OURS(name)(MPI_File file, MPI_Offset at, const void *from, COUNT count, MPI_Datatype type, MPI_Status *status) { \
        struct stand_in in; \
        vgasnet_mpi_take(&in, SAID(name), from, count, type, READ | MAY_BE_BOTTOM); \
        return done(&in, NULL, THEIRS(name)(file, at, in.buffer, count, in.type, status)); \
    }

FILE_READ(File_read)
FILE_READ(File_read_all)
FILE_READ(File_read_shared)
FILE_READ(File_read_ordered)
FILE_READ_AT(File_read_at)
FILE_READ_AT(File_read_at_all)
FILE_WRITE(File_write)
FILE_WRITE(File_write_all)
FILE_WRITE(File_write_shared)
FILE_WRITE(File_write_ordered)
FILE_WRITE_AT(File_write_at)
FILE_WRITE_AT(File_write_at_all)

#undef SEND
#undef REDUCE_TO_ALL
#undef FILE_READ
#undef FILE_READ_AT
#undef FILE_WRITE
#undef FILE_WRITE_AT
