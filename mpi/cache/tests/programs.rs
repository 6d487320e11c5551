//! Unmodified programs with one-sided MPI, compiled and started as MPI's users do it.

use vgasnet_preloaded::{Ended, Language, Program, Suite};

static SUITE: Suite = Suite {
    mpicc: env!("VGASNET_MPICC"),
    programs: concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs"),
    scratch: env!("CARGO_TARGET_TMPDIR"),
    library: ("libvgasnet_mpi_cache.so", "libvgasnet-mpi-cache.so"),
    beside: &[],
    tool: Some("tool"),
    variables: &["VGASNET_MPI_CACHE", "VGASNET_MPI_CACHE_SIZE", "VGASNET_MPI_CACHE_STATS"],
};

/// Runs a program in a mode with the library, and expects all ranks to report success.
fn passes(program: &Program, ranks: u32, arguments: &[&str]) -> Ended {
    let ended = program.run(ranks, arguments, &[]);
    ended.expect_done();
    ended
}

/// The library has printed nothing but the promise of a mode.
fn expect_silence(ended: &Ended) {
    let is_told = |line: &&str| line.starts_with("vgasnet-mpi-cache: ") && !line.contains(" relies on a promise ");
    assert!(!ended.stderr.lines().any(|line| is_told(&line)), "{ended}");
}

fn c(name: &str) -> Program {
    SUITE.compile(name, Language::C)
}

#[test]
fn r1_to_r3_hits_and_what_is_filed() {
    let program = c("hits");
    for mode in ["always", "phase"] {
        passes(&program, 2, &[mode]);
    }
}

#[test]
fn r4_entries_of_an_epoch_die_with_it() {
    passes(&c("epoch"), 2, &["checked"]);
}

/// The bound is coarse: the library and the tool below it have assertions, and the machine may be busy.
#[test]
fn gets_of_uncached_windows_cost_at_most_100_ns_more() {
    let ended = passes(&c("off"), 2, &[]);
    for when in ["alone", "beside"] {
        let figures = ended.stdout.lines().find_map(|line| line.strip_prefix(when)).expect("a line");
        let added: f64 = figures.split_whitespace().next().and_then(|added| added.parse().ok()).expect("nanoseconds");
        assert!(added < 100.0, "{ended}");
    }
}

#[test]
fn r5_own_writes_drop_what_they_overlap() {
    let program = c("writes");
    for mode in ["always", "phase", "checked", "told"] {
        // On one host the default of Open MPI 4.1 crashes in concurrent atomics, even without the library.
        program.run(2, &[mode], &[("OMPI_MCA_osc", "^rdma")]).expect_done();
    }
}

#[test]
fn r6_places_are_displacements_times_units() {
    passes(&c("units"), 3, &["always"]);
}

#[test]
fn r7_errors_are_those_of_mpi() {
    let program = c("errors");
    let without = program.run_without(2, &["off"], &[]);
    assert!(without.stdout.lines().count() > 15, "{without}");
    for mode in ["off", "checked", "phase", "always", "told"] {
        let with = program.run(2, &[mode], &[]);
        assert_eq!((with.status, &with.stdout), (without.status, &without.stdout), "{mode}: {with}");
    }
}

#[test]
fn r7_who_completes_a_get_that_joined_in_vain_has_its_error() {
    let program = c("refused");
    for mode in ["always", "checked", "told"] {
        passes(&program, 2, &[mode]);
    }
}

#[test]
fn r8_readers_see_what_they_are_told_of() {
    passes(&c("checked"), 3, &["told"]);
}

#[test]
fn r8_who_waits_for_a_request_may_have_been_told() {
    for mode in ["checked", "told"] {
        passes(&c("told"), 2, &[mode]);
    }
}

/// Every way to learn of every write: some random cases of the square, or all of them with `CHECK_ALL=1`.
#[test]
fn r9_gets_see_what_their_rank_may_have_learned() {
    let program = c("news");
    let file = program.scratch("file");
    let parts: Vec<String> = match std::env::var("CHECK_ALL") {
        Ok(value) if value == "1" => (0..40).map(|part| format!("part {part}/40")).collect(),
        _ => ["each", "100"].map(str::to_owned).to_vec(),
    };
    for mode in ["checked", "told"] {
        for part in &parts {
            let arguments = [mode, "1", part, file.to_str().expect("a path of ours")];
            program.run(3, &arguments, &[("OMPI_MCA_osc", "^rdma")]).expect_done();
            if mode == "checked" {
                // As right by MPI alone.
                program.run_without(3, &arguments, &[("OMPI_MCA_osc", "^rdma")]).expect_done();
            }
        }
    }
}

