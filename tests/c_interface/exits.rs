//! Ends of ranks, and the work their programs have left.

use crate::support::compile::{self, Language, Linking};
use crate::support::run::{Ended, Setup, conduit, is_across_hosts, read_until, run, run_while, run_with, say_not_run};

fn exits(args: &[&str], ranks: u32) -> Ended {
    let setup = Setup { ranks, page_bytes: 64 << 10, pool_pages: 4, peer_memory: true, cooperative: true };
    run(&compile::program("exits", Language::C99, Linking::Shared), args, setup)
}

/// The lines ranks have written while they ended, sorted.
fn said(ended: &Ended) -> Vec<&str> {
    let mut lines: Vec<_> = ended.stdout.lines().collect();
    lines.sort_unstable();
    lines
}

/// The lines of these ranks' exit handlers, sorted. GASNet ends a process in an exit handler of its own, so handlers
/// registered before its start do not run.
fn handlers_of(ranks: impl Iterator<Item = u32>) -> Vec<String> {
    match &*conduit() {
        "gasnet" => sorted(ranks.map(|rank| format!("rank {rank}: late handler"))),
        _ => all_handlers_of(ranks),
    }
}

fn all_handlers_of(ranks: impl Iterator<Item = u32>) -> Vec<String> {
    let of =
        |rank| ["destructor".to_owned(), format!("rank {rank}: early handler"), format!("rank {rank}: late handler")];
    sorted(ranks.flat_map(of))
}

fn sorted(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<_> = lines.collect();
    lines.sort_unstable();
    lines
}

#[test]
fn exit_handlers_run_and_buffered_output_is_written() {
    for part in ["main", "thread", "message", "no-threads", "jump"] {
        for ranks in [1, 3] {
            let all = exits(&[part, "0"], ranks);
            assert_eq!(said(all.expect(0)), handlers_of(0..ranks), "{all}");
            assert_eq!(all.stderr, "", "{all}");
            let one = exits(&[part, "3"], ranks);
            assert_eq!(said(one.expect(3)), handlers_of(ranks - 1..ranks), "{one}");
        }
    }
}

/// All ranks call the C library's exit with a status, and all exit handlers run. GASNet also leaves the end to the
/// program then.
#[test]
fn a_program_may_see_to_its_end_itself() {
    let setup = Setup { ranks: 3, page_bytes: 64 << 10, pool_pages: 4, peer_memory: true, cooperative: true };
    let program = compile::program("exits", Language::C99, Linking::Shared);
    let ended = run_with(&program, &["libc", "3"], setup, &[("GASNET_CATCH_EXIT", "0")]);
    assert_eq!(said(ended.expect(3)), all_handlers_of(0..3), "{ended}");
    let line = |line: &str| line.starts_with("vgasnetrun: rank ") && line.ends_with("ended with exit status 3");
    assert!(ended.stderr.lines().all(line) && ended.stderr.lines().count() == 1, "{ended}");
}

#[test]
fn exit_in_a_signal_handler_runs_no_exit_handlers() {
    for status in [0, 3] {
        let ended = exits(&["signal", &status.to_string()], 2);
        assert_eq!(ended.expect(status).stdout, "", "{ended}");
    }
}

#[test]
fn an_exit_handler_may_call_exit() {
    for status in [0, 3] {
        let ended = exits(&["nested", &status.to_string()], 1);
        assert_eq!(ended.expect(status).stdout, "rank 0: late handler\n", "{ended}");
    }
}

#[test]
fn exit_handlers_that_hang_are_given_up() {
    let ended = exits(&["hangs", "0"], 1);
    let line = "vgasnet: rank 0: vgasnet_exit: the program's exit handlers are not through after 10 s; the rank ends without \
                them\n";
    assert_eq!(ended.expect(0).stderr, line, "{ended}");
}

#[test]
fn nobody_waits_for_a_rank_that_is_gone() {
    if conduit() != "smp" {
        return say_not_run("nobody_waits_for_a_rank_that_is_gone", "over a network the launcher ends those that wait");
    }
    for ranks in [2, 6] {
        let ended = exits(&["deserted"], ranks);
        // The launcher ended none of them.
        assert_eq!(said(ended.expect(0)), handlers_of(0..ranks), "{ended}");
    }
}

#[test]
fn a_rank_that_just_ends_has_failed() {
    let ended = exits(&["_exit"], 3);
    let lines: Vec<_> = ended.expect(1).stderr.lines().collect();
    let [line] = lines[..] else { panic!("{ended}") };
    let end = "ended without leaving the job, as _exit does; call exit or vgasnet_exit; the other ranks were ended";
    assert!(line.starts_with("vgasnetrun: rank 2 (pid ") && line.ends_with(end), "{ended}");
}

/// Other ranks wait for small operations on pages whose home or only holder is the killed rank.
#[test]
fn a_rank_that_is_killed_while_others_use_its_pages() {
    if is_across_hosts() {
        return say_not_run("a_rank_that_is_killed_while_others_use_its_pages", "it runs on another host");
    }
    let program = compile::program("scattered", Language::C99, Linking::Shared);
    for (part, ranks, page_bytes, peer_memory) in [
        ("home", 2, 4 << 20, true),
        ("home", 4, 64 << 10, false),
        ("owner", 2, 4 << 20, false),
        ("owner", 4, 64 << 10, false),
    ] {
        let setup = Setup { ranks, page_bytes, pool_pages: 4, peer_memory, cooperative: true };
        let ended = run_while(&program, &[part], setup, &[], |launcher| {
            let said = read_until(launcher.stdout.as_mut().expect("piped"), "ready ", 1);
            let pid = said.lines().find_map(|line| line.strip_prefix("ready ")).and_then(|pid| pid.parse().ok());
            let pid = pid.unwrap_or_else(|| panic!("no rank is ready: {said}"));
            for signal in [libc::SIGSTOP, libc::SIGKILL] {
                // SAFETY: the call takes numbers only. The process belongs to this job and has not been waited for.
                assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
            }
        });
        let [line] = ended.expect(128 + 9).stderr.lines().collect::<Vec<_>>()[..] else { panic!("{ended}") };
        assert!(line.starts_with(&format!("vgasnetrun: rank {} (pid ", ranks - 1)), "{ended}");
        assert!(line.contains("SIGKILL"), "{ended}");
    }
}
