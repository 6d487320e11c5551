/* MPI_BOTTOM: the datatype has the addresses. Each of its blocks in the segment gets a stand-in, and MPI a copy of
 * the type with the stand-ins' addresses. */
#include "stand_in.h"

#include <stdint.h>
#include <stdlib.h>

/* The blocks of a type with addresses: a structure, or a list of blocks of one type. */
struct blocks {
    int count;
    int *lengths;
    MPI_Aint *addresses;
    MPI_Datatype *types;
    /* The lists as returned by MPI. */
    int *integers;
    int type_count;
    MPI_Datatype *given;
};

int vgasnet_mpi_is_predefined(MPI_Datatype type) {
    int integers, addresses, types, combiner;
    /* A type without an envelope must be neither freed nor decoded. */
    if (PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner)) return 1;
    return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_INTEGER ||
           combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX;
}

static void free_blocks(struct blocks *blocks) {
    int i;
    for (i = 0; i < blocks->type_count; ++i)
        if (!vgasnet_mpi_is_predefined(blocks->given[i])) PMPI_Type_free(&blocks->given[i]);
    free(blocks->lengths);
    free(blocks->addresses);
    free(blocks->types);
    free(blocks->integers);
    free(blocks->given);
}

static void *memory(const char *call, int count, size_t size) {
    void *memory = calloc((size_t)count + 1, size);
    if (memory == NULL) vgasnet_mpi_refuse(call, "there is no memory for the blocks of a datatype");
    return memory;
}

/* Returns whether the type consists of blocks. */
static int list_blocks(const char *call, MPI_Datatype type, struct blocks *blocks) {
    int integers, addresses, types, combiner, i;
    if (PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner)) return 0;
    if (combiner != MPI_COMBINER_STRUCT && combiner != MPI_COMBINER_HINDEXED && combiner != MPI_COMBINER_HINDEXED_BLOCK)
        return 0;
    *blocks = (struct blocks){
        .count = addresses,
        .lengths = memory(call, addresses, sizeof(int)),
        .addresses = memory(call, addresses, sizeof(MPI_Aint)),
        .types = memory(call, addresses, sizeof(MPI_Datatype)),
        .integers = memory(call, integers, sizeof(int)),
        .type_count = types,
        .given = memory(call, types, sizeof(MPI_Datatype)),
    };
    if (PMPI_Type_get_contents(type, integers, addresses, types, blocks->integers, blocks->addresses, blocks->given)) {
        blocks->type_count = 0;
        free_blocks(blocks);
        return 0;
    }
    /* The first integer is the number of blocks. */
    for (i = 0; i < addresses; ++i) {
        blocks->lengths[i] = blocks->integers[combiner == MPI_COMBINER_HINDEXED_BLOCK ? 1 : 1 + i];
        blocks->types[i] = blocks->given[combiner == MPI_COMBINER_STRUCT ? i : 0];
    }
    return 1;
}

static void span_of_block(const struct blocks *blocks, int i, MPI_Count *low, MPI_Count *high) {
    struct region block = {blocks->addresses[i], blocks->lengths[i], blocks->types[i]};
    vgasnet_mpi_span(&block, 1, low, high);
}

/* Whether data of this type, with absolute addresses, lie in the segment. */
int vgasnet_mpi_touches(MPI_Count count, MPI_Datatype type) {
    struct region all = {0, count, type};
    struct blocks blocks;
    MPI_Count low, high;
    int touches = 0, i;
    vgasnet_mpi_span(&all, 1, &low, &high);
    if (!vgasnet_mpi_overlaps_segment(low, high)) return 0;
    if (!list_blocks("MPI_BOTTOM", type, &blocks)) return 1;
    for (i = 0; i < blocks.count && !touches; ++i) {
        span_of_block(&blocks, i, &low, &high);
        touches = vgasnet_mpi_overlaps_segment(low, high);
    }
    free_blocks(&blocks);
    return touches;
}

/* Gives each block in the segment a stand-in, and stores their addresses in `blocks`. */
static void take_blocks(struct stand_in *it, struct blocks *blocks, int use) {
    int i;
    it->blocks = memory(it->call, blocks->count, sizeof *it->blocks);
    it->block_count = blocks->count;
    for (i = 0; i < blocks->count; ++i) {
        void *block = (void *)(uintptr_t)blocks->addresses[i];
        MPI_Count low, high;
        span_of_block(blocks, i, &low, &high);
        if (vgasnet_mpi_overlaps_segment(low, high) && !vgasnet_mpi_is_in_segment(low, high))
            vgasnet_mpi_refuse(it->call, "a block of the datatype begins or ends outside of the segment; give MPI_BOTTOM "
                                         "a structure of blocks that each lie in the segment or outside of it");
        if (block == NULL && low < high && vgasnet_mpi_is_in_segment(low, high))
            vgasnet_mpi_refuse(it->call, "a block of the datatype has the addresses in a datatype of its own; give "
                                         "MPI_BOTTOM a structure with the addresses");
        vgasnet_mpi_take(&it->blocks[i], it->call, block, blocks->lengths[i], blocks->types[i],
                         block == NULL ? UNUSED : use);
        blocks->addresses[i] = (MPI_Aint)(uintptr_t)it->blocks[i].buffer;
    }
}

void vgasnet_mpi_take_bottom(struct stand_in *it, MPI_Count count, int use) {
    struct blocks blocks;
    int i;
    if (!vgasnet_mpi_touches(count, it->type)) return;
    if (!(use & MAY_BE_BOTTOM) || count != 1 || !list_blocks(it->call, it->type, &blocks))
        vgasnet_mpi_refuse(it->call, "MPI_BOTTOM with addresses in the segment; give the buffer's own address, or one "
                                     "element of a structure with the addresses in a call with one buffer");
    take_blocks(it, &blocks, use & ~MAY_BE_BOTTOM);
    if (PMPI_Type_create_struct(blocks.count, blocks.lengths, blocks.addresses, blocks.types, &it->type) ||
        PMPI_Type_commit(&it->type))
        vgasnet_mpi_refuse(it->call, "MPI makes no copy of the datatype");
    /* The stand-ins need their types for the write-back. */
    for (i = 0; i < blocks.count; ++i) PMPI_Type_dup(blocks.types[i], &it->blocks[i].one.type);
    free_blocks(&blocks);
}

void vgasnet_mpi_write_back_bottom(struct stand_in *it, MPI_Count bytes) {
    int i;
    for (i = 0; i < it->block_count && bytes != 0; ++i) {
        struct stand_in *block = &it->blocks[i];
        MPI_Count size, all;
        PMPI_Type_size_x(block->one.type, &size);
        all = size * block->one.count;
        if (bytes != ALL && bytes < all) all = bytes;
        vgasnet_mpi_write_back(block, all);
        if (bytes != ALL) bytes -= all;
    }
}

void vgasnet_mpi_drop_bottom(struct stand_in *it) {
    int i;
    for (i = 0; i < it->block_count; ++i) {
        PMPI_Type_free(&it->blocks[i].one.type);
        vgasnet_mpi_drop(&it->blocks[i]);
    }
    free(it->blocks);
    PMPI_Type_free(&it->type);
}