/// The rows of "Outside of checked and told" in docs/reference/cached-gets.md: ways to learn of a write, and the modes that read
/// the old value then.
#[test]
fn what_is_outside_is_as_documented() {
    let program = c("outside");
    let rows: [(&str, &[&str]); 5] = [
        ("message", &["told"]),
        ("receive", &["told"]),
        ("window", &["told"]),
        ("flag", &["checked", "told"]),
        ("buffer", &["told"]),
    ];
    for (way, outside) in rows {
        for mode in ["off", "checked", "told"] {
            let ended = passes(&program, 2, &[mode, way]);
            let is_old = !ended.stdout.contains("done: 0 of ");
            assert_eq!(is_old, outside.contains(&mode), "{way}, {mode}: {ended}");
        }
    }
}

#[test]
fn one_thread_flushes_while_another_gets() {
    let program = c("flushes");
    passes(&program, 2, &["always"]);
    program.run(2, &["checked"], &[("VGASNET_TEST_MPI_CACHE_NEAR", "0")]).expect_done();
}

#[test]
fn accumulates_that_change_nothing_are_gets() {
    let program = c("atoms");
    for mode in ["always", "phase"] {
        program.run(2, &[mode], &[("OMPI_MCA_osc", "^rdma")]).expect_done();
    }
}

/// Only tests cache gets that MPI serves by a copy.
#[test]
fn gets_that_need_no_cache_are_left_to_mpi() {
    let program = c("near");
    // The decision depends on the clock, and a busy machine disturbs it.
    let ended = [(); 3].map(|()| program.run(2, &["always"], &[("VGASNET_TEST_MPI_CACHE_NEAR", "0")]));
    let says = |what: &str| ended.iter().filter(|ended| ended.expect_done().stdout.contains(what)).count();
    assert!(says("left") > 0 || says("kept") < 3, "{}", ended[0]);
    if says("left") == 0 {
        SUITE.say_not_run("near", "this MPI takes longer for a get than a copy, or the machine is busy");
    }
}

#[test]
fn requests_of_gets() {
    let program = c("requests");
    for mode in ["always", "phase"] {
        passes(&program, 2, &[mode]);
    }
}

#[test]
fn what_is_not_cached_goes_to_mpi() {
    let program = c("passed");
    for mode in ["always", "told"] {
        passes(&program, 2, &[mode]);
    }
}

#[test]
fn threads_get_at_once() {
    let program = c("threads");
    for mode in ["always", "checked", "told"] {
        passes(&program, 2, &[mode]);
        // Probes leave gets to MPI, and take them back.
        program.run(2, &[mode], &[("VGASNET_TEST_MPI_CACHE_NEAR", "0")]).expect_done();
    }
}

#[test]
fn another_mpi_than_that_of_the_library_is_left_alone() {
    let ended = c("threads").run_before(&SUITE.shared("other_mpi"), 2, &["always"], &[]);
    let lines = ended.expect_done().stderr.matches("the program has another MPI than this library").count();
    assert_eq!(lines, 1, "{ended}");
}

#[test]
fn a_window_is_freed_while_gets_are_in_flight() {
    let ended = passes(&c("freed"), 2, &["always"]);
    let line = "vgasnet-mpi-cache: rank 1: MPI_Win_free: 2 gets of the window are not complete; end their epoch before";
    assert_eq!(ended.stderr.lines().filter(|told| *told == line).count(), 1, "{ended}");
}

