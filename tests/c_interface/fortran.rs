//! The Fortran module: it declares everything in the headers, and its example runs, with each installed compiler.

use crate::declarations::{self, constants, structures};
use crate::install::{build_dir, is_here, launch_as, prefix};
use crate::support::compile::{self, Language, Linking, library, source_dir};
use crate::support::run::{Setup, conduit, fresh_dir, run, say_not_run, succeed};
use std::path::{Path, PathBuf};
use std::process::Command;

/// scripts/test installs gfortran. Few distributions have flang.
const COMPILERS: [&str; 2] = ["gfortran", "flang-new-19"];

fn compilers() -> Vec<&'static str> {
    COMPILERS.into_iter().filter(|compiler| is_here(compiler)).collect()
}

/// Compiles a source together with the module. Each compiler gets a directory of its own, since none reads another's
/// modules.
fn build(compiler: &str, source: &Path, name: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fortran-{name}-{compiler}"));
    let modules = program.with_extension("modules");
    std::fs::create_dir_all(&modules).expect("a directory of ours");
    let mut command = Command::new(compiler);
    if compiler == "gfortran" {
        command.args(["-std=f2018", "-Wall", "-Wextra", "-Wno-unused-dummy-argument", "-Wno-compare-reals"]);
        command.args(["-Wno-function-elimination", "-Werror", "-J"]);
    } else {
        command.arg("-module-dir");
    }
    command
        .current_dir(&modules)
        .arg(&modules)
        .args(["-O1", "-g"])
        .arg(source_dir().join("bindings/fortran/vgasnet.f90"))
        .arg(source);
    let shared = library("libvgasnet.so");
    let dir = shared.parent().expect("a library is in a directory");
    command.arg("-L").arg(dir).arg("-lvgasnet").arg(format!("-Wl,--disable-new-dtags,-rpath,{}", dir.display()));
    succeed(command.arg("-o").arg(&program));
    program
}

/// The module's functions in C, as gfortran prints them.
#[test]
fn functions_are_those_of_the_headers() {
    if !is_here("gfortran") {
        return;
    }
    let mut command = Command::new("gfortran");
    // gfortran writes the module nevertheless.
    command
        .current_dir(build_dir("fortran-prototypes"))
        .args(["-fsyntax-only", "-fc-prototypes"])
        .arg(source_dir().join("bindings/fortran/vgasnet.f90"));
    let mut in_module = declarations::functions(&succeed(&mut command));
    // Function types, and a function of the C library.
    for name in ["vgasnet_coll_reduce_fn", "vgasnet_short_handler", "vgasnet_long_handler"] {
        assert!(in_module.remove(name).is_some(), "{name} is missing");
    }
    let in_headers = declarations::all_functions();
    let missing: Vec<_> = in_headers.keys().filter(|name| !in_module.contains_key(*name)).collect();
    assert!(missing.is_empty(), "missing in bindings/fortran/vgasnet: {missing:?}");
    for (name, signature) in &in_module {
        assert_eq!(Some(signature), in_headers.get(name), "{name}");
    }
}

/// Options may widen numbers without a kind, for programs and for the module.
#[test]
fn wider_numbers_change_nothing() {
    if !is_here("gfortran") {
        return;
    }
    let mut command = Command::new("gfortran");
    command.current_dir(build_dir("fortran-wide")).args(["-fdefault-integer-8", "-fdefault-real-8", "-std=f2018"]);
    command.args(["-Wall", "-Wextra", "-Wno-unused-dummy-argument", "-Wno-compare-reals", "-Werror", "-fsyntax-only"]);
    succeed(command.arg(source_dir().join("bindings/fortran/vgasnet.f90")));
}

/// A program in Fortran with the same output as [`declarations::layout_in_c`].
fn layout_in_fortran() -> String {
    let mut source = "program layout\n  use vgasnet\n  implicit none\n".to_owned();
    for (at, (name, _)) in structures().iter().enumerate() {
        source += &format!("  type({name}), target :: s{at}\n");
    }
    for name in constants() {
        source += &format!("  print \"(a, 1x, i0)\", \"{name}\", {name}\n");
    }
    for (at, (name, fields)) in structures().iter().enumerate() {
        source += &format!("  print \"(a, 1x, i0)\", \"{name}\", c_sizeof(s{at})\n");
        for field in fields {
            source += &format!(
                "  print \"(a, 1x, i0)\", \"{name}.{field}\", &\n    place(c_loc(s{at}%{field})) - place(c_loc(s{at}))\n"
            );
        }
    }
    source
        + "contains\n  integer(c_intptr_t) function place(address)\n    type(c_ptr), intent(in) :: address\n    \
           place = transfer(address, place)\n  end function\nend program\n"
}

#[test]
fn constants_and_structures_are_those_of_the_headers() {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (in_c, in_fortran) = (scratch.join("layout_of_c.c"), scratch.join("layout.f90"));
    std::fs::write(&in_c, declarations::layout_in_c()).expect("a file of ours");
    std::fs::write(&in_fortran, layout_in_fortran()).expect("a file of ours");
    let expected = succeed(&mut Command::new(compile::build(&in_c, Language::C99, Linking::Shared)));
    assert!(expected.lines().count() > 200, "{expected}");
    for compiler in compilers() {
        let layout = succeed(&mut Command::new(build(compiler, &in_fortran, "layout")));
        assert_eq!(layout, expected, "{compiler}");
    }
}

