//! The commands of the documents. A block of commands runs unchanged, in a directory that looks like the sources after
//! a build. A comment before a block may say otherwise:
//!
//! | comment | meaning |
//! | --- | --- |
//! | `<!-- tested: room::name -->` | these tests run the same; they contain its programs, options and variables |
//! | `<!-- part of: FILE -->` | this script contains each command |
//! | `<!-- by hand: why -->` | no test runs the block, for this reason |
//!
//! The reader of a document has one shell, so the exports of a block hold in the next ones. A program after `<!-- file:
//! NAME -->` becomes the file of this name. The lines after `<!-- prints -->` are the output of the block before. In
//! them `…` stands for text that differs from run to run.

mod blocks;

use crate::install::{build_dir, is_here, prefix};
use crate::support::compile::{library, program_text, source_dir};
use crate::support::run::{IN_CONTAINERS, files_below, fresh_dir, place_executable, say_not_run, succeed};
use crate::support::tools::tool;
use blocks::{Block, How, blocks_of, commands_of, differences, essential_words, has_command, marked};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where documents have vgasnet installed.
const INSTALLED: [&str; 3] = ["/opt/vgasnet", "/shared/vgasnet", "~/clients/vgasnet"];

/// A client of GASNet, for both interfaces.
const CLIENT: &str = "
#if __has_include(<gasnetex.h>)
#include <gasnetex.h>
#else
#include <gasnet.h>
#endif
int main(int argc, char **argv) {
#if __has_include(<gasnetex.h>)
    gex_Client_t client;
    gex_EP_t endpoint;
    gex_TM_t team;
    return gex_Client_Init(&client, &endpoint, &team, \"client\", &argc, &argv, 0);
#else
    if (gasnet_init(&argc, &argv) != GASNET_OK || gasnet_attach(NULL, 0, GASNET_PAGESIZE, 0) != GASNET_OK) return 1;
    gasnet_exit(0);
#endif
}
";

fn read(document: &str) -> String {
    fs::read_to_string(source_dir().join(document)).unwrap_or_else(|error| panic!("{document}: {error}"))
}

fn documents() -> Vec<(String, String)> {
    let mut pages = files_below(&source_dir().join("docs"), &["md"]);
    pages.sort_unstable();
    let relative = |page: PathBuf| page.strip_prefix(source_dir()).expect("a page of ours").to_str().map(str::to_owned);
    let pages = pages.into_iter().map(|page| relative(page).expect("text"));
    let elsewhere =
        ["README.md", "ARCHITECTURE.md", "HACKING.md", "bindings/python/README.md"].map(str::to_owned).into_iter();
    elsewhere.chain(pages).map(|name| (name.clone(), read(&name))).collect()
}

/// Directories of tests. A room is a file in them.
const TESTS: [&str; 5] =
    ["tests", "mpi/io/tests", "mpi/cache/tests", "tools/vgasnet-bench/tests", "bindings/python/tests"];

/// Files that start programs for many tests.
const HELPERS: [&str; 5] = [
    "tests/c_interface/support",
    "tests/preloaded",
    "tests/tools",
    "tools/vgasnet-bench/tests/bench/folder.rs",
    "bindings/python/tests/conftest.py",
];

fn texts_below(paths: &[&str], is_wanted: impl Fn(&Path) -> bool) -> Vec<String> {
    let files = paths
        .iter()
        .flat_map(|path| files_below(&source_dir().join(path), &["rs", "py"]))
        .filter(|file| is_wanted(file));
    files.map(|file| fs::read_to_string(file).expect("a file")).collect()
}

/// The texts of the files with this test, `room::name`. The room is the name of the file or its directory.
fn text_of_test(name: &str) -> String {
    let (room, test) = name.split_once("::").unwrap_or_else(|| panic!("{name} is no test"));
    let module = Path::new(room).join("mod.rs");
    let texts =
        texts_below(&TESTS, |file| file.file_stem().is_some_and(|stem| stem == room) || file.ends_with(&module));
    let has_it =
        |text: &String| [format!("fn {test}("), format!("def {test}(")].iter().any(|begin| text.contains(begin));
    texts.into_iter().filter(has_it).collect()
}

/// The missing prerequisite of a block, if any.
fn lacking(block: &Block) -> Option<String> {
    let commands = commands_of(block);
    let of_fortran =
        ["gfortran", "flang-new-19"].into_iter().filter(|tool| commands.iter().any(|line| line.starts_with(tool)));
    let of_python = commands.iter().any(|line| line.contains("python3")).then_some("python3");
    let is_missing = |tool: &&str| match *tool {
        "python3" => python().is_none(),
        tool => !is_here(tool),
    };
    of_fortran.chain(of_python).find(is_missing).map(|tool| match tool {
        "python3" => "there is no python3 with numpy, setuptools, wheel and venv; scripts/test installs it".to_owned(),
        tool => format!("{tool} is not installed"),
    })
}

/// A Python with the modules used by the documents: the user's, or else the distribution's.
fn python() -> Option<&'static str> {
    let has_all = |python: &&str| {
        let output = Command::new(python).args(["-c", "import ensurepip, numpy, setuptools, wheel"]).output();
        output.is_ok_and(|output| output.status.success())
    };
    ["python3", "/usr/bin/python3"].into_iter().find(has_all)
}

