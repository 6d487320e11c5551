//! Dependencies between rooms: the table "Rooms" of ARCHITECTURE.md, compared with the imports of the code and the
//! dependencies of the crates.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A room of the table.
struct Room {
    /// Its name in the table's last column: without `src/` and the last slash.
    name: String,
    place: PathBuf,
    may_use: BTreeSet<String>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// `src/ops/` is called `ops`, `crates/protocol/` is called `protocol`, `conduits/smp/` is called `conduits/smp`.
fn name_of(place: &str) -> String {
    place
        .trim_start_matches("src/")
        .trim_start_matches("crates/")
        .trim_end_matches('/')
        .trim_end_matches(".rs")
        .to_owned()
}

/// The rooms from top to bottom.
fn rooms() -> Vec<Room> {
    let text = read(&root().join("ARCHITECTURE.md"));
    let table =
        text.split("\n## Rooms\n").nth(1).expect("a section \"Rooms\"").split("\n## ").next().expect("its text");
    let row = |line: &str| {
        let cells: Vec<&str> = line.strip_prefix("| `")?.trim_end_matches(" |").split(" | ").collect();
        let place = cells[0].trim_end_matches('`');
        let last = *cells.last().expect("a row has cells");
        let may_use =
            last.split(", ").filter(|name| !["nothing", "the library"].contains(name)).map(str::to_owned).collect();
        Some(Room { name: name_of(place), place: root().join(place), may_use })
    };
    table.lines().filter_map(row).collect()
}

fn rust_files(place: &Path) -> Vec<PathBuf> {
    if place.is_file() {
        return vec![place.to_owned()];
    }
    let entries = fs::read_dir(place).unwrap_or_else(|error| panic!("{}: {error}", place.display()));
    let paths = entries.map(|entry| entry.expect("readable").path());
    paths
        .filter(|path| path.is_dir() || path.extension().is_some_and(|end| end == "rs"))
        .flat_map(|p| rust_files(&p))
        .collect()
}

/// The names directly after each `prefix` in a text.
fn names_after<'a>(text: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    let is_part = |byte: char| byte.is_alphanumeric() || byte == '_';
    text.match_indices(prefix).filter_map(move |(at, _)| {
        let is_whole = !text[..at].ends_with(is_part);
        let after = &text[at + prefix.len()..];
        let end = after.find(|byte| !is_part(byte)).unwrap_or(after.len());
        is_whole.then_some(&after[..end])
    })
}

/// The crates of this workspace, by package name, with their names in the table.
fn crates(rooms: &[Room]) -> BTreeMap<String, String> {
    let package = |room: &Room| {
        let manifest = fs::read_to_string(room.place.join("Cargo.toml")).ok()?;
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = "))?;
        Some((name.trim_matches('"').to_owned(), room.name.clone()))
    };
    rooms.iter().filter_map(package).collect()
}

/// The rooms and crates named in the files of a room in `src/`.
fn imports(room: &Room, rooms: &[Room], crates: &BTreeMap<String, String>) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for file in rust_files(&room.place) {
        let text = read(&file);
        let code: String =
            text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
        used.extend(
            names_after(&code, "crate::")
                .filter(|name| rooms.iter().any(|other| other.name == *name))
                .map(str::to_owned),
        );
        for (package, name) in crates {
            if names_after(&code, &format!("{}::", package.replace('-', "_"))).next().is_some() {
                used.insert(name.clone());
            }
        }
    }
    used.remove(&room.name);
    used
}

/// The workspace's rooms on which a crate depends, apart from its tests.
fn dependencies(room: &Room, crates: &BTreeMap<String, String>) -> BTreeSet<String> {
    let manifest = read(&room.place.join("Cargo.toml"));
    let section = manifest.split("\n[dependencies]\n").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().expect("text before the next section");
    let names = section.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    // The library is several rooms. The crate's files show the ones it uses.
    names.filter_map(|name| crates.get(name).cloned()).collect()
}

#[test]
fn rooms_use_what_the_table_allows_and_nothing_above_them() {
    let rooms = rooms();
    assert!(rooms.len() > 20, "only {} rows in the table", rooms.len());
    let crates = crates(&rooms);
    let order: BTreeMap<&str, usize> = rooms.iter().enumerate().map(|(at, room)| (room.name.as_str(), at)).collect();
    let mut wrong = Vec::new();
    for (at, room) in rooms.iter().enumerate() {
        let is_crate = room.place.join("Cargo.toml").is_file();
        let used = if is_crate { dependencies(room, &crates) } else { imports(room, &rooms, &crates) };
        for name in &room.may_use {
            match order.get(name.as_str()) {
                None => wrong.push(format!("{} may use {name}, which is no room", room.name)),
                Some(below) if *below <= at => {
                    wrong.push(format!("{} may use {name}, which is not below it", room.name))
                }
                Some(_) => {}
            }
        }
        wrong.extend(
            used.difference(&room.may_use)
                .map(|name| format!("{} uses {name}, which the table does not allow", room.name)),
        );
        wrong.extend(room.may_use.difference(&used).map(|name| format!("{} may use {name}, and does not", room.name)));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_room_is_in_the_table() {
    let rooms = rooms();
    let is_room = |path: &Path| rooms.iter().any(|room| room.place.components().eq(path.components()));
    for parent in ["src", "conduits", "tools"] {
        for entry in fs::read_dir(root().join(parent)).expect("a folder") {
            let path = entry.expect("readable").path();
            assert!(is_room(&path) || path.ends_with("lib.rs"), "{} is not in ARCHITECTURE.md's table", path.display());
        }
    }
}

/// A setuid program ignores the library's variables. So released code reads the environment in one place.
#[test]
fn the_environment_is_read_in_one_place() {
    // `getenv` in the first file is for C programs. In setuid programs the loader has already dropped LD_PRELOAD, and
    // the lowest room reads no other variable.
    const ALLOWED: [(&str, usize); 2] = [("conduits/core/src/environment.rs", 3), ("src/sys/observers.rs", 1)];
    let mut dirs = vec![root().join("src")];
    for parent in ["conduits", "crates", "mpi"] {
        let entries = fs::read_dir(root().join(parent)).expect("a folder").map(|entry| entry.expect("readable").path());
        dirs.extend(entries.map(|crate_dir| crate_dir.join("src")).filter(|dir| dir.is_dir()));
    }
    assert!(dirs.len() > 9, "only {dirs:?}");
    let mut found = BTreeMap::new();
    for file in dirs.iter().flat_map(|dir| source_files(dir)) {
        let path = file.strip_prefix(root()).expect("a file of ours").display().to_string();
        if ["/tests/", "_tests.rs", "/tests.rs", "src/stats/documents.rs"].iter().any(|test| path.contains(test)) {
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
