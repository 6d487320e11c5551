//! A program whose ranks are on two hosts with one file system, as namespaces of the network: it reads and writes what it does on one host.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use vgasnet_preloaded::{Language, Suite};

static SUITE: Suite = Suite {
    mpicc: env!("VGASNET_MPICC"),
    programs: concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs"),
    scratch: env!("CARGO_TARGET_TMPDIR"),
    library: ("libvgasnet_mpi_io.so", "libvgasnet-mpi-io.so"),
    beside: &["libvgasnet.so"],
    tool: None,
    variables: &["VGASNET_MPI_FILES", "VGASNET_PAGE_SIZE", "VGASNET_POOL_SIZE", "VGASNET_CONDUIT", "EXPECT_CACHED"],
};

const ADDRESSES: [&str; 2] = ["10.77.0.1", "10.77.0.2"];

/// Two hosts joined by a cable. They go when this does.
struct Hosts {
    names: [String; 2],
    /// In the place of ssh: options, the host, and the words of a command for its shell.
    reach: PathBuf,
}

/// Runs a command, a word at each blank.
fn run(line: &str) -> Result<String, String> {
    let mut words = line.split_whitespace();
    let output = Command::new(words.next().expect("a command")).args(words).output();
    let output = output.map_err(|error| format!("{line}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', " ");
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{line}: {} {said}", output.status))
    }
}

impl Hosts {
    fn new(dir: &Path) -> Result<Hosts, String> {
        let names = ["a", "b"].map(|end| format!("vgasnet-io-{}{end}", std::process::id()));
        let hosts = Hosts { names, reach: dir.join(format!("reach-{}", std::process::id())) };
        hosts.build().map(|()| hosts)
    }

    fn build(&self) -> Result<(), String> {
        let [a, b] = &self.names;
        for name in &self.names {
            run(&format!("ip netns add {name}"))?;
        }
        run(&format!("ip link add v0 netns {a} mtu 9000 type veth peer name v0 netns {b} mtu 9000"))?;
        for (name, address) in self.names.iter().zip(ADDRESSES) {
            run(&format!("ip -n {name} addr add {address}/24 dev v0"))?;
            run(&format!("ip -n {name} link set lo up"))?;
            run(&format!("ip -n {name} link set v0 up"))?;
        }
        for name in &self.names {
            wait_for_cable(name)?;
            // Containers may let one make namespaces, and not enter them.
            run(&format!("ip netns exec {name} true"))?;
        }
        let text = format!(
            "#!/bin/sh\nwhile [ \"${{1#-}}\" != \"$1\" ]; do shift; done\ncase $1 in {}) host={a};; {}) host={b};; *) exit 255;; \
             esac\nshift\nexec ip netns exec $host /bin/sh -c \"$*\"\n",
            ADDRESSES[0], ADDRESSES[1]
        );
        std::fs::write(&self.reach, text).expect("a file of ours");
        std::fs::set_permissions(&self.reach, Permissions::from_mode(0o755)).expect("a file of ours");
        Ok(())
    }

    /// MPI's launcher on the first host, over this cable and no other way.
    fn launcher(&self) -> Vec<String> {
        let (mpiexec, reach, hosts) = (SUITE.mpi("mpiexec"), self.reach.display(), ADDRESSES.join(","));
        let options = if SUITE.is_of_others_than_openmpi() {
            format!("-iface v0 -launcher ssh -launcher-exec {reach} -hosts {hosts}")
        } else {
            format!(
                "--mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include v0 --mca oob_tcp_if_include v0 --mca plm_rsh_agent {reach} \
                 --map-by node --host {}:4,{}:4",
                ADDRESSES[0], ADDRESSES[1]
            )
        };
        // UCX finds that both hosts are one kernel, and would use shared memory.
        let line =
            format!("ip netns exec {} env UCX_TLS=tcp,self UCX_NET_DEVICES=v0 {mpiexec} {options}", self.names[0]);
        line.split_whitespace().map(str::to_owned).collect()
    }
}

/// The kernel notices a moment later that both ends are up, and UCX does not take a device before.
fn wait_for_cable(name: &str) -> Result<(), String> {
    let begin = Instant::now();
    while !run(&format!("ip -n {name} link show v0"))?.contains("state UP") {
        if begin.elapsed() > Duration::from_secs(10) {
            return Err(format!("v0 on {name} does not come up"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            let _gone = run(&format!("ip netns del {name}"));
        }
        let _gone = std::fs::remove_file(&self.reach);
    }
}

/// By MPICH 4.0 most runs end with status 1 after all has gone well: `MPI_Finalize` calls vgasnet's callback with its mutex held, for which the
/// helper waits, and then finds the mutex in use.
#[test]
#[ignore = "passes over MPICH; over Open MPI it was not seen to end"]
fn two_hosts_read_and_write_what_one_does() {
    const RANKS: u32 = 3;
    let program = SUITE.compile("mix", Language::C);
    let [across, here] = ["across", "here"].map(|name| program.scratch(name));
    let hosts = match Hosts::new(here.parent().expect("a path of ours")) {
        Ok(hosts) => hosts,
        Err(why) => return SUITE.say_not_run("mix on two hosts", &why),
    };
    let launcher = hosts.launcher();
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