#[test]
fn modes_are_asked_for_in_four_ways() {
    let program = c("modes");
    let by_info = [
        ("vgasnet_cache", "off", "fetched"),
        ("vgasnet_cache", "epoch", "fetched"),
        ("vgasnet_cache", "phase", "phase"),
        ("vgasnet_cache", "always", "kept"),
        ("CLAMPI_MODE", "1", "fetched"),
        ("CLAMPI_MODE", "2", "kept"),
        ("CLAMPI_MODE", "3", "phase"),
    ];
    for (key, value, expected) in by_info {
        let ended = program.run(2, &[key, value, expected], &[("VGASNET_MPI_CACHE", "off")]);
        expect_silence(ended.expect_done());
    }
    for (value, expected) in [("always", "kept"), ("epoch", "fetched"), ("off", "fetched"), ("", "fetched")] {
        expect_silence(program.run(2, &["-", "-", expected], &[("VGASNET_MPI_CACHE", value)]).expect_done());
    }
    // The info has precedence.
    let ended = program.run(2, &["vgasnet_cache", "off", "fetched"], &[("VGASNET_MPI_CACHE", "always")]);
    expect_silence(ended.expect_done());
}

#[test]
fn values_that_are_none_get_one_line() {
    let program = c("modes");
    let modes = "allowed are off, checked, told, phase and always";
    let all_modes = "allowed: off, checked, told, phase or always";
    let sizes = "allowed: a number of bytes to 64G, with K, M or G behind it";
    let clampi = "allowed are 1 (checked), 2 (always) and 3 (phase)";
    let cases: [(&[&str], (&str, &str), String); 6] = [
        (&["vgasnet_cache", "fast"], ("A", ""), format!("vgasnet_cache=fast: {modes}; the window is not cached")),
        (&["CLAMPI_MODE", "4"], ("A", ""), format!("CLAMPI_MODE=4: {clampi}; the window is not cached")),
        (
            &["-", "-"],
            ("VGASNET_MPI_CACHE", "on"),
            format!("VGASNET_MPI_CACHE=on is no mode; {all_modes}; nothing is cached that no info asks for"),
        ),
        (
            &["vgasnet_cache", "always"],
            ("VGASNET_MPI_CACHE_SIZE", "0"),
            format!("VGASNET_MPI_CACHE_SIZE=0 is out of range; {sizes}; nothing is cached"),
        ),
        (
            &["vgasnet_cache", "always"],
            ("VGASNET_MPI_CACHE_SIZE", "much"),
            format!(
                "VGASNET_MPI_CACHE_SIZE=much is not a size: digits, then at most one of K, M, G, T; {sizes}; nothing is cached"
            ),
        ),
        (
            &["vgasnet_cache", "always"],
            ("VGASNET_MPI_CACHE_SIZE", "65G"),
            format!("VGASNET_MPI_CACHE_SIZE=65G is out of range; {sizes}; nothing is cached"),
        ),
    ];
    for (arguments, variable, expected) in cases {
        let ended = program.run(2, &[arguments, &["fetched"]].concat(), &[variable]);
        for rank in 0..2 {
            let line = format!("vgasnet-mpi-cache: rank {rank}: MPI_Win_allocate: {expected}");
            assert_eq!(ended.stderr.lines().filter(|told| **told == line).count(), 1, "{line}\n{ended}");
        }
        ended.expect_done();
    }
}

/// A misspelt variable would have no effect.
#[test]
fn variables_that_nobody_reads_are_named_once() {
    let ended = c("many").run(2, &["checked", "3"], &[("VGASNET_MPI_CACH", "always"), ("VGASNET_MPI_FILES", "*")]);
    let start = "vgasnet-mpi-cache: rank 0: MPI_Win_allocate: VGASNET_MPI_CACH has no effect; the variables for MPI programs are ";
    assert_eq!(ended.expect_done().stderr.lines().filter(|told| told.starts_with(start)).count(), 1, "{ended}");
    assert_eq!(ended.stderr.matches("has no effect").count(), 1, "{ended}");
}

/// Mode told needs all ranks.
#[test]
fn ranks_that_do_not_agree_on_told_do_not_cache() {
    let ended = c("disagree").run(2, &[], &[]);
    let line = "vgasnet-mpi-cache: rank 0: MPI_Win_allocate: 1 of 2 ranks ask for mode told, which needs all; those do not \
                cache the window";
    assert_eq!(ended.stderr.lines().filter(|told| *told == line).count(), 1, "{ended}");
    ended.expect_done();
}

/// Windows of the same processes share their words.
#[test]
fn many_windows_do_not_use_up_communicators() {
    let program = c("many");
    for mode in ["checked", "told"] {
        expect_silence(program.run(2, &[mode, "300"], &[]).expect_done());
    }
}

