/* The layout of types in memory. */
#include "layer.h"
#include <stdlib.h>

/* Attribute of a type: bytes of a contiguous element, or 0 if elements are not contiguous. */
static int keyval = MPI_KEYVAL_INVALID;

static int on_copy(MPI_Datatype type, int key, void *extra, void *value, void *copy, int *is_kept) {
    (void)type, (void)key, (void)extra, (void)value, (void)copy;
    *is_kept = 0;
    return MPI_SUCCESS;
}

static int on_delete(MPI_Datatype type, int key, void *value, void *extra) {
    (void)type, (void)key, (void)value, (void)extra;
    return MPI_SUCCESS;
}

int vgasnet_mpi_cache_prepare_types(void) {
    return NEXT(Type_create_keyval)(on_copy, on_delete, &keyval, NULL);
}

/* The size of an element without gaps, or 0. */
static int size_without_gaps(MPI_Datatype type) {
    MPI_Aint low, extent, true_low, true_extent;
    int size;
    if (NEXT(Type_size)(type, &size) || NEXT(Type_get_extent)(type, &low, &extent)) return 0;
    if (NEXT(Type_get_true_extent)(type, &true_low, &true_extent)) return 0;
    return size > 0 && low == 0 && true_low == 0 && extent == size && true_extent == size ? size : 0;
}

/* Whether elements consist of others side by side, in order. `*inner` is their type, unless `type` is named. */
static int is_in_order(MPI_Datatype type, int *is_named, MPI_Datatype *inner) {
    int integers, addresses, types, combiner, counts[2];
    MPI_Aint displacements[2];
    if (NEXT(Type_get_envelope)(type, &integers, &addresses, &types, &combiner)) return 0;
    *is_named = combiner == MPI_COMBINER_NAMED;
    if (*is_named) return 1;
    if (combiner != MPI_COMBINER_DUP && combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_RESIZED) return 0;
    if (integers > 2 || addresses > 2 || types != 1) return 0;
    return NEXT(Type_get_contents)(type, integers, addresses, types, counts, displacements, inner) == MPI_SUCCESS;
}

static int look(MPI_Datatype type, int *is_named) {
    MPI_Datatype inner;
    int size = size_without_gaps(type), of_inner, inner_is_named, a, b, c, combiner;
    if (!is_in_order(type, is_named, &inner)) return 0;
    if (*is_named) return size;
    of_inner = look(inner, &inner_is_named);
    /* A named type cannot be freed. */
    if (NEXT(Type_get_envelope)(inner, &a, &b, &c, &combiner) == MPI_SUCCESS && combiner != MPI_COMBINER_NAMED)
        NEXT(Type_free)(&inner);
    return of_inner > 0 ? size : 0;
}

/* Bytes of a contiguous element with its parts in order; 0 for any other. Named types are always the same. */
int vgasnet_mpi_cache_element(uint64_t handle, int *is_named) {
    MPI_Datatype type = TO_HANDLE(MPI_Datatype, handle);
    void *known;
    int found = 0, size;
    *is_named = 0;
    if (type == MPI_DATATYPE_NULL) return 0;
    if (NEXT(Type_get_attr)(type, keyval, &known, &found) == MPI_SUCCESS && found) return (int)(intptr_t)known;
    size = look(type, is_named);
    if (!*is_named) NEXT(Type_set_attr)(type, keyval, (void *)(intptr_t)size);
    return size;
}

/* The bytes `count` elements may touch: *bytes from *low on. Returns 0 if unknown. */
int vgasnet_mpi_cache_span(uint64_t handle, int64_t count, int64_t *low, int64_t *bytes) {
    MPI_Datatype type = TO_HANDLE(MPI_Datatype, handle);
    MPI_Aint bound, extent, true_low, true_extent;
    if (type == MPI_DATATYPE_NULL || count < 1) return 0;
    if (NEXT(Type_get_extent)(type, &bound, &extent) || NEXT(Type_get_true_extent)(type, &true_low, &true_extent)) return 0;
    if (extent < 0) return 0;
    *low = true_low;
    return !__builtin_mul_overflow((int64_t)extent, count - 1, bytes) && !__builtin_add_overflow(*bytes, (int64_t)true_extent, bytes);
}

int vgasnet_mpi_cache_is_no_op(uint64_t op) {
    return TO_HANDLE(MPI_Op, op) == MPI_NO_OP;
}
