//! The libraries of `scripts/install`: names and versions, dependencies, sizes, and debug information.

use crate::abi::{exported, number};
use crate::install::{before_mpi, is_here, prefix};
use crate::support::compile::library;
use crate::support::run::say_not_run;
use crate::support::run::succeed;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn lib() -> PathBuf {
    prefix().join("lib")
}

fn has_its_versions(name: &str) {
    let link = |name: &str| fs::read_link(lib().join(name)).expect("a link");
    let (numbered, version) = (format!("{name}.{}", number()), env!("CARGO_PKG_VERSION"));
    assert_eq!(link(name), Path::new(&numbered));
    let of_version = version.split_once('.').expect("a number and more").1;
    assert_eq!(link(&numbered), Path::new(&format!("{numbered}.{of_version}")));
    let dynamic = succeed(Command::new("readelf").arg("-d").arg(lib().join(name)));
    assert!(dynamic.contains(&format!("soname: [{numbered}]")), "{dynamic}");
}

fn needs_the_c_library_alone(name: &str) {
    let dynamic = succeed(Command::new("readelf").arg("-d").arg(lib().join(name)));
    let needed = dynamic.lines().filter_map(|line| line.split_once("Shared library: [")?.1.strip_suffix(']'));
    let is_of_c = |name: &&str| {
        ["libc.", "libm.", "libgcc_s.", "ld-linux", "ld-musl", "ld64."].iter().any(|of| name.starts_with(of))
    };
    let others: Vec<_> = needed.filter(|name| !is_of_c(name)).collect();
    assert!(others.is_empty(), "{name}: {others:?}");
}

/// A library has no debug information of its own, but leads to it.
fn has_its_debug_information_apart(name: &str) {
    let sections = |file: &Path| succeed(Command::new("readelf").args(["-S", "--wide"]).arg(file));
    let library = sections(&lib().join(name));
    assert!(!library.contains(".debug_info") && !library.contains(".symtab"), "{library}");
    assert!(library.contains(".gnu_debuglink"), "{library}");
    let build_id = |file: &Path| {
        let notes = succeed(Command::new("readelf").arg("-n").arg(file));
        notes.lines().find_map(|line| Some(line.split_once("Build ID: ")?.1.to_owned())).expect("a line")
    };
    let apart = lib().join(format!(".debug/{name}.{}.debug", env!("CARGO_PKG_VERSION")));
    assert_eq!(build_id(&lib().join(name)), build_id(&apart));
    assert!(sections(&apart).contains(".symtab"));
}

/// A linked program finds the library by the version of its binary interface. A later version may be installed next to
/// it.
#[test]
fn the_library_has_a_version_and_needs_little() {
    has_its_versions("libvgasnet.so");
    if cfg!(not(any(feature = "mpi", feature = "gasnet"))) {
        needs_the_c_library_alone("libvgasnet.so");
    }
}