/// A mode that relies on a promise says so, once and by one rank.
#[test]
fn promises_are_told_once() {
    let program = c("many");
    for (mode, lines) in [("off", 0), ("checked", 0), ("told", 1), ("phase", 1), ("always", 1)] {
        let ended = program.run(2, &[mode, "3"], &[]);
        let start =
            format!("vgasnet-mpi-cache: rank 0: MPI_Win_allocate: mode {mode} relies on a promise of the program: ");
        let told = ended.expect_done().stderr.lines().filter(|line| line.contains("relies on a promise"));
        assert!(told.clone().all(|line| line.starts_with(&start)) && told.count() == lines, "{mode}: {ended}");
    }
}

/// Also if the first rank of `MPI_COMM_WORLD` has no such window.
#[test]
fn the_first_rank_of_a_window_tells_its_promise() {
    let program = c("apart");
    for ranks in [2, 4] {
        for mode in ["told", "phase", "always"] {
            let ended = program.run(ranks, &[mode], &[]);
            let told = ended.expect_done().stderr.lines().filter(|line| line.contains("relies on a promise"));
            let lines: Vec<_> = told.collect();
            let start = format!("vgasnet-mpi-cache: rank 1: MPI_Win_allocate: mode {mode} relies on a promise of");
            assert!(lines.len() == 1 && lines[0].starts_with(&start), "{ranks}, {mode}: {ended}");
        }
    }
}

#[test]
fn a_cache_without_memory_is_off_and_says_so_once() {
    let ended = c("memory").run(2, &["always"], &[]);
    for rank in 0..2 {
        let line =
            format!("vgasnet-mpi-cache: rank {rank}: MPI_Get: there is no memory for the cache; nothing is cached");
        assert_eq!(ended.stderr.lines().filter(|told| **told == line).count(), 1, "{ended}");
    }
    ended.expect_done();
}

#[test]
fn statistics_count_each_get_once() {
    let program = c("hits");
    let ended = program.run(2, &["always"], &[("VGASNET_MPI_CACHE_STATS", "1")]);
    let shown: Vec<&str> = ended.stderr.lines().filter(|line| line.starts_with('{')).collect();
    assert_eq!(shown.len(), 2, "{ended}");
    shown.into_iter().for_each(|line| check_statistics(line, &ended));
    let file = program.scratch("statistics");
    let path = file.to_str().expect("a path of ours");
    let ended = program.run(2, &["always"], &[("VGASNET_MPI_CACHE_STATS", path)]);
    expect_silence(ended.expect_done());
    for rank in 0..2 {
        let text = std::fs::read_to_string(format!("{path}.{rank}")).expect("each rank has a file");
        check_statistics(&text, &ended);
    }
    let ended = program.run(2, &["always"], &[("VGASNET_MPI_CACHE_STATS", "/nowhere/at/all")]);
    let line = "MPI_Finalize: VGASNET_MPI_CACHE_STATS: /nowhere/at/all.1: ";
    assert!(ended.expect_done().stderr.lines().any(|told| told.contains(line)), "{ended}");
}

/// A tool makes one of both ways slow, far beyond what a busy machine does to the other.
#[test]
fn gets_go_the_faster_way() {
    let program = c("trial");
    for (mode, slow) in [("told", "words"), ("told", "gets"), ("always", "gets")] {
        program.run(2, &[mode, slow], &[("VGASNET_TEST_MPI_CACHE_NEAR", "0")]).expect_done();
    }
}

/// A program may ask for bytes into a buffer again before the first ones have come, and not look at it.
#[test]
fn buffers_in_use_twice_leave_no_copies() {
    let program = c("buffers");
    program.run(3, &["always", "near"], &[("VGASNET_TEST_MPI_CACHE_NEAR", "0")]).expect_done();
    for mode in ["always", "told"] {
        program.run(3, &[mode, "kinds"], &[("OMPI_MCA_osc", "^rdma")]).expect_done();
    }
}

/// The cache begins again while gets left to MPI are in flight, and after writes that dropped no copies.
#[test]
fn a_cache_that_begins_again_has_missed_nothing() {
    let program = c("left");
    for what in ["flush", "fence", "write"] {
        program.run(2, &["always", what], &[("VGASNET_TEST_MPI_CACHE_NEAR", "0")]).expect_done();
    }
}

