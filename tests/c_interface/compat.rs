//! Clients of GASNet-1, the programs of `tests/gasnet/`: they compile unchanged, with every compiler and in every
//! thread mode, and run with segments several times their memory.

use crate::support::compile::source_dir;
use crate::support::gasnet::{Compiler, Mode, in_all_ways, program};
use crate::support::run::{Ended, Setup, conduit, run, run_with, some_of};
use std::path::Path;

const COMPILERS: [Compiler; 4] = [Compiler::GccC99, Compiler::GccCxx17, Compiler::ClangC99, Compiler::ClangCxx17];
const MODES: [Mode; 3] = [Mode::Seq, Mode::Parsync, Mode::Par];

/// Loads and stores need a pool of a few pages. A segment is four times as large.
const fn setup(ranks: u32) -> Setup {
    Setup { ranks, page_bytes: 64 << 10, pool_pages: 6, peer_memory: ranks != 4, cooperative: true }
}

/// Programs that end with status 0.
const CHAPTERS: [&str; 11] = [
    "job",
    "segments",
    "messages",
    "atomicity",
    "transfers",
    "values",
    "barriers",
    "extras",
    "lists",
    "collectives",
    "images",
];

fn chapter(name: &str) {
    in_all_ways(|compiler, mode| program(name, compiler, mode, &[]), &[1, 2, 4, 7], setup);
}

#[test]
fn job_control() {
    chapter("job");
    let client = program("job", Compiler::GccC99, Mode::Par, &[]);
    run(&client, &["null"], setup(2)).expect(0);
}

#[test]
fn segments() {
    chapter("segments");
}

#[test]
fn active_messages() {
    chapter("messages");
}

#[test]
fn atomicity_control() {
    chapter("atomicity");
}

#[test]
fn transfers() {
    chapter("transfers");
}

#[test]
fn transfers_by_value() {
    chapter("values");
}

#[test]
fn barriers() {
    chapter("barriers");
}

#[test]
fn what_clients_use_besides() {
    chapter("extras");
}

#[test]
fn vector_indexed_and_strided_transfers() {
    chapter("lists");
}

#[test]
fn collectives() {
    chapter("collectives");
}

/// Nodes with equal and with different numbers of images.
#[test]
fn collectives_of_several_images() {
    let many = program("images", Compiler::GccC99, Mode::Par, &[]);
    let counts: [&[&str]; 5] = [&["2"], &["3", "1"], &["1", "2"], &["1", "3", "2", "1"], &["4"]];
    for (ranks, counts) in some_of([1, 2, 4].into_iter().flat_map(|ranks| counts.map(|counts| (ranks, counts)))) {
        run(&many, counts, setup(ranks)).expect(0);
    }
    run(&program("images", Compiler::GccC99, Mode::Seq, &[]), &[], setup(2)).expect(0);
    run(&program("images", Compiler::GccCxx17, Mode::Par, &[]), &["2", "3"], setup(2)).expect(0);
}

#[test]
fn every_client_is_run() {
    let tests = include_str!("compat.rs");
    let entries = std::fs::read_dir(source_dir().join("tests/gasnet")).expect("a directory").flatten();
    for path in entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|its| its == "c")) {
        let name = path.file_stem().expect("a name").to_string_lossy();
        assert!(tests.contains(&format!("(\"{name}\"")), "no test names tests/gasnet/{name}.c");
    }
}

#[test]
fn sanitizers_find_nothing_in_the_clients_side() {
    let options = ["-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    // MPI and GASNet free some memory only at the end of the process.
    let leaks = if conduit() == "smp" { "detect_leaks=1" } else { "detect_leaks=0" };
    for name in CHAPTERS {
        let client = program(name, Compiler::GccC99, Mode::Par, &options);
        run_with(&client, &[], setup(2), &[("ASAN_OPTIONS", leaks)]).expect(0);
    }
}

#[test]
fn the_status_is_that_of_the_exit() {
    for (how, status, mode) in [
        ("main", 3, Mode::Seq),
        ("handler", 4, Mode::Seq),
        ("thread", 5, Mode::Par),
        ("crash", 128 + 6, Mode::Parsync),
        ("quietly", 0, Mode::Par),
    ] {
        let client = program("ends", Compiler::GccC99, mode, &[]);
        for ranks in [1, 4] {
            run(&client, &[how], setup(ranks)).expect(status);
        }
    }
}

/// The number of ranks that report a SIGQUIT.
fn told(ended: &Ended) -> usize {
    ended.stdout.matches("told to quit\n").count()
}

#[test]
fn the_other_ranks_are_told_by_sigquit() {
    let client = program("ends", Compiler::GccC99, Mode::Par, &[]);
    for (how, status) in [("main-handled", 3), ("handler-handled", 4), ("crash-handled", 134)] {
        let ended = run(&client, &[how], setup(4));
        assert_eq!(told(ended.expect(status)), 3, "{ended}");
    }
    // A terminating signal reaches all ranks.
    let ended = run(&client, &["signal-handled"], setup(4));
    assert_eq!(told(ended.expect(77)), 4, "{ended}");
    assert_eq!(told(run(&client, &["signal"], setup(2)).expect(128 + 15)), 0);
}

#[test]
fn a_fatal_error_is_one_line_and_sigabrt() {
    let ended = run(&program("ends", Compiler::GccC99, Mode::Seq, &[]), &["fatal"], setup(2));
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    ended.expect(128 + 6);
    assert!(ended.stderr.contains(&format!("*** FATAL ERROR: node 1 of {host}")), "{ended}");
}

#[test]
fn a_program_says_how_its_client_was_compiled() {
    for mode in MODES {
        let client = std::fs::read(program("job", Compiler::GccC99, mode, &[])).expect("a program");
        let name = mode.define().trim_start_matches("-D");
        let has = |text: String| client.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(has(format!("$GASNetThreadModel: {name} $\0")), "{mode:?}");
        assert!(has(format!(",THREADMODEL={} $\0", name.trim_start_matches("GASNET_"))), "{mode:?}");
        assert!(MODES.iter().all(|other| *other == mode || !has(format!("{} $", &other.define()[2..]))), "{mode:?}");
    }
}

fn source(name: &str, text: &str) -> std::path::PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("a file of ours");
    path
}

