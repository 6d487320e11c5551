//! One line in words: where the time went, and what would help.

use super::numbers::{bytes, percent};
use super::rows::Row;
use super::snapshot::Snapshot;
use crate::settings::PAGE_BYTES_MIN;

/// Waits that take less of the time, in percent, are not worth advice.
const SHARE_MIN: u64 = 10;

/// A page of which less is used, in percent, is too large.
const USED_MIN: u64 = 25;

/// A larger pool that spares less of the misses, in percent, is no help.
const SPARED_MIN: u64 = 20;

/// A disk that has work for less of the time, in percent, is not the limit.
const BUSY_MIN: u64 = 80;

const PAGES: [Row; 2] = [Row::WaitPage, Row::WaitFault];
const MESSAGES: [Row; 2] = [Row::WaitMessage, Row::WaitCredit];

/// Where the time of the job went, and what would help, in one line without its end.
pub fn advice(ranks: &[Snapshot]) -> String {
    let sum = Snapshot::sum(ranks);
    // All threads that ever waited, all of the time.
    let time_ns = sum.get(Row::Elapsed).saturating_mul(sum.get(Row::Threads));
    let share = |rows: &[Row]| percent(rows.iter().map(|row| sum.sum_ns(*row)).sum(), time_ns);
    let pages = share(&PAGES);
    let others = [
        (share(&[Row::WaitBarrier]), "barriers: some ranks come late; give all of them as much to do"),
        (share(&[Row::WaitFlush]), "writing back at barriers: use fewer of them, or VGASNET_COOPERATIVE=1"),
        (share(&[Row::WaitCollective]), "collectives: use fewer and larger ones, or compute while they go on"),
        (share(&MESSAGES), "waits for messages: other ranks run their handlers late; let them poll"),
        (share(&[Row::WaitSpace]), "waits for space on the disk: set VGASNET_STORAGE_DIR to a disk with more"),
        (share(&[Row::WaitEnd]), "waits for other ranks to end: give all of them as much to do"),
    ];
    // The first of several that took as much.
    let (other, what) = others.into_iter().rev().max_by_key(|(share, _)| *share).expect("there are some");
    if pages.max(other) < SHARE_MIN {
        let most = share(&[PAGES.as_slice(), &MESSAGES, &[Row::WaitBarrier, Row::WaitCollective]].concat());
        return format!("{most} % of the time went into waits: there is nothing to do");
    }
    if other > pages { format!("{other} % of the time went into {what}") } else { of_pages(&sum, ranks.len(), pages) }
}

/// The waits for pages took most of the time.
fn of_pages(sum: &Snapshot, ranks: usize, share: u64) -> String {
    let page_bytes = sum.get(Row::PageSize);
    let sources = [
        (Row::MissOwnDisk, "reading", "pages"),
        (Row::MissNeighbour, "fetching", "pages from ranks of the same host"),
        (Row::MissOtherHost, "fetching", "pages from other hosts"),
        (Row::MissZeros, "clearing", "pages"),
        (Row::MissRight, "getting the right to write", "pages"),
    ];
    let (source, verb, pages) =
        sources.into_iter().rev().max_by_key(|(row, ..)| sum.sum_ns(*row)).expect("there are some");
    let missed_ns: u64 = sources.iter().map(|(row, ..)| sum.sum_ns(*row)).sum();
    let is_for_frames = sum.sum_ns(Row::MissFrame) > missed_ns / 2;
    let (verb, pages) = match (is_for_frames, missed_ns) {
        (true, _) => ("waiting for frames for", "pages"),
        // Nothing says what the waits were for.
        (false, 0) => ("waiting for", "pages"),
        _ => (verb, pages),
    };
    let (went, used) = (format!("{share} % of the time went into {verb} {} {pages}", bytes(page_bytes)), used(sum));
    if let Some((percent, fitting_bytes)) =
        used.filter(|(percent, fitting)| *percent < USED_MIN && *fitting < page_bytes)
    {
        return format!("{went} of which {percent} % was used: try VGASNET_PAGE_SIZE={}", bytes(fitting_bytes));
    }
    let fetched = sources[..3].iter().map(|(row, ..)| sum.get(*row)).sum::<u64>() + sum.get(Row::AheadFetched);
    for (row, times) in [(Row::Refetched2, 2), (Row::Refetched4, 4)] {
        let (spared, pool_bytes) = (percent(sum.get(row), fetched), sum.get(Row::PoolSize));
        if spared >= SPARED_MIN {
            let wanted = bytes(pool_bytes.saturating_mul(times));
            return format!(
                "{went}, {spared} % of which a pool of {times} x would still have: try VGASNET_POOL_SIZE={wanted}"
            );
        }
    }
    if source == Row::MissRight && missed_ns > 0 && !is_for_frames {
        return format!("{went}: keep what different ranks write in different pages");
    }
    of_disk(sum, ranks, &went)
}

