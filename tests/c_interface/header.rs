//! The header and the library agree.

use crate::support::compile::{self, Language};
use std::collections::BTreeSet;
use std::process::Command;

fn header() -> String {
    std::fs::read_to_string(compile::source_dir().join("include/vgasnet.h")).expect("the header")
}

/// The header without comments and without lines of the preprocessor.
fn declarations(header: &str) -> String {
    let mut rest = header;
    let mut text = String::new();
    while let Some((before, comment)) = rest.split_once("/*") {
        text += before;
        rest = comment.split_once("*/").expect("a comment ends").1;
    }
    text += rest;
    text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
}

/// The functions that the header declares: the name before the first parenthesis of a declaration.
fn declared(header: &str) -> BTreeSet<String> {
    let declarations = declarations(header);
    let heads = declarations.split(';').filter_map(|declaration| declaration.split_once('(')).map(|(head, _)| head);
    let names =
        heads.filter_map(|head| head.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next_back());
    names.filter(|name| name.starts_with("vgasnet_")).map(str::to_owned).collect()
}

/// The symbols that the shared library exports.
fn exported() -> BTreeSet<String> {
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(compile::library("libvgasnet.so")).output();
    let output = output.expect("nm starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("symbols are text");
    lines.lines().map(|line| line.split_whitespace().next_back().expect("a name").to_owned()).collect()
}

/// The integer that the header defines as `name`.
fn defined(header: &str, name: &str) -> u64 {
    let mut values =
        header.lines().filter_map(|line| line.strip_prefix("#define ")?.strip_prefix(name)?.strip_prefix(' '));
    let value = values.next().unwrap_or_else(|| panic!("{name} is not defined"));
    value.parse().unwrap_or_else(|_| panic!("{name} is no number: {value}"))
}

#[test]
fn what_is_declared_is_exported_and_nothing_else() {
    let declared = declared(&header());
    assert!(declared.contains("vgasnet_init") && declared.contains("vgasnet_barrier_try"), "{declared:?}");
    assert_eq!(declared, exported());
}

#[test]
fn the_header_stands_alone() {
    let including = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("header.c");
    // Twice, and in the preprocessor and in initialisers, where only constants do.
    let text = "#include <vgasnet.h>\n#include <vgasnet.h>\n\
        #if SIZEOF_VGASNET_REGISTER_VALUE_T != 8 || VGASNET_PAGESIZE % 4096 || VGASNET_MAXNODES < 1 || VGASNET_OK\n\
        #error constants\n#endif\n\
        vgasnet_handle_t handle = VGASNET_INVALID_HANDLE;\nextern char wide[sizeof(vgasnet_register_value_t)];\n\
        extern char wide[SIZEOF_VGASNET_REGISTER_VALUE_T];\nvgasnet_handlerentry_t table[] = {{1, 0}};\n";
    std::fs::write(&including, text).expect("a file of ours");
    for language in [Language::C99, Language::Cxx11] {
        compile::check_source(&including, language);
    }
}

#[test]
fn constants_are_those_of_the_library() {
    let header = header();
    let codes = [
        ("VGASNET_OK", vgasnet::capi::OK),
        ("VGASNET_ERR_NOT_INIT", vgasnet::capi::ERR_NOT_INIT),
        ("VGASNET_ERR_RESOURCE", vgasnet::capi::ERR_RESOURCE),
        ("VGASNET_ERR_BAD_ARG", vgasnet::capi::ERR_BAD_ARG),
        ("VGASNET_ERR_NOT_READY", vgasnet::capi::ERR_NOT_READY),
        ("VGASNET_ERR_BARRIER_MISMATCH", vgasnet::capi::ERR_BARRIER_MISMATCH),
    ];
    for (name, code) in codes {
        assert_eq!(defined(&header, name), code as u64, "{name}");
    }
    assert_eq!(defined(&header, "VGASNET_MAXNODES"), u64::from(vgasnet_smp::RANKS_MAX));
    assert_eq!(vgasnet::config::PAGE_BYTES_MIN % defined(&header, "VGASNET_PAGESIZE"), 0);
    let version =
        ["MAJOR", "MINOR", "PATCH"].map(|part| defined(&header, &format!("VGASNET_VERSION_{part}")).to_string());
    assert_eq!(version.join("."), env!("CARGO_PKG_VERSION"));
}