/// Only our own names have a version: stand-ins for other libraries' functions serve any version.
#[test]
fn names_of_ours_have_a_version() {
    let names = exported(&lib().join("libvgasnet.so"));
    let (ours, others): (Vec<_>, Vec<_>) = names.iter().partition(|name| name.to_lowercase().starts_with("vgasnet_"));
    assert!(ours.len() > 300 && others.len() > 30, "{names:?}");
    assert!(ours.iter().all(|name| name.ends_with(&format!("@VGASNET_{}", number()))), "{ours:?}");
    // An older version of condition variables has another layout.
    let has_versions = cfg!(target_arch = "x86_64");
    let version = |name: &str| match name {
        name if !has_versions || !name.starts_with("pthread_cond_") => "@Base",
        name if name.starts_with("pthread_cond_clockwait") => "@GLIBC_2.30",
        _ => "@GLIBC_2.3.2",
    };
    let mut of_others = others.iter().filter(|name| !name.starts_with("GLIBC_"));
    assert!(of_others.all(|name| name.ends_with(version(name))), "{others:?}");
    // Programs linked with the archive see no more names, and keep the C library's locks.
    let symbols = succeed(Command::new("nm").args(["-g", "--defined-only"]).arg(lib().join("libvgasnet.a")));
    let mut in_archive: Vec<_> = symbols.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    in_archive.sort_unstable();
    let name = |name: &String| {
        name.split('@')
            .next()
            .filter(|name| !name.starts_with("VGASNET_") && !name.starts_with("GLIBC_"))
            .map(str::to_owned)
    };
    let mut names: Vec<_> = names.iter().filter_map(name).collect();
    names.sort_unstable();
    let of_locks = ["pthread_mutex_", "pthread_cond_", "pthread_rwlock_", "pthread_barrier_", "sem_", "mtx_", "cnd_"];
    let is_of_locks = |name: &String| {
        ["pthread_cancel", "pthread_once", "call_once"].contains(&name.as_str())
            || of_locks.iter().any(|prefix| name.starts_with(prefix))
    };
    let (locks, names): (Vec<_>, Vec<_>) = names.into_iter().partition(is_of_locks);
    assert!(locks.len() == 33, "{locks:?}");
    assert_eq!(in_archive, names);
}

#[test]
fn debug_information_lies_apart() {
    has_its_debug_information_apart("libvgasnet.so");
    if !is_here("gdb") {
        return;
    }
    let mut gdb = Command::new("gdb");
    let said = succeed(gdb.args(["-nx", "-batch", "-ex", "info line vgasnet_init"]).arg(lib().join("libvgasnet.so")));
    // Only release builds have line information.
    if is_released() {
        assert!(said.contains("Line ") && said.contains(".rs\""), "{said}");
    } else {
        assert!(said.contains("vgasnet_init"), "{said}");
    }
}

/// Whether this is the library of a release build.
fn is_released() -> bool {
    library("libvgasnet.so").ancestors().skip(1).take(2).any(|dir| dir.ends_with("release"))
}

/// Upper bounds on the bytes of the shared library and the archive: 5 % above their sizes on x86-64 with Rust 1.95.
/// Raise them for a good reason.
#[test]
fn libraries_are_no_larger_than_they_were() {
    const TEST: &str = "the size of the libraries";
    if cfg!(any(feature = "mpi", feature = "gasnet", asan, debug_assertions)) || cfg!(not(target_arch = "x86_64")) {
        return say_not_run(TEST, "there are bounds for the build for one machine, without checks, on x86-64");
    }
    let (shared_max, archive_max) = if is_released() { (4_180_000, 9_150_000) } else { (4_960_000, 15_400_000) };
    for (name, bytes_max) in [("libvgasnet.so", shared_max), ("libvgasnet.a", archive_max)] {
        let bytes = fs::metadata(lib().join(name)).expect("a library").len();
        println!("{name}: {bytes} bytes");
        assert!(bytes <= bytes_max, "{name} has {bytes} bytes, more than {bytes_max}");
    }
}

/// The libraries do not need MPI by themselves: the program brings it.
#[test]
fn libraries_before_mpi_are_installed_alike() {
    const TEST: &str = "the libraries before MPI, installed";
    if cfg!(not(feature = "mpi")) {
        return say_not_run(TEST, "this is a build without MPI");
    }
    if before_mpi().len() < 2 {
        return say_not_run(
            TEST,
            "they are not built beside the library, as the tests of vgasnet-mpi-cache and -io with --features link do",
        );
    }
    for name in ["libvgasnet-mpi-cache.so", "libvgasnet-mpi-io.so"] {
        has_its_versions(name);
        needs_the_c_library_alone(name);
        // Without its feature `link` such a library is empty.
        assert!(exported(&lib().join(name)).contains("MPI_Finalize@Base"), "{name} does not stand before MPI");
        has_its_debug_information_apart(name);
    }
}
