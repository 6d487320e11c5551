//! Shared files on file systems that are full, read-only, without `O_DIRECT`, or unable to reserve space.

use crate::support::compile::{self, Language, Linking};
use crate::support::mounts::{btrfs, ext, on_own_disk, tmpfs};
use crate::support::run::{Ended, Setup, conduit, fresh_dir, run_with};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use std::fs;
use std::ops::Range;
use std::path::Path;

/// Ranks, KiB of a page, frames, whether neighbours' memory is mapped.
const SETUPS: [(u32, u64, u64, bool); 4] = [(1, 64, 8, true), (2, 64, 8, false), (3, 16, 10, true), (2, 4, 32, true)];

fn setup((ranks, kib, pool_pages, peer_memory): (u32, u64, u64, bool)) -> Setup {
    Setup { ranks, page_bytes: kib << 10, pool_pages, peer_memory, cooperative: true }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are text")
}

/// Runs a part of one of the programs about files in a directory.
fn run_part(part: &str, dir: &Path, setup: Setup, more: &[(&'static str, &str)]) -> Ended {
    let is_refused =
        ["full", "quota", "lost", "limit", "large", "stolen", "longer", "shortened", "readonly", "rights", "exclusive"]
            .contains(&part);
    let program = if is_refused { "file_systems" } else { "file_space" };
    let program = compile::program(program, Language::C99, Linking::Shared);
    let elsewhere = fresh_dir();
    let other = elsewhere.join("other");
    let ended = run_with(&program, &[part, text(dir), text(&other)], setup, more);
    fs::remove_dir_all(&elsewhere).expect("a directory of ours");
    ended
}

/// As [`run_part`], in a directory on the disk of the tests.
fn run_here(part: &str, of: (u32, u64, u64, bool)) {
    let dir = fresh_dir();
    run_part(part, &dir, setup(of), &[]).expect(0);
    fs::remove_dir_all(&dir).expect("a directory of ours");
}

/// Removes the files a part has left on a file system used again.
fn clear(dir: &Path) {
    for entry in fs::read_dir(dir).expect("a directory").flatten() {
        if entry.file_name() != "lost+found" {
            fs::remove_file(entry.path()).expect("a file of a test");
        }
    }
}

/// The byte ranges that a line reports as unwritten, and whether it says that there are more.
fn named(line: &str) -> (Vec<Range<u64>>, bool) {
    let (_, words) = line.split_once(": bytes ").unwrap_or_else(|| panic!("names no bytes: {line}"));
    let (words, _) = words.split_once(" were not written").unwrap_or_else(|| panic!("what of them: {line}"));
    let (ranges, more) = words.split_once(" and ").map_or((words, None), |(ranges, more)| (ranges, Some(more)));
    let range = |range: &str| {
        let (first, last) = range.split_once(" to ").unwrap_or_else(|| panic!("no range: {line}"));
        first.parse().expect("a number")..last.parse::<u64>().expect("a number") + 1
    };
    (ranges.split(", ").map(range).collect(), more.is_some())
}

/// The line of `call` names all bytes missing on the disk, and the remedy.
fn check_named(ended: &Ended, call: &str, reason: &str, hint: &str) {
    let line = ended.stderr.lines().find(|line| line.contains(call)).unwrap_or_else(|| panic!("no line: {ended}"));
    assert!(line.contains(reason) && line.ends_with(hint), "{line}\n{ended}");
    let (ranges, has_more) = named(line);
    let lacking = ended.stdout.lines().filter_map(|line| line.strip_prefix("lacks "));
    let lacking: Vec<u64> = lacking.map(|at| at.parse().expect("a number")).collect();
    let end = ranges.last().expect("a range").end;
    for at in &lacking {
        let is_named = ranges.iter().any(|range| range.contains(at));
        assert!(is_named || (has_more && *at >= end), "byte {at} is not on the disk: {line}\n{ended}");
    }
    // Some of the refused bytes may have been written before the disk was full.
    assert!(
        lacking.iter().any(|at| ranges.iter().any(|range| range.contains(at))),
        "all is on the disk: {line}\n{ended}"
    );
}

const FULL: &str = "No space left on device";

#[test]
fn a_full_disk_is_told_of_and_what_it_lacks_is_written_once_there_is_room() {
    let check = |dir: &Path, more: &[(&'static str, &str)]| {
        for of in SETUPS {
            let ended = run_part("full", dir, setup(of), more);
            check_named(ended.expect(0), "vgasnet_file_sync", FULL, "; make room on its file system, then sync it");
            let refused = ended.stderr.matches("vgasnet_file_write_at: ").count();
            assert!(refused <= 2 * of.0 as usize, "a line for each write: {ended}");
            clear(dir);
        }
    };
    let test = "a_full_disk_is_told_of_and_what_it_lacks_is_written_once_there_is_room";
    on_own_disk(test, ext("ext4", 24 << 20), |dir| check(dir, &[]));
    on_own_disk(test, tmpfs("size=8m"), |dir| check(dir, &[]));
    on_own_disk(test, ext("ext4", 24 << 20), |dir| check(dir, &[SPILL]));
    on_own_disk(test, tmpfs("size=8m"), |dir| check(dir, &[SPILL, ("VGASNET_FILE_SPILL_SIZE", "256K")]));
}

#[test]
fn a_user_without_room_is_told_of_it_and_what_the_file_lacks_is_written_once_there_is_some() {
    let test = "a_user_without_room_is_told_of_it_and_what_the_file_lacks_is_written_once_there_is_some";
    for more in [&[][..], &[SPILL]] {
        on_own_disk(test, btrfs(128 << 20, 16 << 20), |dir| {
            for of in SETUPS {
                let ended = run_part("quota", dir, setup(of), more);
                let reason = "Disk quota exceeded";
                check_named(
                    ended.expect(0),
                    "vgasnet_file_sync",
                    reason,
                    "; make room on its file system, then sync it",
                );
                clear(dir);
            }
        });
    }
}

/// Evicted file pages spill to the disk of the tests.
const SPILL: (&str, &str) = ("VGASNET_FILE_SPILL", "1");

#[test]
fn a_rank_that_dies_loses_nothing_that_was_synced() {
    for (of, more) in SETUPS.into_iter().flat_map(|of| [(of, &[][..]), (of, &[SPILL][..])]) {
        let dir = fresh_dir();
        let ended = run_part("dies", &dir, setup(of), more);
        let bytes = fs::read(dir.join("shared")).expect("it was synced");
        let piece = (of.1 as usize * 1024 / 4).max(4096);
        if conduit() == "smp" {
            ended.expect(128 + 9);
        } else {
            // MPI may first end another rank that was reading the dead rank's memory.
            assert!(ended.status.is_some_and(|status| status > 128), "{ended}");
        }
        assert_eq!(bytes.len(), 96 * piece, "{ended}");
        for (at, block) in (0..).zip(bytes.chunks(4096)) {
            let letter = b'A' + (at * 4096 / piece % 26) as u8;
            let is_whole = block.iter().all(|byte| byte.to_ascii_uppercase() == letter);
            assert!(is_whole, "block {at} is no {}: {ended}", char::from(letter));
        }
        fs::remove_dir_all(&dir).expect("a directory of ours");
    }
}

#[test]
fn what_cannot_be_written_at_close_is_lost_and_the_next_file_whole() {
    let test = "what_cannot_be_written_at_close_is_lost_and_the_next_file_whole";
    on_own_disk(test, ext("ext4", 24 << 20), |dir| {
        for of in SETUPS {
            let ended = run_part("lost", dir, setup(of), &[]);
            let line = ended.expect(0).stderr.lines().find(|line| line.contains("vgasnet_file_close"));
            assert!(line.is_some_and(|line| line.contains(" were not written and are lost; make room")), "{ended}");
            check_named(&ended, "vgasnet_file_close", FULL, "; make room on its file system");
            clear(dir);
        }
    });
}

#[test]
fn a_file_is_cut_to_what_a_full_disk_has_room_for() {
    let test = "a_file_is_cut_to_what_a_full_disk_has_room_for";
    let check = |dir: &Path, more: &[(&'static str, &str)]| {
        for of in SETUPS {
            run_part("shortened", dir, setup(of), more).expect(0);
            clear(dir);
        }
    };
    on_own_disk(test, ext("ext4", 24 << 20), |dir| check(dir, &[]));
    on_own_disk(test, tmpfs("size=8m"), |dir| check(dir, &[]));
    on_own_disk(test, tmpfs("size=8m"), |dir| check(dir, &[SPILL, ("VGASNET_FILE_SPILL_SIZE", "256K")]));
}

#[test]
fn a_file_is_made_longer_on_a_full_disk() {
    let test = "a_file_is_made_longer_on_a_full_disk";
    for more in [&[][..], &[SPILL]] {
        on_own_disk(test, tmpfs("size=8m"), |dir| {
            for of in SETUPS {
                run_part("longer", dir, setup(of), more).expect(0);
                clear(dir);
            }
        });
    }
}

#[test]
fn a_limit_on_files_is_told_of_and_no_end_of_the_job() {
    for of in SETUPS {
        let dir = fresh_dir();
        let ended = run_part("limit", &dir, setup(of), &[]);
        check_named(ended.expect(0), "vgasnet_file_sync", "File too large", "larger files, then sync it");
        fs::remove_dir_all(&dir).expect("a directory of ours");
    }
}

#[test]
fn a_write_of_very_many_pages_gives_up_when_some_are_refused() {
    run_here("large", (1, 4, 32, true));
}

#[test]
fn pages_that_could_not_be_written_do_not_stay_where_another_rank_has_written_them() {
    run_here("stolen", (2, 64, 8, false));
}

#[test]
fn a_file_on_a_read_only_file_system_is_read() {
    on_own_disk("a_file_on_a_read_only_file_system_is_read", tmpfs("size=8m"), |dir| {
        fs::write(dir.join("shared"), vec![b'r'; 256 << 10]).expect("room for a file");
        // A child of another test may still have the file open, in the mount below.
        let (none, bind): (Option<&str>, _) = (None, MsFlags::MS_BIND);
        mount(Some(dir), dir, none, bind, none).expect("a mount of ours");
        mount(none, dir, none, bind | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY, none).expect("a mount of ours");
        for of in SETUPS {
            let ended = run_part("readonly", dir, setup(of), &[]);
            let refused = ended.expect(0).stderr.lines().filter(|line| line.contains("Read-only file system"));
            assert_eq!(refused.count() as u32, 3 * of.0, "{ended}");
        }
        umount2(dir, MntFlags::MNT_DETACH).expect("a mount of ours");
    });
}

#[test]
fn what_may_not_be_opened_or_is_no_file_is_refused() {
    for of in SETUPS {
        run_here("rights", of);
    }
}

#[test]
fn of_all_that_make_a_file_exclusively_one_does() {
    let dir = fresh_dir();
    let job = |ranks| run_part("exclusive", &dir, setup((ranks, 64, 8, true)), &[]);
    let ended = std::thread::scope(|scope| {
        let jobs = [4, 2, 3].map(|ranks| scope.spawn(move || job(ranks)));
        jobs.map(|job| job.join().expect("a job"))
    });
    let made = ended.iter().flat_map(|ended| ended.expect(0).stdout.lines());
    let mut made: Vec<u32> = made.map(|line| line.strip_prefix("made ").expect("a line").parse().expect("k")).collect();
    made.sort_unstable();
    assert_eq!(made, (0..20).collect::<Vec<u32>>());
    for k in 0..20_u8 {
        let bytes = fs::read(dir.join(format!("made-{k}"))).expect("it was made");
        assert!(!bytes.is_empty() && bytes.iter().all(|byte| *byte == k || *byte == 0), "{k}: {bytes:?}");
    }
    fs::remove_dir_all(&dir).expect("a directory of ours");
}

#[test]
fn who_reads_what_another_program_has_cut_gets_an_answer() {
    for of in SETUPS {
        run_here("cut", of);
    }
    on_own_disk("who_reads_what_another_program_has_cut_gets_an_answer", tmpfs("size=32m"), |dir| {
        run_part("cut", dir, setup(SETUPS[1]), &[]).expect(0);
    });
}

#[test]
fn pages_that_nobody_writes_take_no_space() {
    for of in SETUPS {
        run_here("holes", of);
    }
    on_own_disk("pages_that_nobody_writes_take_no_space", tmpfs("size=8m"), |dir| {
        run_part("holes", dir, setup(SETUPS[2]), &[]).expect(0);
    });
}

#[test]
fn a_rank_makes_a_file_longer_while_others_write() {
    for of in SETUPS {
        run_here("extended", of);
    }
    // ext2 sets a file's size in another way.
    on_own_disk("a_rank_makes_a_file_longer_while_others_write", ext("ext2", 64 << 20), |dir| {
        run_part("extended", dir, setup(SETUPS[1]), &[]).expect(0);
    });
}

#[test]
fn statistics_tell_of_files() {
    for (of, more) in SETUPS.into_iter().zip([&[][..], &[SPILL], &[], &[SPILL]]) {
        let dir = fresh_dir();
        run_part("counts", &dir, setup(of), &[&[("VGASNET_STATS", "1")], more].concat()).expect(0);
        fs::remove_dir_all(&dir).expect("a directory of ours");
    }
}

#[test]
fn lists_that_write_pages_in_pieces_read_few_of_them_back() {
    let dir = fresh_dir();
    run_part("listed", &dir, setup((1, 64, 64, true)), &[("VGASNET_STATS", "1")]).expect(0);
    fs::remove_dir_all(&dir).expect("a directory of ours");
}

#[test]
fn what_nobody_flushes_is_on_the_disk_after_a_while() {
    for of in [SETUPS[1], (2, 4096, 16, true)] {
        run_here("aged", of);
        run_here("left", of);
    }
}

#[test]
fn space_is_taken_ahead() {
    let check = |dir: &Path| {
        for of in SETUPS {
            run_part("space", dir, setup(of), &[]).expect(0);
            clear(dir);
        }
    };
    run_here("space", SETUPS[0]);
    on_own_disk("space_is_taken_ahead", tmpfs("size=24m"), check);
    on_own_disk("space_is_taken_ahead", ext("ext4", 24 << 20), check);
    // ext2 cannot reserve space, so zeros are written.
    on_own_disk("space_is_taken_ahead", ext("ext2", 24 << 20), check);
}
