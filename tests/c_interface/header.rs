//! The headers and the library agree, and every chapter compiles alone.

use crate::declarations::plain;
use crate::support::compile::{self, Language};
use crate::support::run::{say_not_run, succeed};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The header of `include/`, without its chapters.
fn overview() -> String {
    std::fs::read_to_string(compile::source_dir().join("include/vgasnet.h")).expect("the header")
}

/// The names of the chapters in the form of an include: `vgasnet/job.h`.
fn chapters() -> BTreeSet<String> {
    let entries = std::fs::read_dir(compile::source_dir().join("include/vgasnet")).expect("the chapters");
    let names = entries.map(|entry| entry.expect("a file").file_name().into_string().expect("a name in ASCII"));
    names.map(|name| format!("vgasnet/{name}")).collect()
}

/// The text of the header and all chapters.
pub fn header() -> String {
    let dir = compile::source_dir().join("include");
    let text = |name: String| std::fs::read_to_string(dir.join(name)).expect("a chapter");
    overview() + &chapters().into_iter().map(text).collect::<String>()
}

/// The text of the headers with the library's functions for GASNet-EX.
fn header_ex() -> String {
    let dir = compile::source_dir().join("include/gasnet-ex");
    let paths = std::fs::read_dir(dir).expect("the headers").map(|entry| entry.expect("a file").path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vgasnet_ex")))
        .collect();
    paths.sort();
    paths.into_iter().map(|path| std::fs::read_to_string(path).expect("a header")).collect()
}

/// The functions declared by the header: the name before the first parenthesis of a declaration.
pub fn declared(header: &str) -> BTreeSet<String> {
    let declarations = plain(header);
    let heads = declarations.split(';').filter_map(|declaration| declaration.split_once('(')).map(|(head, _)| head);
    let names =
        heads.filter_map(|head| head.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next_back());
    names.filter(|name| name.starts_with("vgasnet_")).map(str::to_owned).collect()
}

/// The variables declared by the header: pointers to functions, and others.
fn variables(header: &str) -> BTreeSet<String> {
    let name = |declaration: &str| match declaration.split_once("(*") {
        Some((_, rest)) => Some(rest.split_once(')')?.0.to_owned()),
        None => Some(declaration.strip_suffix(';')?.split_whitespace().next_back()?.to_owned()),
    };
    header.lines().filter_map(|line| line.strip_prefix("extern ")).filter_map(name).collect()
}

/// The interposed functions of MPI with buffers.
fn before_mpis_with_buffers() -> impl Iterator<Item = &'static str> {
    #[cfg(feature = "mpi")]
    return vgasnet_mpi::calls::names();
    #[cfg(not(feature = "mpi"))]
    std::iter::empty()
}

/// The interposed functions of MPI, and the functions that `libvgasnet-mpi-io.so` calls before or instead of MPI's.
fn before_mpis() -> impl Iterator<Item = &'static str> {
    const ENDS: [&str; 24] = [
        "MPI_Init",
        "MPI_Init_thread",
        "MPI_Finalize",
        "vgasnet_mpi_before_finalize",
        "vgasnet_mpi_abandon",
        "vgasnet_mpi_file_descriptor",
        "vgasnet_mpi_file_hand_over",
        "vgasnet_mpi_file_note_new_name",
        "vgasnet_mpi_file_end_write",
        "vgasnet_mpi_file_hold_writes",
        "vgasnet_mpi_file_rescue",
        "vgasnet_mpi_file_want_handed_over",
        "vgasnet_mpi_file_is_wanted",
        "vgasnet_mpi_file_end_sync_alone",
        "vgasnet_mpi_pointer_open",
        "vgasnet_mpi_begin_caching",
        "vgasnet_mpi_end_caching",
        "vgasnet_mpi_is_caching_barred",
        "vgasnet_mpi_bar_caching",
        "vgasnet_mpi_bar_own_caching",
        "vgasnet_mpi_end_job",
        "vgasnet_mpi_is_job_ending",
        "vgasnet_mpi_note_rescue",
        "vgasnet_mpi_go_on",
    ];
    ENDS.into_iter().filter(|_| cfg!(feature = "mpi")).chain(before_mpis_with_buffers())
}

