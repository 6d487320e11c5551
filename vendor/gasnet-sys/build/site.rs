//! The GASNet that the environment points to, and its flags.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const ADVICE: &str = "set GASNET_PC to a package such as gasnet-ibv-par (with PKG_CONFIG_PATH where needed) or to a .pc \
                      file, or GASNET_ROOT to GASNet's prefix and GASNET_CONDUIT to a conduit such as ibv";

/// GASNet's description of itself, the same in its packages and its fragments for make.
const VARIABLES: [&str; 7] = [
    "GASNET_CC",
    "GASNET_CFLAGS",
    "GASNET_CPPFLAGS",
    "GASNET_LD",
    "GASNET_LIBS",
    "GASNET_LD_REQUIRES_CXX",
    "GASNET_LD_REQUIRES_MPI",
];

/// An installed GASNet: one conduit, ready for several threads.
pub struct Site {
    /// The name by which it was found.
    pub name: String,
    /// The C compiler and its constant options.
    pub compiler: Vec<String>,
    /// The compiler options of clients.
    pub flags: Vec<String>,
    /// The directories among the flags.
    pub includes: Vec<PathBuf>,
    /// The linker and its constant options.
    pub linker: Vec<String>,
    /// The link flags of clients.
    pub libraries: Vec<String>,
    /// The linker adds the C++ library.
    pub needs_cxx: bool,
    /// The linker adds MPI.
    pub needs_mpi: bool,
}

impl Site {
    /// The directory of its launchers: beside that of its headers.
    pub fn programs(&self) -> PathBuf {
        let headers = self.includes.iter().find(|dir| dir.join("gasnet.h").is_file());
        headers.and_then(|dir| dir.parent()).map(|prefix| prefix.join("bin")).unwrap_or_default()
    }

    /// The launcher of the MPI that it uses, if any: it lies beside the compiler wrapper, and has the same ending.
    pub fn mpi_launcher(&self) -> String {
        let linker = self.linker.first().map_or("", String::as_str);
        let parts = ["mpicc", "mpicxx", "mpic++", "mpiCC"].iter().find_map(|wrapper| linker.rsplit_once(wrapper));
        parts.map_or_else(|| "mpiexec".to_owned(), |(before, after)| format!("{before}mpiexec{after}"))
    }

    /// Finds it.
    pub fn find() -> Result<Site, String> {
        let (name, [compiler, c, cpp, linker, libraries, cxx, mpi]) =
            match (variable("GASNET_PC"), variable("GASNET_ROOT")) {
                (Some(package), _) => (package.clone(), of_package(&package)?),
                (None, Some(root)) => of_prefix(Path::new(&root))?,
                (None, None) => return Err(format!("which GASNet? {ADVICE}")),
            };
        let flags: Vec<String> = words(&cpp).chain(words(&c)).collect();
        check_threads(&name, &flags)?;
        let linker: Vec<String> = words(&linker).collect();
        let command =
            linker.first().and_then(|path| Path::new(path).file_name()).map(|name| name.to_string_lossy().into_owned());
        let command = command.unwrap_or_default();
        Ok(Site {
            compiler: words(&compiler).collect(),
            includes: flags.iter().filter_map(|flag| flag.strip_prefix("-I")).map(PathBuf::from).collect(),
            flags,
            libraries: words(&libraries).collect(),
            // Older ones do not name the libraries that their linker adds.
            needs_cxx: cxx.trim() == "1" || command.contains("++"),
            needs_mpi: mpi.trim() == "1" || command.starts_with("mpi"),
            linker,
            name,
        })
    }
}

type Values = [String; VARIABLES.len()];

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split_whitespace().map(str::to_owned)
}

