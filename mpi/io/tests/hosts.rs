//! A program with ranks on two hosts with one file system, in network namespaces: it reads and writes the same as on
//! one host.

use std::path::Path;
use vgasnet_hosts::{ADDRESSES, Hosts, OVER_THE_CABLE, is_hydra};
use vgasnet_preloaded::{Language, Suite};

static SUITE: Suite = Suite {
    mpicc: env!("VGASNET_MPICC"),
    programs: concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs"),
    scratch: env!("CARGO_TARGET_TMPDIR"),
    library: ("libvgasnet_mpi_io.so", "libvgasnet-mpi-io.so"),
    beside: &["libvgasnet.so.0"],
    tool: None,
    variables: &["VGASNET_MPI_FILES", "VGASNET_PAGE_SIZE", "VGASNET_POOL_SIZE", "VGASNET_CONDUIT", "EXPECT_CACHED"],
};

/// The command line of MPI's launcher on the first host.
fn launcher(hosts: &Hosts) -> Vec<String> {
    let mpiexec = SUITE.mpi("mpiexec");
    let [a, b] = ADDRESSES;
    let is_hydra = is_hydra(&mpiexec);
    let places = if is_hydra {
        format!("-hosts {a},{b}")
    } else {
        // Otherwise ranks that see one kernel and ranks that see several would choose different shared pointers for a
        // file, and wait for one another.
        format!("--map-by node --host {a}:4,{b}:4 --mca sharedfp lockedfile")
    };
    let cable = OVER_THE_CABLE.map(|(name, value)| format!("{name}={value}")).join(" ");
    let line = format!("{} env {cable} {} {places}", hosts.enter(), hosts.launcher(&mpiexec, is_hydra));
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn two_hosts_read_and_write_what_one_does() {
    const RANKS: u32 = 3;
    let program = SUITE.compile("mix", Language::C);
    let [across, here] = ["across", "here"].map(|name| program.scratch(name));
    let hosts = match Hosts::new(&format!("io-{}", std::process::id()), here.parent().expect("a path of ours")) {
        Ok(hosts) => hosts,
        Err(why) => return SUITE.say_not_run("mix on two hosts", &why),
    };
    let launcher = launcher(&hosts);
    let launcher: Vec<&str> = launcher.iter().map(String::as_str).collect();
    let variables = [("VGASNET_MPI_FILES", "*"), ("EXPECT_CACHED", "1")];
    let text = |path: &Path| path.to_str().expect("a path of ours").to_owned();
    let apart = program.run_by(&launcher, RANKS, &[&text(&across), "2", "6"], &variables);
    let together = program.run(RANKS, &[&text(&here), "2", "6"], &variables);
    let lines = |stdout: &str| {
        let mut lines: Vec<_> = stdout.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(&apart.expect_done().stdout), lines(&together.expect_done().stdout), "{apart}");
    let bytes = |path: &Path| std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(bytes(&across) == bytes(&here), "{} and {} differ", across.display(), here.display());
    [across, here].iter().for_each(|path| drop(std::fs::remove_file(path)));
}