/// A directory that looks like the sources after a build, with the programs named in documents.
fn as_sources() -> PathBuf {
    let dir = build_dir("documents");
    let names = [
        "Cargo.toml",
        "bindings",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "README.md",
        "docs",
        "examples",
        "include",
        "packaging",
        "scripts",
        "tools",
    ];
    for name in names {
        symlink(source_dir().join(name), dir.join(name)).expect("a new link");
    }
    let target = dir.join("target/release");
    fs::create_dir_all(&target).expect("a new directory");
    let libraries = ["libvgasnet.so", "libvgasnet.a"].map(library);
    for file in libraries.into_iter().chain(["vgasnetrun", "vgasnet-bench", "vgasnet-info"].map(tool)) {
        symlink(&file, target.join(file.file_name().expect("a file"))).expect("a new link");
    }
    // Programs linked with the library look for this name.
    symlink("libvgasnet.so", target.join("libvgasnet.so.0")).expect("a new link");
    let hello = program_text("README.md");
    for (name, text) in [("hello.c", &*hello), ("program.c", &hello), ("client.c", CLIENT)] {
        fs::write(dir.join(name), text).expect("a new file");
    }
    let mut compile = Command::new("cc");
    compile.args([
        "-Iinclude",
        "program.c",
        "-o",
        "program",
        "-Ltarget/release",
        "-lvgasnet",
        "-Wl,-rpath,target/release",
    ]);
    succeed(compile.current_dir(&dir));
    for (_, name, text) in documents().iter().flat_map(|(_, text)| marked(text, "<!-- file: ")) {
        fs::write(dir.join(name), text).expect("a new file");
    }
    stand_ins(&dir);
    dir
}

/// Programs placed first in `PATH`. The build is done, so cargo accepts build commands and does nothing. `python3` is
/// one with numpy.
fn stand_ins(dir: &Path) {
    let tools = dir.join(".cargo/bin");
    fs::create_dir_all(&tools).expect("a new directory");
    let programs = "-p vgasnet -p vgasnetrun -p vgasnet-bench -p vgasnet-info";
    let cargo = format!(
        "case $* in\n--version) echo cargo 1.99.0 ;;\n'build --release' | 'build --release --features  {programs}') ;;\n\
         'build --release --quiet --features  {programs} --message-format=json') echo \"{{\\\"executable\\\":\\\"$PWD/target/release/vgasnet-info\\\"}}\" ;;\n\
         *) echo \"cargo $*: no command that builds what is installed\" >&2; exit 1 ;;\nesac\n"
    );
    let python = python().map(|python| format!("exec {python} \"$@\"\n"));
    for (name, text) in [("cargo", Some(cargo)), ("python3", python)] {
        let Some(text) = text else { continue };
        place_executable(&tools.join(name), format!("#!/bin/sh\n{text}").as_bytes());
    }
}

