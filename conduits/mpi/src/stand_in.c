#include "stand_in.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

/* The address range of this rank's segment; empty before the program has attached. `segment.rs` sets it, after the
 * functions below. */
struct {
    uintptr_t base;
    size_t bytes;
} vgasnet_mpi_segment;

/* Functions of `segment.rs`. */
static struct vgasnet_mpi_functions functions;

void vgasnet_mpi_set_functions(const struct vgasnet_mpi_functions *its) { functions = *its; }

void vgasnet_mpi_get(const char *call, void *to, const void *from, size_t bytes) { functions.get(call, to, from, bytes); }
void vgasnet_mpi_put(const char *call, void *to, const void *from, size_t bytes) { functions.put(call, to, from, bytes); }

void vgasnet_mpi_refuse(const char *call, const char *why) {
    functions.refuse(call, why);
    abort();
}

int vgasnet_mpi_overlaps_segment(MPI_Count low, MPI_Count high) {
    MPI_Count base = (MPI_Count)vgasnet_mpi_segment.base;
    return low < high && low < base + (MPI_Count)vgasnet_mpi_segment.bytes && high > base;
}

int vgasnet_mpi_is_in_segment(MPI_Count low, MPI_Count high) {
    MPI_Count base = (MPI_Count)vgasnet_mpi_segment.base;
    return low >= base && high <= base + (MPI_Count)vgasnet_mpi_segment.bytes;
}

void vgasnet_mpi_span(const struct region *regions, int count, MPI_Count *low, MPI_Count *high) {
    int is_first = 1, i;
    *low = *high = 0;
    for (i = 0; i < count; ++i) {
        MPI_Count size, true_low, span, lower, extent, start, stride;
        if (regions[i].count <= 0) continue;
        PMPI_Type_size_x(regions[i].type, &size);
        if (size == 0) continue;
        PMPI_Type_get_true_extent_x(regions[i].type, &true_low, &span);
        PMPI_Type_get_extent_x(regions[i].type, &lower, &extent);
        start = regions[i].at + true_low;
        stride = (regions[i].count - 1) * extent;
        if (is_first || start + (stride < 0 ? stride : 0) < *low) *low = start + (stride < 0 ? stride : 0);
        if (is_first || start + (stride > 0 ? stride : 0) + span > *high)
            *high = start + (stride > 0 ? stride : 0) + span;
        is_first = 0;
    }
}

static void copy(struct stand_in *it, int writes, MPI_Count at, MPI_Count bytes) {
    char *own = it->original + at, *other = (char *)((uintptr_t)it->buffer + (uintptr_t)at);
    if (bytes <= 0) return;
    if (writes) vgasnet_mpi_put(it->call, own, other, (size_t)bytes);
    else vgasnet_mpi_get(it->call, other, own, (size_t)bytes);
}

static void copy_element(struct stand_in *it, int writes, MPI_Count at, struct runs runs) {
    size_t i;
    for (i = 0; i < runs.count; ++i) copy(it, writes, at + runs.list[i].at, runs.list[i].bytes);
}

/* Copies the first `bytes` bytes of a region's data between the segment and the stand-in. */
static void copy_region(struct stand_in *it, int writes, const struct region *region, MPI_Count bytes) {
    MPI_Count size, true_low, span, lower, extent, whole, at;
    struct runs runs;
    PMPI_Type_size_x(region->type, &size);
    if (size == 0 || bytes <= 0) return;
    PMPI_Type_get_true_extent_x(region->type, &true_low, &span);
    PMPI_Type_get_extent_x(region->type, &lower, &extent);
    whole = bytes / size;
    if (size == span && size == extent) {
        copy(it, writes, region->at + true_low, whole * size);
    } else if (whole > 0) {
        runs = vgasnet_mpi_runs(it->call, region->type, size);
        for (at = 0; at < whole; ++at) copy_element(it, writes, region->at + at * extent, runs);
        free(runs.list);
    }
    if (bytes % size == 0) return;
    runs = vgasnet_mpi_runs(it->call, region->type, bytes % size);
    copy_element(it, writes, region->at + whole * extent, runs);
    free(runs.list);
}

