//! The launcher's decisions, without processes.

use super::*;

/// A job of four running ranks in these states.
fn four(states: [RankState; 4]) -> Vec<RankView> {
    (100..)
        .zip(states)
        .map(|(pid, state)| RankView { pid, host: None, state, why: None, shortage: None, is_running: true })
        .collect()
}

fn decision(order: Option<Order>, say: Option<&str>) -> Decision {
    Decision { order, say: say.map(str::to_owned) }
}

const QUIET: Decision = Decision { order: None, say: None };

struct Bench {
    policy: ExitPolicy,
    ranks: Vec<RankView>,
    now: Instant,
}

impl Bench {
    fn new(states: [RankState; 4]) -> Self {
        Bench { policy: ExitPolicy::new(Graces::JOB, None), ranks: four(states), now: Instant::now() }
    }

    fn end(&mut self, rank: usize, end: End) -> Decision {
        self.ranks[rank].is_running = false;
        self.policy.on_end(rank, end, &self.ranks, self.now)
    }

    fn pass(&mut self, seconds: f64) -> Decision {
        self.now += Duration::from_secs_f64(seconds);
        self.policy.on_time(&self.ranks, self.now)
    }

    fn signal(&mut self, signal: i32, from_terminal: bool) -> Decision {
        self.policy.on_signal(signal, from_terminal, self.now)
    }

    fn status(&self) -> i32 {
        self.policy.outcome().status
    }
}

#[test]
fn the_first_failure_ends_the_job_and_decides_its_status() {
    let mut job = Bench::new([RankState::Attached; 4]);
    let line = "rank 2 (pid 102) was killed by signal 9 (SIGKILL); the other ranks were ended";
    assert_eq!(job.end(2, End::Signal(9)), decision(Some(Order::Quit), Some(line)));
    assert_eq!(job.end(1, End::Status(3)), QUIET);
    assert_eq!(job.pass(2.9), QUIET);
    let line = "ranks 0, 3 did not end within 3 s of being told to; killed";
    assert_eq!(job.pass(0.2), decision(Some(Order::Kill), Some(line)));
    assert_eq!(job.pass(4.9), QUIET);
    assert_eq!(job.status(), 137);
    assert_eq!(job.policy.outcome().failure, Some(Failure { rank: 2, pid: 102, end: End::Signal(9) }));
}

#[test]
fn the_lowest_status_wins_among_ranks_that_race_to_exit() {
    let mut job =
        Bench::new([RankState::Attached, RankState::Exiting(5), RankState::Exiting(0), RankState::Exiting(3)]);
    let line = "rank 3 (pid 103) ended with exit status 3; the other ranks were ended";
    assert_eq!(job.end(1, End::Status(5)), decision(Some(Order::Quit), Some(line)));
    assert_eq!(job.status(), 3);
}

#[test]
fn an_orderly_exit_gives_the_others_ten_seconds() {
    let mut job = Bench::new([RankState::Exiting(0), RankState::Attached, RankState::Attached, RankState::Attached]);
    assert_eq!(job.end(0, End::Status(0)), QUIET);
    assert_eq!(job.pass(9.0), QUIET);
    assert_eq!(job.end(1, End::Status(0)), QUIET);
    let line = "ranks 2, 3 did not end within 10 s of rank 0; ended";
    assert_eq!(job.pass(1.0), decision(Some(Order::Quit), Some(line)));
    assert_eq!(job.end(2, End::Signal(libc::SIGQUIT)), QUIET);
    let line = "rank 3 did not end within 3 s of being told to; killed";
    assert_eq!(job.pass(3.0), decision(Some(Order::Kill), Some(line)));
    assert_eq!(job.end(3, End::Signal(libc::SIGKILL)), QUIET);
    assert_eq!(job.status(), 0);
}

#[test]
fn a_rank_that_ends_without_leaving_has_failed_unless_all_do() {
    let mut job = Bench::new([RankState::Attached; 4]);
    assert_eq!(job.end(1, End::Status(0)), QUIET);
    assert_eq!(job.pass(1.9), QUIET);
    let line = "rank 1 (pid 101) ended without leaving the job, as _exit does; call exit or vgasnet_exit; the other ranks \
                were ended";
    assert_eq!(job.pass(0.2), decision(Some(Order::Quit), Some(line)));
    assert_eq!(job.status(), 1);

    let mut all = Bench::new([RankState::Attached; 4]);
    for rank in 0..4 {
        assert_eq!(all.end(rank, End::Status(0)), QUIET);
        assert_eq!(all.pass(0.3), QUIET);
    }
    assert_eq!(all.status(), 0);
}