/// The symbols exported by the shared library.
fn exported() -> BTreeSet<String> {
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(compile::library("libvgasnet.so")).output();
    let output = output.expect("nm starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("symbols are text");
    lines.lines().map(|line| line.split_whitespace().next_back().expect("a name").to_owned()).collect()
}

/// The integer defined as `name` in the header.
fn defined(header: &str, name: &str) -> u64 {
    let mut values =
        header.lines().filter_map(|line| line.strip_prefix("#define ")?.strip_prefix(name)?.strip_prefix(' '));
    let value = values.next().unwrap_or_else(|| panic!("{name} is not defined"));
    value.parse().unwrap_or_else(|_| panic!("{name} is no number: {value}"))
}

/// The documents list the functions of other libraries replaced by this one: the names in the first column of the
/// table.
#[test]
fn the_documents_name_what_is_replaced() {
    let text = std::fs::read_to_string(compile::source_dir().join("docs/reference/programs.md")).expect("the document");
    let (_, table) = text.split_once("| replaced | why |\n").expect("the table");
    let rows = table.lines().take_while(|line| line.starts_with('|')).skip(1);
    let cells: Vec<_> = rows.map(|row| row.split('|').nth(1).expect("a cell")).collect();
    let is_built = |name: &&str| cfg!(feature = "mpi") || !name.starts_with("MPI_");
    let named: BTreeSet<_> =
        cells.iter().flat_map(|cell| cell.split('`').skip(1).step_by(2)).filter(is_built).map(str::to_owned).collect();
    let is_own = |name: &&String| name.starts_with("vgasnet_") || name.starts_with("gasnet_");
    let in_words: BTreeSet<_> = before_mpis_with_buffers().collect();
    let is_to_be_named = |name: &&String| !is_own(name) && !in_words.contains(name.as_str());
    assert_eq!(named, exported().iter().filter(is_to_be_named).cloned().collect());
}

#[test]
fn what_is_declared_is_exported_and_nothing_else() {
    let header = header();
    let mut declared = declared(&header);
    assert!(declared.contains("vgasnet_init") && declared.contains("vgasnet_barrier_try"), "{declared:?}");
    declared.extend(variables(&header));
    assert!(declared.contains("vgasnet_client_attach_hook"), "{declared:?}");
    let of_ex = self::declared(&header_ex());
    assert!(
        of_ex.contains("vgasnet_ex_Client_Init") && of_ex.iter().all(|name| name.starts_with("vgasnet_ex_")),
        "{of_ex:?}"
    );
    declared.extend(of_ex);
    let exported = exported();
    let of_c_library = vgasnet::INTERPOSED.iter().map(|name| name.to_str().expect("a name in ASCII"));
    let interposed: BTreeSet<_> = of_c_library.chain(before_mpis()).map(str::to_owned).collect();
    assert!(exported.is_superset(&interposed), "{exported:?}");
    assert_eq!(declared, exported.difference(&interposed).cloned().collect());
}

/// The symbols exported by the static library, except Rust's own.
#[cfg(not(feature = "gasnet"))]
fn exported_statically() -> BTreeSet<String> {
    // Not by nm: with a plugin, it takes object files for another compiler's.
    let output = Command::new("readelf").args(["-s", "--wide"]).arg(compile::library("libvgasnet.a")).output();
    let output = output.expect("readelf starts");
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_mangled = |name: &str| name.starts_with("_R") || name.starts_with("_ZN") && name.contains("17h");
    let symbol = |line: &str| {
        let [_, _, _, _, binding, visibility, section, name] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            return None;
        };
        let is_exported = ["GLOBAL", "WEAK"].contains(&binding) && visibility == "DEFAULT" && section != "UND";
        (is_exported && !is_mangled(name)).then(|| name.to_owned())
    };
    lines.lines().filter_map(symbol).collect()
}

/// A program may have its own allocator or C++ library. With GASNet, the archive contains these.
#[test]
#[cfg(not(feature = "gasnet"))]
fn the_static_library_exports_only_names_of_its_own_besides() {
    let (shared, fixed) = (exported(), exported_statically());
    assert!(fixed.is_superset(&shared), "{:?} are missing", shared.difference(&fixed));
    let is_own = |name: &&String| name.starts_with("vgasnet_") || *name == "rust_eh_personality";
    let foreign: Vec<_> = fixed.difference(&shared).filter(|name| !is_own(name)).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
}