fn of_package(package: &str) -> Result<Values, String> {
    let command = variable("PKG_CONFIG").unwrap_or_else(|| "pkg-config".to_owned());
    let ask = |arguments: &[&str]| {
        Command::new(&command).args(arguments).arg(package).output().map_err(|error| {
            format!("cannot run `{command}`: {error}; install pkg-config, or set GASNET_ROOT and GASNET_CONDUIT")
        })
    };
    let found = ask(&["--exists", "--print-errors"])?;
    if !found.status.success() {
        let why = String::from_utf8_lossy(&found.stderr);
        return Err(format!(
            "pkg-config does not find GASNET_PC={package} ({}); {ADVICE}",
            why.lines().next().unwrap_or("")
        ));
    }
    let mut values = Values::default();
    for (value, name) in values.iter_mut().zip(VARIABLES) {
        *value = String::from_utf8_lossy(&ask(&[&format!("--variable={name}")])?.stdout).trim().to_owned();
    }
    if values[0].is_empty() || values[4].is_empty() {
        return Err(format!(
            "GASNET_PC={package} is not a package of GASNet: it does not set GASNET_CC and GASNET_LIBS; {ADVICE}"
        ));
    }
    Ok(values)
}

fn of_prefix(root: &Path) -> Result<(String, Values), String> {
    let here = root.display();
    let conduits = conduits_in(root);
    let there_are =
        if conduits.is_empty() { "it has none".to_owned() } else { format!("it has {}", conduits.join(", ")) };
    let Some(conduit) = variable("GASNET_CONDUIT") else {
        return Err(format!(
            "GASNET_ROOT={here} is set, and GASNET_CONDUIT, one of its conduits with threads, is not; {there_are}"
        ));
    };
    if !conduits.contains(&conduit) {
        return Err(format!("GASNET_ROOT={here} has no conduit {conduit} with threads (par); {there_are}; {ADVICE}"));
    }
    for lib in ["lib", "lib64"] {
        let package = root.join(lib).join("pkgconfig").join(format!("gasnet-{conduit}-par.pc"));
        if package.is_file() && Command::new("pkg-config").arg("--version").output().is_ok() {
            let package = package.to_string_lossy().into_owned();
            return Ok((package.clone(), of_package(&package)?));
        }
    }
    let fragment = fragment(root, &conduit);
    Ok((fragment.display().to_string(), of_fragment(&fragment)?))
}

fn fragment(root: &Path, conduit: &str) -> PathBuf {
    root.join("include").join(format!("{conduit}-conduit")).join(format!("{conduit}-par.mak"))
}

/// The conduits below a prefix that several threads may use.
fn conduits_in(root: &Path) -> Vec<String> {
    let entries = root.join("include").read_dir().into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().to_str()?.strip_suffix("-conduit").map(str::to_owned));
    let mut names: Vec<String> = names.filter(|name| fragment(root, name).is_file()).collect();
    names.sort();
    names
}

/// Has make read the fragment that GASNet installs for it.
fn of_fragment(fragment: &Path) -> Result<Values, String> {
    let failed = |what: String| format!("make cannot read {}: {what}; install make and pkg-config", fragment.display());
    let mut make = Command::new("make")
        .args(["--silent", "--file=-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // The job server of cargo is not for this make.
        .env_remove("MAKEFLAGS")
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let lines: String = VARIABLES.map(|name| format!("$(info {name}=$({name}))\n")).concat();
    let text = format!("include {}\n{lines}all:;@:\n", fragment.display());
    let written = make.stdin.take().map(|mut input| input.write_all(text.as_bytes()));
    let output = make.wait_with_output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() || !matches!(written, Some(Ok(()))) {
        return Err(failed(
            String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("no reason given").to_owned(),
        ));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let value_of = |name: &str| said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    Ok(VARIABLES.map(|name| value_of(name).unwrap_or_default().trim().to_owned()))
}

fn check_threads(name: &str, flags: &[String]) -> Result<(), String> {
    if flags.iter().any(|flag| flag == "-DGASNET_PAR") {
        return Ok(());
    }
    let flavour = flags.iter().find_map(|flag| flag.strip_prefix("-DGASNET_")).unwrap_or("unknown").to_lowercase();
    Err(format!(
        "{name} is the {flavour} flavour of GASNet; vgasnet calls it from several threads: use the par flavour"
    ))
}
