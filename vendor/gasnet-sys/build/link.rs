//! Tells cargo the libraries to link.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::site::Site;

/// Links GASNet and the libraries that its linker adds. Returns the flags as a C compiler takes them.
pub fn link(site: &Site) -> Result<Vec<String>, String> {
    let mut libraries = site.libraries.clone();
    if site.needs_mpi {
        libraries.extend(shown_by(site)?.into_iter().filter(|word| is_for_linking(word)));
    }
    if site.needs_cxx {
        libraries.push("-lstdc++".to_owned());
    }
    pass_on(&libraries);
    if !fits_shared_library(site) {
        println!(
            "cargo::warning=the GASNet of {} was not compiled for shared libraries: programs and libvgasnet.a can be made \
             with it, libvgasnet.so cannot (`cargo rustc --lib --crate-type staticlib` leaves that out); for all of them, \
             configure GASNet with CC=\"gcc -fPIC\" CXX=\"g++ -fPIC\"",
            site.name
        );
    }
    Ok(libraries)
}

fn is_for_linking(word: &str) -> bool {
    ["-l", "-L", "-pthread"].iter().any(|option| word.starts_with(option)) || as_path(word).is_some()
}

/// Tries to make a shared library of GASNet. Where the attempt itself goes wrong, the linker has the last word.
fn fits_shared_library(site: &Site) -> bool {
    let directories = site.libraries.iter().filter_map(|word| word.strip_prefix("-L")).map(Path::new);
    let names = site.libraries.iter().filter_map(|word| word.strip_prefix("-lgasnet"));
    let Some(archive) = directories
        .flat_map(|directory| names.clone().map(move |name| directory.join(format!("libgasnet{name}.a"))))
        .find(|archive| archive.is_file())
    else {
        return true;
    };
    let (Some(compiler), Some(out)) = (site.compiler.first(), std::env::var_os("OUT_DIR")) else { return true };
    let probe = Path::new(&out).join("probe.so");
    let tried = Command::new(compiler)
        .arg("-shared")
        .arg("-o")
        .arg(probe)
        .args(["-nostdlib", "-Wl,--unresolved-symbols=ignore-all", "-Wl,--whole-archive"])
        .arg(archive)
        .output();
    tried.map_or(true, |tried| tried.status.success())
}

/// Libraries that are there as archives only are linked into ours; others are found when a program is linked.
fn pass_on(words: &[String]) {
    let directories: Vec<PathBuf> =
        words.iter().filter_map(|word| word.strip_prefix("-L")).map(PathBuf::from).collect();
    for directory in &directories {
        println!("cargo::rustc-link-search=native={}", directory.display());
    }
    let is_archive = |name: &str| {
        let has = |file: String| directories.iter().any(|directory| directory.join(&file).is_file());
        name.contains("gasnet") || (has(format!("lib{name}.a")) && !has(format!("lib{name}.so")))
    };
    for word in words {
        if let Some(name) = word.strip_prefix("-l") {
            let kind = if is_archive(name) && name != "gcc" { "static=" } else { "" };
            println!("cargo::rustc-link-lib={kind}{name}");
        } else if let Some((directory, name)) = as_path(word) {
            println!("cargo::rustc-link-search=native={directory}");
            println!("cargo::rustc-link-lib={name}");
        } else if word == "-pthread" {
            println!("cargo::rustc-link-lib=pthread");
        }
    }
}

/// A library that is given by its path.
fn as_path(word: &str) -> Option<(String, String)> {
    let path = Path::new(word);
    let is_library = path.is_absolute() && matches!(path.extension()?.to_str()?, "a" | "so");
    let name = path.file_stem()?.to_str()?.strip_prefix("lib")?;
    is_library.then(|| (path.parent().unwrap_or(path).display().to_string(), name.to_owned()))
}

/// What an MPI's wrapper adds. MPICH, Open MPI and their kin understand `-show`.
fn shown_by(site: &Site) -> Result<Vec<String>, String> {
    let linker = site.linker.first().ok_or_else(|| format!("{} does not name its linker", site.name))?;
    let output = Command::new(linker).arg("-show").output();
    let advice = "install the MPI that this GASNet was built with";
    match output {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).split_whitespace().skip(1).map(str::to_owned).collect())
        }
        Ok(output) => Err(format!("`{linker} -show` failed with {}; {advice}", output.status)),
        Err(error) => Err(format!("{} needs MPI, and `{linker} -show` does not run: {error}; {advice}", site.name)),
    }
}