/// Neither pages nor the pool are to blame.
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
        return format!(
            "{went}, while disks had work for {busy} % of it: start gets early (vgasnet_get_nb), or use more threads"
        );
    }
    let moved = sum.get(Row::DiskReadBytes) + sum.get(Row::DiskWriteBytes);
    let a_second = (u128::from(moved) * 1_000_000_000).checked_div(u128::from(sum.get(Row::Elapsed))).unwrap_or(0);
    let queued_ns = sum.sum_ns(Row::DiskRead) + sum.sum_ns(Row::DiskWrite);
    if queued_ns < 2 * sum.get(Row::DiskBusy) && !writes {
        return format!(
            "{went}, one at a time: start gets early (vgasnet_get_nb), use more threads, or vgasnet_advise"
        );
    }
    format!("{went}: the disk is the limit, at {}/s; only a faster one helps, or more hosts", bytes(a_second as u64))
}

/// How much of the pages that came was used, in percent, and the size of a page that fits; `None` where loads and stores
/// leave that unknown.
fn used(sum: &Snapshot) -> Option<(u64, u64)> {
    let faults: u64 =
        [Row::FaultMapped, Row::FaultRead, Row::FaultWrite, Row::FaultBorrowed].iter().map(|row| sum.get(*row)).sum();
    let missed = [Row::MissOwnDisk, Row::MissNeighbour, Row::MissOtherHost];
    let came = missed.iter().map(|row| sum.get(*row)).sum::<u64>() + sum.get(Row::AheadFetched);
    let asked_bytes = sum.get(Row::GetBytes).saturating_add(sum.get(Row::PutBytes));
    let used = percent(asked_bytes, came.saturating_mul(sum.get(Row::PageSize)));
    let fitting_bytes = asked_bytes.checked_div(came)?.checked_next_power_of_two()?.max(PAGE_BYTES_MIN);
    (faults == 0).then_some((used, fitting_bytes))
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

    #[test]
    fn pages_that_are_hardly_used_are_too_large() {
        let ranks = rank(&[(Row::GetBytes, 1000 * (80 << 10))], &[WAITED, MISSED]);
        assert_eq!(
            advice(&ranks),
            "61 % of the time went into reading 4M pages of which 1 % was used: try VGASNET_PAGE_SIZE=128K"
        );
        // Nobody knows what loads use.
        assert!(!advice(&rank(&[(Row::FaultRead, 1)], &[WAITED, MISSED])).contains("PAGE_SIZE"));
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
        let busy = [USED_WHOLE, (Row::DiskBusy, 9_000_000_000), (Row::DiskReadBytes, 20 << 30)];
        let queued = advice(&rank(&busy, &[WAITED, MISSED, (Row::DiskRead, 1000, 40_000_000_000)]));
        assert!(queued.ends_with("the disk is the limit, at 2G/s; only a faster one helps, or more hosts"), "{queued}");
        let single = advice(&rank(&busy, &[WAITED, MISSED, (Row::DiskRead, 1000, 9_000_000_000)]));
        assert!(single.contains("one at a time"), "{single}");
        let idle = advice(&rank(&[USED_WHOLE], &[WAITED, MISSED]));
        assert!(idle.contains("disks had work for 0 % of it"), "{idle}");
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
        let rights = advice(&rank(&[], &[WAITED, (Row::MissRight, 9, 5_000_000_000)]));
        assert!(rights.contains("the right to write 4M pages: keep"), "{rights}");
        let frames = advice(&rank(&[], &[WAITED, MISSED, (Row::MissFrame, 9, 5_000_000_000)]));
        assert!(frames.starts_with("61 % of the time went into waiting for frames for 4M pages"), "{frames}");
        let none = advice(&rank(&[], &[(Row::WaitPage, 5, 500_000_000)]));
        assert_eq!(none, "5 % of the time went into waits: there is nothing to do");
        assert!(advice(&[Snapshot::default()]).contains("nothing to do"));
    }
}
