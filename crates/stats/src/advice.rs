//! One line of advice: the largest share of the time, and a remedy.

use super::numbers::{bytes, percent};
use super::rows::Row;
use super::snapshot::Snapshot;
use vgasnet_settings::page_bytes_min;

/// Minimum share of the time in waits, in percent, for advice.
const SHARE_MIN: u64 = 10;

/// A page used by less than this, in percent, is too large.
const USED_MIN: u64 = 25;

/// A larger pool is advised if it spares at least this share of the misses, in percent.
const SPARED_MIN: u64 = 20;

/// A disk is the limit if it has work for at least this share of the time, in percent.
const BUSY_MIN: u64 = 80;

/// A cause with at least this share of the waits for pages, in percent, is named alone.
const CAUSE_MIN: u64 = 90;

/// Copies of gets lack memory if at least this share of the gets, in percent, evicted another copy or left none, and if
/// at least this share of the memory, in percent, is in use.
const CROWDED_MIN: u64 = 20;
const COPIES_FULL_MIN: u64 = 75;

/// Bytes moved by a small operation on a page in no pool.
const BLOCK_BYTES: u64 = 4096;

/// A pool of fewer pages has no room for read-ahead.
const FRAMES_MIN: u64 = 16;

const PAGES: [Row; 2] = [Row::WaitPage, Row::WaitFault];
const MESSAGES: [Row; 2] = [Row::WaitMessage, Row::WaitCredit];

/// The largest share of the job's time and a remedy, in one line without a newline.
pub fn advice(ranks: &[Snapshot]) -> String {
    let sum = Snapshot::sum(ranks);
    // The whole time of all threads that ever waited.
    let time_ns = sum.get(Row::Elapsed).saturating_mul(sum.get(Row::Threads));
    let share = |rows: &[Row]| percent(rows.iter().map(|row| sum.sum_ns(*row)).sum(), time_ns);
    let pages = share(&PAGES);
    let others = [
        (share(&[Row::WaitBarrier]), "barriers: some ranks come late; give all of them as much to do"),
        (share(&[Row::WaitFlush]), "writing back at barriers: use fewer of them, or VGASNET_COOPERATIVE=1"),
        (share(&[Row::WaitCollective]), "collectives: use fewer and larger ones, or compute while they go on"),
        (
            share(&[Row::WaitLock]),
            "locks of files: lock less, and for shorter; to append, take a place by vgasnet_file_take, which needs no lock",
        ),
        (share(&MESSAGES), waits_for_messages(ranks.len())),
        (share(&[Row::WaitSpace]), "waits for space on the disk: set VGASNET_STORAGE_DIR to a disk with more"),
        (share(&[Row::WaitEnd]), "waits for other ranks to end: give all of them as much to do"),
    ];
    // The first of several with an equal share.
    let (other, what) = others.into_iter().rev().max_by_key(|(share, _)| *share).expect("there are some");
    if pages.max(other) < SHARE_MIN {
        let most =
            share(&[PAGES.as_slice(), &MESSAGES, &[Row::WaitBarrier, Row::WaitCollective, Row::WaitLock]].concat());
        return format!("{most} % of the time went into waits: there is nothing to do");
    }
    if other > pages { format!("{other} % of the time went into {what}") } else { of_pages(&sum, ranks.len(), pages) }
}

fn waits_for_messages(ranks: usize) -> &'static str {
    match ranks {
        1 => "waits for messages of the rank to itself: its handlers wait for pages, or take long",
        _ => "waits for messages: other ranks run their handlers late; let them poll",
    }
}

/// The main cause of waits for pages.
struct Cause {
    row: Row,
    /// Its share of these waits, in percent.
    percent: u64,
    verb: &'static str,
    pages: &'static str,
}

impl Cause {
    fn of(sum: &Snapshot) -> Cause {
        // A page of another rank came from its pool or its disk.
        let is_from_disk = sum.get(Row::ServedDisk) > sum.get(Row::ServedPool);
        let of = |from_pool, from_disk| if is_from_disk { from_disk } else { from_pool };
        let sources = [
            (Row::MissOwnDisk, "reading", "pages"),
            (
                Row::MissNeighbour,
                "fetching",
                of("pages from ranks of the same host", "pages from disks of ranks of the same host"),
            ),
            (Row::MissOtherHost, "fetching", of("pages from other hosts", "pages from disks of other hosts")),
            (Row::MissZeros, "clearing", "pages"),
            (Row::MissRight, "getting the right to write", "pages"),
            (Row::BlockWait, "reading", "blocks"),
        ];
        let (row, verb, pages) =
            sources.into_iter().rev().max_by_key(|(row, ..)| sum.sum_ns(*row)).expect("there are some");
        let missed_ns: u64 = sources.iter().map(|(row, ..)| sum.sum_ns(*row)).sum();
        if missed_ns == 0 {
            // No row gives a cause of the waits.
            return Cause { row: Row::WaitPage, percent: 100, verb: "waiting for", pages };
        }
        let frames_ns = sum.sum_ns(Row::MissFrame);
        if row != Row::BlockWait && frames_ns > missed_ns / 2 {
            let percent = percent(frames_ns, missed_ns);
            return Cause { row: Row::MissFrame, percent, verb: "waiting for frames for", pages: "pages" };
        }
        Cause { row, percent: percent(sum.sum_ns(row), missed_ns), verb, pages }
    }
}

