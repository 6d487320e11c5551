//! Two hosts: network namespaces of this machine joined by a virtual cable. Both see the same files.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The addresses of the hosts, on the device `v0` of each.
pub const ADDRESSES: [&str; 2] = ["10.77.0.1", "10.77.0.2"];

/// Far longer than the kernel takes to notice that both ends of a cable are up.
const CABLE_LIMIT: Duration = Duration::from_secs(10);

/// Two hosts and the cable between them. Dropping this removes them; no process may still be running there.
#[derive(Debug)]
pub struct Hosts {
    /// The namespaces; launchers run in the first.
    pub names: [String; 2],
    /// Replacement for ssh. It takes options, the host, and the words of a command for the host's shell.
    reach: PathBuf,
}

/// Runs a command, split into words at blanks. Returns its output.
///
/// # Errors
/// The command does not start or its exit status is not 0. The error has its stderr on one line.
pub fn run(line: &str) -> Result<String, String> {
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
    /// Creates hosts with names of `vgasnet-` and a unique `tag`. The script that reaches them is in `dir`.
    ///
    /// # Errors
    /// The reason, on one line, why this machine cannot have such hosts.
    pub fn new(tag: &str, dir: &Path) -> Result<Hosts, String> {
        let names = ["a", "b"].map(|end| format!("vgasnet-{tag}{end}"));
        let hosts = Hosts { names, reach: dir.join(format!("reach-{tag}")) };
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
            // A container may allow creating namespaces but not entering them.
            run(&format!("ip netns exec {name} true"))?;
        }
        let text = format!(
            "#!/bin/sh\nwhile [ \"${{1#-}}\" != \"$1\" ]; do shift; done\ncase $1 in {}) host={a};; {}) host={b};; *) exit 255;; \
             esac\nshift\nexec ip netns exec $host /bin/sh -c \"$*\"\n",
            ADDRESSES[0], ADDRESSES[1]
        );
        let written = std::fs::write(&self.reach, text)
            .and_then(|()| std::fs::set_permissions(&self.reach, Permissions::from_mode(0o755)));
        written.map_err(|error| format!("{}: {error}", self.reach.display()))
    }

    /// The command prefix that runs a command on the first host.
    pub fn enter(&self) -> String {
        format!("ip netns exec {}", self.names[0])
    }

    /// The launcher of an MPI ([`is_hydra`] or not), restricted to the cable. It runs on the first host with the
    /// environment of [`OVER_THE_CABLE`].
    pub fn launcher(&self, mpiexec: &str, is_hydra: bool) -> String {
        let reach = self.reach.display();
        if is_hydra {
            return format!("{mpiexec} -iface v0 -launcher ssh -launcher-exec {reach}");
        }
        let networks = "--mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include v0 --mca oob_tcp_if_include v0";
        format!("{mpiexec} {networks} --mca plm_rsh_agent {reach}")
    }
}

/// Options for an MPI's launcher: both hosts, with room for this many ranks.
pub fn names_for(is_hydra: bool, ranks: u32) -> String {
    if is_hydra {
        return format!("-hosts {}", ADDRESSES.join(","));
    }
    let each = ranks.div_ceil(2);
    format!("--host {}", ADDRESSES.map(|address| format!("{address}:{each}")).join(","))
}

/// Both hosts are one kernel, so UCX would choose shared memory.
pub const OVER_THE_CABLE: [(&str, &str); 2] = [("UCX_TLS", "tcp,self"), ("UCX_NET_DEVICES", "v0")];

/// Whether a launcher is MPICH's Hydra.
pub fn is_hydra(mpiexec: &str) -> bool {
    run(&format!("{mpiexec} --version")).is_ok_and(|text| text.to_lowercase().contains("hydra"))
}

/// The kernel reports the link state with a delay. UCX does not use a device before it is up.
fn wait_for_cable(name: &str) -> Result<(), String> {
    let begin = Instant::now();
    while !run(&format!("ip -n {name} link show v0"))?.contains("state UP") {
        if begin.elapsed() > CABLE_LIMIT {
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