static void copy_all(struct stand_in *it, int writes, MPI_Count limit) {
    int i;
    for (i = 0; i < it->count && limit != 0; ++i) {
        MPI_Count size, bytes;
        PMPI_Type_size_x(it->regions[i].type, &size);
        bytes = it->regions[i].count * size;
        if (limit != ALL && bytes > limit) bytes = limit;
        if (bytes <= 0) continue;
        copy_region(it, writes, &it->regions[i], bytes);
        if (limit != ALL) limit -= bytes;
    }
}

/* Smaller copies are not checked against the available memory: the check takes a fraction of a millisecond. */
#define UNCHECKED_BYTES (16 << 20)

/* Allocates memory for the span of the buffer, with the same alignment. Gaps in it stay untouched, so they cost no
 * memory. The system may promise more memory than it has, and end the process when it is used. */
static void allocate(struct stand_in *it, MPI_Count low, MPI_Count high) {
    size_t offset = ((uintptr_t)it->original + (uintptr_t)low) % 64;
    MPI_Count covered = 0;
    int i, has_room;
    for (i = 0; i < it->count; ++i) {
        MPI_Count size;
        PMPI_Type_size_x(it->regions[i].type, &size);
        covered += it->regions[i].count * size;
    }
    it->bytes = (size_t)(high - low) + 64;
    it->is_mapped = covered < high - low;
    if (!it->is_mapped) covered = high - low;
    has_room = covered < UNCHECKED_BYTES || (uint64_t)covered <= functions.available_bytes();
    if (!has_room) {
        it->memory = NULL;
    } else if (it->is_mapped) {
        it->memory = mmap(NULL, it->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (it->memory == MAP_FAILED) it->memory = NULL;
    } else if (posix_memalign(&it->memory, 64, it->bytes)) {
        it->memory = NULL;
    }
    if (it->memory == NULL)
        vgasnet_mpi_refuse(it->call, "there is no memory for a copy of the buffer, which lies in the segment; hand "
                                     "MPI less at a time");
    it->buffer = (void *)((uintptr_t)it->memory + offset - (uintptr_t)low);
}

static void take(struct stand_in *it, int use) {
    MPI_Count low, high, address = (MPI_Count)(uintptr_t)it->original;
    vgasnet_mpi_span(it->regions, it->count, &low, &high);
    if (!vgasnet_mpi_overlaps_segment(address + low, address + high)) return;
    if (!vgasnet_mpi_is_in_segment(address + low, address + high))
        vgasnet_mpi_refuse(it->call, "the buffer lies partly in the segment and partly outside of it; give one that lies "
                                     "inside, or in ordinary memory");
    allocate(it, low, high);
    if (use & READ) copy_all(it, 0, ALL);
}

static void begin(struct stand_in *it, const char *call, const void *buffer, struct region *regions, int count) {
    it->call = call;
    it->buffer = (void *)(uintptr_t)buffer;
    it->original = it->buffer;
    it->regions = regions;
    it->count = count;
    it->memory = NULL;
    it->blocks = NULL;
}

void vgasnet_mpi_take(struct stand_in *it, const char *call, const void *buffer, MPI_Count count, MPI_Datatype type,
                      int use) {
    begin(it, call, buffer, &it->one, 1);
    it->type = type;
    it->one = (struct region){0, count, type};
    if (use == UNUSED || buffer == MPI_IN_PLACE) return;
    if (buffer == MPI_BOTTOM) vgasnet_mpi_take_bottom(it, count, use);
    else take(it, use);
}

void vgasnet_mpi_take_regions(struct stand_in *it, const char *call, const void *buffer, struct region *regions,
                              int count, int use) {
    begin(it, call, buffer, regions, count);
    if (use != UNUSED && buffer != MPI_IN_PLACE) take(it, use);
}

void vgasnet_mpi_write_back(struct stand_in *it, MPI_Count bytes) {
    if (it->blocks != NULL) vgasnet_mpi_write_back_bottom(it, bytes);
    else if (it->memory != NULL) copy_all(it, 1, bytes);
}

void vgasnet_mpi_drop(struct stand_in *it) {
    if (it->blocks != NULL) vgasnet_mpi_drop_bottom(it);
    if (it->memory != NULL && it->is_mapped) munmap(it->memory, it->bytes);
    else free(it->memory);
    if (it->regions != &it->one) free(it->regions);
}
