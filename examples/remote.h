/* Memory read by all ranks with gets, for the examples lcc and barnes_hut. It works over vgasnet, with or without
 * vgasnet's cache of gets. Compiled with -DUSE_MPI it works over plain MPI-3 RMA.
 *
 * Each rank has a block of memory for its own loads and stores. Other ranks read it by rank and offset. Stores before a
 * barrier are visible after it. */
#ifndef REMOTE_H
#define REMOTE_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef USE_MPI
#include <mpi.h>
/* From a library that interposes MPI_Get with a cache; NULL without one. */
extern int CLAMPI_Invalidate(MPI_Win window) __attribute__((weak));
#else
#include <vgasnet.h>
#endif

/* Counters of the cache of gets, in the order of vgasnet_readonly_stats_t after its gets. */
#define REMOTE_CACHE_COUNTERS 13
static const char *const remote_cache_names[REMOTE_CACHE_COUNTERS] = {
    "hits",    "partial",   "joined",        "direct",  "conflicting", "capacity",  "failing",
    "evicted", "bytes_hit", "bytes_fetched", "entries", "bytes_used",  "bytes_max",
};

struct remote_counters {
    uint64_t gets, bytes; /* requested by the program */
    uint64_t cache[REMOTE_CACHE_COUNTERS];
};

struct remote {
    unsigned me, ranks;
    char *own;     /* the memory of this rank */
    int is_cached; /* gets use vgasnet's cache in read-only phases */
    int is_checked; /* compare the result with a run on one rank; -1: only if that is quick */
    int is_json;
    struct remote_counters counters;
#ifdef USE_MPI
    MPI_Win window;
#else
    vgasnet_seginfo_t *segments;
#endif
};

static struct remote remote;

static inline double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Ends the job. */
static inline void fail(const char *what) {
    fprintf(stderr, "rank %u: %s\n", remote.me, what);
#ifdef USE_MPI
    MPI_Abort(MPI_COMM_WORLD, 1);
#else
    vgasnet_exit(1);
#endif
}

/* Allocates zeroed memory. */
static inline void *memory(size_t count, size_t bytes) {
    void *found = calloc(count > 0 ? count : 1, bytes);
    if (found == NULL) fail("no memory for what does not lie in segments; give smaller sizes or more ranks");
    return found;
}

/* ---- start and end ---- */

/* Returns 0, or the exit status on failure. */
static inline int remote_start(int *argc, char ***argv) {
    remote.is_checked = -1;
#ifdef USE_MPI
    int me, ranks;
    if (MPI_Init(argc, argv) != MPI_SUCCESS) return 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    remote.me = (unsigned)me, remote.ranks = (unsigned)ranks;
#else
    if (vgasnet_init(argc, argv) != VGASNET_OK) return 1;
    remote.me = vgasnet_mynode(), remote.ranks = vgasnet_nodes();
#endif
    return 0;
}

/* Allocates zeroed memory on this rank, readable by the others. Returns 0, or the exit status on failure. */
static inline int remote_attach(size_t bytes) {
#ifdef USE_MPI
    bytes = (bytes + 4095) / 4096 * 4096; /* MPICH 4.0 reads wrong places unless sizes are whole pages */
    MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &remote.own, &remote.window);
    memset(remote.own, 0, bytes);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, remote.window);
#else
    if (vgasnet_attach(NULL, 0, bytes, 0) != VGASNET_OK) return 1;
    remote.segments = (vgasnet_seginfo_t *)memory(remote.ranks, sizeof *remote.segments);
    if (vgasnet_getSegmentInfo(remote.segments, (int)remote.ranks) != VGASNET_OK) return 1;
    remote.own = (char *)remote.segments[remote.me].addr;
#endif
    return 0;
}

