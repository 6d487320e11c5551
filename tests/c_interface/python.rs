//! The Python package: its table agrees with the headers, and its own tests pass, with the library of this test.

use crate::declarations::{self, Class, constants, structures};
use crate::install::{build_dir, launch_as, prefix};
use crate::support::compile::{self, Language, Linking, library, source_dir};
use crate::support::run::{conduit, is_across_hosts, place_executable, say_not_run, succeed};
use crate::support::tools::tool;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

/// A Python with these modules: the user's, or else the distribution's. Prints a line if there is none.
fn python(test: &str, modules: &str) -> Option<Command> {
    let has_them = |python: &&str| {
        let output = Command::new(python).args(["-c", &format!("import {modules}")]).output();
        output.is_ok_and(|output| output.status.success())
    };
    let Some(found) = ["python3", "/usr/bin/python3"].into_iter().find(has_them) else {
        say_not_run(test, &format!("there is no python3 with {modules}; scripts/test installs it"));
        return None;
    };
    let mut command = Command::new(found);
    command.current_dir(source_dir().join("bindings/python")).env("PYTHONDONTWRITEBYTECODE", "1");
    Some(command)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The package's names for types of C.
fn class_of(name: &str) -> Class {
    match name {
        "void" => Class::Void,
        "int" | "u8" | "u32" => Class::Int,
        "u64" | "size" | "ptr" | "text" => Class::Long,
        "f32" => Class::Float,
        other => panic!("_prototypes.py has a type {other}; tell its class here"),
    }
}

#[test]
fn functions_are_those_of_the_headers() {
    let Some(mut python) = python("the functions of the Python package", "numpy") else { return };
    let script =
        "from vgasnet import raw\nfor name, result, arguments in raw.prototypes(): print(name, result, *arguments)";
    let listed = succeed(python.args(["-c", script]));
    let of_line = |line: &str| {
        let words: Vec<_> = line.split(' ').collect();
        (words[0].to_owned(), (class_of(words[1]), words[2..].iter().map(|word| class_of(word)).collect()))
    };
    let listed: BTreeMap<String, declarations::Signature> = listed.lines().map(of_line).collect();
    let in_headers = declarations::all_functions();
    let missing: Vec<_> = in_headers.keys().filter(|name| !listed.contains_key(*name)).collect();
    assert!(missing.is_empty(), "missing in bindings/python/vgasnet/_prototypes.py: {missing:?}");
    // The package has numbers for handles and addresses.
    for (name, (result, arguments)) in &listed {
        let (in_c, all_in_c) = in_headers.get(name).unwrap_or_else(|| panic!("{name} is in no header"));
        let all_in_c: Vec<_> = all_in_c.iter().map(|class| class.by_width()).collect();
        assert_eq!((*result, arguments), (in_c.by_width(), &all_in_c), "{name}");
    }
}

/// As users make an environment, with nothing but pip in it, and without network.
#[test]
fn pip_installs_the_package_in_an_environment_without_setuptools() {
    let test = "pip in an environment of its own";
    let (Some(mut python), environment) = (python(test, "ensurepip"), build_dir("environment")) else { return };
    succeed(python.args(["-m", "venv", "--clear"]).arg(&environment));
    let pip = || Command::new(environment.join("bin/pip"));
    succeed(pip().args(["uninstall", "--quiet", "--yes", "setuptools", "wheel"]));
    for how in [&[][..], &["--no-build-isolation"]] {
        let mut install = pip();
        install.args(["install", "--quiet", "--no-index", "--no-deps", "--force-reinstall"]).args(how);
        succeed(install.arg(source_dir().join("bindings/python")));
        let installed = succeed(pip().args(["show", "--files", "vgasnet"]));
        assert!(installed.contains("vgasnet/raw.py") && installed.contains("vgasnet/py.typed"), "{installed}");
        assert!(installed.contains("Requires: numpy"), "{installed}");
    }
}

#[test]
fn constants_and_structures_are_those_of_the_headers() {
    let Some(mut python) = python("the layout of the Python package", "numpy") else { return };
    let in_c = Path::new(env!("CARGO_TARGET_TMPDIR")).join("layout_of_c_for_python.c");
    std::fs::write(&in_c, declarations::layout_in_c()).expect("a file of ours");
    let expected = succeed(&mut Command::new(compile::build(&in_c, Language::C99, Linking::Shared)));
    let mut script = "import ctypes\nfrom vgasnet import raw\n".to_owned();
    for name in constants() {
        script += &format!("print('{name}', raw.{name})\n");
    }
    for (name, fields) in structures() {
        script += &format!("print('{name}', ctypes.sizeof(raw.{name}))\n");
        for field in fields {
            script += &format!("print('{name}.{field}', raw.{name}.{field}.offset)\n");
        }
    }
    assert_eq!(succeed(python.args(["-c", &script])), expected);
}

#[test]
fn the_tests_of_the_package_pass() {
    const TEST: &str = "the tests of the Python package";
    if is_across_hosts() {
        return say_not_run(TEST, "they are for one machine");
    }
    let Some(mut python) = python(TEST, "numpy, pytest") else { return };
    python.args(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"]);
    python.env("VGASNET_LIBRARY", library("libvgasnet.so")).env("VGASNETRUN", tool("vgasnetrun"));
    // Tests independent of the conduit have run over shared memory.
    if conduit() != "smp" {
        python.args(["tests/test_mpi.py", "tests/test_jobs.py", "-k", "mpi or active or example"]);
    }
    let output = python.output().expect("Python starts");
    let said = said(&output);
    assert!(output.status.success(), "{python:?}\n{said}");
    for line in said.lines().filter_map(|line| line.strip_prefix("SKIPPED ")) {
        say_not_run(TEST, line);
    }
    println!("{said}");
}

/// The program of docs/tutorials/python.md, with an installed package and library, which find each other.
#[test]
fn the_installed_package_runs_the_program_of_the_documentation() {
    let Some(python) = python("the installed Python package", "numpy") else { return };
    let text = std::fs::read_to_string(source_dir().join("docs/tutorials/python.md")).expect("the documentation");
    let (_, program) = text.split_once("```python\n").expect("a program");
    let program = program.split_once("```").expect("its end").0.replace("1 << 30", "1 << 20");
    let file = build_dir("python").join("program");
    let interpreter = succeed(Command::new(python.get_program()).args(["-c", "import sys; print(sys.executable)"]));
    place_executable(&file, format!("#!{}\n{program}", interpreter.trim()).as_bytes());
    let (conduit, package) = (conduit(), prefix().join("share/vgasnet/python"));
    let package = package.to_str().expect("paths of tests are text");
    let variables = [("VGASNET_CONDUIT", conduit.as_str()), ("PYTHONPATH", package), ("PYTHONDONTWRITEBYTECODE", "1")];
    let (status, said) = launch_as("bin/vgasnetrun", &["-n", "2"], &file, &variables);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.lines().any(|line| line == "[1000.]"), "{said}");
}
