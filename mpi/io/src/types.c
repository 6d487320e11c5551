/* The construction of datatypes. */
#include "layer.h"
#include <stdlib.h>
#include <string.h>

/* Matches the constants of types.rs. */
enum kind {
    NAMED, DUP, CONTIGUOUS, VECTOR, HVECTOR, INDEXED, HINDEXED, INDEXED_BLOCK, HINDEXED_BLOCK, STRUCT, SUBARRAY, DARRAY, RESIZED, UNKNOWN
};

struct about {
    int64_t size, low, extent, true_low, true_extent;
    int32_t kind, is_short_int;
    /* Numbers of values and types returned by MPI_Type_get_contents. */
    int32_t integers, addresses, counts, types;
};

static enum kind kind_of(int combiner) {
    switch (combiner) {
    case MPI_COMBINER_NAMED:
    case MPI_COMBINER_F90_REAL:
    case MPI_COMBINER_F90_COMPLEX:
    case MPI_COMBINER_F90_INTEGER: return NAMED;
    case MPI_COMBINER_DUP: return DUP;
    case MPI_COMBINER_CONTIGUOUS: return CONTIGUOUS;
    case MPI_COMBINER_VECTOR: return VECTOR;
    case MPI_COMBINER_HVECTOR: return HVECTOR;
    case MPI_COMBINER_INDEXED: return INDEXED;
    case MPI_COMBINER_HINDEXED: return HINDEXED;
    case MPI_COMBINER_INDEXED_BLOCK: return INDEXED_BLOCK;
    case MPI_COMBINER_HINDEXED_BLOCK: return HINDEXED_BLOCK;
    case MPI_COMBINER_STRUCT: return STRUCT;
    case MPI_COMBINER_SUBARRAY: return SUBARRAY;
    case MPI_COMBINER_DARRAY: return DARRAY;
    case MPI_COMBINER_RESIZED: return RESIZED;
    default: return UNKNOWN;
    }
}

int vgasnet_mpi_io_type_about(uint64_t handle, struct about *about) {
    MPI_Datatype type = TO_HANDLE(MPI_Datatype, handle);
    MPI_Count size, low, extent, true_low, true_extent;
    int error, combiner;
    memset(about, 0, sizeof *about);
    if (type == MPI_DATATYPE_NULL) return MPI_ERR_TYPE;
    if ((error = NEXT(Type_size_x)(type, &size))) return error;
    if ((error = NEXT(Type_get_extent_x)(type, &low, &extent))) return error;
    if ((error = NEXT(Type_get_true_extent_x)(type, &true_low, &true_extent))) return error;
#if MPI_VERSION >= 4
    MPI_Count integers, addresses, counts, types;
    if ((error = NEXT(Type_get_envelope_c)(type, &integers, &addresses, &counts, &types, &combiner))) return error;
    about->counts = (int32_t)counts;
#else
    int integers, addresses, types;
    if ((error = NEXT(Type_get_envelope)(type, &integers, &addresses, &types, &combiner))) return error;
#endif
    about->integers = (int32_t)integers, about->addresses = (int32_t)addresses, about->types = (int32_t)types;
    about->size = size, about->low = low, about->extent = extent;
    about->true_low = true_low, about->true_extent = true_extent;
    about->kind = kind_of(combiner);
    about->is_short_int = type == MPI_SHORT_INT;
    return MPI_SUCCESS;
}

/* The numbers in order: integers, addresses, and counts of MPI 4, as 8 bytes each; and the types, to be returned by
 * vgasnet_mpi_io_type_done. There is room for the counts in `about`. */