#[test]
fn the_example_runs() {
    let source = source_dir().join("examples/fortran/out_of_core.f90");
    for compiler in compilers() {
        let program = build(compiler, &source, "out_of_core");
        // Segments of eight pools.
        for (ranks, peer_memory) in [(1, true), (2, false), (4, true)] {
            let dir = fresh_dir();
            let file = dir.join("shared");
            let setup = Setup { ranks, page_bytes: 64 << 10, pool_pages: 16, peer_memory, cooperative: true };
            let ended = run(&program, &[file.to_str().expect("paths of tests are text"), "8"], setup);
            assert_eq!(ended.expect(0).stdout, format!("{ranks} ranks, 8 MiB each: all is right\n"), "{ended}");
            std::fs::remove_dir(&dir).expect("the example has removed its file");
        }
    }
}

#[test]
fn calls_of_each_chapter() {
    let source = source_dir().join("tests/fortran/calls.f90");
    for compiler in compilers() {
        let program = build(compiler, &source, "calls");
        for (ranks, peer_memory) in [(1, true), (3, false)] {
            let dir = fresh_dir();
            let file = dir.join("shared");
            let setup = Setup { ranks, page_bytes: 64 << 10, pool_pages: 8, peer_memory, cooperative: true };
            run(&program, &[file.to_str().expect("paths of tests are text")], setup).expect(0);
            std::fs::remove_dir(&dir).expect("the program has removed its file");
        }
    }
}

/// When one rank fails, the Fortran runtimes of the others print nothing.
#[test]
fn ranks_that_are_ended_print_no_backtrace() {
    if conduit() != "smp" {
        return say_not_run("what ranks print that are ended", "launchers of MPI have a say in it, too");
    }
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("too_large.f90");
    let text = "program too_large\n  use vgasnet\n  implicit none\n  real(c_double), pointer :: values(:)\n  \
        if (vgasnet_init() /= VGASNET_OK) call vgasnet_exit(3)\n  \
        if (vgasnet_attach(65536_c_intptr_t) /= VGASNET_OK) call vgasnet_exit(3)\n  \
        call vgasnet_segment_pointer(values, 8192_c_int64_t)\n  values = vgasnet_mynode()\n  \
        if (vgasnet_mynode() == 1) call vgasnet_segment_pointer(values, 8193_c_int64_t)\n  \
        if (vgasnet_barrier() /= VGASNET_OK) call vgasnet_exit(3)\nend program\n";
    std::fs::write(&source, text).expect("a file of ours");
    for compiler in compilers() {
        let program = build(compiler, &source, "too_large");
        let setup = Setup { ranks: 3, page_bytes: 64 << 10, pool_pages: 8, peer_memory: true, cooperative: true };
        let ended = run(&program, &[], setup);
        let lines: Vec<_> = ended.expect(1).stderr.lines().collect();
        let line = "vgasnet: rank 1: vgasnet_segment_pointer: count 8193; the segment has room for 0 to 8192 of 8 bytes from offset 0; \
            give vgasnet_attach more";
        assert!(lines.len() == 2 && lines[0] == line && lines[1].starts_with("vgasnetrun: rank 1 "), "{ended}");
    }
}

/// The program of docs/tutorials/fortran.md, built as the tutorial says, with the tree of scripts/install.
#[test]
fn the_installed_module_builds_the_program_of_the_documentation() {
    if !is_here("gfortran") || !is_here("pkg-config") {
        return;
    }
    let text = std::fs::read_to_string(source_dir().join("docs/tutorials/fortran.md")).expect("the documentation");
    let (_, program) = text.split_once("```fortran\n").expect("a program");
    let dir = build_dir("fortran");
    std::fs::write(dir.join("hello.f90"), program.split_once("```").expect("its end").0).expect("a file of ours");
    let packages = prefix().join("lib/pkgconfig");
    let flags = |arguments: &[&str]| {
        let flags = succeed(Command::new("pkg-config").args(arguments).env("PKG_CONFIG_PATH", &packages));
        flags.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let modules = flags(&["--variable=fmoddir", "vgasnet-fortran"]);
    assert!(Path::new(&modules[0]).join("vgasnet.mod").is_file(), "{modules:?}");
    let mut gfortran = Command::new("gfortran");
    gfortran
        .current_dir(&dir)
        .arg("hello.f90")
        .args(flags(&["--cflags", "--libs", "vgasnet-fortran"]))
        .args(["-o", "hello"]);
    succeed(&mut gfortran);
    says_hello(&dir.join("hello"));
    let mut example = Command::new("gfortran");
    example.current_dir(&dir).arg(prefix().join("share/vgasnet/examples/fortran/out_of_core.f90"));
    succeed(example.args(flags(&["--cflags", "--libs", "vgasnet-fortran"])).args(["-o", "out_of_core"]));
    // Other compilers must compile the module themselves.
    if is_here("flang-new-19") {
        let source = prefix().join("include/vgasnet/fortran/vgasnet.f90");
        let mut flang = Command::new("flang-new-19");
        flang.current_dir(&dir).arg(source).arg("hello.f90").args(flags(&["--libs", "vgasnet"])).args(["-o", "hello"]);
        succeed(&mut flang);
        says_hello(&dir.join("hello"));
    }
}

fn says_hello(program: &Path) {
    let conduit = conduit();
    let (status, said) = launch_as("bin/vgasnetrun", &["-n", "2"], program, &[("VGASNET_CONDUIT", conduit.as_str())]);
    assert_eq!(status, Some(0), "{said}");
    for rank in 0..2 {
        let words = ["rank".to_owned(), rank.to_string(), "got".to_owned()];
        let line = said.lines().find(|line| line.split_whitespace().take(3).eq(words.iter().map(String::as_str)));
        let value = line.and_then(|line| line.split_whitespace().nth(3)?.parse().ok());
        assert_eq!(value, Some(f64::from(1 - rank)), "{said}");
    }
}
