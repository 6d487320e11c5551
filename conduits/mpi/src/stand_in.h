/* Ordinary memory standing in for a buffer in this rank's segment while MPI uses it. MPI caches registrations of
 * memory, and must not fault, so it never gets an address in the segment. */
#ifndef VGASNET_STAND_IN_H
#define VGASNET_STAND_IN_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/* The use of a buffer by a call. */
enum {
    UNUSED = -1,       /* not significant on this rank, whatever its address */
    SCRATCH = 0,       /* significant, but neither read nor written */
    READ = 1,
    WRITE = 2,
    MAY_BE_BOTTOM = 4, /* one count and one type, replaceable by a copy of the type */
};

/* All bytes a buffer has room for. */
#define ALL ((MPI_Count)-1)

/* `count` elements, `at` bytes from the buffer's address. */
struct region {
    MPI_Aint at;
    MPI_Count count;
    MPI_Datatype type;
};

struct stand_in {
    const char *call;
    /* For MPI: the stand-in, or the program's own buffer if there is none. */
    void *buffer;
    MPI_Datatype type;
    /* The program's address of `buffer`'s data. */
    char *original;
    struct region one;
    struct region *regions;
    int count;
    /* Null without a stand-in. */
    void *memory;
    size_t bytes;
    int is_mapped;
    /* MPI_BOTTOM with addresses in the type: a stand-in for each of its blocks. */
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

/* bottom.c: MPI_BOTTOM, with the addresses in the type. */
void vgasnet_mpi_take_bottom(struct stand_in *it, MPI_Count count, int use);
void vgasnet_mpi_write_back_bottom(struct stand_in *it, MPI_Count bytes);
void vgasnet_mpi_drop_bottom(struct stand_in *it);

/* The first byte touched by the regions, and the one after the last; equal if there is none. */
void vgasnet_mpi_span(const struct region *regions, int count, MPI_Count *low, MPI_Count *high);

int vgasnet_mpi_overlaps_segment(MPI_Count low, MPI_Count high);
int vgasnet_mpi_is_in_segment(MPI_Count low, MPI_Count high);

/* The library's functions for the calls. */
struct vgasnet_mpi_functions {
    void (*get)(const char *call, void *to, const void *from, size_t bytes);
    void (*put)(const char *call, void *to, const void *from, size_t bytes);
    void (*refuse)(const char *call, const char *why);
    /* Memory still available to this rank. */
    uint64_t (*available_bytes)(void);
};

void vgasnet_mpi_set_functions(const struct vgasnet_mpi_functions *its);

/* Copies from and to the segment; errors end the job. */
void vgasnet_mpi_get(const char *call, void *to, const void *from, size_t bytes);
void vgasnet_mpi_put(const char *call, void *to, const void *from, size_t bytes);
void vgasnet_mpi_refuse(const char *call, const char *why);

/* Whether a type is predefined by MPI, with contiguous data. */
int vgasnet_mpi_is_predefined(MPI_Datatype type);

/* runs.c: the bytes covered by a type. */
struct run {
    MPI_Count at;
    MPI_Count bytes;
};

struct runs {
    struct run *list;
    size_t count;
};

/* The destination of the first `bytes` bytes of one element's data. Freed by the caller. */
struct runs vgasnet_mpi_runs(const char *call, MPI_Datatype type, MPI_Count bytes);

#endif