#[test]
fn a_status_of_a_rank_that_has_left_leaves_the_others_their_time() {
    let mut job = Bench::new([RankState::Exiting(0); 4]);
    let line = "rank 2 (pid 102) ended with exit status 3";
    assert_eq!(job.end(2, End::Status(3)), decision(None, Some(line)));
    assert_eq!(job.pass(9.0), QUIET);
    assert_eq!(job.end(1, End::Status(5)), QUIET);
    assert_eq!(job.end(0, End::Status(0)), QUIET);
    let line = "rank 3 did not end within 10 s of rank 2; ended";
    assert_eq!(job.pass(1.0), decision(Some(Order::Quit), Some(line)));
    assert_eq!(job.status(), 3);
}

#[test]
fn a_failure_while_others_leave_still_counts() {
    let mut job = Bench::new([RankState::Exiting(0), RankState::Attached, RankState::Attached, RankState::Attached]);
    assert_eq!(job.end(0, End::Status(0)), QUIET);
    assert_eq!(job.end(1, End::Signal(11)).order, Some(Order::Quit));
    assert_eq!(job.status(), 139);
}

#[test]
fn programs_that_never_initialise_just_run() {
    let mut job = Bench::new([RankState::Fresh; 4]);
    for rank in 0..4 {
        assert_eq!(job.end(rank, End::Status(0)), QUIET);
        assert_eq!(job.pass(60.0), QUIET);
    }
    assert_eq!(job.status(), 0);
}

#[test]
fn a_rank_that_skips_init_is_an_error_whenever_another_initialises() {
    let line = "rank 1 (pid 101) ended before vgasnet_init, which other ranks have called; all ranks must call it";
    let mut early = Bench::new([RankState::Initialised, RankState::Fresh, RankState::Fresh, RankState::Fresh]);
    assert_eq!(early.end(1, End::Status(0)), decision(Some(Order::Quit), Some(line)));
    assert_eq!(early.status(), 1);

    let mut late = Bench::new([RankState::Fresh; 4]);
    assert_eq!(late.end(1, End::Status(0)), QUIET);
    late.ranks[3].state = RankState::Initialised;
    assert_eq!(late.pass(0.1), decision(Some(Order::Quit), Some(line)));

    let mut left = Bench::new([RankState::Exiting(0), RankState::Fresh, RankState::Fresh, RankState::Fresh]);
    assert_eq!(left.end(0, End::Status(0)), QUIET);
    assert_eq!(left.end(1, End::Status(0)), decision(Some(Order::Quit), Some(line)));
}

#[test]
fn signals_are_forwarded_unless_the_terminal_did_it() {
    let mut job = Bench::new([RankState::Attached; 4]);
    assert_eq!(job.signal(libc::SIGUSR1, false), decision(Some(Order::Forward(libc::SIGUSR1)), None));
    assert_eq!(job.signal(libc::SIGHUP, true), decision(Some(Order::Forward(libc::SIGHUP)), None));
    assert_eq!(job.policy.deadline(), None);
    assert_eq!(job.signal(libc::SIGINT, true), QUIET);
    assert_eq!(job.end(0, End::Signal(libc::SIGINT)), QUIET);
    assert_eq!(job.pass(4.9), QUIET);
    let line = "ranks 1, 2, 3 did not end within 5 s of signal 2 (SIGINT); killed";
    assert_eq!(job.pass(0.2), decision(Some(Order::Kill), Some(line)));
    assert_eq!(job.status(), 130);
}

#[test]
fn killed_ranks_that_do_not_end_are_named_and_then_left_behind() {
    let mut job = Bench::new([RankState::Attached; 4]);
    assert_eq!(job.end(0, End::Status(2)).order, Some(Order::Quit));
    assert_eq!(job.end(1, End::Status(0)), QUIET);
    assert_eq!(job.pass(3.1).order, Some(Order::Kill));
    assert_eq!(job.end(2, End::Signal(9)), QUIET);
    assert_eq!(job.pass(4.8), QUIET);
    let line = "waits for the system to take back memory and disk space of rank 3, killed 5 s ago";
    assert_eq!(job.pass(0.3), decision(None, Some(line)));
    assert_eq!(job.pass(54.0), QUIET);
    assert!(!job.policy.has_given_up());
    let line = "rank 3 did not end within 60 s of being killed; left behind";
    assert_eq!(job.pass(1.0), decision(None, Some(line)));
    assert!(job.policy.has_given_up());
    assert_eq!((job.pass(60.0), job.status()), (QUIET, 2));
}

#[test]
fn ranks_that_ignore_an_interrupt_are_killed() {
    let mut job = Bench::new([RankState::Fresh; 4]);
    assert_eq!(job.signal(libc::SIGTERM, false), decision(Some(Order::Forward(libc::SIGTERM)), None));
    let line = "ranks 0, 1, 2, 3 did not end within 5 s of signal 15 (SIGTERM); killed";
    assert_eq!(job.pass(5.0), decision(Some(Order::Kill), Some(line)));
    assert_eq!(job.end(0, End::Signal(libc::SIGKILL)), QUIET);
    assert_eq!(job.status(), 143);
}