/// The advice if waits for pages took most of the time.
fn of_pages(sum: &Snapshot, ranks: usize, share: u64) -> String {
    let page_bytes = sum.get(Row::PageSize);
    let Cause { row, percent: part, verb, pages } = Cause::of(sum);
    let unit_bytes = if row == Row::BlockWait { BLOCK_BYTES } else { page_bytes };
    let what = format!("{verb} {} {pages}", bytes(unit_bytes));
    let went = if part >= CAUSE_MIN {
        format!("{share} % of the time went into {what}")
    } else {
        format!("{share} % of the time went into waits for pages, {} % into {what}", share * part / 100)
    };
    if let Some(crowded) = crowded_copies(sum) {
        return format!(
            "{went}, and {crowded} % of the gets from read-only ranges found no room for their copies: a larger \
             VGASNET_GET_CACHE_SIZE keeps more of them, or cache_bytes_max of a range that has its own"
        );
    }
    if row == Row::BlockWait {
        return format!(
            "{went}: a larger VGASNET_POOL_SIZE keeps more of them; or have more at a time (vgasnet_get_nb, threads)"
        );
    }
    if let Some((percent, fitting_bytes)) =
        used(sum).filter(|(percent, fitting)| *percent < USED_MIN && *fitting < page_bytes)
    {
        let percent = if percent == 0 { "less than 1".to_owned() } else { percent.to_string() };
        // Neighbouring pieces of a file in one list share reads.
        let lists = if sum.get(Row::FileReads) + sum.get(Row::FileWrites) > 0 {
            "give many pieces of the file in one call (vgasnet_file_readv_at, vgasnet_file_writev_at), or "
        } else {
            ""
        };
        return format!("{went} of which {percent} % was used: {lists}try VGASNET_PAGE_SIZE={}", bytes(fitting_bytes));
    }
    let missed = [Row::MissOwnDisk, Row::MissNeighbour, Row::MissOtherHost];
    let fetched = missed.iter().map(|row| sum.get(*row)).sum::<u64>() + sum.get(Row::AheadFetched);
    for (row, times) in [(Row::Refetched2, 2), (Row::Refetched4, 4)] {
        let (spared, pool_bytes) = (percent(sum.get(row), fetched), sum.get(Row::PoolSize));
        if spared >= SPARED_MIN {
            let wanted = bytes(pool_bytes.saturating_mul(times));
            return format!(
                "{went}, {spared} % of which a pool of {times} x would still have: try VGASNET_POOL_SIZE={wanted}"
            );
        }
    }
    if row == Row::MissRight && ranks == 1 {
        return format!(
            "{went}, which were being written to the disk: a larger VGASNET_POOL_SIZE, or smaller pages, leave them longer"
        );
    }
    if row == Row::MissRight {
        return format!("{went}: keep what different ranks write in different pages");
    }
    of_disk(sum, ranks, &went)
}

/// The share of gets from read-only ranges without room for a copy, in percent, if a larger cache would have room.
fn crowded_copies(sum: &Snapshot) -> Option<u64> {
    let crowded = percent(sum.get(Row::CopyCapacity) + sum.get(Row::CopyFailing), sum.get(Row::CopyGets));
    let full = percent(sum.get(Row::CopyBytesUsed), sum.get(Row::CopyBytesMax));
    (crowded >= CROWDED_MIN && full >= COPIES_FULL_MIN).then_some(crowded)
}

