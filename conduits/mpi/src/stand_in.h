/* Ordinary memory that stands in for a buffer in the own segment while MPI has it. MPI remembers memory that it has
 * registered, and may not fault, so it is never given an address of the segment. */
#ifndef VGASNET_STAND_IN_H
#define VGASNET_STAND_IN_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/* What a call does with a buffer. */
enum {
    UNUSED = -1,       /* it is not significant on this rank, whatever its address */
    SCRATCH = 0,       /* it is significant, but neither read nor written */
    READ = 1,
    WRITE = 2,
    MAY_BE_BOTTOM = 4, /* one count and one type, which a copy of the type may replace */
};

/* All bytes that a buffer has place for. */
#define ALL ((MPI_Count)-1)

/* `count` elements, `at` bytes from the buffer's address. */
struct region {
    MPI_Aint at;
    MPI_Count count;
    MPI_Datatype type;
};

struct stand_in {
    const char *call;
    /* For MPI: the program's own where nothing stands in for it. */
    void *buffer;
    MPI_Datatype type;
    /* The program's address of what `buffer` points to. */
    char *original;
    struct region one;
    struct region *regions;
    int count;
    /* Null where nothing stands in. */
    void *memory;
    size_t bytes;
    int is_mapped;
    /* Of MPI_BOTTOM with addresses in the type: a stand-in for each block of it. */
    struct stand_in *blocks;
    int block_count;
};

/* Both end the job if there is no memory. `regions` come from malloc, and are freed with the stand-in. */
void vgasnet_mpi_take(struct stand_in *it, const char *call, const void *buffer, MPI_Count count, MPI_Datatype type,
                      int use);
void vgasnet_mpi_take_regions(struct stand_in *it, const char *call, const void *buffer, struct region *regions,
                              int count, int use);

/* Writes the first `bytes` bytes of the buffer's data, in the order of its types, back to the segment. */
void vgasnet_mpi_write_back(struct stand_in *it, MPI_Count bytes);

void vgasnet_mpi_drop(struct stand_in *it);

/* bottom.c: MPI_BOTTOM, where the type has the addresses. */
void vgasnet_mpi_take_bottom(struct stand_in *it, MPI_Count count, int use);
void vgasnet_mpi_write_back_bottom(struct stand_in *it, MPI_Count bytes);
void vgasnet_mpi_drop_bottom(struct stand_in *it);

/* The first byte that the regions touch from an address on, and the first one behind; equal if there is none. */
void vgasnet_mpi_span(const struct region *regions, int count, MPI_Count *low, MPI_Count *high);

int vgasnet_mpi_overlaps_segment(MPI_Count low, MPI_Count high);
int vgasnet_mpi_is_in_segment(MPI_Count low, MPI_Count high);

/* What the library does for the calls. */
struct vgasnet_mpi_functions {
    void (*get)(const char *call, void *to, const void *from, size_t bytes);
    void (*put)(const char *call, void *to, const void *from, size_t bytes);
    void (*refuse)(const char *call, const char *why);
    /* The memory that this rank may still take. */
    uint64_t (*available_bytes)(void);
};

void vgasnet_mpi_set_functions(const struct vgasnet_mpi_functions *its);

/* Of the segment; they end the job if they fail. */
void vgasnet_mpi_get(const char *call, void *to, const void *from, size_t bytes);
void vgasnet_mpi_put(const char *call, void *to, const void *from, size_t bytes);
void vgasnet_mpi_refuse(const char *call, const char *why);

/* Whether a type is MPI's own, whose data are in order. */
int vgasnet_mpi_is_predefined(MPI_Datatype type);

/* runs.c: the bytes that a type covers. */
struct run {
    MPI_Count at;
    MPI_Count bytes;
};

struct runs {
    struct run *list;
    size_t count;
};

/* The bytes that the first `bytes` bytes of data of one element come to lie in. Freed by the caller. */
struct runs vgasnet_mpi_runs(const char *call, MPI_Datatype type, MPI_Count bytes);

#endif