#[test]
fn each_header_stands_alone() {
    for header in ["gasnet", "gasnet_vis", "gasnet_coll", "gasnet_handler"] {
        let path = source(
            &format!("alone-{header}.c"),
            &format!("#include <{header}.h>\n#include <gasnet.h>\n#include <{header}.h>\n"),
        );
        for compiler in COMPILERS.into_iter().filter(|compiler| compiler.is_here()) {
            for mode in MODES {
                let (is_taken, said) = compiler.check(&path, &[mode.define(), "-pedantic"]);
                assert!(is_taken, "{header}.h, {compiler:?}, {mode:?}: {said}");
            }
        }
    }
    for header in
        ["gasnet_tools", "gasnet_process", "gasnet_text", "gasnet_found", "portable_platform", "portable_inttypes"]
    {
        let text = format!("#include <{header}.h>\n#include <{header}.h>\nextern int declared;\n");
        let path = source(&format!("alone-{header}.c"), &text);
        for compiler in COMPILERS.into_iter().filter(|compiler| compiler.is_here()) {
            let (is_taken, said) = compiler.check(&path, &["-pedantic"]);
            assert!(is_taken, "{header}.h, {compiler:?}: {said}");
        }
    }
}

/// A client may define the sizes of some types itself. These stay, and the header defines the missing ones.
#[test]
fn sizes_of_types_may_be_known_before() {
    let own = "#define SIZEOF_INT (4)\n#define SIZEOF_LONG sizeof(long)\n";
    let test = "#if SIZEOF_VOID_P != 8 || SIZEOF_SIZE_T != 8 || SIZEOF_INT != 4\n#error sizes\n#endif\n";
    for (name, before) in [("unknown", ""), ("known", own)] {
        let path = source(&format!("sizes-{name}.c"), &format!("{before}#include <gasnet.h>\n{test}"));
        for compiler in COMPILERS.into_iter().filter(|compiler| compiler.is_here()) {
            let (is_taken, said) = compiler.check(&path, &["-DGASNET_SEQ", "-pedantic"]);
            assert!(is_taken, "{name}, {compiler:?}: {said}");
        }
    }
}

/// Headers of other projects, such as MPI's, define some of these names, too.
#[test]
fn the_platform_is_named_whoever_named_it_before() {
    let others = "#define PLATFORM_COMPILER_FAMILYNAME OTHER\n#define PLATFORM_COMPILER_VERSION 1\n";
    let tests = "#if !PLATFORM_COMPILER_VERSION_GE(4, 0, 0) || !PLATFORM_OS_LINUX || PLATFORM_COMPILER_FAMILYID == 0\n\
        #error compiler\n#endif\nextern const char *text;\nconst char *text = PLATFORM_COMPILER_IDSTR;\n";
    for (name, before) in [("first", ""), ("later", others)] {
        for include in ["portable_platform.h", "gasnet_tools.h"] {
            let text = format!("{before}#include <{include}>\n{tests}");
            let path = source(&format!("platform-{name}-{include}.c"), &text);
            for compiler in COMPILERS.into_iter().filter(|compiler| compiler.is_here()) {
                let (is_taken, said) = compiler.check(&path, &["-pedantic"]);
                assert!(is_taken, "{name}, {include}, {compiler:?}: {said}");
            }
        }
    }
}

#[test]
fn old_and_new_dialects_compile() {
    let client = source_dir().join("tests/gasnet/extras.c");
    for dialect in ["-std=gnu89", "-std=gnu11", "-std=gnu17", "-std=gnu2x"] {
        for compiler in [Compiler::GccC99, Compiler::ClangC99].into_iter().filter(|compiler| compiler.is_here()) {
            let (is_taken, said) = compiler.check(&client, &[dialect, "-DGASNET_PAR"]);
            assert!(is_taken, "{dialect}, {compiler:?}: {said}");
        }
    }
}

#[test]
fn the_thread_mode_is_to_be_named_once() {
    let path = source("mode.c", "#include <gasnet.h>\n");
    for (options, text) in [
        (&[][..], "define GASNET_SEQ, GASNET_PARSYNC or GASNET_PAR before you include gasnet.h"),
        (&["-DGASNET_SEQ", "-DGASNET_PAR"], "define one of GASNET_SEQ, GASNET_PARSYNC and GASNET_PAR, and not several"),
        (&["-DGASNET_PARSYNC", "-DGASNET_PAR"], "and not several"),
    ] {
        let (is_taken, said) = Compiler::GccC99.check(&path, options);
        assert!(!is_taken && said.contains(text), "{said}");
    }
}