#[test]
fn the_configuration_is_in_the_library() {
    let header = header();
    let line = header.lines().find_map(|line| line.strip_prefix("#define VGASNET_CONFIG_STRING ")).expect("a line");
    let marked = format!("$GASNetConfig: (libvgasnet) {} $", line.trim_matches('"'));
    for library in ["libvgasnet.so", "libvgasnet.a"] {
        let bytes = std::fs::read(compile::library(library)).expect("a library");
        let is_there = bytes.windows(marked.len()).any(|window| window == marked.as_bytes());
        assert!(is_there, "{library} does not contain {marked}");
    }
}

/// The names of GASNet that its clients' headers define as other names: "#define gasnet_init vgasnet_init".
pub fn renamed() -> BTreeSet<String> {
    let dir = compile::source_dir().join("include/gasnet-compat");
    let text = |name: &str| std::fs::read_to_string(dir.join(name)).expect("a header");
    let text: String = [
        "gasnet.h",
        "gasnet_types.h",
        "gasnet_names.h",
        "gasnet_message_names.h",
        "gasnet_vis_names.h",
        "gasnet_coll.h",
        "gasnet_collectives.h",
    ]
    .map(text)
    .concat();
    let defines = text.lines().filter_map(|line| line.strip_prefix("#define gasnet_")?.split_once(' '));
    defines
        .map(|(name, meaning)| {
            assert_eq!(format!("vgasnet_{name}"), meaning, "gasnet_{name}");
            meaning.to_owned()
        })
        .collect()
}

/// What GASNet has not, and names for macros of the header alone.
const OF_VGASNET: [&str; 45] = [
    "ErrorLine",
    "advise",
    "atomic_u32",
    "atomic_u32_nb",
    "atomic_u32_nbi",
    "atomic_u64",
    "atomic_u64_nb",
    "atomic_u64_nbi",
    "get_weighted",
    "coll_team_of",
    "file_advise",
    "file_close",
    "file_error",
    "file_error_count",
    "file_extend",
    "file_flush",
    "file_lock",
    "file_open",
    "file_preallocate",
    "file_read_at",
    "file_read_at_nb",
    "file_readv_at",
    "file_set_atomic",
    "file_set_pointer",
    "file_set_size",
    "file_size",
    "file_sync",
    "file_take",
    "file_unlock",
    "file_write_at",
    "file_write_at_nb",
    "file_writev_at",
    "readonly_begin",
    "readonly_end",
    "readonly_stats",
    "attach_gasnet",
    "config_string",
    "debug_read",
    "debug_stop",
    "end_handlers",
    "handler_runs",
    "pin",
    "stats",
    "unpin",
    "wait_handler",
];

#[test]
fn gasnets_clients_have_every_function() {
    let header = header();
    let renamed = renamed();
    let of_vgasnet = OF_VGASNET.map(|name| format!("vgasnet_{name}"));
    let missing: Vec<_> = declared(&header)
        .into_iter()
        .filter(|name| !renamed.contains(name) && !of_vgasnet.contains(name))
        .filter(|name| !(name.starts_with("vgasnet_AM") && name.ends_with("Args")))
        // GASNet's names of these have declarations of their own.
        .filter(|name| !["vgasnet_ErrorName", "vgasnet_ErrorDesc"].contains(&name.as_str()))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    let is_message = |name: &str| name.starts_with("vgasnet_AMRe") && name.ends_with(|end: char| end.is_ascii_digit());
    let declared = declared(&header);
    let variables = variables(&header);
    let unknown: Vec<_> = renamed
        .iter()
        .filter(|name| !declared.contains(*name) && !variables.contains(*name) && !is_message(name))
        // Defined by the client.
        .filter(|name| *name != "vgasnet_max_segsize")
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    let requests = renamed.iter().filter(|name| name.starts_with("vgasnet_AMRe"));
    assert_eq!(requests.count(), 119);
}

