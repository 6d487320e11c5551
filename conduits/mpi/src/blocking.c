/* Blocking calls of MPI with buffers in the segment, done through stand-ins in ordinary memory. `calls.rs` calls
 * these functions only if an address lies in the segment, or is MPI_BOTTOM. */
#include "stand_in.h"

#include <stdlib.h>

static int rank_in(MPI_Comm comm) {
    int rank;
    PMPI_Comm_rank(comm, &rank);
    return rank;
}

static int is_inter(MPI_Comm comm) {
    int is_so;
    PMPI_Comm_test_inter(comm, &is_so);
    return is_so;
}

/* Number of ranks contributing or receiving blocks in a collective call. */
static int peers(MPI_Comm comm) {
    int ranks;
    if (is_inter(comm)) PMPI_Comm_remote_size(comm, &ranks);
    else PMPI_Comm_size(comm, &ranks);
    return ranks;
}

/* Whether this rank is the root of a collective call. */
static int is_root(MPI_Comm comm, int root) { return is_inter(comm) ? root == MPI_ROOT : root == rank_in(comm); }

/* Whether this rank exchanges a part with the root. Between two groups the root's own group does not. */
static int is_leaf(MPI_Comm comm, int root) { return !is_inter(comm) || root >= 0; }

/* Use of the result's buffer: in place, it already has this rank's part. */
static int result(const void *from) { return from == MPI_IN_PLACE ? READ | WRITE : WRITE; }

/* Ends a call: writes back the first `bytes` bytes of a result, unless the call has failed. Both stand-ins may be
 * null. */
static int end(struct stand_in *in, struct stand_in *out, int error, MPI_Count bytes) {
    if (out != NULL && !error) vgasnet_mpi_write_back(out, bytes);
    if (out != NULL) vgasnet_mpi_drop(out);
    if (in != NULL) vgasnet_mpi_drop(in);
    return error;
}

static int done(struct stand_in *in, struct stand_in *out, int error) { return end(in, out, error, ALL); }

static int done_with(struct stand_in *in, struct stand_in *out, int error, MPI_Count count, MPI_Datatype type) {
    MPI_Count size = 0;
    if (!error) PMPI_Type_size_x(type, &size);
    return end(in, out, error, count * size);
}

/* A status for a call, keeping the error of the program's status. */
static MPI_Status initial(const MPI_Status *status) {
    MPI_Status own = {0};
    if (status != MPI_STATUS_IGNORE) own.MPI_ERROR = status->MPI_ERROR;
    return own;
}

/* Ends a call that may fill only part of the buffer. A truncated one is full. */
static int received(struct stand_in *in, struct stand_in *out, int error, const MPI_Status *own, MPI_Status *status) {
    MPI_Count bytes = 0;
    int class = MPI_SUCCESS;
    if (error) PMPI_Error_class(error, &class);
    if (!error) PMPI_Get_elements_x(own, MPI_BYTE, &bytes);
    if (class == MPI_ERR_TRUNCATE) bytes = ALL;
    if (bytes < 0 && bytes != ALL) bytes = 0;
    if (status != MPI_STATUS_IGNORE) *status = *own;
    end(in, out, MPI_SUCCESS, bytes);
    return error;
}

/* ROMIO reports a read of a type with gaps as complete even if the file ends earlier. The buffer must therefore keep
 * its bytes where nothing was read. */
static int use_in_file_read(MPI_Datatype type) {
    MPI_Count size, low, extent;
    PMPI_Type_size_x(type, &size);
    PMPI_Type_get_extent_x(type, &low, &extent);
    return size == extent ? WRITE : READ | WRITE;
}

static void take_bytes(struct stand_in *it, const char *call, const void *buffer, MPI_Count at, MPI_Count bytes, int use) {
    struct region *region = malloc(sizeof *region);
    if (region == NULL) vgasnet_mpi_refuse(call, "there is no memory for the list of blocks");
    *region = (struct region){(MPI_Aint)at, bytes, MPI_BYTE};
    vgasnet_mpi_take_regions(it, call, buffer, region, 1, use);
}

#define COUNT int
#define DISPLACEMENT int
#define OURS(name) vgasnet_MPI_##name
#define THEIRS(name) PMPI_##name
#define SAID(name) "MPI_" #name
#include "blocking.h"

#if MPI_VERSION >= 4
#undef COUNT
#undef DISPLACEMENT
#undef OURS
#undef THEIRS
#undef SAID
#define COUNT MPI_Count
#define DISPLACEMENT MPI_Aint
#define OURS(name) vgasnet_MPI_##name##_c
#define THEIRS(name) PMPI_##name##_c
#define SAID(name) "MPI_" #name "_c"
#include "blocking.h"
#endif
