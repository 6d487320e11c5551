//! Compiles the C files with the headers of the site's MPI, and tells the build scripts of dependent libraries the
//! necessary flags. Nothing is linked against MPI: the process that loads a library provides it.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=MPICC");
    println!("cargo::rustc-check-cfg=cfg(open_mpi)");
    if std::env::var_os("CARGO_FEATURE_LINK").is_none() {
        return;
    }
    for file in ["src/front.c", "src/front.h"] {
        println!("cargo::rerun-if-changed={file}");
    }
    let mpicc = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".to_owned());
    let flags = flags_of(&mpicc);
    let mut build = cc::Build::new();
    build.file("src/front.c").std("c11").define("_GNU_SOURCE", None).warnings(true).extra_warnings(true);
    build.flags(&flags).compile("vgasnet_mpi_front");
    let names = found_in_headers(&flags);
    if names.iter().any(|name| name == "open_mpi") {
        println!("cargo::rustc-cfg=open_mpi");
    }
    // Build scripts of the libraries read these as DEP_VGASNET_MPI_FRONT_.
    println!("cargo::metadata=flags={}", flags.join(" "));
    println!("cargo::metadata=names={}", names.join(" "));
    println!("cargo::metadata=mpicc={mpicc}");
    println!("cargo::metadata=include={}/src", std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
}

/// The names tested by the code, if they hold for this MPI.
fn found_in_headers(flags: &[String]) -> Vec<String> {
    let source = Path::new(&std::env::var_os("OUT_DIR").expect("cargo sets it")).join("version.c");
    let text = "#include <mpi.h>\nversion MPI_VERSION\n#ifdef OPEN_MPI\nfound open_mpi\n#endif\n";
    std::fs::write(&source, text).expect("a directory of ours");
    let expanded = cc::Build::new().file(source).flags(flags).expand();
    let expanded = String::from_utf8_lossy(&expanded).into_owned();
    let mut names: Vec<_> =
        expanded.lines().filter_map(|line| line.strip_prefix("found ")).map(str::to_owned).collect();
    let version = expanded.lines().find_map(|line| line.strip_prefix("version ")).expect("the line is there");
    if version.trim().parse::<u32>().is_ok_and(|version| version >= 4) {
        names.push("mpi_4".to_owned());
    }
    names
}

/// The preprocessor flags passed on by an MPI's compiler wrapper. MPICH, Open MPI and MPIs based on them understand
/// `-show`.
fn flags_of(mpicc: &str) -> Vec<String> {
    let advice = "install MPI (Debian: libmpich-dev or libopenmpi-dev), or set MPICC to the C compiler wrapper of the site's MPI";
    let text = match Command::new(mpicc).arg("-show").output() {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        Ok(output) => fail(&format!("`{mpicc} -show` failed with {}; {advice}", output.status)),
        Err(error) => fail(&format!("cannot run `{mpicc} -show`: {error}; {advice}")),
    };
    text.split_whitespace().filter(|flag| flag.starts_with("-I") || flag.starts_with("-D")).map(str::to_owned).collect()
}

fn fail(line: &str) -> ! {
    println!("cargo::error=the libraries before MPI: {line}");
    std::process::exit(1)
}
