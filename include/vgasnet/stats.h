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

/* How often something happened, and how long it took, in nanoseconds. The percentiles are at most an eighth off. */
typedef struct {
    uint64_t count;
    uint64_t sum_ns;
    uint64_t p50_ns; /* half of them took no longer */
    uint64_t p90_ns;
    uint64_t p99_ns;
    uint64_t max_ns;
} vgasnet_stats_times_t;

/* Numbers of this rank since vgasnet_attach. Later versions of the library have more fields, at the end. */
typedef struct {
    uint64_t size_bytes; /* of what vgasnet_stats has filled in, this field included */
    uint64_t elapsed; /* time since vgasnet_attach, in nanoseconds */
    uint64_t threads; /* threads that waited in the library at least once; very many, or very short-lived ones, may
     * share a count */
    uint64_t page_size; /* VGASNET_PAGE_SIZE, in bytes */
    uint64_t pool_size; /* VGASNET_POOL_SIZE of a rank, in bytes */
    uint64_t hit_gets; /* gets, or their parts in one page, that found the page in the own pool */
    uint64_t hit_puts; /* puts and memsets, likewise */
    uint64_t hit_gets_neighbour; /* gets that were done in the pool of another rank of the host */
    uint64_t hit_puts_neighbour; /* puts that were done there */
    uint64_t hit_pins; /* pages that were pinned where they were: vgasnet_pin, and transfers from segment to segment */
    uint64_t get_bytes; /* bytes that gets asked for, hits and misses */
    uint64_t put_bytes; /* bytes that puts and memsets wrote, hits and misses */
    vgasnet_stats_times_t miss_own_disk; /* pages that were waited for and came from the rank's own backing file */
    vgasnet_stats_times_t miss_neighbour; /* pages that another rank of the host sent, from its pool or its disk */
    vgasnet_stats_times_t miss_other_host; /* pages that a rank of another host sent, from its pool or its disk */
    vgasnet_stats_times_t miss_zeros; /* pages that nobody had written: no bytes moved */
    vgasnet_stats_times_t miss_right; /* pages that were here and lacked the right to write */
    vgasnet_stats_times_t miss_frame; /* pages that found no free frame: the part of their wait until they had one,
     * mostly for dirty pages to be written */
    vgasnet_stats_times_t miss_late; /* pages that another thread had fetched before the engine looked */
    uint64_t overwritten; /* pages that one put overwrote: they were neither read nor sent */
    uint64_t refetched_2; /* pages that were fetched, also ahead, and had been evicted so lately that a pool of twice
     * the size would still have them */
    uint64_t refetched_4; /* likewise, four times the size, those of twice the size included; pools of more than
     * 21,000 pages: too few */
    uint64_t fault_mapped; /* loads and stores that found their page in the pool, unmapped; those to mapped pages
     * leave no trace and cannot be counted */
    uint64_t fault_read; /* loads that fetched a page */
    uint64_t fault_write; /* stores that fetched a page, or the right to write it */
    uint64_t ahead_fetched; /* pages that came before they were asked for */
    uint64_t ahead_used; /* those that were used afterwards, or were asked for on their way */
    uint64_t ahead_wasted; /* those that left the pool unused */
    uint64_t evicted_clean; /* pages that left the pool to make room, and needed no writing */
    uint64_t evicted_dirty; /* pages that left it by way of their home's disk */
    uint64_t cleaned; /* dirty pages that were written back and stayed */
    vgasnet_stats_times_t disk_read; /* reads of the own backing file, from the queue to the last byte */
    vgasnet_stats_times_t disk_write; /* writes to it */
    uint64_t disk_read_bytes; /* bytes read from it, for whichever rank */
    uint64_t disk_write_bytes; /* bytes written to it, for whichever rank */
    uint64_t disk_busy; /* time in which there was at least one read or write to do, in nanoseconds */
    uint64_t page_in_neighbour_bytes; /* bytes of pages that other ranks of the host sent here */
    uint64_t page_in_other_host_bytes; /* bytes of pages that ranks of other hosts sent here */
    uint64_t page_out_neighbour_bytes; /* bytes of pages that this rank's pool gave to other ranks of the host */
    uint64_t page_out_other_host_bytes; /* bytes of pages that this rank's pool gave to ranks of other hosts */
    uint64_t served_pool; /* pages that other ranks got from this rank's pool */
    uint64_t served_disk; /* pages that other ranks got from this rank's disk */
    uint64_t served_zeros; /* pages of this rank that nobody had written, told to other ranks */
    uint64_t served_stores; /* pages that other ranks wrote back to this rank's disk */
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
    uint64_t collective_read_bytes; /* bytes that this rank read from memory of ranks of its host, without a message */
    vgasnet_stats_times_t wait_page; /* calls that waited for pages, and syncs */
    vgasnet_stats_times_t wait_fault; /* loads and stores that waited for their page */
    vgasnet_stats_times_t wait_barrier; /* waits for other ranks at barriers */
    vgasnet_stats_times_t wait_collective; /* waits for collectives */
    vgasnet_stats_times_t wait_credit; /* requests that waited until their target had handled earlier ones */
    vgasnet_stats_times_t wait_message; /* waits for an Active Message */
    vgasnet_stats_times_t wait_flush; /* without cooperative caching: waits for dirty pages to be written back at
     * barriers */
    vgasnet_stats_times_t wait_space; /* times in which writes found the disk full */
    vgasnet_stats_times_t wait_end; /* waits for the programs of other ranks to end */
    uint64_t fault_borrowed; /* loads that found their page in the pool of another rank of the host, which was mapped
     * and not copied */
    uint64_t cleaned_ahead; /* those that were written back because they would be evicted soon */
    uint64_t zeros_came; /* pages that nobody had written and that came, waited for or ahead */
    uint64_t miss_joined; /* gets, puts, loads and stores, or their parts in one page, that waited for a page which
     * another had asked for; that one is in the rows above */
    vgasnet_stats_times_t shipped; /* small gets, puts and atomic operations that another rank carried out where
     * their page was, which did not move */
    uint64_t served_pieces; /* pieces of them that this rank carried out for others, or as a home passed on */
    uint64_t in_blocks; /* small operations of this rank and of others on pages of this rank that no pool had,
     * carried out in blocks of 4 KiB of the backing file; loads and stores for which a block was mapped count too */
    uint64_t block_hits; /* those whose blocks were in memory */
    uint64_t block_reads; /* blocks of 4 KiB that were read from the backing file */
    uint64_t block_writes; /* blocks of 4 KiB that were written to it */
    uint64_t fault_block; /* loads and stores for which a block of 4 KiB was mapped, and not their page, which no
     * pool had */
    vgasnet_stats_times_t block_wait; /* small operations, loads and stores that waited until their blocks were read,
     * or room for them was there */
    uint64_t block_frames; /* times that a frame of the pool came to serve for blocks of the backing file, because
     * those were read and pages were not */
    uint64_t copy_gets; /* gets from ranges that the rank has declared read-only, or their parts in one page: all of
     * the following eight; those that found no copy, but their page in the pool of this rank or of a neighbour, are
     * under hits */
    uint64_t copy_hits; /* a copy had all bytes */
    uint64_t copy_partial; /* a copy had the first bytes, and the others were fetched */
    uint64_t copy_joined; /* the bytes were on their way for another get */
    uint64_t copy_direct; /* fetched, and there was room for a copy */
    uint64_t copy_conflicting; /* fetched, and another copy had to go for room in the index */
    uint64_t copy_capacity; /* fetched, and another copy had to go for room in memory */
    uint64_t copy_failing; /* fetched, and there was no room for a copy */
    uint64_t copy_dormant; /* fetched, and not looked for, since looking had not paid */
    uint64_t copy_hit_bytes; /* bytes that copies had */
    uint64_t copy_fetched_bytes; /* bytes that they had not */
    uint64_t copy_used_bytes; /* memory that copies take now; those of ranges that have ended do until the room is
     * needed */
    uint64_t copy_max_bytes; /* memory that they may take: VGASNET_GET_CACHE_SIZE, and cache_bytes_max of ranges that
     * have their own */
    uint64_t file_reads; /* calls that read from files, and the runs of lists that do */
    uint64_t file_read_bytes; /* bytes that they read */
    uint64_t file_writes; /* calls that write to files, and the runs of lists that do */
    uint64_t file_write_bytes; /* bytes that they wrote */
    uint64_t file_hits; /* reads and writes, or their parts in one page, that found the page in a pool of this host;
     * they are among hits, too */
    uint64_t file_shipped; /* parts of them that another rank carried out where their page was; they are among small
     * operations, too */
    uint64_t file_disk_reads; /* pages, or blocks of 4 KiB, that this rank read from files as their home */
    uint64_t file_disk_read_bytes; /* their bytes; they are under disk, too */
    uint64_t file_disk_writes; /* parts of pages, or blocks of 4 KiB, that this rank wrote to files as their home */
    uint64_t file_disk_write_bytes; /* their bytes; they are under disk, too */
    uint64_t file_coalesced; /* those that went to the file system in one write with what lies before them */
    uint64_t file_aged; /* pages that were written because they had been dirty for 5 s */
    uint64_t file_refused; /* calls that were refused since something before could not be written, or whose bytes
     * could not be */
    vgasnet_stats_times_t wait_lock; /* locks that a program or a call that is one step asked for, until granted */
    uint64_t spill_bytes; /* bytes that went to the node's disk first (VGASNET_FILE_SPILL) */
    uint64_t drain_bytes; /* bytes that were brought from there to their files */
    uint64_t offers_kept; /* pages about to leave the last pool that another rank keeps in an idle frame */
    uint64_t offers_refused; /* those for which the rank that was asked had no idle frame */
    uint64_t guests; /* pages that came to idle frames of this rank for others */
} vgasnet_stats_t;

/*
 * Fills in the first size bytes of a structure, as far as this library has them; give sizeof(vgasnet_stats_t). What the
 * library does not have is not touched: size_bytes tells how much it has filled in. Costs some microseconds. Numbers that
 * other threads change meanwhile may be from different moments.
 *
 * VGASNET_ERR_NOT_READY: nothing is counted in this job; nothing is filled in.
 * VGASNET_ERR_BAD_ARG: stats is null, or size is less than that of the first field.
 */
int vgasnet_stats(vgasnet_stats_t *stats, size_t size);

#ifdef __cplusplus
}
#endif

#endif
