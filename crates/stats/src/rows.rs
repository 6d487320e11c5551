//! The rows of the statistics. The table for users, the file in JSON, the structure of C and
//! docs/reference/statistics.md are all made from them.

/// The kind of a row's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Number of events.
    Count,
    /// Bytes; the job has the sum of all ranks.
    Bytes,
    /// Bytes; the job has the largest of all ranks.
    SettingBytes,
    /// Nanoseconds; the job has the longest of all ranks.
    SpanNs,
    /// Nanoseconds; the job has the sum of all ranks.
    TimeNs,
    /// Number and duration of events. A rank is shown by the number.
    Latency,
    /// Number and duration of events. A rank is shown by the total duration.
    Wait,
}

impl Kind {
    /// Whether each single duration is recorded.
    pub const fn is_timed(self) -> bool {
        matches!(self, Kind::Latency | Kind::Wait)
    }
}

/// The declaration of a row.
#[derive(Clone, Copy, Debug)]
pub struct Declared {
    /// The row.
    pub row: Row,
    /// Its name in JSON and C.
    pub name: &'static str,
    /// The kind of its number.
    pub kind: Kind,
    /// The heading above it.
    pub section: &'static str,
    /// Its name in the table for users: at most 30 letters.
    pub label: &'static str,
    /// Its meaning, in a sentence without its end.
    pub meaning: &'static str,
}

macro_rules! rows {
    ($($row:ident $name:ident $kind:ident $section:literal $label:literal $meaning:literal)*) => {
        /// A row.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Row {
            $(#[doc = $meaning] $row,)*
        }

        /// All rows, in the order of the structure of C. New rows go to the end.
        pub const ROWS: &[Declared] = &[$(Declared {
            row: Row::$row,
            name: stringify!($name),
            kind: Kind::$kind,
            section: $section,
            label: $label,
            meaning: $meaning,
        },)*];
    };
}

