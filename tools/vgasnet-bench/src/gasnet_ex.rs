//! One program over GASNet-EX, run with this library and with another installation.

use crate::options::{GasnetExOptions, Network};
use crate::programs::{Folder, compile, include_dir, own_dir, said, with_vgasnet};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Measurements of each operation by the program.
const TIMES: u32 = 21;

/// Nanoseconds of each operation, by name.
pub type Times = BTreeMap<String, Vec<f64>>;

pub struct Programs<'a> {
    options: &'a GasnetExOptions,
    ours: PathBuf,
    vgasnetrun: PathBuf,
    other: Result<PathBuf, String>,
    _folder: Folder,
}

impl<'a> Programs<'a> {
    pub fn new(options: &'a GasnetExOptions) -> Result<Programs<'a>, String> {
        let (dir, folder) = (own_dir()?, Folder::new()?);
        let source = folder.path().join("operations.c");
        std::fs::write(&source, include_str!("gasnet_ex/operations.c"))
            .map_err(|error| format!("{}: {error}", source.display()))?;
        let ours = compile("cc", &source, &of_vgasnet(&dir), &folder, "vgasnet")?;
        let other = match &options.other {
            Some(prefix) => Ok(of_other(prefix, options.network, &source, &folder)?),
            None => Err("give --other the prefix of an installed GASNet-EX".to_owned()),
        };
        Ok(Programs { options, ours, vgasnetrun: dir.join("vgasnetrun"), other, _folder: folder })
    }

    /// The reason for having no other installation.
    pub fn other_not_run(&self) -> Option<&str> {
        self.other.as_ref().err().map(String::as_str)
    }

    pub fn run_ours(&self, ranks: u32) -> Result<Times, String> {
        let mut command = Command::new(&self.vgasnetrun);
        command.args(["-n", &ranks.to_string()]).arg(&self.ours);
        command.env("VGASNET_POOL_SIZE", self.options.pool.to_string());
        if let Some(dir) = &self.options.storage_dir {
            let dir = dir.canonicalize().map_err(|error| format!("--storage-dir {}: {error}", dir.display()))?;
            command.env("VGASNET_STORAGE_DIR", dir);
        }
        self.times(command)
    }

    pub fn run_other(&self, ranks: u32) -> Result<Times, String> {
        let program = self.other.as_ref().map_err(Clone::clone)?;
        let mut command = match (self.options.network, &self.options.other) {
            (Network::Udp, Some(prefix)) => {
                let mut command = Command::new(prefix.join("bin/amudprun"));
                command.args(["-np", &ranks.to_string()]).arg(program).env("GASNET_SPAWNFN", "L");
                command
            }
            _ => {
                let mut command = Command::new(program);
                command.env("GASNET_PSHM_NODES", ranks.to_string());
                command
            }
        };
        command.env("GASNET_QUIET", "1");
        self.times(command)
    }

    fn times(&self, mut command: Command) -> Result<Times, String> {
        parse(&said(command.args([TIMES.to_string(), self.options.spread.to_string()]))?)
    }
}

/// Compiler arguments for GASNet-EX by this library.
fn of_vgasnet(dir: &Path) -> Vec<String> {
    let include = include_dir(dir);
    // An installation has these headers in one directory.
    let installed = dir.join("../gasnet-ex/include");
    let of_gasnet = if installed.is_dir() {
        vec![installed]
    } else {
        vec![include.join("gasnet-ex"), include.join("gasnet-compat")]
    };
    let of_gasnet = of_gasnet.iter().map(|dir| format!("-I{}", dir.display()));
    of_gasnet.chain(["-DGASNET_PAR".to_owned()]).chain(with_vgasnet(&include, dir)).collect()
}

/// Compiles the program for another installation, with flags from its package.
fn of_other(prefix: &Path, network: Network, source: &Path, folder: &Folder) -> Result<PathBuf, String> {
    let prefix = prefix.canonicalize().map_err(|error| format!("--other {}: {error}", prefix.display()))?;
    let package = format!("gasnet-{}-par", network.name());
    let ask = |options: &[&str]| {
        let mut command = Command::new("pkg-config");
        said(command.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")).args(options).arg(&package))
    };
    // MPI may start its jobs; then the package's linker is MPI's compiler.
    let linker = ask(&["--variable=GASNET_LD"])?;
    let flags = ask(&["--cflags", "--libs"])?;
    let flags: Vec<String> = flags.split_whitespace().map(str::to_owned).collect();
    compile(linker.trim(), source, &flags, folder, "other")
}

/// Parses the lines of the program: a name, and times.
fn parse(text: &str) -> Result<Times, String> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?.to_owned();
        let times: Option<Vec<f64>> = words.map(|word| word.parse().ok()).collect();
        times.filter(|times| times.len() == TIMES as usize).map(|times| (name, times))
    };
    let found: Option<Times> = text.lines().map(line).collect();
    found.filter(|times| !times.is_empty()).ok_or_else(|| format!("the program said {:?}", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::{TIMES, parse};

    #[test]
    fn lines_have_a_name_and_all_times() {
        let times = vec!["1.5"; TIMES as usize].join(" ");
        let found = parse(&format!("get_own {times}\nbarrier {times}\n")).unwrap();
        assert_eq!((found.len(), found["barrier"].len(), found["get_own"][0]), (2, TIMES as usize, 1.5));
        assert!(parse("").is_err() && parse("get_own 1.5").is_err() && parse(&format!("get_own {times} x")).is_err());
    }
}
