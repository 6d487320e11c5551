//! The rows: what is counted. The table that users see, the file in JSON, the structure of C and docs/reference/statistics.md all
//! come from here.

/// What a row's number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// How often.
    Count,
    /// Bytes; ranks add up.
    Bytes,
    /// Bytes; the largest of all ranks stands for the job.
    SettingBytes,
    /// Nanoseconds; the longest of all ranks stands for the job.
    SpanNs,
    /// Nanoseconds; ranks add up.
    TimeNs,
    /// How often, and how long each took. A rank is shown by how often.
    Latency,
    /// How often, and how long each took. A rank is shown by the time in all.
    Wait,
}

impl Kind {
    /// Whether each single time is noted.
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
    /// What its number is.
    pub kind: Kind,
    /// Under which heading it is shown.
    pub section: &'static str,
    /// Its name in the table for users: at most 30 letters.
    pub label: &'static str,
    /// What is counted, in a sentence without its end.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the header and docs/reference/statistics.md are made from it, by tests")
    )]
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
        "threads that waited in the library at least once; very many, or very short-lived ones, may share a count"
    PageSize page_size SettingBytes "job" "page size" "`VGASNET_PAGE_SIZE`"
    PoolSize pool_size SettingBytes "job" "pool size" "`VGASNET_POOL_SIZE` of a rank"

    HitGets hit_gets Count "hits" "gets, own pool"
        "gets, or their parts in one page, that found the page in the own pool"
    HitPuts hit_puts Count "hits" "puts, own pool" "puts and memsets, likewise"
    HitGetsNeighbour hit_gets_neighbour Count "hits" "gets, neighbour's pool"
        "gets that were done in the pool of another rank of the host"
    HitPutsNeighbour hit_puts_neighbour Count "hits" "puts, neighbour's pool" "puts that were done there"
    HitPins hit_pins Count "hits" "pins"
        "pages that were pinned where they were: `vgasnet_pin`, and transfers from segment to segment"
    GetBytes get_bytes Bytes "hits" "bytes asked for by gets" "bytes that gets asked for, hits and misses"
    PutBytes put_bytes Bytes "hits" "bytes written by puts" "bytes that puts and memsets wrote, hits and misses"

    MissOwnDisk miss_own_disk Latency "misses" "own disk"
        "pages that were waited for and came from the rank's own backing file"
    MissNeighbour miss_neighbour Latency "misses" "rank of this host"
        "pages that another rank of the host sent, from its pool or its disk"
    MissOtherHost miss_other_host Latency "misses" "rank of another host"
        "pages that a rank of another host sent, from its pool or its disk"
    MissZeros miss_zeros Latency "misses" "zeros" "pages that nobody had written: no bytes moved"
    MissRight miss_right Latency "misses" "right to write only" "pages that were here and lacked the right to write"
    MissFrame miss_frame Latency "misses" "of that, until a frame is free"
        "pages that found no free frame: the part of their wait until they had one, mostly for dirty pages to \
         be written"
    MissLate miss_late Latency "misses" "here by then" "pages that another thread had fetched before the engine looked"
    Overwritten overwritten Count "misses" "overwritten whole"
        "pages that one put overwrote: they were neither read nor sent"
    Refetched2 refetched_2 Count "misses" "spared by a pool of 2 x"
        "pages that were fetched, also ahead, and had been evicted so lately that a pool of twice the size \
         would still have them"
    Refetched4 refetched_4 Count "misses" "spared by a pool of 4 x"
        "likewise, four times the size, those of twice the size included; pools of more than 21,000 pages: \
         too few"

    FaultMapped fault_mapped Count "faults" "page here, not mapped"
        "loads and stores that found their page in the pool, unmapped; those to mapped pages leave no trace \
         and cannot be counted"
    FaultRead fault_read Count "faults" "loads that missed" "loads that fetched a page"
    FaultWrite fault_write Count "faults" "stores that missed" "stores that fetched a page, or the right to write it"

    AheadFetched ahead_fetched Count "pool" "read ahead" "pages that came before they were asked for"
    AheadUsed ahead_used Count "pool" "read ahead and used"
        "those that were used afterwards, or were asked for on their way"
    AheadWasted ahead_wasted Count "pool" "read ahead and wasted" "those that left the pool unused"
    EvictedClean evicted_clean Count "pool" "evicted clean"
        "pages that left the pool to make room, and needed no writing"
    EvictedDirty evicted_dirty Count "pool" "evicted dirty" "pages that left it by way of their home's disk"
    Cleaned cleaned Count "pool" "written back and kept" "dirty pages that were written back and stayed"

    DiskRead disk_read Latency "disk" "reads" "reads of the own backing file, from the queue to the last byte"
    DiskWrite disk_write Latency "disk" "writes" "writes to it"
    DiskReadBytes disk_read_bytes Bytes "disk" "bytes read" "bytes read from it, for whichever rank"
    DiskWriteBytes disk_write_bytes Bytes "disk" "bytes written" "bytes written to it, for whichever rank"
    DiskBusy disk_busy TimeNs "disk" "time with work" "time in which there was at least one read or write to do"

    PageInNeighbour page_in_neighbour_bytes Bytes "pages moved" "from ranks of this host"
        "bytes of pages that other ranks of the host sent here"
    PageInOtherHost page_in_other_host_bytes Bytes "pages moved" "from ranks of other hosts"
        "bytes of pages that ranks of other hosts sent here"
    PageOutNeighbour page_out_neighbour_bytes Bytes "pages moved" "to ranks of this host"
        "bytes of pages that this rank's pool gave to other ranks of the host"
    PageOutOtherHost page_out_other_host_bytes Bytes "pages moved" "to ranks of other hosts"
        "bytes of pages that this rank's pool gave to ranks of other hosts"

    ServedPool served_pool Count "served for others" "pages from the pool"
        "pages that other ranks got from this rank's pool"
    ServedDisk served_disk Count "served for others" "pages from the disk"
        "pages that other ranks got from this rank's disk"
    ServedZeros served_zeros Count "served for others" "pages of zeros"
        "pages of this rank that nobody had written, told to other ranks"
    ServedStores served_stores Count "served for others" "pages to the disk"
        "pages that other ranks wrote back to this rank's disk"

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
        "bytes that this rank read from memory of ranks of its host, without a message"

    WaitPage wait_page Wait "waits" "gets, puts and pins" "calls that waited for pages, and syncs"
    WaitFault wait_fault Wait "waits" "loads and stores" "loads and stores that waited for their page"
    WaitBarrier wait_barrier Wait "waits" "barriers" "waits for other ranks at barriers"
    WaitCollective wait_collective Wait "waits" "collectives" "waits for collectives"
    WaitCredit wait_credit Wait "waits" "credit for messages"
        "requests that waited until their target had handled earlier ones"
    WaitMessage wait_message Wait "waits" "messages" "waits for an Active Message"
    WaitFlush wait_flush Wait "waits" "write-back at barriers"
        "without cooperative caching: waits for dirty pages to be written back at barriers"
    WaitSpace wait_space Wait "waits" "space on the disk" "times in which writes found the disk full"
    WaitEnd wait_end Wait "waits" "end of other ranks" "waits for the programs of other ranks to end"
    FaultBorrowed fault_borrowed Count "faults" "neighbour's page mapped"
        "loads that found their page in the pool of another rank of the host, which was mapped and not copied"
    CleanedAhead cleaned_ahead Count "pool" "of that, ahead of need"
        "those that were written back because they would be evicted soon"
    ZerosCame zeros_came Count "pool" "pages of zeros" "pages that nobody had written and that came, waited for or ahead"
    MissJoined miss_joined Count "misses" "joined a miss under way"
        "gets, puts, loads and stores, or their parts in one page, that waited for a page which another had asked for; that one \
         is in the rows above"
    Shipped shipped Latency "small operations" "carried out elsewhere"
        "small gets, puts and atomic operations that another rank carried out where their page was, which did not move"
    ServedPieces served_pieces Count "small operations" "carried out for others"
        "pieces of them that this rank carried out for others, or as a home passed on"
    InBlocks in_blocks Count "small operations" "in blocks of the file"
        "small operations of this rank and of others on pages of this rank that no pool had, carried out in blocks of 4 KiB of \
         the backing file; loads and stores for which a block was mapped count too"
    BlockHits block_hits Count "small operations" "of that, without the disk" "those whose blocks were in memory"
    BlockReads block_reads Count "small operations" "blocks read" "blocks of 4 KiB that were read from the backing file"
    BlockWrites block_writes Count "small operations" "blocks written" "blocks of 4 KiB that were written to it"
    FaultBlock fault_block Count "faults" "block of the file mapped"
        "loads and stores for which a block of 4 KiB was mapped, and not their page, which no pool had"
    BlockWait block_wait Latency "small operations" "waits for blocks"
        "small operations, loads and stores that waited until their blocks were read, or room for them was there"
    BlockFrames block_frames Count "small operations" "frames taken for blocks"
        "times that a frame of the pool came to serve for blocks of the backing file, because those were read and pages were not"
    CopyGets copy_gets Count "gets from read-only ranges" "gets"
        "gets from ranges that the rank has declared read-only, or their parts in one page: all of the following eight; those that \
         found no copy, but their page in the pool of this rank or of a neighbour, are under hits"
    CopyHits copy_hits Count "gets from read-only ranges" "hits" "a copy had all bytes"
    CopyPartial copy_partial Count "gets from read-only ranges" "partial"
        "a copy had the first bytes, and the others were fetched"
    CopyJoined copy_joined Count "gets from read-only ranges" "joined" "the bytes were on their way for another get"
    CopyDirect copy_direct Count "gets from read-only ranges" "direct" "fetched, and there was room for a copy"
    CopyConflicting copy_conflicting Count "gets from read-only ranges" "conflicting"
        "fetched, and another copy had to go for room in the index"
    CopyCapacity copy_capacity Count "gets from read-only ranges" "capacity"
        "fetched, and another copy had to go for room in memory"
    CopyFailing copy_failing Count "gets from read-only ranges" "failing" "fetched, and there was no room for a copy"
    CopyDormant copy_dormant Count "gets from read-only ranges" "dormant"
        "fetched, and not looked for, since looking had not paid"
    CopyBytesHit copy_hit_bytes Bytes "gets from read-only ranges" "bytes hit" "bytes that copies had"
    CopyBytesFetched copy_fetched_bytes Bytes "gets from read-only ranges" "bytes fetched" "bytes that they had not"
    CopyBytesUsed copy_used_bytes Bytes "gets from read-only ranges" "memory used"
        "memory that copies take now; those of ranges that have ended do until the room is needed"
    CopyBytesMax copy_max_bytes Bytes "gets from read-only ranges" "memory at most"
        "memory that they may take: `VGASNET_GET_CACHE_SIZE`, and `cache_bytes_max` of ranges that have their own"
    FileReads file_reads Count "shared files" "reads" "calls that read from files, and the runs of lists that do"
    FileReadBytes file_read_bytes Bytes "shared files" "bytes read" "bytes that they read"
    FileWrites file_writes Count "shared files" "writes" "calls that write to files, and the runs of lists that do"
    FileWriteBytes file_write_bytes Bytes "shared files" "bytes written" "bytes that they wrote"
    FileHits file_hits Count "shared files" "of that, pages at hand"
        "reads and writes, or their parts in one page, that found the page in a pool of this host; they are among hits, too"
    FileShipped file_shipped Count "shared files" "carried out elsewhere"
        "parts of them that another rank carried out where their page was; they are among small operations, too"
    FileDiskReads file_disk_reads Count "shared files" "pages and blocks read"
        "pages, or blocks of 4 KiB, that this rank read from files as their home"
    FileDiskReadBytes file_disk_read_bytes Bytes "shared files" "bytes from file systems" "their bytes; they are under disk, too"
    FileDiskWrites file_disk_writes Count "shared files" "pages and blocks written"
        "parts of pages, or blocks of 4 KiB, that this rank wrote to files as their home"
    FileDiskWriteBytes file_disk_write_bytes Bytes "shared files" "bytes to file systems" "their bytes; they are under disk, too"
    FileCoalesced file_coalesced Count "shared files" "of that, with the one before"
        "those that went to the file system in one write with what lies before them"
    FileAged file_aged Count "shared files" "written behind for age" "pages that were written because they had been dirty for 5 s"
    FileRefused file_refused Count "shared files" "writes refused"
        "calls that were refused since something before could not be written, or whose bytes could not be"
    WaitLock wait_lock Wait "waits" "locks of files" "locks that a program or a call that is one step asked for, until granted"
    SpillBytes spill_bytes Bytes "shared files" "bytes spilled" "bytes that went to the node's disk first (`VGASNET_FILE_SPILL`)"
    DrainBytes drain_bytes Bytes "shared files" "of that, brought to files" "bytes that were brought from there to their files"
    OffersKept offers_kept Count "pool" "kept by other ranks" "pages about to leave the last pool that another rank keeps in an idle frame"
    OffersRefused offers_refused Count "pool" "refused by other ranks" "those for which the rank that was asked had no idle frame"
    GuestsCame guests Count "pool" "kept for other ranks" "pages that came to idle frames of this rank for others"
}

/// How many rows there are.
pub const ROW_COUNT: usize = ROWS.len();

/// How many of them are timed.
pub const TIMED_COUNT: usize = timed_before(ROW_COUNT);

/// How many of the first so many rows are timed.
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

    /// Its place among the rows that are timed.
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
