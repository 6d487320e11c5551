//! Compiles the C shim with the flags of the site's MPI, and links against that.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=MPICC");
    if std::env::var_os("CARGO_FEATURE_LINK").is_none() {
        return;
    }
    println!("cargo::rerun-if-changed=src/shim.c");
    let mpicc = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".to_owned());
    let mut build = cc::Build::new();
    build.file("src/shim.c").std("c11").warnings(true).extra_warnings(true);
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
    let linked = |flag: &&String| flag.starts_with("-L") || flag.starts_with("-l");
    let link_flags: Vec<&str> = flags.iter().filter(linked).map(String::as_str).collect();
    println!("cargo::rustc-env=VGASNET_MPI_LINK_FLAGS={}", link_flags.join(" "));
    println!("cargo::rustc-env=VGASNET_MPICC={mpicc}");
    println!("cargo::rustc-env=VGASNET_MPIEXEC={}", launcher_of(&mpicc));
}

/// The launcher that belongs to a compiler wrapper: it lies beside it, and has the same ending.
fn launcher_of(mpicc: &str) -> String {
    match mpicc.rsplit_once("mpicc") {
        Some((before, after)) => format!("{before}mpiexec{after}"),
        None => "mpiexec".to_owned(),
    }
}

/// The flags that an MPI's compiler wrapper passes on. MPICH, Open MPI and their kin understand `-show`.
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
