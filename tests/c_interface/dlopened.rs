//! Programs that load the library by dlopen. For Python see python.rs.

use crate::support::compile::{library, without_library};
use crate::support::run::{Ended, Setup, conduit, run, say_not_run, some_of};
use std::path::{Path, PathBuf};

const SETUP: Setup = Setup { ranks: 2, page_bytes: 65536, pool_pages: 8, peer_memory: true, cooperative: true };

/// How objects call functions of other objects: through slots filled at the first call, through slots filled at load
/// time and then read-only, or without a procedure linkage table.
const CALLS: [(&str, &[&str]); 3] =
    [("lazy", &["-Wl,-z,relro,-z,lazy"]), ("now", &["-Wl,-z,relro,-z,now"]), ("direct", &["-fno-plt"])];

/// The program and its plugin, built with these options. Each test has files of its own.
fn build(test: &str, calls: &str, options: &[&str]) -> [PathBuf; 2] {
    let name = format!("dlopened-{test}-{calls}");
    let plugin = [options, &["-shared", "-fPIC"]].concat();
    // The program searches its own directory.
    let program = [options, &["-Wl,-rpath,$ORIGIN"]].concat();
    [without_library("dlopened", &name, &program), without_library("dlopened_plugin", &format!("{name}.so"), &plugin)]
}

fn run_one(program: &Path, how: &str, plugin: &str, setup: Setup) -> Ended {
    let shared = library("libvgasnet.so");
    let ended = run(program, &[shared.to_str().expect("a path in UTF-8"), how, plugin], setup);
    ended.expect(0);
    ended
}

/// Runs the program with each way to install handlers. It names the plugin by path, and by file name alone.
fn handlers(test: &str, ways: &[&str]) {
    for (calls, options) in some_of(CALLS) {
        let [program, plugin] = build(test, calls, options);
        let name = plugin.file_name().expect("a name").to_str().expect("a name in ASCII");
        for how in ways {
            for plugin in [plugin.to_str().expect("a path in UTF-8"), name] {
                let ended = run_one(&program, how, plugin, SETUP);
                assert!(!ended.stderr.contains("LD_PRELOAD"), "{ended}");
            }
        }
    }
}

#[test]
fn handlers_of_the_program_come_after_the_librarys() {
    handlers("program", &["sigaction", "signal", "lookup", "table", "fixed-table"]);
}

#[test]
fn handlers_of_plugins_come_after_the_librarys() {
    handlers("plugin", &["plugin", "constructor", "many-plugins"]);
}

#[test]
fn handlers_that_are_not_seen_are_noticed_at_barriers() {
    handlers("unseen", &["unseen"]);
}

#[test]
fn files_take_a_segment() {
    handlers("files", &["files"]);
}

#[test]
fn a_rank_that_is_alone_and_loads_the_library() {
    let [program, plugin] = build("alone", "now", CALLS[1].1);
    run_one(&program, "plugin", plugin.to_str().expect("a path in UTF-8"), Setup { ranks: 1, ..SETUP });
}

/// In a namespace of its own the library cannot see the program. It prints the remedy, and the remedy works.
#[test]
fn where_handlers_cannot_be_seen_a_line_says_so() {
    if conduit() != "smp" {
        return say_not_run("a library in a namespace of its own", "not every MPI starts there");
    }
    let [program, plugin] = build("apart", "now", CALLS[1].1);
    let plugin = plugin.to_str().expect("a path in UTF-8");
    let ended = run_one(&program, "apart", plugin, SETUP);
    let shared = library("libvgasnet.so");
    let preload = format!("LD_PRELOAD={}", shared.display());
    let lines: Vec<_> = ended.stderr.lines().collect();
    assert!(lines.len() == 1 && lines[0].starts_with("vgasnet: rank 0: vgasnet_attach: warning: "), "{ended}");
    assert!(lines[0].ends_with(&preload), "{ended}");
    let program = program.to_str().expect("a path in UTF-8");
    for how in ["sigaction", "plugin"] {
        let args = [&preload, program, shared.to_str().expect("a path in UTF-8"), how, plugin];
        let ended = run(Path::new("env"), &args, SETUP);
        assert_eq!(ended.expect(0).stderr, "", "{ended}");
    }
}

/// The C library then comes before vgasnet in the order in which symbols are searched.
#[test]
fn the_library_may_be_what_a_library_depends_on() {
    let shared = library("libvgasnet.so");
    let directory = shared.parent().and_then(Path::to_str).expect("a directory");
    let shared = shared.to_str().expect("a path in UTF-8");
    let (search, later) = (format!("-Wl,-rpath,{directory}"), format!("-Wl,-rpath-link,{directory}"));
    for (client, parts) in [("stacks", ["threads", "signals"]), ("locks", ["mutexes", "conditions"])] {
        let name = format!("behind-{client}.so");
        let middle = without_library(client, &name, &["-Dmain=client_main", "-shared", "-fPIC", shared, &search]);
        let found = [middle.to_str().expect("a path in UTF-8"), &later, "-Wl,-rpath,$ORIGIN"];
        let program = without_library("behind", &format!("behind-{client}"), &found);
        for part in parts {
            run(&program, &[part], SETUP).expect(0);
        }
    }
}
