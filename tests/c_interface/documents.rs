//! The commands of the documents. A block of commands runs as it stands, in a directory that looks like the sources and has been
//! installed, unless a comment before it says otherwise: `<!-- tested: room::name -->` names the test that runs it, `<!-- part of: FILE -->`
//! a script that does, and `<!-- by hand: why -->` why nothing here does.

use crate::install::{build_dir, is_here, prefix};
use crate::support::compile::{library, program_text, source_dir};
use crate::support::run::{IN_CONTAINERS, fresh_dir, succeed};
use crate::support::tools::tool;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where documents have vgasnet installed.
const INSTALLED: [&str; 3] = ["/opt/vgasnet", "/shared/vgasnet", "~/clients/vgasnet"];

/// A client of GASNet, of either interface.
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

/// How a block is tested.
#[derive(Debug)]
enum How {
    Runs,
    Tested(String),
    PartOf(String),
    ByHand(String),
}

/// Some commands of a document.
#[derive(Debug)]
struct Block {
    document: String,
    line: usize,
    commands: String,
    how: How,
}

fn read(document: &str) -> String {
    fs::read_to_string(source_dir().join(document)).unwrap_or_else(|error| panic!("{document}: {error}"))
}

fn documents() -> Vec<(String, String)> {
    let docs = fs::read_dir(source_dir().join("docs")).expect("a directory");
    let mut names: Vec<String> =
        docs.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
    names.retain(|name| name.ends_with(".md"));
    names.sort_unstable();
    let names = ["README.md".to_owned()].into_iter().chain(names.into_iter().map(|name| format!("docs/{name}")));
    names.map(|name| (name.clone(), read(&name))).collect()
}

fn how(line: &str) -> How {
    let said = |begin: &str| line.strip_prefix(begin)?.strip_suffix(" -->").map(str::to_owned);
    let tested = said("<!-- tested: ").map(How::Tested);
    tested
        .or_else(|| said("<!-- part of: ").map(How::PartOf))
        .or_else(|| said("<!-- by hand: ").map(How::ByHand))
        .unwrap_or(How::Runs)
}

/// The blocks of a document: what is fenced as a shell's, and what is indented behind an empty line.
fn blocks_of(document: &str, text: &str) -> Vec<Block> {
    let (mut blocks, mut fence, mut last, mut is_before_empty) = (Vec::<Block>::new(), None::<bool>, "", true);
    let mut inside = false;
    for (at, line) in text.lines().enumerate() {
        let is_shown = match (fence, line.strip_prefix("```")) {
            (None, Some(kind)) => {
                fence = Some(kind == "sh");
                false
            }
            (Some(_), Some(_)) => {
                fence = None;
                false
            }
            (Some(is_shell), None) => is_shell,
            (None, None) => line.starts_with("    ") && (inside || is_before_empty),
        };
        if is_shown && !inside {
            let how = how(last);
            blocks.push(Block { document: document.to_owned(), line: at + 1, commands: String::new(), how });
        }
        if is_shown {
            let block = blocks.last_mut().expect("it was begun");
            block.commands += line.strip_prefix("    ").unwrap_or(line);
            block.commands.push('\n');
        }
        inside = is_shown;
        is_before_empty = line.is_empty();
        if !line.is_empty() && !line.starts_with("```") {
            last = line;
        }
    }
    blocks
}

/// Files of Rust below a directory of tests, by the last part of their names.
fn tests_below(dir: &Path, found: &mut BTreeMap<String, Vec<PathBuf>>) {
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            tests_below(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.entry(path.file_stem().expect("a name").to_string_lossy().into_owned()).or_default().push(path);
        }
    }
}

/// Whether there is such a test: `room::name`, where the room is a file below some `tests/`.
fn is_test(name: &str) -> bool {
    let mut found = BTreeMap::new();
    for dir in ["tests", "mpi-io/tests", "mpi-cache/tests", "tools/vgasnet-bench/tests"] {
        tests_below(&source_dir().join(dir), &mut found);
    }
    let (room, test) = name.split_once("::").unwrap_or_else(|| panic!("{name} is no test"));
    let files = found.get(room).into_iter().flatten();
    files.map(|file| fs::read_to_string(file).expect("a file")).any(|text| text.contains(&format!("fn {test}(")))
}

