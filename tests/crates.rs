//! The crates of the workspace: ARCHITECTURE.md's table against the manifests, where the environment is read, and what
//! the protocol is built of.

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

fn source_files(dir: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("readable").path());
    let is_source =
        |path: &PathBuf| path.extension().is_some_and(|end| ["rs", "c", "h"].iter().any(|known| end == *known));
    paths.flat_map(|path| if path.is_dir() { source_files(&path) } else { vec![path] }).filter(is_source).collect()
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
