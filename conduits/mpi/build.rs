//! Compiles the C shim with the flags of the site's MPI, and links against it.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=MPICC");
    if std::env::var_os("CARGO_FEATURE_LINK").is_none() {
        return;
    }
    let sources = ["shim.c", "stand_in.c", "runs.c", "bottom.c", "blocking.c"].map(|name| format!("src/{name}"));
    for file in sources.iter().map(String::as_str).chain(["src/stand_in.h", "src/blocking.h"]) {
        println!("cargo::rerun-if-changed={file}");
    }
    let mpicc = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".to_owned());
    let mut build = cc::Build::new();
    build.files(&sources).std("c11").define("_GNU_SOURCE", None).warnings(true).extra_warnings(true);
    let flags = flags_of(&mpicc);
    for flag in &flags {
        if let Some(dir) = flag.strip_prefix("-L") {
            println!("cargo::rustc-link-search=native={dir}");
        } else if let Some(library) = flag.strip_prefix("-l") {
            println!("cargo::rustc-link-lib={library}");
        } else if flag.starts_with("-I") || flag.starts_with("-D") {
            build.flag(flag);
        }
    }
    build.compile("vgasnet_mpi_shim");
    tell_version(&flags);
    let linked = |flag: &&String| flag.starts_with("-L") || flag.starts_with("-l");
    let link_flags: Vec<&str> = flags.iter().filter(linked).map(String::as_str).collect();
    println!("cargo::rustc-env=VGASNET_MPI_LINK_FLAGS={}", link_flags.join(" "));
    println!("cargo::rustc-env=VGASNET_MPICC={mpicc}");
    println!("cargo::rustc-env=VGASNET_MPIEXEC={}", launcher_of(&mpicc));
}

/// Enables the functions declared by this MPI: functions of later versions are not in its library.
fn tell_version(flags: &[String]) {
    println!("cargo::rustc-check-cfg=cfg(mpi_3_1)");
    println!("cargo::rustc-check-cfg=cfg(mpi_4_0)");
    let source = Path::new(&std::env::var_os("OUT_DIR").expect("cargo sets it")).join("version.c");
    std::fs::write(&source, "#include <mpi.h>\nversion MPI_VERSION MPI_SUBVERSION\n").expect("a directory of ours");
    let mut version = cc::Build::new();
    version.file(source).flags(flags.iter().filter(|flag| flag.starts_with("-I")));
    let text = String::from_utf8_lossy(&version.expand()).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("version ")).expect("the line is there");
    let numbers: Vec<u32> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    if numbers >= vec![3, 1] {
        println!("cargo::rustc-cfg=mpi_3_1");
    }
    if numbers >= vec![4, 0] {
        println!("cargo::rustc-cfg=mpi_4_0");
    }
}

/// The launcher of a compiler wrapper: in the same directory, with the same suffix.
fn launcher_of(mpicc: &str) -> String {
    match mpicc.rsplit_once("mpicc") {
        Some((before, after)) => format!("{before}mpiexec{after}"),
        None => "mpiexec".to_owned(),
    }
}

/// The flags passed on by an MPI's compiler wrapper. MPICH, Open MPI and their derivatives accept `-show`.
fn flags_of(mpicc: &str) -> Vec<String> {
    let advice = "install MPI (Debian: libmpich-dev or libopenmpi-dev), or set MPICC to the C compiler wrapper of the site's MPI";
    let output = Command::new(mpicc).arg("-show").output();
    let text = match output {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        Ok(output) => fail(&format!("`{mpicc} -show` failed with {}; {advice}", output.status)),
        Err(error) => fail(&format!("cannot run `{mpicc} -show`: {error}; {advice}")),
    };
    text.split_whitespace().skip(1).map(str::to_owned).collect()
}

fn fail(line: &str) -> ! {
    println!("cargo::error=the mpi conduit: {line}");
    std::process::exit(1)
}