fn run(block: &Block, exports: &str, dir: &Path, storage: &Path) {
    let mut commands = format!("{exports}{}", block.commands);
    // Each tutorial begins with this command.
    if dir.join(".local/bin/vgasnetrun").is_file() {
        commands =
            commands.replace("scripts/install ~/.local\n", "echo 'vgasnet of before is installed in ~/.local'\n");
    }
    // The installation used by other tests must not change.
    let placed = if commands.contains("scripts/install") { dir.join("placed") } else { prefix().to_owned() };
    for place in INSTALLED {
        commands = commands.replace(place, placed.to_str().expect("text"));
    }
    let paths = std::env::var("PATH").expect("a path");
    let paths = format!("{0}/.cargo/bin:{1}/bin:{0}/target/release:{paths}", dir.display(), prefix().display());
    let mut shell = Command::new("sh");
    shell.args(["-euc", &commands]).current_dir(dir).env("PATH", paths).env("HOME", dir).stdin(Stdio::null());
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("VGASNET_")) {
        shell.env_remove(name);
    }
    shell.env("VGASNET_STORAGE_DIR", storage).envs(IN_CONTAINERS).env("PYTHONDONTWRITEBYTECODE", "1");
    // pip must install only from here.
    shell.env("PIP_NO_INDEX", "1").env("PIP_DISABLE_PIP_VERSION_CHECK", "1");
    for name in ["CARGO_HOME", "CARGO_TARGET_DIR", "DESTDIR"] {
        shell.env_remove(name);
    }
    let output = shell.output().expect("a shell");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{}:{}: {}\n{commands}\n{}{}",
        block.document,
        block.line,
        output.status,
        said(&output.stdout),
        said(&output.stderr)
    );
    if !block.prints.is_empty() {
        let wrong = differences(&block.prints, &said(&output.stdout), &said(&output.stderr));
        assert!(wrong.is_empty(), "{}:{}: {commands}\n{}", block.document, block.line, wrong.join("\n"));
    }
}