/// A directory that looks like the sources after a build, with programs that documents speak of.
fn as_sources() -> PathBuf {
    let dir = build_dir("documents");
    for name in ["include", "examples", "docs", "tools"] {
        symlink(source_dir().join(name), dir.join(name)).expect("a new link");
    }
    let target = dir.join("target/release");
    fs::create_dir_all(&target).expect("a new directory");
    for file in [library("libvgasnet.so"), library("libvgasnet.a"), tool("vgasnetrun"), tool("vgasnet-bench")] {
        symlink(&file, target.join(file.file_name().expect("a file"))).expect("a new link");
    }
    // Programs that were linked with it look for this name.
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
    // The build has been; what is to be built is checked all the same.
    let tools = dir.join("stands-for-built");
    fs::create_dir(&tools).expect("a new directory");
    let cargo = tools.join("cargo");
    fs::write(&cargo, "#!/bin/sh\n[ \"$*\" = 'build --release' ]\n").expect("a new file");
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).expect("a file of ours");
    dir
}

fn run(block: &Block, dir: &Path, storage: &Path) {
    let mut commands = block.commands.clone();
    for place in INSTALLED {
        commands = commands.replace(place, prefix().to_str().expect("text"));
    }
    let paths = std::env::var("PATH").expect("a path");
    let paths = format!("{0}/stands-for-built:{1}/bin:{0}/target/release:{paths}", dir.display(), prefix().display());
    let mut shell = Command::new("sh");
    shell.args(["-euc", &commands]).current_dir(dir).env("PATH", paths).env("HOME", dir).stdin(Stdio::null());
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("VGASNET_")) {
        shell.env_remove(name);
    }
    shell.env("VGASNET_STORAGE_DIR", storage).envs(IN_CONTAINERS);
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
}

#[test]
fn each_command_runs_or_says_where() {
    let (dir, storage) = (as_sources(), fresh_dir());
    let mut runs = 0;
    for block in documents().iter().flat_map(|(document, text)| blocks_of(document, text)) {
        let place = format!("{}:{}", block.document, block.line);
        match &block.how {
            How::Runs => {
                println!("{place}: {}", block.commands.trim_end());
                run(&block, &dir, &storage);
                runs += 1;
            }
            How::Tested(names) => {
                for name in names.split(", ") {
                    assert!(is_test(name), "{place}: there is no test {name}");
                }
            }
            How::PartOf(script) => {
                let script = read(script);
                let first = block.commands.split_whitespace().find(|word| !word.contains('=')).expect("a command");
                assert!(script.contains(first), "{place}: {first} is no part of it");
            }
            How::ByHand(why) => assert!(why.len() > 10, "{place}: {why} is no reason"),
        }
    }
    assert!(runs > 5, "{runs} blocks run");
    fs::remove_dir_all(&storage).expect("a directory of ours");
}

/// The site has each function of the interface, and each link leads somewhere.
#[test]
fn the_site_has_all_of_the_interface() {
    if !is_here("mkdocs") {
        return;
    }
    succeed(&mut Command::new(source_dir().join("scripts/docs")));
    let pages = fs::read_dir(source_dir().join("target/docs/reference")).expect("the reference");
    let pages: String = pages.map(|page| fs::read_to_string(page.expect("an entry").path()).expect("a page")).collect();
    let declared = crate::header::declared(&crate::header::header());
    let lacking: Vec<_> = declared.iter().filter(|name| !pages.contains(&format!("{name}("))).collect();
    assert!(
        declared.len() > 100 && lacking.is_empty(),
        "{} functions; the reference lacks {lacking:?}",
        declared.len()
    );
    let index = fs::read_to_string(source_dir().join("target/docs/index.html")).expect("the first page");
    assert!(index.contains("getting-started.html"), "{index}");
}

#[test]
fn blocks_are_found_with_how_they_are_tested() {
    let text = "Text:\n\n    a b\n    c\n\n<!-- tested: x::y -->\n\n```sh\nd\n```\n\n- item\n    no command\n\n```c\nno\n```\n\n<!-- by hand: it is far -->\n\n    e\n";
    let found: Vec<String> = blocks_of("z", text)
        .iter()
        .map(|block| format!("{} {:?} {:?}", block.line, block.commands, block.how))
        .collect();
    assert_eq!(found, [r#"3 "a b\nc\n" Runs"#, r#"9 "d\n" Tested("x::y")"#, r#"21 "e\n" ByHand("it is far")"#]);
}