/* Waits for all ranks. Stores of each rank to its own memory before the barrier can be read after it. */
static inline void remote_barrier(void) {
#ifdef USE_MPI
    MPI_Win_sync(remote.window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(remote.window);
#else
    vgasnet_barrier_notify(0, VGASNET_BARRIERFLAG_ANONYMOUS);
    vgasnet_barrier_wait(0, VGASNET_BARRIERFLAG_ANONYMOUS);
#endif
}

/* Every rank returns this from main. */
static inline int remote_end(int status) {
#ifdef USE_MPI
    if (remote.own != NULL) {
        MPI_Win_unlock_all(remote.window);
        MPI_Win_free(&remote.window);
    }
    MPI_Finalize();
#endif
    return status;
}

/* ---- gets ---- */

/* Starts a get from an offset in a rank's memory. */
static inline void remote_get_nb(void *to, unsigned rank, size_t offset, size_t bytes) {
    ++remote.counters.gets, remote.counters.bytes += bytes;
#ifdef USE_MPI
    MPI_Get(to, (int)bytes, MPI_BYTE, (int)rank, (MPI_Aint)offset, (int)bytes, MPI_BYTE, remote.window);
#else
    vgasnet_get_nbi_bulk(to, rank, (char *)remote.segments[rank].addr + offset, bytes);
#endif
}

/* Waits for all gets in flight from this rank. */
static inline void remote_wait(void) {
#ifdef USE_MPI
    MPI_Win_flush_all(remote.window);
#else
    vgasnet_wait_syncnbi_gets();
#endif
}

/* A blocking get. The weight is the value of the bytes to the cache; 1 is normal. */
static inline void remote_get(void *to, unsigned rank, size_t offset, size_t bytes, float weight) {
    ++remote.counters.gets, remote.counters.bytes += bytes;
#ifdef USE_MPI
    (void)weight;
    MPI_Get(to, (int)bytes, MPI_BYTE, (int)rank, (MPI_Aint)offset, (int)bytes, MPI_BYTE, remote.window);
    MPI_Win_flush((int)rank, remote.window);
#else
    vgasnet_get_weighted(to, rank, (char *)remote.segments[rank].addr + offset, bytes, weight);
#endif
}

/* ---- read-only phases ---- */

/* From here to remote_read_only_end no rank writes memory from this offset on that another rank reads. If all gets are
 * of whole objects, give their size; otherwise 0. */
static inline void remote_read_only_begin(size_t offset, size_t object_bytes) {
#ifdef USE_MPI
    (void)offset, (void)object_bytes;
#else
    vgasnet_readonly_options_t options = {sizeof options, 0, 0, object_bytes};
    for (unsigned rank = 0; remote.is_cached && rank < remote.ranks; ++rank) {
        vgasnet_seginfo_t segment = remote.segments[rank];
        if (rank == remote.me || segment.size <= offset) continue;
        int code = vgasnet_readonly_begin(rank, (char *)segment.addr + offset, segment.size - offset, 0, &options);
        if (code != VGASNET_OK) fail("a read-only range was refused");
    }
#endif
}

/* Call it after the last get of this rank and before other ranks write. */
static inline void remote_read_only_end(size_t offset) {
#ifdef USE_MPI
    (void)offset;
    if (CLAMPI_Invalidate != NULL) CLAMPI_Invalidate(remote.window);
#else
    if (!remote.is_cached) return;
    vgasnet_readonly_stats_t stats;
    if (vgasnet_readonly_stats(&stats, sizeof stats) == VGASNET_OK)
        memcpy(remote.counters.cache, &stats.hits, sizeof remote.counters.cache);
    for (unsigned rank = 0; rank < remote.ranks; ++rank) {
        vgasnet_seginfo_t segment = remote.segments[rank];
        if (rank != remote.me && segment.size > offset)
            vgasnet_readonly_end(rank, (char *)segment.addr + offset, segment.size - offset);
    }
#endif
}

/* ---- output ---- */

/* Adds the counters of another rank. */
static inline void remote_add_counters(struct remote_counters *sum, const struct remote_counters *other) {
    sum->gets += other->gets, sum->bytes += other->bytes;
    for (int at = 0; at < REMOTE_CACHE_COUNTERS; ++at) sum->cache[at] += other->cache[at];
}

/* Prints the counters as members of a JSON object. */
static inline void remote_print_json(const struct remote_counters *sum) {
    printf("\"gets\":%" PRIu64 ",\"bytes\":%" PRIu64, sum->gets, sum->bytes);
    for (int at = 0; at < REMOTE_CACHE_COUNTERS; ++at)
        printf(",\"%s\":%" PRIu64, remote_cache_names[at], sum->cache[at]);
}

/* On a terminal, shows rank 0's progress in a phase; call it often. */
static inline void remote_progress(const char *phase, size_t done, size_t all) {
    static double last;
    if (remote.me != 0 || !isatty(STDERR_FILENO)) return;
    double now = seconds();
    if (done < all && now - last < 0.2) return;
    last = now;
    if (done < all)
        fprintf(stderr, "\r%s: %3.0f %%", phase, 100.0 * (double)done / (double)all);
    else
        fprintf(stderr, "\r%*s\r", (int)strlen(phase) + 7, "");
}

/* Handles an option common to the examples. Returns 0 for any other option. */
static inline int remote_understands(const char *name) {
#ifndef USE_MPI
    if (strcmp(name, "--cached") == 0) return remote.is_cached = 1;
#endif
    if (strcmp(name, "--check") == 0 || strcmp(name, "--no-check") == 0) {
        remote.is_checked = strcmp(name, "--check") == 0;
        return 1;
    }
    return strcmp(name, "--json") == 0 ? (remote.is_json = 1) : 0;
}

/* Parses a number up to max; UINT64_MAX if the text is not one. */
static inline uint64_t number(const char *text, uint64_t max) {
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && value <= max ? value : UINT64_MAX;
}

#endif