rows! {
    Elapsed elapsed SpanNs "job" "time since attach" "time since `vgasnet_attach`"
    Threads threads Count "job" "threads that waited"
        "threads with at least one wait in the library; very many or very short-lived threads may share a count"
    PageSize page_size SettingBytes "job" "page size" "`VGASNET_PAGE_SIZE`"
    PoolSize pool_size SettingBytes "job" "pool size" "`VGASNET_POOL_SIZE` of a rank"

    HitGets hit_gets Count "hits" "gets, own pool"
        "gets, or their parts in one page, with the page in the own pool"
    HitPuts hit_puts Count "hits" "puts, own pool"
        "puts and memsets, or their parts in one page, with the page in the own pool"
    HitGetsNeighbour hit_gets_neighbour Count "hits" "gets, neighbour's pool"
        "gets done in the pool of another rank of the host"
    HitPutsNeighbour hit_puts_neighbour Count "hits" "puts, neighbour's pool"
        "puts done in the pool of another rank of the host"
    HitPins hit_pins Count "hits" "pins"
        "pages pinned in place: `vgasnet_pin`, and transfers from segment to segment"
    GetBytes get_bytes Bytes "hits" "bytes asked for by gets" "bytes asked for by gets, hits and misses"
    PutBytes put_bytes Bytes "hits" "bytes written by puts" "bytes written by puts and memsets, hits and misses"

    MissOwnDisk miss_own_disk Latency "misses" "own disk"
        "waits for pages from the rank's own backing file"
    MissNeighbour miss_neighbour Latency "misses" "rank of this host"
        "pages sent by another rank of the host, from its pool or its disk"
    MissOtherHost miss_other_host Latency "misses" "rank of another host"
        "pages sent by a rank of another host, from its pool or its disk"
    MissZeros miss_zeros Latency "misses" "zeros" "pages never written: no bytes moved"
    MissRight miss_right Latency "misses" "right to write only" "pages in the pool without the right to write"
    MissFrame miss_frame Latency "misses" "until a frame is free"
        "the part of a miss spent waiting for a free frame, mostly until dirty pages are written"
    MissLate miss_late Latency "misses" "here by then" "pages fetched by another thread before the engine looked"
    Overwritten overwritten Count "misses" "overwritten whole"
        "pages overwritten by one put: neither read nor sent"
    Refetched2 refetched_2 Count "misses" "spared by a pool of 2 x"
        "pages fetched, also ahead, so soon after their eviction: a pool of twice the size would still have them"
    Refetched4 refetched_4 Count "misses" "spared by a pool of 4 x"
        "the same for four times the size, the row above included; too few with pools of more than 21,000 pages"

    FaultMapped fault_mapped Count "faults" "page here, not mapped"
        "loads and stores with their page in the pool, unmapped; accesses to mapped pages leave no trace and \
         are not counted"
    FaultRead fault_read Count "faults" "loads that missed" "loads with a fetch of their page"
    FaultWrite fault_write Count "faults" "stores that missed"
        "stores with a fetch of their page, or of the right to write it"

    AheadFetched ahead_fetched Count "pool" "read ahead" "pages fetched before a request"
    AheadUsed ahead_used Count "pool" "read ahead and used"
        "pages read ahead and then used, or asked for while in flight"
    AheadWasted ahead_wasted Count "pool" "read ahead and wasted" "pages read ahead and evicted unused"
    EvictedClean evicted_clean Count "pool" "evicted clean"
        "pages evicted without writing"
    EvictedDirty evicted_dirty Count "pool" "evicted dirty" "pages evicted by way of their home's disk"
    Cleaned cleaned Count "pool" "written back and kept" "dirty pages written back and kept"

    DiskRead disk_read Latency "disk" "reads" "reads of the own backing file, from the queue to the last byte"
    DiskWrite disk_write Latency "disk" "writes" "writes to it"
    DiskReadBytes disk_read_bytes Bytes "disk" "bytes read" "bytes read from it, for any rank"
    DiskWriteBytes disk_write_bytes Bytes "disk" "bytes written" "bytes written to it, for any rank"
    DiskBusy disk_busy TimeNs "disk" "time with work" "time with at least one read or write queued or in flight"

    PageInNeighbour page_in_neighbour_bytes Bytes "pages moved" "from ranks of this host"
        "bytes of pages sent here by other ranks of the host"
    PageInOtherHost page_in_other_host_bytes Bytes "pages moved" "from ranks of other hosts"
        "bytes of pages sent here by ranks of other hosts"
    PageOutNeighbour page_out_neighbour_bytes Bytes "pages moved" "to ranks of this host"
        "bytes of pages sent from this rank's pool to other ranks of the host"
    PageOutOtherHost page_out_other_host_bytes Bytes "pages moved" "to ranks of other hosts"
        "bytes of pages sent from this rank's pool to ranks of other hosts"

    ServedPool served_pool Count "served for others" "pages from the pool"
        "pages sent to other ranks from this rank's pool"
    ServedDisk served_disk Count "served for others" "pages from the disk"
        "pages sent to other ranks from this rank's disk"
    ServedZeros served_zeros Count "served for others" "pages of zeros"
        "answers to other ranks for pages never written"
    ServedStores served_stores Count "served for others" "pages to the disk"
        "pages written back by other ranks to this rank's disk"

    ProtocolSent protocol_sent Count "messages" "protocol, sent"
        "messages to other ranks about pages, and of the job's barriers unless all share memory"
    ProtocolReceived protocol_received Count "messages" "protocol, received"
        "messages from other ranks about pages, and of the job's barriers unless all share memory"
    ProtocolSentBytes protocol_sent_bytes Bytes "messages" "protocol, bytes sent" "their bytes"
    ActiveSent active_sent Count "messages" "Active, sent" "the program's requests and replies to other ranks"
    ActiveReceived active_received Count "messages" "Active, received"
        "the program's requests and replies from other ranks"
    ActiveSentBytes active_sent_bytes Bytes "messages" "Active, bytes sent" "their payload"
    ActiveReceivedBytes active_received_bytes Bytes "messages" "Active, bytes received" "their payload"
    CollectiveSent collective_sent Count "messages" "collectives, sent" "messages of collectives to other ranks"
    CollectiveReceived collective_received Count "messages" "collectives, received"
        "messages of collectives from other ranks"
    CollectiveSentBytes collective_sent_bytes Bytes "messages" "collectives, bytes sent" "their payload"
    CollectiveReceivedBytes collective_received_bytes Bytes "messages" "collectives, bytes received" "their payload"
    CollectiveReadBytes collective_read_bytes Bytes "messages" "collectives, bytes read"
        "bytes read by this rank from memory of ranks of its host, without a message"

    WaitPage wait_page Wait "waits" "gets, puts and pins" "calls waiting for pages, and syncs"
    WaitFault wait_fault Wait "waits" "loads and stores" "loads and stores waiting for their page"
    WaitBarrier wait_barrier Wait "waits" "barriers" "waits for other ranks at barriers"
    WaitCollective wait_collective Wait "waits" "collectives" "waits for collectives"
    WaitCredit wait_credit Wait "waits" "credit for messages"
        "requests waiting until their target had handled earlier ones"
    WaitMessage wait_message Wait "waits" "messages" "waits for an Active Message"
    WaitFlush wait_flush Wait "waits" "write-back at barriers"
        "without cooperative caching: waits for dirty pages to be written back at barriers"
    WaitSpace wait_space Wait "waits" "space on the disk" "times of writes held up by a full disk"
    WaitEnd wait_end Wait "waits" "end of other ranks" "waits for the programs of other ranks to end"
    FaultBorrowed fault_borrowed Count "faults" "neighbour's page mapped"
        "loads with their page in the pool of another rank of the host: mapped, not copied"
    CleanedAhead cleaned_ahead Count "pool" "written back ahead of need"
        "the part of them written back because of a coming eviction"
    ZerosCame zeros_came Count "pool" "pages of zeros" "pages never written, waited for or read ahead"
    MissJoined miss_joined Count "misses" "joined a miss under way"
        "gets, puts, loads and stores, or their parts in one page, waiting for a page already asked for; the \
         first request is in the rows above"
    Shipped shipped Latency "small operations" "carried out elsewhere"
        "small gets, puts and atomic operations carried out by another rank with the page, which did not move"
    ServedPieces served_pieces Count "small operations" "carried out for others"
        "pieces of such operations carried out by this rank for others, or passed on by it as a home"
    InBlocks in_blocks Count "small operations" "in blocks of the file"
        "small operations of any rank on pages of this rank in no pool, carried out in blocks of 4 KiB of \
         the backing file; loads and stores with a mapped block count too"
    BlockHits block_hits Count "small operations" "in blocks, without the disk"
        "the part of them with blocks in memory"
    BlockReads block_reads Count "small operations" "blocks read" "blocks of 4 KiB read from the backing file"
    BlockWrites block_writes Count "small operations" "blocks written" "blocks of 4 KiB written to it"
    FaultBlock fault_block Count "faults" "block of the file mapped"
        "loads and stores with a block of 4 KiB mapped or copied, as no pool had their page"
    BlockWait block_wait Latency "small operations" "waits for blocks"
        "small operations, loads and stores waiting until their blocks were read, or had room"
    BlockFrames block_frames Count "small operations" "frames taken for blocks"
        "frames of the pool given to blocks of the backing file, as blocks were read and pages were not"
    CopyGets copy_gets Count "gets from read-only ranges" "gets"
        "gets from ranges declared read-only, or their parts in one page: the sum of the next eight; gets \
         without a copy but with their page in the pool of this rank or a neighbour are under hits"
    CopyHits copy_hits Count "gets from read-only ranges" "hits" "a copy had all bytes"
    CopyPartial copy_partial Count "gets from read-only ranges" "partial"
        "a copy had the first bytes, and the others were fetched"
    CopyJoined copy_joined Count "gets from read-only ranges" "joined" "the bytes were in flight for another get"
    CopyDirect copy_direct Count "gets from read-only ranges" "direct" "fetched, and there was room for a copy"
    CopyConflicting copy_conflicting Count "gets from read-only ranges" "conflicting"
        "fetched, and another copy was evicted for room in the index"
    CopyCapacity copy_capacity Count "gets from read-only ranges" "capacity"
        "fetched, and another copy was evicted for room in memory"
    CopyFailing copy_failing Count "gets from read-only ranges" "failing"
        "fetched, and there was no room for a copy"
    CopyDormant copy_dormant Count "gets from read-only ranges" "dormant"
        "fetched without a lookup, since lookups had not paid"
    CopyBytesHit copy_hit_bytes Bytes "gets from read-only ranges" "bytes hit" "bytes served from copies"
    CopyBytesFetched copy_fetched_bytes Bytes "gets from read-only ranges" "bytes fetched" "bytes fetched"
    CopyBytesUsed copy_used_bytes Bytes "gets from read-only ranges" "memory used"
        "memory of copies now; copies of ended ranges stay until the room is needed"
    CopyBytesMax copy_max_bytes Bytes "gets from read-only ranges" "memory at most"
        "most memory of copies: `VGASNET_GET_CACHE_SIZE`, and `cache_bytes_max` of ranges with their own"
    FileReads file_reads Count "shared files" "reads" "calls reading from files, and runs of lists"
    FileReadBytes file_read_bytes Bytes "shared files" "bytes read" "bytes read by them"
    FileWrites file_writes Count "shared files" "writes" "calls writing to files, and runs of lists"
    FileWriteBytes file_write_bytes Bytes "shared files" "bytes written" "bytes written by them"
    FileHits file_hits Count "shared files" "pages at hand"
        "reads and writes, or their parts in one page, with the page in a pool of this host; also among hits"
    FileShipped file_shipped Count "shared files" "carried out elsewhere"
        "parts of them carried out by another rank with the page; also among small operations"
    FileDiskReads file_disk_reads Count "shared files" "pages and blocks read"
        "pages, or blocks of 4 KiB, read from files by this rank as their home"
    FileDiskReadBytes file_disk_read_bytes Bytes "shared files" "bytes from file systems"
        "their bytes; also under disk"
    FileDiskWrites file_disk_writes Count "shared files" "pages and blocks written"
        "parts of pages, or blocks of 4 KiB, written to files by this rank as their home"
    FileDiskWriteBytes file_disk_write_bytes Bytes "shared files" "bytes to file systems"
        "their bytes; also under disk"
    FileCoalesced file_coalesced Count "shared files" "written with the one before"
        "the part of them written together with the bytes before them"
    FileAged file_aged Count "shared files" "written behind for age"
        "pages written because they had been dirty for 5 s"
    FileRefused file_refused Count "shared files" "writes refused"
        "calls refused because their bytes, or bytes before them, could not be written"
    WaitLock wait_lock Wait "waits" "locks of files"
        "waits for locks, asked for by the program or by an atomic call"
    SpillBytes spill_bytes Bytes "shared files" "bytes spilled"
        "bytes written to the node's disk first (`VGASNET_FILE_SPILL`)"
    DrainBytes drain_bytes Bytes "shared files" "brought to files"
        "bytes brought from there to their files"
    OffersKept offers_kept Count "pool" "kept by other ranks"
        "pages leaving the last pool with a copy, kept by another rank in an idle frame"
    OffersRefused offers_refused Count "pool" "refused by other ranks"
        "the same, but the asked rank had no idle frame"
    GuestsCame guests Count "pool" "kept for other ranks" "pages of other ranks put into idle frames of this rank"
    NearReads near_reads Count "small operations" "read at neighbours"
        "small gets of pages of neighbours in no pool, read by this rank from the neighbour's blocks or file"
    BlockAhead block_ahead Count "small operations" "blocks read ahead"
        "blocks asked for ahead of small operations at equal distances; those of own pages are also among blocks read"
    FaultCopied fault_copied Count "faults" "block copied to the segment"
        "of the loads with a block of 4 KiB, those that got a copy of it, which is dropped when there are too many"
}

