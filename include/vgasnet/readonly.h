/*
 * vgasnet: read-only ranges. While a range is declared read-only, small gets from it are served from copies that this rank keeps.
 *
 * A declaration is a promise of the calling rank's program: from vgasnet_readonly_begin to vgasnet_readonly_end no rank writes
 * to the range. It concerns the calling rank alone; ranks declare what they read, and need not declare the same. Gets of all
 * kinds look for their bytes among the copies: blocking, non-blocking, by value, of lists. A get whose bytes are not there
 * fetches them, as ever, and leaves a copy. Programs that read the same few bytes of large segments again and again gain by
 * it: graphs, trees, tables.
 *
 * One phase of a program:
 *
 *   vgasnet_barrier_...                                    all ranks have written what is read now
 *   vgasnet_readonly_begin(node, addr, len, 0, NULL)       for each segment, or part of one, that this rank reads
 *   gets
 *   vgasnet_readonly_end(node, addr, len)                  after the last of them is complete
 *   vgasnet_barrier_...                                    now it may be written again
 *
 * The copies take memory besides the pool, at most VGASNET_GET_CACHE_SIZE, which is an eighth of the pool by default; they
 * have none before the first range is declared. If the system has no memory for them, one line says so, and gets go on as
 * without copies.
 *
 * Fatal: a put, memset or atomic operation of the calling rank into a range that it has declared. What other ranks write, and
 * what this one stores, is found with VGASNET_CHECK_READONLY=1: vgasnet_readonly_end then asks the range's rank which pages
 * were written since the begin, and is fatal if any was; its line names the rank that wrote and the page's address, or
 * the byte's in pages that lie only partly in the range. Begin reads the pages that ranks may write without asking, so that they ask,
 * which takes time.
 */
#ifndef VGASNET_READONLY_H
#define VGASNET_READONLY_H

#include <stddef.h>
#include <stdint.h>
#include <vgasnet/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Copies that an earlier phase has left are used again, if that phase had the same range, options and this flag. Copies of
 * pages that may have been written since are not. A page may have been written as long as a rank has the right to write it
 * without asking; begin has node give up that right on its own pages. Without the flag the copies are forgotten.
 */
#define VGASNET_READONLY_KEEP 1

/** Options of vgasnet_readonly_begin. 0 in a field, or no structure, stands for the default. */
typedef struct {
    size_t struct_bytes; /* sizeof(vgasnet_readonly_options_t) */
    size_t cache_bytes_max; /* memory for the copies, 64K to 64G; ranges that give the same share it. VGASNET_GET_CACHE_SIZE */
    size_t get_bytes_max; /* larger gets leave no copy; at most 65536, which is the default */
    size_t object_bytes; /* the range is an array of objects of this size: a get of a part of one fetches it all. None */
} vgasnet_readonly_options_t;

/**
 * Declares that no rank writes to a range of a rank's segment, so that small gets from it are cached.
 *
 * Not collective: it concerns the calling rank alone, and ranks need not declare the same. It is local unless
 * VGASNET_READONLY_KEEP or VGASNET_CHECK_READONLY=1 makes it ask node. Any thread.
 *
 * Fatal: a put, memset or atomic operation of the calling rank into the range before its end.
 *
 * @param node rank with the range in its segment, 0 to vgasnet_nodes() - 1
 * @param addr first address of the range, a remote address
 * @param len length of the range in bytes, at least 1
 * @param flags 0 or VGASNET_READONLY_KEEP
 * @param options memory for copies and sizes of gets; null for the defaults. At most 8 different values of
 *     cache_bytes_max may be given in a job
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG if the range is empty, not in the segment, or overlaps a declared one; for unknown flags
 *     and options
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_readonly_end, vgasnet_get, vgasnet_readonly_stats, docs/reference/cached-gets.md
 */
int vgasnet_readonly_begin(vgasnet_node_t node, void *addr, size_t len, int flags, const vgasnet_readonly_options_t *options);

/**
 * Ends the declaration of a read-only range.
 *
 * Call it after the rank's last get from the range is complete. The next write may come after a barrier. With
 * VGASNET_CHECK_READONLY=1 it asks node which pages were written. Not collective, any thread.
 *
 * Fatal: with VGASNET_CHECK_READONLY=1, a write to the range since its begin, by any rank.
 *
 * @param node as for vgasnet_readonly_begin
 * @param addr as for vgasnet_readonly_begin
 * @param len as for vgasnet_readonly_begin, in bytes
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG if this rank has declared no such range
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_readonly_begin
 */
int vgasnet_readonly_end(vgasnet_node_t node, void *addr, size_t len);

/**
 * Reads bytes of a rank's segment as vgasnet_get, with a weight for the copy in the get cache.
 *
 * Of copies that were used as much, one with more weight stays longer. Outside read-only ranges the weight has no
 * effect. Not collective, any thread.
 *
 * Fatal: a weight that is no positive number; a rank that does not exist, bytes outside its segment, a null local
 * address with nbytes > 0, a call before vgasnet_attach, an I/O error on a page without another copy.
 *
 * @param dest local address that receives the bytes
 * @param node rank to read from, 0 to vgasnet_nodes() - 1
 * @param src remote address in the segment of node, any alignment
 * @param nbytes number of bytes, 0 or more, no maximum
 * @param weight a positive number: 1 is usual, 2 counts twice
 * @see vgasnet_get, vgasnet_readonly_begin
 */
void vgasnet_get_weighted(void *dest, vgasnet_node_t node, void *src, size_t nbytes, float weight);

/**
 * How this rank's gets from declared ranges were served since the job began. Gets are counted by pages: one that lies in
 * two counts twice. A get that finds no copy, but its page in the pool of this rank or of a neighbour, is not counted.
 */
typedef struct {
    uint64_t gets; /* all of the following seven, and those that were not looked for since looking had not paid */
    uint64_t hits; /* all bytes were here */
    uint64_t partial; /* the first bytes were here, and the others were fetched */
    uint64_t joined; /* the bytes were on their way for another get */
    uint64_t direct; /* fetched, and there was room for a copy */
    uint64_t conflicting; /* fetched, and another copy had to go for room in the index */
    uint64_t capacity; /* fetched, and another copy had to go for room in memory */
    uint64_t failing; /* fetched, and there was no room */
    uint64_t evicted; /* copies that had to go */
    uint64_t bytes_hit; /* bytes that were here */
    uint64_t bytes_fetched; /* bytes that were not */
    uint64_t entries; /* copies now */
    uint64_t bytes_used; /* bytes of memory that they take */
    uint64_t bytes_max; /* bytes of memory that they may take */
} vgasnet_readonly_stats_t;

/**
 * Tells how this rank's gets from read-only ranges were served since the job began.
 *
 * Not collective, any thread.
 *
 * @param stats receives the numbers; not null
 * @param struct_bytes size of *stats in bytes, a multiple of 8: sizeof(vgasnet_readonly_stats_t)
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_BAD_ARG for a null pointer, or for a size that the structure cannot have
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_readonly_begin, vgasnet_stats
 */
int vgasnet_readonly_stats(vgasnet_readonly_stats_t *stats, size_t struct_bytes);

#ifdef __cplusplus
}
#endif

#endif
