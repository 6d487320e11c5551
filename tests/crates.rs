//! The crates of the workspace: ARCHITECTURE.md's table against the manifests, where the environment is read, what the
//! protocol is built of, and the sizes of files and structs. Clippy has the sizes of functions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A crate in the table: its folder below the root without the last slash, and the folders of the crates it uses.
struct Listed {
    folder: String,
    uses: BTreeSet<String>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The crates of the table from top to bottom. Bindings have no manifest and are left out.
fn listed() -> Vec<Listed> {
    let text = read(&root().join("ARCHITECTURE.md"));
    let section = text.split("\n## Crates\n").nth(1).expect("a section \"Crates\"");
    let table = section.split("\nThe rooms of `src/`").next().expect("its text");
    let row = |line: &str| {
        let cells: Vec<&str> = line.strip_prefix("| `")?.trim_end_matches(" |").split(" | ").collect();
        let folder = cells[0].trim_end_matches(['`', '/']).to_owned();
        let last = *cells.last().expect("a row has cells");
        let uses = last.split(", ").filter(|name| *name != "nothing").map(|name| name.replace("the library", "src"));
        manifest(&folder).is_file().then(|| Listed { folder, uses: uses.collect() })
    };
    table.lines().filter_map(row).collect()
}

/// The manifest of the crate in a folder. `src` is the library's.
fn manifest(folder: &str) -> PathBuf {
    root().join(if folder == "src" { "" } else { folder }).join("Cargo.toml")
}

/// The crates of this workspace used by the crate in a folder, apart from its tests, as folders.
fn dependencies(folder: &str, folders: &BTreeMap<String, String>) -> BTreeSet<String> {
    let text = read(&manifest(folder));
    let section = text.split("\n[dependencies]\n").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().expect("text before the next section");
    let names = section.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter_map(|name| folders.get(name).cloned()).collect()
}

#[test]
fn the_table_of_crates_is_as_their_manifests() {
    let listed = listed();
    let package = |folder: &str| {
        let text = read(&manifest(folder));
        text.lines().find_map(|line| line.strip_prefix("name = ")).expect("a name").trim_matches('"').to_owned()
    };
    let folders = listed.iter().map(|one| (package(&one.folder), one.folder.clone())).collect();
    let mut above = BTreeSet::new();
    for one in &listed {
        assert_eq!(one.uses, dependencies(&one.folder, &folders), "{}", one.folder);
        above.insert(one.folder.clone());
        let upwards: Vec<&String> = one.uses.intersection(&above).collect();
        assert!(upwards.is_empty(), "{} uses {upwards:?}, which are not below it", one.folder);
    }
}

#[test]
fn every_crate_is_in_the_table() {
    let listed: BTreeSet<String> = listed().into_iter().map(|one| one.folder).collect();
    let text = read(&root().join("Cargo.toml"));
    let members = text.split("members = [").nth(1).expect("members").split(']').next().expect("their end");
    let members = members.lines().map(|line| line.trim().trim_matches(['"', ','])).filter(|name| !name.is_empty());
    let members: BTreeSet<String> =
        members.filter(|name| !name.starts_with("tests/")).map(str::to_owned).chain(["src".to_owned()]).collect();
    assert_eq!(listed, members);
}

/// A setuid program ignores the library's variables. So released code reads the environment in one place.
#[test]
fn the_environment_is_read_in_one_place() {
    // `getenv` in the first file is for C programs. In setuid programs the loader has already dropped LD_PRELOAD, and
    // the lowest room reads no other variable.
    const ALLOWED: [(&str, usize); 2] = [("conduits/core/src/environment.rs", 3), ("crates/sys/src/observers.rs", 1)];
    let mut dirs = vec![root().join("src")];
    for parent in ["conduits", "crates", "mpi"] {
        let entries = fs::read_dir(root().join(parent)).expect("a folder").map(|entry| entry.expect("readable").path());
        dirs.extend(entries.map(|crate_dir| crate_dir.join("src")).filter(|dir| dir.is_dir()));
    }
    assert!(dirs.len() > 9, "only {dirs:?}");
    let mut found = BTreeMap::new();
    for file in dirs.iter().flat_map(|dir| source_files(dir)) {
        let path = file.strip_prefix(root()).expect("a file of ours").display().to_string();
        if ["/tests/", "_tests.rs", "/tests.rs", "crates/stats/src/documents.rs"].iter().any(|test| path.contains(test))
        {
            continue;
        }
        let text = read(&file);
        let code = text.split("#[cfg(test)]\nmod tests {").next().expect("a text");
        let reads = ["env::var", "getenv(", "environ;"].iter().map(|way| code.matches(way).count()).sum::<usize>();
        let withdrawn = code.matches("_getenv(").count();
        if reads > withdrawn {
            found.insert(path, reads - withdrawn);
        }
    }
    let allowed = BTreeMap::from(ALLOWED.map(|(path, count)| (path.to_owned(), count)));
    assert_eq!(found, allowed, "read variables by vgasnet_conduit::environment");
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("readable").path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

fn source_files(dir: &Path) -> Vec<PathBuf> {
    let is_source =
        |path: &PathBuf| path.extension().is_some_and(|end| ["rs", "c", "h"].iter().any(|known| end == *known));
    files_below(dir).into_iter().filter(is_source).collect()
}

/// The protocol can do no I/O: it is built without the standard library, and so are its dependencies.
#[test]
fn the_protocol_is_built_without_std_and_unsafe() {
    let lib = read(&root().join("crates/protocol/src/lib.rs"));
    assert!(lib.contains("#![no_std]") && lib.contains("#![forbid(unsafe_code)]"));
    let manifest = read(&root().join("crates/protocol/Cargo.toml"));
    let section = manifest.split("\n[dependencies]\n").nth(1).expect("dependencies").split("\n[").next().expect("text");
    let names: Vec<&str> = section
        .lines()
        .filter_map(|line| line.split('.').next())
        .filter(|name| !name.starts_with('#') && !name.is_empty())
        .collect();
    assert_eq!(names, ["slab", "zerocopy"], "both without std, see Cargo.toml");
}

const LINES_MAX: usize = 500;
const FIELDS_MAX: usize = 16;

/// Larger structs: MPI's constants, each once, and a rank of a simulation with its clients.
const LARGER: [&str; 2] = ["Constants", "Node"];

/// The structs of a formatted source file with named fields, and the number of these.
fn structs(text: &str) -> Vec<(String, usize)> {
    let mut structs: Vec<(String, usize)> = Vec::new();
    let mut is_inside = None::<usize>;
    for line in text.lines() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        let words = code.trim_start_matches("pub ").trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ");
        match (is_inside, words.strip_prefix("struct ")) {
            (None, Some(rest)) if line.ends_with('{') => {
                structs.push((rest.split([' ', '<']).next().expect("a name").to_owned(), 0));
                is_inside = Some(indent);
            }
            (Some(outer), _) if indent == outer && code.starts_with('}') => is_inside = None,
            (Some(outer), _) if indent == outer + 4 && !code.starts_with(['/', '#', ')', ']', '}']) => {
                structs.last_mut().expect("it has begun").1 += usize::from(code.contains(": ") || code.ends_with(':'));
            }
            _ => {}
        }
    }
    structs
}

#[test]
fn files_and_structs_keep_to_their_sizes() {
    let text = "pub struct A<T> {\n    /// One: the first.\n    pub one: T,\n    two: Vec<\n        u8,\n    >,\n}\n\nstruct B;\n";
    assert_eq!(structs(text), [("A".to_owned(), 2)]);
    let folders = ["src", "crates", "conduits", "mpi", "tools", "tests", "bindings", "include", "scripts", "packaging"];
    let files: Vec<PathBuf> = folders.iter().flat_map(|folder| files_below(&root().join(folder))).collect();
    let mut wrong = Vec::new();
    for file in &files {
        let Ok(text) = fs::read_to_string(file) else { continue };
        let lines = text.lines().count();
        let is_code =
            file.extension().is_none_or(|end| ["rs", "c", "h", "py", "f90", "inc"].iter().any(|one| end == *one));
        if is_code && lines > LINES_MAX {
            wrong.push(format!("{}: {lines} lines; at most {LINES_MAX}", file.display()));
        }
        let large =
            structs(&text).into_iter().filter(|(name, fields)| *fields > FIELDS_MAX && !LARGER.contains(&&**name));
        wrong.extend(large.map(|(name, fields)| format!("{}: {name} has {fields} fields", file.display())));
    }
    assert!(files.len() > 500 && wrong.is_empty(), "{} files\n{}", files.len(), wrong.join("\n"));
}
