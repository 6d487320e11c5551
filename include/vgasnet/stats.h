/*
 * vgasnet: what this rank does, and where its time goes.
 *
 * Nothing is counted unless the job runs with VGASNET_STATS=1 or VGASNET_STATS_FILE; docs/reference/statistics.md tells what those
 * show, and more about each number.
 */
#ifndef VGASNET_STATS_H
#define VGASNET_STATS_H

#include <stddef.h>
#include <stdint.h>
#include <vgasnet/errors.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How often something happened, and how long it took, in nanoseconds. The percentiles are at most an eighth off. */
typedef struct {
    uint64_t count;
    uint64_t sum_ns;
    uint64_t p50_ns; /* half of them took no longer */
    uint64_t p90_ns;
    uint64_t p99_ns;
    uint64_t max_ns;
} vgasnet_stats_times_t;

/** Numbers of this rank since vgasnet_attach. Later versions of the library have more fields, at the end. */
typedef struct {
    uint64_t size_bytes; /* of what vgasnet_stats has filled in, this field included */
    uint64_t elapsed; /* time since vgasnet_attach, in nanoseconds */
    uint64_t threads; /* threads with at least one wait in the library; very many or very short-lived threads may
     * share a count */
    uint64_t page_size; /* VGASNET_PAGE_SIZE, in bytes */
    uint64_t pool_size; /* VGASNET_POOL_SIZE of a rank, in bytes */
    uint64_t hit_gets; /* gets, or their parts in one page, with the page in the own pool */
    uint64_t hit_puts; /* puts and memsets, or their parts in one page, with the page in the own pool */
    uint64_t hit_gets_neighbour; /* gets done in the pool of another rank of the host */
    uint64_t hit_puts_neighbour; /* puts done in the pool of another rank of the host */
    uint64_t hit_pins; /* pages pinned in place: vgasnet_pin, and transfers from segment to segment */
    uint64_t get_bytes; /* bytes asked for by gets, hits and misses */
    uint64_t put_bytes; /* bytes written by puts and memsets, hits and misses */
    vgasnet_stats_times_t miss_own_disk; /* waits for pages from the rank's own backing file */
    vgasnet_stats_times_t miss_neighbour; /* pages sent by another rank of the host, from its pool or its disk */
    vgasnet_stats_times_t miss_other_host; /* pages sent by a rank of another host, from its pool or its disk */
    vgasnet_stats_times_t miss_zeros; /* pages never written: no bytes moved */
    vgasnet_stats_times_t miss_right; /* pages in the pool without the right to write */
    vgasnet_stats_times_t miss_frame; /* the part of a miss spent waiting for a free frame, mostly until dirty pages
     * are written */
    vgasnet_stats_times_t miss_late; /* pages fetched by another thread before the engine looked */
    uint64_t overwritten; /* pages overwritten by one put: neither read nor sent */
    uint64_t refetched_2; /* pages fetched, also ahead, so soon after their eviction: a pool of twice the size would
     * still have them */
    uint64_t refetched_4; /* the same for four times the size, the row above included; too few with pools of more
     * than 21,000 pages */
    uint64_t fault_mapped; /* loads and stores with their page in the pool, unmapped; accesses to mapped pages leave
     * no trace and are not counted */
    uint64_t fault_read; /* loads with a fetch of their page */
    uint64_t fault_write; /* stores with a fetch of their page, or of the right to write it */
    uint64_t ahead_fetched; /* pages fetched before a request */
    uint64_t ahead_used; /* pages read ahead and then used, or asked for while in flight */
    uint64_t ahead_wasted; /* pages read ahead and evicted unused */
    uint64_t evicted_clean; /* pages evicted without writing */
    uint64_t evicted_dirty; /* pages evicted by way of their home's disk */
    uint64_t cleaned; /* dirty pages written back and kept */
    vgasnet_stats_times_t disk_read; /* reads of the own backing file, from the queue to the last byte */
    vgasnet_stats_times_t disk_write; /* writes to it */
    uint64_t disk_read_bytes; /* bytes read from it, for any rank */
    uint64_t disk_write_bytes; /* bytes written to it, for any rank */
    uint64_t disk_busy; /* time with at least one read or write queued or in flight, in nanoseconds */
    uint64_t page_in_neighbour_bytes; /* bytes of pages sent here by other ranks of the host */
    uint64_t page_in_other_host_bytes; /* bytes of pages sent here by ranks of other hosts */
    uint64_t page_out_neighbour_bytes; /* bytes of pages sent from this rank's pool to other ranks of the host */
    uint64_t page_out_other_host_bytes; /* bytes of pages sent from this rank's pool to ranks of other hosts */
    uint64_t served_pool; /* pages sent to other ranks from this rank's pool */
    uint64_t served_disk; /* pages sent to other ranks from this rank's disk */
    uint64_t served_zeros; /* answers to other ranks for pages never written */
    uint64_t served_stores; /* pages written back by other ranks to this rank's disk */
    uint64_t protocol_sent; /* messages to other ranks about pages, and of the job's barriers unless all share memory */
    uint64_t protocol_received; /* messages from other ranks about pages, and of the job's barriers unless all share
     * memory */
    uint64_t protocol_sent_bytes; /* their bytes */
    uint64_t active_sent; /* the program's requests and replies to other ranks */
    uint64_t active_received; /* the program's requests and replies from other ranks */
    uint64_t active_sent_bytes; /* their payload */
    uint64_t active_received_bytes; /* their payload */
    uint64_t collective_sent; /* messages of collectives to other ranks */
    uint64_t collective_received; /* messages of collectives from other ranks */
    uint64_t collective_sent_bytes; /* their payload */
    uint64_t collective_received_bytes; /* their payload */
    uint64_t collective_read_bytes; /* bytes read by this rank from memory of ranks of its host, without a message */
    vgasnet_stats_times_t wait_page; /* calls waiting for pages, and syncs */
    vgasnet_stats_times_t wait_fault; /* loads and stores waiting for their page */
    vgasnet_stats_times_t wait_barrier; /* waits for other ranks at barriers */
    vgasnet_stats_times_t wait_collective; /* waits for collectives */
    vgasnet_stats_times_t wait_credit; /* requests waiting until their target had handled earlier ones */
    vgasnet_stats_times_t wait_message; /* waits for an Active Message */
    vgasnet_stats_times_t wait_flush; /* without cooperative caching: waits for dirty pages to be written back at
     * barriers */
    vgasnet_stats_times_t wait_space; /* times of writes held up by a full disk */
    vgasnet_stats_times_t wait_end; /* waits for the programs of other ranks to end */
    uint64_t fault_borrowed; /* loads with their page in the pool of another rank of the host: mapped, not copied */
    uint64_t cleaned_ahead; /* the part of them written back because of a coming eviction */
    uint64_t zeros_came; /* pages never written, waited for or read ahead */
    uint64_t miss_joined; /* gets, puts, loads and stores, or their parts in one page, waiting for a page already
     * asked for; the first request is in the rows above */
    vgasnet_stats_times_t shipped; /* small gets, puts and atomic operations carried out by another rank with the
     * page, which did not move */
    uint64_t served_pieces; /* pieces of such operations carried out by this rank for others, or passed on by it as a
     * home */
    uint64_t in_blocks; /* small operations of any rank on pages of this rank in no pool, carried out in blocks of 4
     * KiB of the backing file; loads and stores with a mapped block count too */
    uint64_t block_hits; /* the part of them with blocks in memory */
    uint64_t block_reads; /* blocks of 4 KiB read from the backing file */
    uint64_t block_writes; /* blocks of 4 KiB written to it */
    uint64_t fault_block; /* loads and stores with a block of 4 KiB mapped or copied, as no pool had their page */
    vgasnet_stats_times_t block_wait; /* small operations, loads and stores waiting until their blocks were read, or
     * had room */
    uint64_t block_frames; /* frames of the pool given to blocks of the backing file, as blocks were read and pages
     * were not */
    uint64_t copy_gets; /* gets from ranges declared read-only, or their parts in one page: the sum of the next
     * eight; gets without a copy but with their page in the pool of this rank or a neighbour are under hits */
    uint64_t copy_hits; /* a copy had all bytes */
    uint64_t copy_partial; /* a copy had the first bytes, and the others were fetched */
    uint64_t copy_joined; /* the bytes were in flight for another get */
    uint64_t copy_direct; /* fetched, and there was room for a copy */
    uint64_t copy_conflicting; /* fetched, and another copy was evicted for room in the index */
    uint64_t copy_capacity; /* fetched, and another copy was evicted for room in memory */
    uint64_t copy_failing; /* fetched, and there was no room for a copy */
    uint64_t copy_dormant; /* fetched without a lookup, since lookups had not paid */
    uint64_t copy_hit_bytes; /* bytes served from copies */
    uint64_t copy_fetched_bytes; /* bytes fetched */
    uint64_t copy_used_bytes; /* memory of copies now; copies of ended ranges stay until the room is needed */
    uint64_t copy_max_bytes; /* most memory of copies: VGASNET_GET_CACHE_SIZE, and cache_bytes_max of ranges with
     * their own */
    uint64_t file_reads; /* calls reading from files, and runs of lists */
    uint64_t file_read_bytes; /* bytes read by them */
    uint64_t file_writes; /* calls writing to files, and runs of lists */
    uint64_t file_write_bytes; /* bytes written by them */
    uint64_t file_hits; /* reads and writes, or their parts in one page, with the page in a pool of this host; also
     * among hits */
    uint64_t file_shipped; /* parts of them carried out by another rank with the page; also among small operations */
    uint64_t file_disk_reads; /* pages, or blocks of 4 KiB, read from files by this rank as their home */
    uint64_t file_disk_read_bytes; /* their bytes; also under disk */
    uint64_t file_disk_writes; /* parts of pages, or blocks of 4 KiB, written to files by this rank as their home */
    uint64_t file_disk_write_bytes; /* their bytes; also under disk */
    uint64_t file_coalesced; /* the part of them written together with the bytes before them */
    uint64_t file_aged; /* pages written because they had been dirty for 5 s */
    uint64_t file_refused; /* calls refused because their bytes, or bytes before them, could not be written */
    vgasnet_stats_times_t wait_lock; /* waits for locks, asked for by the program or by an atomic call */
    uint64_t spill_bytes; /* bytes written to the node's disk first (VGASNET_FILE_SPILL) */
    uint64_t drain_bytes; /* bytes brought from there to their files */
    uint64_t offers_kept; /* pages leaving the last pool with a copy, kept by another rank in an idle frame */
    uint64_t offers_refused; /* the same, but the asked rank had no idle frame */
    uint64_t guests; /* pages of other ranks put into idle frames of this rank */
    uint64_t near_reads; /* small gets of pages of neighbours in no pool, read by this rank from the neighbour's
     * blocks or file */
    uint64_t block_ahead; /* blocks asked for ahead of small operations at equal distances; those of own pages are
     * also among blocks read */
    uint64_t fault_copied; /* of the loads with a block of 4 KiB, those that got a copy of it, which is dropped when
     * there are too many */
} vgasnet_stats_t;

/**
 * Tells what this rank has done since vgasnet_attach, and where its time went.
 *
 * Costs some microseconds. Numbers that other threads change meanwhile may be from different moments. Not collective,
 * any thread.
 *
 * @param stats receives the numbers; not null. size_bytes tells how much the library has filled in, which may be less
 *     than size
 * @param size size of *stats in bytes, at least 8: sizeof(vgasnet_stats_t)
 * @retval VGASNET_OK on success
 * @retval VGASNET_ERR_NOT_READY if nothing is counted in this job; nothing is filled in
 * @retval VGASNET_ERR_BAD_ARG if stats is null, or size is less than 8
 * @retval VGASNET_ERR_NOT_INIT before vgasnet_attach
 * @see vgasnet_readonly_stats, docs/reference/statistics.md
 */
int vgasnet_stats(vgasnet_stats_t *stats, size_t size);

#ifdef __cplusplus
}
#endif

#endif