/// The advice if neither the use of pages nor the pool is the cause.
fn of_disk(sum: &Snapshot, ranks: usize, went: &str) -> String {
    let busy = percent(sum.get(Row::DiskBusy), sum.get(Row::Elapsed).saturating_mul(ranks as u64));
    let writes = sum.get(Row::DiskWriteBytes) > sum.get(Row::DiskReadBytes);
    if busy < BUSY_MIN && writes {
        return format!(
            "{went}, while disks, which mostly wrote, had work for {busy} % of it: start puts early (vgasnet_put_nb), or have \
             each rank write what is on its own disk"
        );
    }
    if busy < BUSY_MIN {
        return format!("{went}, while disks had work for {busy} % of it: {}", more_at_a_time(sum));
    }
    let moved = sum.get(Row::DiskReadBytes) + sum.get(Row::DiskWriteBytes);
    let a_second = (u128::from(moved) * 1_000_000_000).checked_div(u128::from(sum.get(Row::Elapsed))).unwrap_or(0);
    let queued_ns = sum.sum_ns(Row::DiskRead) + sum.sum_ns(Row::DiskWrite);
    if queued_ns < 2 * sum.get(Row::DiskBusy) && !writes {
        return format!("{went}, one at a time: {}", more_at_a_time(sum));
    }
    format!("{went}: the disk is the limit, at {}/s; only a faster one helps, or more hosts", bytes(a_second as u64))
}

/// How a program gets more pages in flight at a time.
fn more_at_a_time(sum: &Snapshot) -> String {
    let (page_bytes, pool_bytes) = (sum.get(Row::PageSize), sum.get(Row::PoolSize));
    if pool_bytes / page_bytes.max(1) < FRAMES_MIN {
        let frames = pool_bytes / page_bytes.max(1);
        let larger = format!("VGASNET_POOL_SIZE={}", bytes(page_bytes.saturating_mul(FRAMES_MIN)));
        let smaller = 1_u64.checked_shl((pool_bytes / FRAMES_MIN).checked_ilog2().unwrap_or(0)).unwrap_or(0);
        let smaller = Some(smaller).filter(|bytes| (page_bytes_min()..page_bytes).contains(bytes));
        let smaller = smaller.map_or(String::new(), |smaller| format!("VGASNET_PAGE_SIZE={} or ", bytes(smaller)));
        return format!("the pool has room for {frames} pages; try {smaller}{larger}");
    }
    if sum.sum_ns(Row::WaitFault) > sum.sum_ns(Row::WaitPage) {
        return "tell early what will be loaded (vgasnet_advise, VGASNET_ADVISE_WILLNEED), or use more threads"
            .to_owned();
    }
    "start gets early (vgasnet_get_nb), or use more threads".to_owned()
}

