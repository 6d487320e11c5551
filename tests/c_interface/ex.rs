//! Clients of GASNet-EX: the programs `tests/c/ex_*.c`, through `gasnetex.h` and `gasnet.h`.

use crate::support::gasnet::{Compiler, Mode, ex_program};
use crate::support::run::{Setup, run, some_of};
use std::path::{Path, PathBuf};

/// A segment may be several times as large as the pool.
const fn setup(ranks: u32) -> Setup {
    Setup { ranks, page_bytes: 64 << 10, pool_pages: 8, peer_memory: ranks != 4, cooperative: true }
}

/// Runs a program on 1, 2 and 4 ranks as C in two thread modes, and on 2 with the other compilers.
fn chapter(name: &str) {
    let runs = [Mode::Seq, Mode::Par].into_iter().flat_map(|mode| [1, 2, 4].map(|ranks| (mode, ranks)));
    for (mode, ranks) in some_of(runs) {
        run(&ex_program(name, Compiler::GccC99, mode, &[]), &[], setup(ranks)).expect(0);
    }
    let others =
        [(Compiler::GccCxx17, Mode::Parsync), (Compiler::ClangC99, Mode::Par), (Compiler::ClangCxx17, Mode::Seq)];
    for (compiler, mode) in some_of(others.into_iter().filter(|(compiler, _)| compiler.is_here())) {
        run(&ex_program(name, compiler, mode, &[]), &[], setup(2)).expect(0);
    }
}

#[test]
fn from_init_to_the_end_of_main() {
    chapter("ex_path");
}

const COMPILERS: [Compiler; 4] = [Compiler::GccC99, Compiler::GccCxx17, Compiler::ClangC99, Compiler::ClangCxx17];

/// The headers that clients include, each before and after the others. The thread mode is named for all but `gasnet_fwd.h`.
#[test]
fn headers_may_be_included_in_any_order() {
    let headers = ["gasnetex", "gasnet", "gasnet_fwd", "gasnet_mk", "gasnet_portable_platform"];
    for header in headers {
        let others: String = headers.iter().map(|other| format!("#include <{other}.h>\n")).collect();
        let text = format!("#include <{header}.h>\n{others}#include <{header}.h>\nextern gex_Rank_t declared;\n");
        let path = source(&format!("ex-alone-{header}.c"), &text);
        for compiler in COMPILERS.into_iter().filter(|compiler| compiler.is_here()) {
            for mode in [Mode::Seq, Mode::Parsync, Mode::Par] {
                let (is_taken, said) = compiler.check_ex(&path, &[mode.define(), "-pedantic"]);
                assert!(is_taken, "{header}.h, {compiler:?}, {mode:?}: {said}");
            }
        }
    }
    let path = source("ex-forward.c", "#include <gasnet_fwd.h>\nextern gex_Event_t declared;\n");
    for compiler in COMPILERS.into_iter().filter(|compiler| compiler.is_here()) {
        let (is_taken, said) = compiler.check_ex(&path, &["-pedantic"]);
        assert!(is_taken, "gasnet_fwd.h, {compiler:?}: {said}");
    }
}

fn source(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("a file of ours");
    path
}