int vgasnet_mpi_io_type_contents(uint64_t handle, const struct about *about, int64_t *numbers, uint64_t *types) {
    MPI_Datatype type = TO_HANDLE(MPI_Datatype, handle);
    int *integers = calloc((size_t)about->integers + 1, sizeof *integers), error, i;
    MPI_Aint *addresses = calloc((size_t)about->addresses + 1, sizeof *addresses);
    MPI_Datatype *inner = calloc((size_t)about->types + 1, sizeof *inner);
    error = integers == NULL || addresses == NULL || inner == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
#if MPI_VERSION >= 4
    MPI_Count *counts = calloc((size_t)about->counts + 1, sizeof *counts);
    if (counts == NULL) error = MPI_ERR_NO_MEM;
    if (error == MPI_SUCCESS)
        error = NEXT(Type_get_contents_c)(type, about->integers, about->addresses, about->counts, about->types, integers, addresses,
                                          counts, inner);
    for (i = 0; i < about->counts && error == MPI_SUCCESS; ++i) numbers[about->integers + about->addresses + i] = counts[i];
    free(counts);
#else
    if (error == MPI_SUCCESS)
        error = NEXT(Type_get_contents)(type, about->integers, about->addresses, about->types, integers, addresses, inner);
#endif
    for (i = 0; i < about->integers && error == MPI_SUCCESS; ++i) numbers[i] = integers[i];
    for (i = 0; i < about->addresses && error == MPI_SUCCESS; ++i) numbers[about->integers + i] = addresses[i];
    for (i = 0; i < about->types && error == MPI_SUCCESS; ++i) types[i] = FROM_HANDLE(inner[i]);
    free(integers);
    free(addresses);
    free(inner);
    return error;
}

/* Returns a type of contents. MPI's own types are not returned. */
void vgasnet_mpi_io_type_done(uint64_t handle) {
    MPI_Datatype type = TO_HANDLE(MPI_Datatype, handle);
    int integers, addresses, types, combiner;
#if MPI_VERSION >= 4
    MPI_Count a, b, c, d;
    (void)integers, (void)addresses, (void)types;
    if (NEXT(Type_get_envelope_c)(type, &a, &b, &c, &d, &combiner)) return;
#else
    if (NEXT(Type_get_envelope)(type, &integers, &addresses, &types, &combiner)) return;
#endif
    if (kind_of(combiner) != NAMED) NEXT(Type_free)(&type);
}

/* The attribute of a type that holds its layout, which belongs to Rust. */
static int keyval = MPI_KEYVAL_INVALID;

void vgasnet_mpi_io_drop_layout(void *layout);

static int on_copy(MPI_Datatype type, int key, void *extra, void *value, void *copy, int *is_kept) {
    (void)type, (void)key, (void)extra, (void)value, (void)copy;
    *is_kept = 0;
    return MPI_SUCCESS;
}

static int on_delete(MPI_Datatype type, int key, void *value, void *extra) {
    (void)type, (void)key, (void)extra;
    vgasnet_mpi_io_drop_layout(value);
    return MPI_SUCCESS;
}

DEFINE_DUP_QUIETLY

/* A communicator with error handler MPI_ERRORS_RETURN. */
static MPI_Comm own;

/* MPI has no query for this, but refuses to pack an uncommitted type. */
int vgasnet_mpi_io_type_is_committed(uint64_t handle) {
    char bytes[1] = "";
    int at = 0;
    MPI_Datatype type = TO_HANDLE(MPI_Datatype, handle);
    return type != MPI_DATATYPE_NULL && NEXT(Pack)(bytes, 0, type, bytes, sizeof bytes, &at, own) == MPI_SUCCESS;
}

int vgasnet_mpi_io_prepare_types(void) {
    int error = dup_quietly(MPI_COMM_SELF, &own);
    return error ? error : NEXT(Type_create_keyval)(on_copy, on_delete, &keyval, NULL);
}

/* The layout given to a type, or NULL. */
void *vgasnet_mpi_io_known_layout(uint64_t handle) {
    void *layout;
    int found = 0;
    MPI_Datatype type = TO_HANDLE(MPI_Datatype, handle);
    if (type == MPI_DATATYPE_NULL || NEXT(Type_get_attr)(type, keyval, &layout, &found)) return NULL;
    return found ? layout : NULL;
}

int vgasnet_mpi_io_keep_layout(uint64_t handle, void *layout) {
    return NEXT(Type_set_attr)(TO_HANDLE(MPI_Datatype, handle), keyval, layout);
}
