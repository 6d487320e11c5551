//! GASNet-EX's tools.

use crate::ex::{chapter, setup};
use crate::support::gasnet::{Compiler, Mode, ex_program};
use crate::support::run::{run, run_with};

#[test]
fn tools() {
    chapter("ex_tools");
}

/// A bad size or variable gives one line with the call and the value.
#[test]
fn tools_with_bad_text() {
    let program = ex_program("ex_tools", Compiler::GccC99, Mode::Seq, &[]);
    let ended = run(&program, &["number"], setup(1));
    let line = "gasnett_parse_int: \"12 parsecs\" is not a size: a number, then at most one of B, KB, MB, GB, TB\n";
    assert!(ended.expect(1).stderr.contains(line), "{ended}");
    let ended = run_with(&program, &["variable"], setup(1), &[("CHECK_RANKS_AS_TEXT", "four")]);
    let line = "gasnett_getenv_int_withdefault: CHECK_RANKS_AS_TEXT=four is not an integer under 2^63: digits, or 0x and \
                hexadecimal digits, perhaps behind a sign; unset it or change it\n";
    assert!(ended.expect(1).stderr.contains(line), "{ended}");
}

/// Rank 0 prints each variable it asks for, once.
#[test]
fn tools_show_variables() {
    let ended = run(&ex_program("ex_tools", Compiler::GccC99, Mode::Par, &[]), &[], setup(2));
    let shown: Vec<_> = ended.expect(0).stderr.lines().filter(|line| line.starts_with("ENV parameter: ")).collect();
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert!(shown[0].starts_with("ENV parameter: CHECK_SHOWN = a text "), "{shown:?}");
    assert!(shown[1].contains("CHECK_SHOWN_SIZE = 1 MB") && shown[1].ends_with(" (default)"), "{shown:?}");
}
