//! Shared files.

use crate::bad_input::may_mount;
use crate::support::compile::{self, Language, Linking};
use crate::support::run::{Ended, Setup, fresh_dir, run_with};
use std::path::Path;

/// Ranks, KiB of a page, frames, whether neighbours' memory is mapped.
const SETUPS: [(u32, u64, u64, bool); 7] = [
    (1, 64, 8, true),
    (2, 64, 8, true),
    (2, 64, 8, false),
    (4, 64, 5, true),
    (3, 256, 5, false),
    (4, 4, 16, true),
    (2, 4096, 4, true),
];

fn setup((ranks, kib, pool_pages, peer_memory): (u32, u64, u64, bool)) -> Setup {
    Setup { ranks, page_bytes: kib << 10, pool_pages, peer_memory, cooperative: true }
}

/// Runs a part of the program in a directory of its own.
fn run_part(part: &str, setup: Setup, more: &[(&'static str, &str)]) -> Ended {
    run_program("shared_files", &[part], setup, more)
}

/// Runs a program with a directory of its own as the last argument.
fn run_program(name: &str, args: &[&str], setup: Setup, more: &[(&'static str, &str)]) -> Ended {
    let program = compile::program(name, Language::C99, Linking::Shared);
    let dir = fresh_dir();
    let args: Vec<&str> = args.iter().copied().chain([path_text(&dir)]).collect();
    let ended = run_with(&program, &args, setup, more);
    std::fs::remove_dir_all(&dir).expect("a directory of ours");
    ended
}

fn path_text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are text")
}

#[test]
fn ranks_write_and_read_a_file_together() {
    for of in SETUPS {
        run_part("rounds", setup(of), &[]).expect(0);
    }
    run_part("rounds", setup(SETUPS[1]), &[("VGASNET_SHIP", "0")]).expect(0);
    run_part("rounds", Setup { cooperative: false, ..setup(SETUPS[3]) }, &[]).expect(0);
}

/// Evicted pages spill to the node's disk, which has room for all of them, for a few, or for none.
#[test]
fn what_is_spilled_is_read_and_written() {
    const SPILL: (&str, &str) = ("VGASNET_FILE_SPILL", "1");
    let little = ("VGASNET_FILE_SPILL_SIZE", "512K");
    for of in SETUPS {
        run_part("rounds", setup(of), &[SPILL]).expect(0);
    }
    for (of, fault) in [(SETUPS[1], "spill-full:20:1000"), (SETUPS[3], "spill-quota:3:1"), (SETUPS[4], "spill-write:9")]
    {
        let ended = run_part("rounds", setup(of), &[SPILL, (FAULT, fault)]);
        let told = ended.expect(0).stderr.contains("is not kept on the node's disk any more");
        assert_eq!(told, fault.contains("write"), "{ended}");
    }
    run_part("rounds", setup(SETUPS[3]), &[SPILL, little]).expect(0);
    run_part("segment", setup(SETUPS[4]), &[SPILL]).expect(0);
    run_part("steps", setup(SETUPS[2]), &[SPILL]).expect(0);
    for (of, fault) in [(SETUPS[1], "file-full:1:3"), (SETUPS[3], "file-quota:1:9"), (SETUPS[4], "file-write:2:20")] {
        let ended = run_part("unwritten", setup(of), &[SPILL, (FAULT, fault)]);
        assert!(ended.expect(0).stderr.contains(": cannot be written: "), "{ended}");
    }
    run_part("unread", setup(SETUPS[3]), &[SPILL, (FAULT, "file-read:1:20")]).expect(0);
}

#[test]
fn threads_use_a_file_while_its_size_is_set() {
    for of in [SETUPS[0], SETUPS[2], SETUPS[3], SETUPS[4]] {
        run_program("shared_file_threads", &[], setup(of), &[]).expect(0);
        run_program("shared_file_threads", &[], setup(of), &[("VGASNET_FILE_SPILL", "1")]).expect(0);
    }
}

/// A sync gives the file its size, and truncates no bytes written in the meantime.
#[test]
fn threads_append_while_a_file_is_synced() {
    for of in [SETUPS[0], SETUPS[2], SETUPS[3], SETUPS[4]] {
        run_program("shared_file_appends", &["sync"], setup(of), &[]).expect(0);
    }
    run_program("shared_file_appends", &["sync"], setup(SETUPS[1]), &[("VGASNET_FILE_SPILL", "1")]).expect(0);
    run_program("shared_file_appends", &["preallocate"], setup(SETUPS[1]), &[]).expect(0);
}

/// Each file has a team of its own. With a common team, messages of the files would be mixed up.
#[test]
fn files_of_one_team_are_synced_side_by_side() {
    for of in [SETUPS[0], SETUPS[1], SETUPS[3], SETUPS[4]] {
        run_program("shared_file_teams", &[], setup(of), &[]).expect(0);
    }
}

#[test]
fn an_open_that_fails_leaves_nothing_behind() {
    for of in [SETUPS[1], SETUPS[3]] {
        run_program("shared_file_opens", &["mode"], setup(of), &[]).expect(0);
        let ended = run_program("shared_file_opens", &["failed"], setup(of), &[]);
        assert!(ended.expect(0).stderr.contains("cannot be opened: Too many open files"), "{ended}");
    }
}

#[test]
fn a_rank_has_a_file_open_to_be_written_once_at_a_time() {
    for of in [SETUPS[0], SETUPS[2], SETUPS[3]] {
        let ended = run_program("shared_file_opens", &["twice"], setup(of), &[]);
        assert!(ended.expect(0).stderr.contains("another job has it open to be written"), "{ended}");
    }
}

#[test]
fn a_file_is_open_to_be_written_by_one_team_at_a_time() {
    for of in [SETUPS[1], SETUPS[3]] {
        let ended = run_program("shared_file_opens", &["teams"], setup(of), &[]);
        assert_eq!(
            ended.expect(0).stderr.matches("another job has it open to be written").count(),
            of.0 as usize - 1,
            "{ended}"
        );
    }
}

#[test]
fn a_file_of_which_bytes_are_lost_has_its_size() {
    for of in [SETUPS[1], SETUPS[4]] {
        let ended = run_program("shared_file_closes", &["lost"], setup(of), &[(FAULT, "file-full:1:1000")]);
        assert!(ended.expect(0).stderr.contains("were not written and are lost"), "{ended}");
    }
}

#[test]
fn close_waits_for_operations_that_nobody_has_synced() {
    for of in [SETUPS[0], SETUPS[2], SETUPS[3]] {
        let ended = run_program("shared_file_closes", &["unsynced"], setup(of), &[]);
        let told = " of them); sync each before";
        // Each rank may have ended them all by then.
        let lines = ended.expect(0).stderr.lines();
        assert!(lines.clone().all(|line| line.ends_with(told)) && lines.count() <= of.0 as usize, "{ended}");
    }
}

#[test]
fn a_file_of_more_pages_than_have_numbers_is_refused() {
    let ended = run_program("shared_file_opens", &["far"], setup(SETUPS[5]), &[]);
    assert!(ended.expect(0).stderr.contains("raise VGASNET_PAGE_SIZE"), "{ended}");
}

/// Mounts, as the tests of full disks do.
#[test]
fn a_copy_with_the_same_number_and_times_is_another_file() {
    if !may_mount("a_copy_with_the_same_number_and_times_is_another_file") {
        return;
    }
    let ended = run_program("shared_file_opens", &["twins"], setup(SETUPS[1]), &[]);
    assert!(ended.expect(0).stderr.contains("1 rank does not see the same file"), "{ended}");
}

#[test]
fn who_reads_finds_the_end_that_others_write() {
    // In the last setup ranks ask the first rank, which asks the others.
    for of in [SETUPS[1], SETUPS[3], SETUPS[4], (6, 64, 6, true)] {
        run_part("ends", setup(of), &[]).expect(0);
    }
}

#[test]
fn in_mode_atomic_each_call_is_one_step() {
    for of in [SETUPS[0], SETUPS[2], SETUPS[3], SETUPS[4]] {
        run_part("steps", setup(of), &[]).expect(0);
    }
}

#[test]
fn a_pool_of_one_page_is_too_small() {
    let ended = run_program("shared_file_misuse", &["tiny"], setup((2, 64, 1, true)), &[]);
    assert!(ended.expect(0).stderr.contains("raise VGASNET_POOL_SIZE"), "{ended}");
}

#[test]
fn a_rank_that_waits_for_others_says_so_where_errors_are_checked() {
    run_program("shared_file_misuse", &["late"], setup(SETUPS[1]), &[("VGASNET_CHECK", "1")]).expect(0);
}

#[test]
fn mode_atomic_begins_when_calls_of_the_other_mode_are_over() {
    for of in [SETUPS[1], SETUPS[2], SETUPS[3]] {
        run_program("shared_file_modes", &[], setup(of), &[]).expect(0);
    }
}

#[test]
fn locks_keep_others_out() {
    for of in [SETUPS[0], SETUPS[2], SETUPS[3], SETUPS[4]] {
        run_part("locks", setup(of), &[]).expect(0);
    }
}

#[test]
fn teams_that_name_themselves_append_by_the_shared_pointer() {
    for of in [SETUPS[0], SETUPS[2], SETUPS[3], SETUPS[4]] {
        run_part("append", setup(of), &[]).expect(0);
    }
}

#[test]
fn a_segment_is_written_to_a_file_and_read_back() {
    for of in [SETUPS[1], SETUPS[3], SETUPS[4]] {
        run_part("segment", setup(of), &[]).expect(0);
    }
}

#[test]
fn who_syncs_a_file_that_is_only_read_reads_what_others_wrote() {
    for of in SETUPS {
        run_part("refreshed", setup(of), &[]).expect(0);
    }
}

/// The disk fails for files alone, and spares the segment.
const FAULT: &str = "VGASNET_TEST_IO_ERROR";

#[test]
fn who_reads_what_cannot_be_read_is_told() {
    for (of, fault) in [
        (SETUPS[0], "file-read:3:5"),
        (SETUPS[3], "file-read:1:20"),
        (SETUPS[4], "file-read:5:9"),
        (SETUPS[6], "file-read:2:30"),
    ] {
        let ended = run_part("unread", setup(of), &[(FAULT, fault)]);
        let failed = |line: &str| line.split(' ').nth(2).and_then(|count| count.parse::<u32>().ok()).expect("a count");
        let failed: u32 = ended.expect(0).stdout.lines().map(failed).sum();
        assert!(failed > 0, "{ended}");
        assert_eq!(ended.stderr.lines().count() as u32, failed, "a line for each: {ended}");
    }
}

/// More pages than may wait at a time, and a small pool.
#[test]
fn one_call_has_many_pages() {
    for of in [(1, 4, 64, true), (2, 4, 64, false), (4, 4, 4096, true)] {
        run_program("shared_file_large", &["calls"], setup(of), &[]).expect(0);
    }
    // The failing read is among the first reads of the call.
    let ended = run_program("shared_file_large", &["unread"], setup((1, 4, 64, true)), &[(FAULT, "file-read:40:1")]);
    assert_eq!(ended.expect(0).stderr.lines().count(), 1, "{ended}");
}

#[test]
fn what_cannot_be_written_stays_until_it_can() {
    let faults = [
        (SETUPS[0], "file-full:2:5"),
        (SETUPS[1], "file-full:1:3"),
        (SETUPS[3], "file-write:1:9"),
        (SETUPS[4], "file-full:2:20"),
        (SETUPS[6], "file-full:1:4"),
        (SETUPS[1], "file-quota:1:5"),
    ];
    for (of, fault) in faults {
        let ended = run_part("unwritten", setup(of), &[(FAULT, fault)]);
        assert!(ended.expect(0).stderr.contains(": cannot "), "{ended}");
    }
}

/// The size and the name are on the disk before a sync returns. A failed sync is not forgotten by the next one.
#[test]
fn a_failed_sync_stays_failed_until_all_is_written_again() {
    for of in [SETUPS[0], SETUPS[1], SETUPS[2], SETUPS[3], SETUPS[4]] {
        for spills in ["0", "1"] {
            let ended = run_program("shared_file_durable", &[], setup(of), &[("VGASNET_FILE_SPILL", spills)]);
            assert!(ended.expect(0).stderr.contains(": cannot reach the disk: Input/output error"), "{ended}");
            assert!(
                ended.stderr.contains(" may be lost; check the file system that it is on, write them again"),
                "{ended}"
            );
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_a_line() {
    for of in [SETUPS[0], SETUPS[3]] {
        let ended = run_program("shared_file_misuse", &["misuse"], setup(of), &[]);
        let lines: Vec<&str> = ended.expect(0).stderr.lines().collect();
        assert!(
            lines.iter().all(|line| line.starts_with("vgasnet: rank ") && line.contains(": vgasnet_file_")),
            "{ended}"
        );
        let of_others = lines.iter().filter(|line| line.contains("rank 1 of the job cannot open it so, and says why"));
        // Rank 1 has the wrong arguments four times.
        assert_eq!(of_others.count(), 4 * (setup(of).ranks as usize - 1), "{ended}");
        for what in ["another path", "other flags", "another stripe_bytes"] {
            let is_said = lines.iter().any(|line| line.contains(&format!("rank 1 of the job opens it with {what};")));
            assert!(is_said || setup(of).ranks == 1, "{what}: {ended}");
        }
        for what in
            ["rank 1 of the job gives 11 in place of 10;", "is in vgasnet_file_close;", "is in vgasnet_file_sync;"]
        {
            let is_said = lines.iter().any(|line| line.contains(what));
            assert!(is_said || setup(of).ranks == 1, "{what}: {ended}");
        }
    }
}