/// Number of rows.
pub const ROW_COUNT: usize = ROWS.len();

/// Number of timed rows.
pub const TIMED_COUNT: usize = timed_before(ROW_COUNT);

/// Number of timed rows among the first `end`.
const fn timed_before(end: usize) -> usize {
    let (mut timed, mut at) = (0, 0);
    while at < end {
        timed += ROWS[at].kind.is_timed() as usize;
        at += 1;
    }
    timed
}

impl Row {
    /// Its declaration.
    pub const fn declared(self) -> &'static Declared {
        &ROWS[self as usize]
    }

    /// Its index among the timed rows.
    pub const fn timed_index(self) -> usize {
        timed_before(self as usize)
    }

    /// The rows of a section, in order.
    pub fn of_section(section: &str) -> impl Iterator<Item = &'static Declared> {
        ROWS.iter().filter(move |declared| declared.section == section)
    }
}

/// The sections, in order.
pub fn sections() -> Vec<&'static str> {
    let mut sections = Vec::new();
    for declared in ROWS {
        if !sections.contains(&declared.section) {
            sections.push(declared.section);
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn rows_are_where_they_are_looked_for() {
        for (at, declared) in ROWS.iter().enumerate() {
            assert_eq!(declared.row as usize, at);
            assert!(declared.label.len() <= 30 && !declared.meaning.ends_with('.'), "{declared:?}");
        }
        let names: BTreeSet<_> = ROWS.iter().map(|declared| declared.name).collect();
        assert_eq!(names.len(), ROW_COUNT);
        let timed: Vec<_> = ROWS.iter().filter(|declared| declared.kind.is_timed()).collect();
        assert!(timed.iter().enumerate().all(|(at, declared)| declared.row.timed_index() == at));
        assert_eq!(timed.len(), TIMED_COUNT);
    }
}