#[test]
fn the_time_limit_ends_the_job() {
    let mut job = Bench::new([RankState::Attached; 4]);
    let limit = Duration::from_secs(7);
    job.policy = ExitPolicy::new(Graces::JOB, Some((limit, job.now + limit)));
    assert_eq!(job.pass(6.0), QUIET);
    let line = "the time limit of 7 s is over; still running: ranks 0, 1, 2, 3";
    assert_eq!(job.pass(1.0), decision(Some(Order::Quit), Some(line)));
    assert_eq!(job.pass(3.0).order, Some(Order::Kill));
    assert_eq!(job.status(), 124);
}

#[test]
fn what_breaks_the_job_decides_its_status_unless_it_ends_already() {
    let mut job = Bench::new([RankState::Attached; 4]);
    let line = "host b has not answered";
    assert_eq!(job.policy.on_breakdown(1, line.to_owned(), job.now), decision(Some(Order::Quit), Some(line)));
    assert!(job.policy.is_ending());
    assert_eq!(job.policy.on_breakdown(2, "again".to_owned(), job.now), QUIET);
    assert_eq!(job.end(0, End::Signal(3)), QUIET);
    assert_eq!(job.pass(3.0).order, Some(Order::Kill));
    assert_eq!(job.status(), 1);
}

#[test]
fn a_process_elsewhere_is_named_with_its_host() {
    let mut job = Bench::new([RankState::Attached; 4]);
    job.ranks[1].host = Some("b".into());
    let line = "rank 1 (pid 101 on b) ended with exit status 3; the other ranks were ended";
    assert_eq!(job.end(1, End::Status(3)), decision(Some(Order::Quit), Some(line)));
}

#[test]
fn a_broken_network_is_told_only_if_nobody_else_has_failed() {
    let broken = |rank: usize| {
        let mut job = Bench::new([RankState::Attached; 4]);
        job.ranks[rank].state = RankState::Broken;
        job.ranks[rank].why = Some("mpi: no route".into());
        job
    };
    let mut alone = broken(1);
    let line = "rank 1 (pid 101) broke down: mpi: no route; the other ranks were ended";
    alone.ranks[1].state = RankState::Exiting(1);
    assert_eq!(alone.end(1, End::Status(1)), decision(Some(Order::Quit), Some(line)));
    assert_eq!(alone.status(), 1);

    let mut after = broken(0);
    let line = "rank 2 (pid 102) ended with exit status 7; the other ranks were ended";
    after.ranks[2].state = RankState::Exiting(7);
    assert_eq!(after.end(2, End::Status(7)), decision(Some(Order::Quit), Some(line)));
    assert_eq!(after.end(0, End::Status(1)), QUIET);
    assert_eq!(after.status(), 7);

    let mut killed = broken(3);
    let line = "rank 3 (pid 103) was killed by signal 9 (SIGKILL); the other ranks were ended";
    assert_eq!(killed.end(3, End::Signal(9)), decision(Some(Order::Quit), Some(line)));

    let mut interrupted = broken(0);
    assert_eq!(interrupted.signal(libc::SIGINT, true), QUIET);
    assert_eq!(interrupted.end(0, End::Status(1)), QUIET);
    assert_eq!(interrupted.status(), 130);
}

#[test]
fn a_machine_that_stood_still_gives_the_ranks_their_time_again() {
    let mut job = Bench::new([RankState::Exiting(0), RankState::Attached, RankState::Attached, RankState::Attached]);
    assert_eq!(job.end(0, End::Status(0)), QUIET);
    assert_eq!(job.pass(40.0), QUIET);
    assert_eq!(job.pass(10.0).order, Some(Order::Quit));
    assert_eq!(job.pass(40.0), QUIET);
    assert_eq!(job.policy.deadline(), Some(job.now + Graces::JOB.quit));
    assert_eq!(job.pass(3.0).order, Some(Order::Kill));
}

#[test]
fn an_orphan_is_told_to_end_and_killed_a_second_later() {
    let mut rank = Bench::new([RankState::Attached; 4]);
    rank.policy = ExitPolicy::new(Graces::ORPHAN, None);
    assert_eq!(rank.policy.on_orphaned(rank.now), decision(Some(Order::Forward(libc::SIGTERM)), None));
    assert_eq!(rank.pass(0.9), QUIET);
    assert_eq!(rank.pass(0.2).order, Some(Order::Kill));
}

#[test]
fn another_launcher_may_take_its_time_unless_the_user_is_impatient() {
    let mut launcher = Bench::new([RankState::Fresh; 4]);
    launcher.policy = ExitPolicy::leaving(Graces::LAUNCHER, launcher.now);
    assert_eq!(launcher.pass(4.0), QUIET);
    launcher.policy.on_delay(launcher.now);
    assert_eq!(launcher.pass(4.0), QUIET);
    launcher.policy.on_impatience(launcher.now);
    assert_eq!(launcher.pass(0.0), decision(Some(Order::Quit), None));
    assert_eq!(launcher.pass(1.0).order, Some(Order::Kill));
    assert_eq!(launcher.status(), 0);
}