/// The exports of a block, for the next blocks of its document.
fn exports_of(block: &Block) -> String {
    let lines = block.commands.lines().filter(|line| line.starts_with("export ") || line.starts_with(". "));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn each_command_runs_or_says_where() {
    let (dir, storage) = (as_sources(), fresh_dir());
    let (mut runs, mut complaints) = (0, Vec::new());
    for (document, text) in documents() {
        let mut exports = String::new();
        for block in blocks_of(&document, &text) {
            let place = format!("{document}:{}", block.line);
            if let How::Runs = block.how {
                match lacking(&block) {
                    Some(why) => say_not_run(&place, &why),
                    None => {
                        println!("{place}: {}", block.commands.trim_end());
                        run(&block, &exports, &dir, &storage);
                        exports += &exports_of(&block);
                        runs += 1;
                    }
                }
            }
            complaints.extend(elsewhere(&block).into_iter().map(|complaint| format!("{place}: {complaint}")));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(runs > 20, "{runs} blocks run");
    fs::remove_dir_all(&storage).expect("a directory of ours");
}

/// Errors in a block's reference to the place of its test.
fn elsewhere(block: &Block) -> Vec<String> {
    let commands = commands_of(block);
    match &block.how {
        How::Runs => Vec::new(),
        How::Tested(names) => {
            let texts: Vec<_> = names.split(", ").map(|name| (name, text_of_test(name))).collect();
            let missing =
                texts.iter().filter(|(_, text)| text.is_empty()).map(|(name, _)| format!("there is no test {name}"));
            let words = commands.iter().flat_map(|command| essential_words(command));
            // A constant counts like its value.
            let mut all: String = texts_below(&HELPERS, |_| true).concat();
            all.extend(texts.iter().map(|(_, text)| text.as_str()));
            let all = all.to_lowercase();
            let is_in_none = |word: &String| !all.contains(&word.to_lowercase());
            missing.chain(words.filter(is_in_none).map(|word| format!("{word} is in none of {names}"))).collect()
        }
        How::PartOf(script) => {
            let text = read(script);
            let missing = commands.iter().filter(|command| !has_command(&text, command));
            missing.map(|command| format!("{script} has no {command}")).collect()
        }
        How::ByHand(why) if why.len() < 10 => vec![format!("{why} is no reason")],
        How::ByHand(_) => Vec::new(),
    }
}

/// The site has each function of the interface, and no link is broken.
#[test]
fn the_site_has_all_of_the_interface() {
    succeed(&mut Command::new(source_dir().join("scripts/docs")));
    let pages = fs::read_dir(source_dir().join("target/docs/interface")).expect("the reference");
    let pages: String = pages.map(|page| fs::read_to_string(page.expect("an entry").path()).expect("a page")).collect();
    // Highlighted code has a tag around each word.
    let pages = without_tags(&pages);
    let declared = crate::header::declared(&crate::header::header());
    let lacking: Vec<_> = declared.iter().filter(|name| !pages.contains(&format!("{name}("))).collect();
    assert!(
        declared.len() > 100 && lacking.is_empty(),
        "{} functions; the reference lacks {lacking:?}",
        declared.len()
    );
    let index = fs::read_to_string(source_dir().join("target/docs/index.html")).expect("the first page");
    assert!(index.contains("how-to/install.html"), "{index}");
    // Code in conditional comments is for old browsers.
    let shown: String = index.split("<!--").map(|part| part.split_once("-->").map_or(part, |(_, rest)| rest)).collect();
    let scripts: Vec<_> = shown.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(scripts.iter().any(|script| script.ends_with(".js")), "{index}");
    for script in scripts {
        assert!(source_dir().join("target/docs").join(script).is_file(), "the site lacks {script}");
    }
    // Code in a comment is not part of a sentence.
    assert!(pages.contains("\nvgasnet_attach(NULL, 0, vgasnet_segsize, 0);\n"));
}

/// The text of an HTML page.
fn without_tags(page: &str) -> String {
    page.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect()
}

/// The commands of tables: TARGETS.md leaves out the program's name, the users' page has it.
fn commands_of_figures() -> Vec<String> {
    let targets = read("benches/TARGETS.md");
    let (_, table) = targets.split_once("| measurement | command: `vgasnet-bench …` |").expect("a table of figures");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.split(" | ").nth(1).unwrap_or_else(|| panic!("{row} has no command")));
    // "the same" refers to the row above, and is no command.
    let mut commands: Vec<String> = cells.filter(|cell| cell.starts_with('`')).map(str::to_owned).collect();
    let page = read("docs/explanation/performance.md");
    let rows = page.lines().filter(|line| line.starts_with('|'));
    let spans = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).map(str::to_owned);
    commands.extend(spans.filter_map(|span| span.strip_prefix("vgasnet-bench ").map(str::to_owned)));
    commands
}

/// The benchmarks accept each option in the commands of figures.
#[test]
fn the_commands_of_figures_have_options_that_there_are() {
    let mut helps = std::collections::BTreeMap::new();
    let mut options = 0;
    for command in commands_of_figures() {
        let benchmark = command.trim_start_matches('`').split([' ', '`']).next().expect("a word");
        let help = || succeed(Command::new(tool("vgasnet-bench")).args([benchmark, "--help"]));
        let help = helps.entry(benchmark.to_owned()).or_insert_with(help);
        for option in command.split([' ', '`', ',', ';']).filter(|word| word.starts_with("--")) {
            assert!(
                help.contains(&format!("{option} ")) || help.contains(&format!("{option}\n")),
                "{option}: {command}"
            );
            options += 1;
        }
    }
    assert!(options > 60, "{options} options in {} benchmarks", helps.len());
}