#[test]
fn the_header_includes_every_chapter() {
    let overview = overview();
    let included = overview.lines().filter_map(|line| line.strip_prefix("#include <")?.split_once('>'));
    let included: Vec<_> = included.map(|(name, _)| name.to_owned()).collect();
    assert_eq!(included.iter().cloned().collect::<BTreeSet<_>>(), chapters());
    assert_eq!(included.len(), chapters().len(), "{included:?}");
}

/// Writes a source with two includes of `name`, and compiles it in each language.
fn stands_alone(name: &str, more: &str) {
    let source = format!("including-{}.c", name.replace(['/', '.'], "-"));
    let including = Path::new(env!("CARGO_TARGET_TMPDIR")).join(source);
    std::fs::write(&including, format!("#include <{name}>\n#include <{name}>\n{more}")).expect("a file of ours");
    for language in [Language::C99, Language::Cxx11] {
        compile::check_source(&including, language);
    }
}

#[test]
fn every_chapter_stands_alone() {
    let chapters = chapters();
    assert!(chapters.len() > 1);
    for name in &chapters {
        // C forbids a source without any declaration.
        stands_alone(name, "extern int declared;\n");
    }
}

#[test]
fn the_header_stands_alone() {
    // In the preprocessor and in initialisers, which accept only constants.
    let text = "#if SIZEOF_VGASNET_REGISTER_VALUE_T != 8 || VGASNET_PAGESIZE % 4096 || VGASNET_MAXNODES < 1 || VGASNET_OK\n\
        #error constants\n#endif\n\
        vgasnet_handle_t handle = VGASNET_INVALID_HANDLE;\nextern char wide[sizeof(vgasnet_register_value_t)];\n\
        extern char wide[SIZEOF_VGASNET_REGISTER_VALUE_T];\nvgasnet_handlerentry_t table[] = {{1, 0}};\n";
    stands_alone("vgasnet.h", text);
}

/// Whether a compiler knows a standard. Older compilers do not know the latest one.
fn knows(compiler: &str, standard: &str) -> bool {
    const OLD: [&str; 4] = ["gnu89", "c99", "c++98", "c++11"];
    let language = if compiler == "cc" { "c" } else { "c++" };
    let mut command = Command::new(compiler);
    command.arg(format!("-std={standard}")).args(["-fsyntax-only", "-x", language, "/dev/null"]);
    OLD.contains(&standard) || command.output().expect("a compiler").status.success()
}

/// From the oldest standards with inline functions (in C: GNU's) to the latest.
#[test]
fn every_standard_takes_the_headers() {
    let include = compile::source_dir().join("include");
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (compiler, suffix, standards) in [
        ("cc", "c", &["gnu89", "c99", "gnu99", "c11", "c17", "c2x"][..]),
        ("c++", "cpp", &["c++98", "c++11", "c++14", "c++17", "c++20", "c++2b"]),
    ] {
        for (header, places) in [
            ("vgasnet.h", &["."][..]),
            ("gasnet.h", &["gasnet-compat", "."]),
            ("gasnetex.h", &["gasnet-ex", "gasnet-compat", "."]),
        ] {
            let source = dir.join(format!("of-{header}.{suffix}"));
            std::fs::write(&source, format!("#include <{header}>\nextern int declared;\n")).expect("a file of ours");
            for standard in standards.iter().filter(|standard| knows(compiler, standard)) {
                let mut command = Command::new(compiler);
                command.args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-DGASNET_PAR"]);
                // Older standards warn of variadic macros, which compilers have long had, and of initialisers that are
                // not constant.
                let is_older = *standard == "gnu89" || (*standard == "c++98" && header == "gasnetex.h");
                command.arg(format!("-std={standard}")).args((!is_older).then_some("-pedantic"));
                command.args(places.iter().map(|place| format!("-I{}", include.join(place).display())));
                succeed(command.arg(&source));
            }
        }
    }
}

/// A compiler's warnings about docstrings: unknown parameters, results of void functions, unknown tags.
fn of_docstrings(places: &[&str], source: &Path) -> std::process::Output {
    let include = compile::source_dir().join("include");
    let mut command = Command::new("clang");
    command.args([
        "-fsyntax-only",
        "-Wdocumentation",
        "-Wdocumentation-pedantic",
        "-Werror",
        "-std=gnu11",
        "-DGASNET_PAR",
    ]);
    command.args(places.iter().map(|place| format!("-I{}", include.join(place).display()))).arg(source);
    command.output().expect("clang starts")
}

