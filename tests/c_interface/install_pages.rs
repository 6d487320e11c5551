//! Installed texts for people at a terminal: man pages, completions, a modulefile, and the programs' own help.

use crate::header::{declared, header, renamed};
use crate::install::{PROGRAMS, build_dir, is_here, prefix};
use crate::support::run::{files_below, say_not_run, succeed};
use std::path::{Path, PathBuf};
use std::process::Command;

fn shared(place: &str) -> PathBuf {
    prefix().join("share").join(place)
}

#[test]
fn man_pages_are_well_formed() {
    let settings = std::fs::read_to_string(shared("man/man7/vgasnet.7")).expect("a page");
    for name in ["VGASNET_STORAGE_DIR", "VGASNET_MPI_FILES", "GASNET_VERBOSEENV"] {
        assert!(settings.contains(name), "{settings}");
    }
    if !is_here("mandoc") {
        return;
    }
    // mandoc warns of clap's format of options.
    for (page, level) in [
        ("man1/vgasnetrun.1", "error"),
        ("man1/vgasnet-bench.1", "error"),
        ("man1/vgasnet-info.1", "error"),
        ("man3/vgasnet.3", "warning"),
        ("man3/vgasnet_get.3", "warning"),
        ("man3/vgasnet_init.3", "warning"),
        ("man3/vgasnet_file_open.3", "warning"),
        ("man3/vgasnet_attach_gasnet.3", "warning"),
        ("man3/vgasnet_AMRequestLong16.3", "warning"),
        ("man3/VGASNET_BLOCKUNTIL.3", "warning"),
        ("man7/vgasnet.7", "warning"),
    ] {
        let mut lint = Command::new("mandoc");
        let output =
            lint.args(["-T", "lint", "-W", level]).arg(shared("man").join(page)).output().expect("mandoc starts");
        assert!(output.status.success() && output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

/// The documents that pages name in `docs/` are installed, and the pages have the place.
#[test]
fn documents_that_pages_name_are_installed() {
    for page in ["man/man3/vgasnet.3", "man/man7/vgasnet.7"] {
        let text = std::fs::read_to_string(shared(page)).expect("a page").replace("\\-", "-").replace("\\&", "");
        assert!(text.contains("share/doc/vgasnet"), "{page}");
        let named: Vec<_> = text.split("docs/").skip(1).filter_map(|rest| rest.split_once(".md")).collect();
        assert!(!named.is_empty(), "{page}");
        for name in named.iter().map(|(name, _)| name).filter(|name| !name.contains(char::is_whitespace)) {
            assert!(shared(&format!("doc/vgasnet/{name}.md")).is_file(), "{page} names docs/{name}.md");
        }
    }
}

/// Checked from the installed documents.
#[test]
fn links_of_documents_lead_to_files() {
    let dir = shared("doc/vgasnet");
    let mut links = 0;
    for document in files_below(&dir, &["md"]) {
        let text = std::fs::read_to_string(&document).expect("a document");
        for target in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            if !target.is_empty() && !target.contains("://") {
                assert!(document.with_file_name(target).is_file(), "{}: {target}", document.display());
                links += 1;
            }
        }
    }
    assert!(links > 40, "{links}");
}

/// Built in the directory of the installed examples.
#[test]
fn examples_are_built_as_they_say() {
    if !is_here("pkg-config") {
        return;
    }
    let dir = build_dir("examples");
    succeed(Command::new("cp").arg("-R").arg(shared("vgasnet/examples")).arg(&dir));
    let mut built = 0;
    for example in
        std::fs::read_dir(dir.join("examples")).expect("the examples").map(|entry| entry.expect("an entry").path())
    {
        if example.extension().is_none_or(|extension| extension != "c") {
            continue;
        }
        let text = std::fs::read_to_string(&example).expect("an example");
        let command = text.lines().find_map(|line| line.strip_prefix(" *   cc ")).expect("how it is built");
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("cc {command}")]).current_dir(dir.join("examples"));
        succeed(shell.env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig")));
        assert!(example.with_extension("").is_file() && text.contains(" vgasnetrun -n"), "{text}");
        built += 1;
    }
    assert!(built > 8, "{built}");
}

#[test]
fn each_function_has_a_page_that_begins_with_it() {
    let header = header();
    let macros = header.lines().filter_map(|line| line.strip_prefix("#define ")?.split_once('('));
    let macros: Vec<_> =
        macros.filter(|(name, _)| name.starts_with("vgasnet_")).map(|(name, _)| name.to_owned()).collect();
    let messages: Vec<_> = renamed().into_iter().filter(|name| name.starts_with("vgasnet_AMRe")).collect();
    let functions = declared(&header);
    assert!(functions.len() > 100 && macros.len() > 5 && messages.len() > 100, "{functions:?}");
    for function in functions.into_iter().chain(macros).chain(messages) {
        let page = shared("man/man3").join(format!("{function}.3"));
        let text = std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{function}: {error}"));
        assert!(text.starts_with(&format!(".TH {} 3 ", function.to_uppercase())), "{function}: {text}");
    }
}

/// Each shell checks its own script, and fish completes an option.
#[test]
fn completions_are_scripts_of_their_shells() {
    let scripts = |program: &str| {
        [
            ("bash", "-n", format!("bash-completion/completions/{program}")),
            ("zsh", "-n", format!("zsh/site-functions/_{program}")),
            ("fish", "--no-execute", format!("fish/vendor_completions.d/{program}.fish")),
        ]
    };
    for (shell, reads_only, script) in PROGRAMS.iter().flat_map(|program| scripts(program)) {
        let script = shared(&script);
        assert!(script.is_file(), "{}", script.display());
        if is_here(shell) {
            succeed(Command::new(shell).arg(reads_only).arg(&script));
        }
    }
    if is_here("fish") {
        let script = shared("fish/vendor_completions.d/vgasnetrun.fish");
        let ask = format!("source {}; complete -C 'vgasnetrun --con'", script.display());
        let found = succeed(Command::new("fish").args(["--no-config", "-c", &ask]));
        assert!(found.starts_with("--conduit"), "{found}");
        for options in ["-n 2", "-np 2", "--conduit smp", "-n 2 --"] {
            let ask = format!("source {}; complete -C 'vgasnetrun {options} dirnam'", script.display());
            let found = succeed(Command::new("fish").args(["--no-config", "-c", &ask]));
            assert!(found.starts_with("dirname"), "{options}: {found}");
        }
    }
}

/// bash's offers for the last of these words.
fn bash_offers(words: &[&str]) -> Vec<String> {
    let script = shared(&format!("bash-completion/completions/{}", words[0]));
    // Called as bash does. Only a shell at a terminal accepts this option.
    let ask = r#"compopt() { :; }
        . "$1"; shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        function=$(complete -p "$1" | sed 's/.*-F \([^ ]*\).*/\1/')
        $function "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let said = succeed(Command::new("bash").args(["--norc", "-c", ask, "bash"]).arg(script).args(words));
    said.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn bash_offers_what_fits() {
    if !is_here("bash") {
        return;
    }
    for (words, offered) in [
        (&["vgasnet-bench", "seq"][..], "sequential"),
        (&["vgasnet-bench", "sequential", "--pool"], "--pool"),
        (&["vgasnet-bench", "false-sharing", "--peer-memory", "bo"], "both"),
        (&["vgasnet-info", "--js"], "--json"),
        (&["vgasnetrun", "-n", "2", "--as"], "--aslr"),
        (&["vgasnetrun", "--conduit", "s"], "smp"),
        (&["vgasnetrun", "-n", "2", "dirnam"], "dirname"),
        (&["vgasnetrun", "-np", "2", "dirnam"], "dirname"),
        (&["vgasnetrun", "--conduit", "=", "smp", "-l", "dirnam"], "dirname"),
    ] {
        let found = bash_offers(words);
        assert!(found.iter().any(|word| word == offered), "{words:?}: {found:?}");
    }
    // Such options would be the program's.
    assert_eq!(bash_offers(&["vgasnetrun", "-n", "2", "dirname", "-"]), [""; 0]);
}

#[test]
fn programs_and_launchers_say_their_version_and_help() {
    let version = env!("CARGO_PKG_VERSION");
    let of_clients = ["bin/gasnetrun_smp", "gasnet-ex/bin/gasnetrun_udp", "gasnet-ex/bin/amudprun"];
    for program in PROGRAMS.map(|program| format!("bin/{program}")).into_iter().chain(of_clients.map(str::to_owned)) {
        let name = program.rsplit('/').next().expect("a name");
        let said = |option| succeed(Command::new(prefix().join(&program)).arg(option));
        assert_eq!(said("--version"), format!("{name} {version}\n"));
        let help = said("--help");
        assert!(help.to_lowercase().contains(&format!("usage: {name}")), "{help}");
        assert!(name == "vgasnet-bench" || help.contains("also as -np"), "{help}");
    }
}

/// With nothing else in the environment, the module provides the programs, packages, man pages and the Python package.
#[test]
fn a_module_leads_to_what_is_installed() {
    const INIT: &str = "/usr/share/modules/init/sh";
    if !Path::new(INIT).is_file() {
        return say_not_run("the modulefile", "Environment Modules are not installed; scripts/test installs them");
    }
    if !is_here("pkg-config") {
        return;
    }
    let script = ". \"$0\"; module use \"$1/share/modulefiles\" && module load vgasnet &&
        vgasnetrun --version && pkg-config --libs vgasnet && man -w 7 vgasnet && man -w printf &&
        python3 -c 'import importlib.util as found; print(found.find_spec(\"vgasnet\").origin)'";
    let mut command = Command::new("sh");
    command.args(["-c", script, INIT]).arg(prefix());
    for name in ["MODULEPATH", "PKG_CONFIG_PATH", "PYTHONPATH", "MANPATH", "LOADEDMODULES", "_LMFILES_"] {
        command.env_remove(name);
    }
    let said = succeed(&mut command);
    let prefix = prefix().display().to_string();
    for found in [
        format!("vgasnetrun {}\n", env!("CARGO_PKG_VERSION")),
        format!("-L{prefix}/lib -lvgasnet"),
        format!("{prefix}/share/man/man7/vgasnet.7"),
        format!("{prefix}/share/vgasnet/python/vgasnet/__init__.py"),
    ] {
        assert!(said.contains(&found), "{found} is not in:\n{said}");
    }
}