/// Some ranks lack the library, or another mode is set there: the others would wait for them silently.
#[test]
fn a_window_that_waits_for_a_rank_says_so() {
    let program = c("late");
    let file = program.scratch("errors");
    let ended = program.run(2, &[file.to_str().expect("a path of ours")], &[("VGASNET_MPI_CACHE", "told")]);
    ended.expect_done();
    let line = "vgasnet-mpi-cache: rank 0: a window's creation: waits for all ranks of the window; all must load the library, \
                with VGASNET_MPI_CACHE=told on all or on none";
    assert_eq!(ended.stderr.lines().filter(|told| *told == line).count(), 1, "{ended}");
}

/// Readers whose copies nobody can invalidate any more stop using them.
#[test]
fn a_word_that_cannot_be_raised_ends_the_cache_of_its_window() {
    let ended = c("stopped").run(3, &["told"], &[]);
    ended.expect_done();
    for (rank, what) in [(0, "cannot be raised"), (2, "could not be raised by another rank")] {
        let line = format!(
            "vgasnet-mpi-cache: rank {rank}: mode told: the word of a rank {what}; this rank does not cache the window any more"
        );
        assert_eq!(ended.stderr.lines().filter(|told| *told == line).count(), 1, "{line}\n{ended}");
    }
}

/// Only rank 0 has the library. It caches alone, and waits for nobody.
#[test]
fn one_rank_may_cache_alone() {
    let (program, library) = (c("mixed"), SUITE.library());
    for mode in ["off", "checked", "phase", "always"] {
        program.run_without(2, &[library.to_str().expect("a path of ours"), mode], &[]).expect_done();
    }
}

fn check_statistics(text: &str, ended: &Ended) {
    let all: serde_json::Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}\n{ended}"));
    let number = |name: &str| all[name].as_u64().unwrap_or_else(|| panic!("{name} is no number: {text}"));
    let classes = ["hits", "partial", "joined", "direct", "conflicting", "capacity", "failing", "dormant"];
    assert_eq!(classes.into_iter().map(number).sum::<u64>(), number("gets"), "{text}");
    assert!(number("hits") >= 4 && number("joined") >= 2 && number("partial") == 1, "{text}");
    assert_eq!(number("mpi_calls_saved"), number("hits") + number("joined") + number("flushes_saved"), "{text}");
    assert!(number("flushes_saved") >= 8, "{text}");
    assert_eq!(all["mode"], serde_json::json!(["always"]), "{text}");
    assert_eq!(number("windows"), 2, "{text}");
}

/// The library works behind a tool preloaded before it, and before a tool linked with the program. All programs of
/// these tests are linked with a tool.
#[test]
fn tools_stand_before_and_behind() {
    let program = c("hits");
    let tool = SUITE.shared("front");
    let ended = program.run_behind(&tool, 2, &["always"], &[]);
    // All gets of the program pass the first tool; some reach the second (the program checks which).
    assert_eq!(ended.expect_done().stderr.lines().filter(|line| line.starts_with("front: ")).count(), 2, "{ended}");
}

#[test]
fn the_library_may_be_linked() {
    let program = c("modes").linked();
    expect_silence(program.run_without(2, &["vgasnet_cache", "phase", "phase"], &[]).expect_done());
}

/// Programs without MPI may be started with the library, such as a launcher or a shell of a job.
#[test]
fn programs_without_mpi_do_not_mind() {
    SUITE.run_shell_with_library();
}

#[test]
fn fortran_by_mpif_h() {
    passes(&SUITE.compile("mpifh", Language::Fortran), 2, &[]);
}

#[test]
fn fortran_by_use_mpi() {
    passes(&SUITE.compile("usempi", Language::Fortran), 2, &[]);
}

#[test]
fn fortran_by_use_mpi_f08() {
    passes(&SUITE.compile("usempif08", Language::Fortran), 2, &[]);
}

#[test]
fn counts_of_mpi_4() {
    if SUITE.is_of_others_than_openmpi() {
        passes(&c("large"), 2, &["always"]);
    }
}

#[test]
fn what_is_replaced_is_documented() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/mpi-programs.md");
    SUITE.expect_replaced_as_documented(document, &["CLAMPI_Invalidate"]);
}
