//! The number of the binary interface increases when a program linked with an earlier library would miss or misuse
//! something in this one. `debian/libvgasnet0.symbols` has the names of a number, `packaging/abi` everything else.

use crate::declarations::{Class, all_functions, constants, printing_layout, structures, structures_of};
use crate::install::{build_dir, prefix};
use crate::support::compile::source_dir;
use crate::support::run::say_not_run;
use crate::support::run::succeed;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

const SYMBOLS: &str = "debian/libvgasnet0.symbols";
const LAYOUTS: &str = "packaging/abi";

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(source_dir().join(&path)).unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()))
}

/// The number in the libraries' names, as build scripts write it.
pub fn number() -> String {
    let text = read("packaging/soname.rs");
    let (_, rest) = text.split_once("const ABI: u32 = ").expect("the number");
    rest.split_once(';').expect("the number ends").0.to_owned()
}

/// The symbols exported by an installed library, in Debian's form: a symbol without a version gets `Base`.
pub fn exported(library: &Path) -> BTreeSet<String> {
    let symbols = succeed(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
    let names = || symbols.lines().map(|line| line.split_whitespace().next_back().expect("a name"));
    // A version is a symbol of itself.
    let versions: BTreeSet<_> = names().filter_map(|name| name.split_once("@@")).map(|(_, version)| version).collect();
    names()
        .map(|name| match name.split_once("@@") {
            Some((name, version)) => format!("{name}@{version}"),
            None if versions.contains(name) => format!("{name}@{name}"),
            None => format!("{name}@Base"),
        })
        .collect()
}

/// The calling convention of each function of the interface, one line each.
fn calls() -> impl Iterator<Item = String> {
    let word = |class: &Class| format!("{:?}", class.by_width()).to_lowercase();
    all_functions().into_iter().map(move |(name, (result, arguments))| {
        let arguments: Vec<_> = arguments.iter().map(word).collect();
        format!("{name}({}) {}", arguments.join(" "), word(&result))
    })
}

/// Constants, sizes of structures and offsets of their fields, including GASNet-EX's.
fn layouts() -> Vec<String> {
    let of_ex = ["gasnet_fwd.h", "gex_types.h"].map(|name| read(Path::new("include/gasnet-ex").join(name)));
    let mut structures = structures();
    structures.extend(structures_of(of_ex.iter().map(|text| &**text)));
    let constants: Vec<_> = constants().into_iter().filter(|name| !name.contains("_VERSION_")).collect();
    let dir = build_dir("abi");
    fs::write(dir.join("layout.c"), printing_layout("gasnetex.h", &constants, &structures)).expect("a file of ours");
    let mut compile = Command::new("cc");
    compile.args(["-DGASNET_PAR", "-o", "layout", "layout.c"]).current_dir(&dir);
    for include in ["include/gasnet-ex", "include/gasnet-compat", "include"] {
        compile.arg("-I").arg(source_dir().join(include));
    }
    succeed(&mut compile);
    // Callers pass the sizes of these structures, so fields may be added.
    let grows = |line: &&str| {
        structures.iter().any(|(name, fields)| {
            ["size_bytes", "struct_bytes"].contains(&&*fields[0]) && line.split(' ').next() == Some(name)
        })
    };
    let printed = succeed(&mut Command::new(dir.join("layout")));
    printed.lines().filter(|line| !grows(line)).map(str::to_owned).collect()
}

/// The lines of a file after its head, and whether the head names the current number.
fn recorded(file: &str) -> (BTreeSet<String>, bool) {
    let text = read(file);
    let is_entry =
        |line: &&str| !line.starts_with(['#', '*']) && !line.starts_with("number ") && !line.starts_with("lib");
    // Debian's file has, after each name, the version of vgasnet that introduced it.
    let entry =
        |line: &str| if file == SYMBOLS { line.split_whitespace().next().expect("a name") } else { line }.to_owned();
    let head = if file == SYMBOLS {
        format!("libvgasnet.so.{0} libvgasnet{0} ", number())
    } else {
        format!("number {}\n", number())
    };
    (text.lines().filter(is_entry).map(entry).collect(), text.contains(&head))
}

/// Rewrites a file. Its head stays, and so do the versions of names it has already.
fn write(file: &str, today: &BTreeSet<String>) {
    let (before, version) = (read(file), env!("CARGO_PKG_VERSION"));
    let known =
        |name: &str| before.lines().find(|line| line.trim_start().split(' ').next() == Some(name)).map(str::to_owned);
    let lines = today.iter().map(|entry| match file {
        SYMBOLS => known(entry).unwrap_or_else(|| format!(" {entry} {version}")) + "\n",
        _ => format!("{entry}\n"),
    });
    let head = match file {
        SYMBOLS => {
            format!("libvgasnet.so.{0} libvgasnet{0} #MINVER#\n* Build-Depends-Package: libvgasnet-dev\n", number())
        }
        _ => {
            before.lines().filter(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect::<String>()
                + &format!("number {}\n", number())
        }
    };
    fs::write(source_dir().join(file), head + &lines.collect::<String>()).expect("a file of the sources");
}

fn is_of_its_number(file: &str, today: &BTreeSet<String>) {
    let (before, is_of_number) = recorded(file);
    let changed: Vec<_> = before.difference(today).collect();
    assert!(
        changed.is_empty() || !is_of_number,
        "{file}: gone or changed: {changed:?}; raise ABI in packaging/soname.rs (docs/internals/packages.md)"
    );
    if std::env::var("CHECK_ABI").is_ok_and(|value| value == "write") {
        write(file, today);
    }
    let (recorded, is_of_number) = recorded(file);
    let new: Vec<_> = today.difference(&recorded).collect();
    assert!(
        is_of_number && new.is_empty(),
        "{file} lacks {new:?}, or is of another number; run this test with CHECK_ABI=write"
    );
}

#[test]
fn names_belong_to_the_number() {
    if cfg!(any(feature = "mpi", feature = "gasnet")) {
        return say_not_run("the exported names", "those of the build for one machine are compared");
    }
    let today = exported(&prefix().join("lib/libvgasnet.so"));
    assert!(today.len() > 300, "{today:?}");
    is_of_its_number(SYMBOLS, &today);
    assert!(read("debian/control").contains(&format!("\nPackage: libvgasnet{}\n", number())));
}

#[test]
fn calls_and_layouts_belong_to_the_number() {
    let today: BTreeSet<_> = calls().chain(layouts()).collect();
    assert!(today.len() > 400, "{today:?}");
    is_of_its_number(LAYOUTS, &today);
}