/// The requested share of the fetched bytes, in percent, and a fitting page size; `None` if loads and stores leave the
/// share unknown.
fn used(sum: &Snapshot) -> Option<(u64, u64)> {
    let faults: u64 =
        [Row::FaultMapped, Row::FaultRead, Row::FaultWrite, Row::FaultBorrowed].iter().map(|row| sum.get(*row)).sum();
    let page_bytes = sum.get(Row::PageSize);
    let in_pages = |pages: u64| pages.saturating_mul(page_bytes);
    // Pages read by a home for others count at their receivers.
    let read_bytes = sum.get(Row::DiskReadBytes).saturating_sub(in_pages(sum.get(Row::ServedDisk)));
    let fetched_bytes = read_bytes + sum.get(Row::PageInNeighbour) + sum.get(Row::PageInOtherHost);
    // Puts into pages that came without bytes use no fetched bytes.
    let filled_bytes = in_pages(sum.get(Row::ZerosCame) + sum.get(Row::Overwritten));
    let asked_bytes = sum.get(Row::GetBytes).saturating_add(sum.get(Row::PutBytes).saturating_sub(filled_bytes));
    let of_a_page = asked_bytes.checked_div(fetched_bytes.div_ceil(page_bytes.max(1)))?;
    let fitting_bytes = of_a_page.checked_next_power_of_two()?.max(page_bytes_min());
    (faults == 0).then_some((percent(asked_bytes, fetched_bytes), fitting_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rank with one thread, of 10 s.
    fn rank(set: &[(Row, u64)], times_ns: &[(Row, u64, u64)]) -> [Snapshot; 1] {
        let mut rank = Snapshot::default();
        let always =
            [(Row::Elapsed, 10_000_000_000), (Row::Threads, 1), (Row::PageSize, 4 << 20), (Row::PoolSize, 64 << 20)];
        always.iter().chain(set).for_each(|(row, value)| rank.set(*row, *value));
        for (row, count, sum_ns) in times_ns {
            let times = &mut rank.times[row.timed_index()];
            (times.buckets[50], times.sum_ns) = (*count, *sum_ns);
        }
        [rank]
    }

    const WAITED: (Row, u64, u64) = (Row::WaitPage, 1000, 6_100_000_000);
    const MISSED: (Row, u64, u64) = (Row::MissOwnDisk, 1000, 6_000_000_000);
    const USED_WHOLE: (Row, u64) = (Row::GetBytes, 1000 * (4 << 20));
    const READ: (Row, u64) = (Row::DiskReadBytes, 1000 * (4 << 20));

    #[test]
    fn blocks_are_named_where_they_are_waited_for() {
        let waited = |blocks_ns| {
            rank(
                &[(Row::DiskWriteBytes, 1 << 30)],
                &[
                    (Row::WaitFault, 100, 9_000_000_000),
                    (Row::MissZeros, 20, 200_000_000),
                    (Row::MissFrame, 20, 190_000_000),
                    (Row::BlockWait, 9_000, blocks_ns),
                ],
            )
        };
        let line = advice(&waited(8_000_000_000));
        assert!(line.starts_with("90 % of the time went into reading 4K blocks: a larger VGASNET_POOL_SIZE"), "{line}");
        assert!(advice(&waited(100_000)).contains("waiting for frames"), "{}", advice(&waited(100_000)));
    }

    #[test]
    fn pages_that_are_hardly_used_are_too_large() {
        let hardly_used = (Row::GetBytes, 1000 * (80 << 10));
        let too_large = "61 % of the time went into reading 4M pages of which 1 % was used: try VGASNET_PAGE_SIZE=128K";
        assert_eq!(advice(&rank(&[READ, hardly_used], &[WAITED, MISSED])), too_large);
        let bytes = advice(&rank(&[READ, (Row::GetBytes, 9)], &[WAITED, MISSED]));
        assert!(bytes.ends_with(" of which less than 1 % was used: try VGASNET_PAGE_SIZE=4K"), "{bytes}");
        // A larger pool would help less.
        assert_eq!(advice(&rank(&[READ, hardly_used, (Row::Refetched2, 500)], &[WAITED, MISSED])), too_large);
        // Filling pages that came without bytes uses no other pages.
        let filled = [(Row::PutBytes, 600 * (4 << 20)), (Row::ZerosCame, 500), (Row::Overwritten, 100)];
        assert_eq!(advice(&rank(&[&filled[..], &[READ, hardly_used]].concat(), &[WAITED, MISSED])), too_large);
        let changed = [(Row::PutBytes, 900 * (4 << 20)), (Row::ZerosCame, 500), READ, hardly_used];
        assert!(!advice(&rank(&changed, &[WAITED, MISSED])).contains("PAGE_SIZE"), "half of them were overwritten");
        // The use by loads is unknown.
        assert!(!advice(&rank(&[(Row::FaultRead, 1), READ], &[WAITED, MISSED])).contains("PAGE_SIZE"));
    }

    #[test]
    fn a_pool_that_is_too_small_is_told() {
        let ranks = rank(&[USED_WHOLE, (Row::Refetched2, 100), (Row::Refetched4, 700)], &[WAITED, MISSED]);
        assert_eq!(
            advice(&ranks),
            "61 % of the time went into reading 4M pages, 70 % of which a pool of 4 x would still have: try \
             VGASNET_POOL_SIZE=256M"
        );
    }

    #[test]
    fn a_disk_is_the_limit_where_requests_queue() {
        let busy = [(Row::GetBytes, 20 << 30), (Row::DiskBusy, 9_000_000_000), (Row::DiskReadBytes, 20 << 30)];
        let queued = advice(&rank(&busy, &[WAITED, MISSED, (Row::DiskRead, 1000, 40_000_000_000)]));
        assert!(queued.ends_with("the disk is the limit, at 2G/s; only a faster one helps, or more hosts"), "{queued}");
        let single = advice(&rank(&busy, &[WAITED, MISSED, (Row::DiskRead, 1000, 9_000_000_000)]));
        assert!(single.contains("one at a time"), "{single}");
        let idle = advice(&rank(&[USED_WHOLE], &[WAITED, MISSED]));
        assert!(idle.contains("disks had work for 0 % of it"), "{idle}");
    }

    #[test]
    fn a_cause_has_its_own_share() {
        let waited = (Row::WaitPage, 1000, 7_100_000_000);
        let missed = [waited, (Row::MissOwnDisk, 9, 3_000_000_000), (Row::MissNeighbour, 9, 4_000_000_000)];
        let told = |served: &[(Row, u64)]| advice(&rank(&[&[USED_WHOLE, READ], served].concat(), &missed));
        let pool = "71 % of the time went into waits for pages, 40 % into fetching 4M pages from ranks of the same host, while";
        assert!(told(&[(Row::ServedPool, 9)]).starts_with(pool), "{}", told(&[]));
        let disks = "40 % into fetching 4M pages from disks of ranks of the same host, while";
        assert!(told(&[(Row::ServedPool, 1), (Row::ServedDisk, 8)]).contains(disks));
    }

    #[test]
    fn what_starts_more_at_a_time_fits_the_program() {
        let told = |set: &[(Row, u64)], wait| advice(&rank(set, &[(wait, 1000, 6_100_000_000), MISSED]));
        assert!(told(&[USED_WHOLE], Row::WaitPage).contains("vgasnet_get_nb"));
        let loads = told(&[(Row::FaultRead, 9)], Row::WaitFault);
        assert!(loads.contains("VGASNET_ADVISE_WILLNEED") && !loads.contains("vgasnet_get_nb"), "{loads}");
        let small = told(&[(Row::PoolSize, 16 << 20), (Row::FaultRead, 9)], Row::WaitFault);
        assert!(small.ends_with("has room for 4 pages; try VGASNET_PAGE_SIZE=1M or VGASNET_POOL_SIZE=64M"), "{small}");
        let smallest = told(&[(Row::PoolSize, 16 << 10), (Row::PageSize, 4 << 10)], Row::WaitPage);
        assert!(smallest.ends_with("has room for 4 pages; try VGASNET_POOL_SIZE=64K"), "{smallest}");
    }

    #[test]
    fn copies_that_lack_memory_are_told() {
        let gets = [(Row::CopyGets, 1000), (Row::CopyHits, 500), (Row::CopyDirect, 100), USED_WHOLE, READ];
        let told = |capacity, used| {
            let more = [(Row::CopyCapacity, capacity), (Row::CopyFailing, 100)];
            let memory = [(Row::CopyBytesUsed, used), (Row::CopyBytesMax, 100 << 10)];
            advice(&rank(&[&gets[..], &more, &memory].concat(), &[WAITED, MISSED]))
        };
        let lacking = told(300, 99 << 10);
        let start =
            "61 % of the time went into reading 4M pages, and 40 % of the gets from read-only ranges found no room";
        assert!(lacking.starts_with(start) && lacking.contains("a larger VGASNET_GET_CACHE_SIZE"), "{lacking}");
        for line in [told(90, 99 << 10), told(300, 50 << 10)] {
            assert!(!line.contains("GET_CACHE"), "{line}");
        }
    }

    #[test]
    fn no_cause_is_named_that_took_no_time() {
        let written = [(Row::PutBytes, 1000 * (4 << 20)), (Row::DiskWriteBytes, 4 << 30)];
        let idle = advice(&rank(&written, &[WAITED]));
        assert!(
            idle.starts_with("61 % of the time went into waiting for 4M pages, while disks, which mostly wrote"),
            "{idle}"
        );
        assert!(idle.contains("vgasnet_put_nb") && !idle.contains("vgasnet_get_nb"), "{idle}");
        let busy = [&written[..], &[(Row::DiskBusy, 9_000_000_000)]].concat();
        let busy = advice(&rank(&busy, &[WAITED, (Row::DiskWrite, 1000, 9_000_000_000)]));
        assert!(busy.contains("went into waiting for 4M pages: the disk is the limit"), "{busy}");
    }

    #[test]
    fn other_waits_have_their_advice() {
        let barriers = advice(&rank(&[], &[(Row::WaitBarrier, 5, 7_000_000_000), WAITED, MISSED]));
        assert!(barriers.starts_with("70 % of the time went into barriers"), "{barriers}");
        let rights = rank(&[], &[WAITED, (Row::MissRight, 9, 5_000_000_000)]);
        let alone = advice(&rights);
        assert!(alone.contains("the right to write 4M pages, which were being written to the disk"), "{alone}");
        let together = advice(&[rights, rank(&[], &[])].concat());
        assert!(together.contains("the right to write 4M pages: keep"), "{together}");
        let locks = advice(&rank(&[], &[(Row::WaitLock, 5, 7_000_000_000), WAITED, MISSED]));
        assert!(locks.starts_with("70 % of the time went into locks of files"), "{locks}");
        let frames = advice(&rank(&[], &[WAITED, MISSED, (Row::MissFrame, 9, 5_000_000_000)]));
        assert!(frames.contains("waits for pages, 50 % into waiting for frames for 4M pages"), "{frames}");
        let none = advice(&rank(&[], &[(Row::WaitPage, 5, 500_000_000)]));
        assert_eq!(none, "5 % of the time went into waits: there is nothing to do");
        assert!(advice(&[Snapshot::default()]).contains("nothing to do"));
    }
}