#[test]
fn docstrings_fit_their_functions() {
    if Command::new("clang").arg("--version").output().is_err() {
        return say_not_run("clang's check of docstrings", "clang is not installed; scripts/test installs it");
    }
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("docstrings.c");
    let ex = [
        "gasnetex.h",
        "gasnet.h",
        "gasnet_coll.h",
        "gasnet_vis.h",
        "gasnet_ratomic.h",
        "gasnet_mk.h",
        "gasnet_tools.h",
    ];
    for (headers, places) in [
        (&["vgasnet.h"][..], &["."][..]),
        (&["gasnet.h", "gasnet_handler.h", "gasnet_tools.h"], &["gasnet-compat", "."]),
        (&ex, &["gasnet-ex", "gasnet-compat", "."]),
    ] {
        let includes: String = headers.iter().map(|header| format!("#include <{header}>\n")).collect();
        std::fs::write(&source, includes + "extern int declared;\n").expect("a file of ours");
        let output = of_docstrings(places, &source);
        assert!(output.status.success(), "{headers:?}:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    std::fs::write(&source, "/** Does it. @param b the first */\nvoid f(int a);\n").expect("a file of ours");
    assert!(!of_docstrings(&[], &source).status.success(), "clang finds nothing");
}

/// Programs define macros of their own.
#[test]
fn macros_of_the_header_have_its_prefix() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let defined = |name: &str, text: &str| {
        let source = dir.join(name);
        std::fs::write(&source, text).expect("a file of ours");
        let mut command = Command::new("cc");
        let lines = succeed(command.args(["-dM", "-E", "-I"]).arg(compile::source_dir().join("include")).arg(&source));
        let names = lines.lines().filter_map(|line| line.split_whitespace().nth(1)?.split('(').next());
        names.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let of_c = defined("macros-of-c.c", "#include <stddef.h>\n#include <stdint.h>\n");
    let all = defined("macros.c", "#include <vgasnet.h>\n");
    let of_ours = |name: &&String| name.trim_start_matches("SIZEOF_").to_lowercase().starts_with("vgasnet_");
    let (ours, others): (Vec<_>, Vec<_>) = all.difference(&of_c).partition(of_ours);
    assert!(ours.len() > 100 && others.is_empty(), "{others:?}");
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
        ("VGASNET_ERR_IO", vgasnet::capi::ERR_IO),
    ];
    for (name, code) in codes {
        assert_eq!(defined(&header, name), code as u64, "{name}");
    }
    assert_eq!(defined(&header, "VGASNET_MAXNODES"), u64::from(vgasnet_conduit::RANKS_MAX));
    assert_eq!(vgasnet_settings::PAGE_BYTES_MIN % defined(&header, "VGASNET_PAGESIZE"), 0);
    let version =
        ["MAJOR", "MINOR", "PATCH"].map(|part| defined(&header, &format!("VGASNET_VERSION_{part}")).to_string());
    assert_eq!(version.join("."), env!("CARGO_PKG_VERSION"));
}

/// The versions of the Debian and Python packages are written in other files.
#[test]
fn packages_have_the_version_of_the_library() {
    let version = env!("CARGO_PKG_VERSION");
    for (file, begin, end) in [
        ("debian/changelog", "vgasnet (", ")"),
        ("bindings/python/pyproject.toml", "\nversion = \"", "\""),
        ("bindings/python/vgasnet/__init__.py", "\n__version__ = \"", "\""),
        ("include/vgasnet/version.h", "VGASNET_CONFIG_STRING \"VGASNET=", ","),
        ("bindings/python/vgasnet/_prototypes.py", "VGASNET_CONFIG_STRING = \"VGASNET=", ","),
    ] {
        let text = std::fs::read_to_string(compile::source_dir().join(file)).expect("a file of the sources");
        let (_, rest) = text.split_once(begin).unwrap_or_else(|| panic!("{file} has no version"));
        assert_eq!(rest.split_once(end).map(|(written, _)| written), Some(version), "{file}");
    }
}
