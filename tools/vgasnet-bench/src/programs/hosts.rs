//! Two hosts that are network namespaces of this machine, joined by a cable. Both see the same files.

use super::{Folder, said, words};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const ADDRESSES: [&str; 2] = ["10.77.0.1", "10.77.0.2"];

/// Far more than it takes the kernel to notice that both ends of a cable are up.
const CABLE_LIMIT: Duration = Duration::from_secs(10);

/// They go when this is dropped.
pub struct Hosts {
    names: [String; 2],
    folder: Folder,
}

impl Hosts {
    /// Makes them, or says why that is not possible.
    pub fn new() -> Result<Hosts, String> {
        let names = ["a", "b"].map(|end| format!("vgasnet-bench-{}{end}", std::process::id()));
        let hosts = Hosts { names, folder: Folder::new()? };
        hosts.build()?;
        Ok(hosts)
    }

    fn build(&self) -> Result<(), String> {
        let [a, b] = &self.names;
        let run = |line: &str| said(&mut words(line));
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
            let begun = Instant::now();
            // UCX takes no device before. The program that asks takes milliseconds, so this is no busy loop.
            while !run(&format!("ip -n {name} link show v0"))?.contains("state UP") {
                if begun.elapsed() > CABLE_LIMIT {
                    return Err(format!("v0 on {name} does not come up"));
                }
            }
            run(&format!("ip netns exec {name} true"))?;
        }
        // In the place of ssh: options, the host, and the words of a command for its shell.
        let reach = format!(
            "#!/bin/sh\nwhile [ \"${{1#-}}\" != \"$1\" ]; do shift; done\ncase $1 in {}) host={a};; {}) host={b};; *) exit 255;; \
             esac\nshift\nexec ip netns exec $host /bin/sh -c \"$*\"\n",
            ADDRESSES[0], ADDRESSES[1]
        );
        let path = self.reach();
        let written =
            std::fs::write(&path, reach).and_then(|()| std::fs::set_permissions(&path, Permissions::from_mode(0o755)));
        written.map_err(|error| format!("{}: {error}", path.display()))
    }

    fn reach(&self) -> PathBuf {
        self.folder.path().join("reach")
    }

    /// What runs the rest of a command on the first host.
    pub fn enter(&self) -> String {
        format!("ip netns exec {}", self.names[0])
    }

    /// The launcher of an MPI with what it needs to go over the cable and no other way.
    pub fn launcher(&self, mpiexec: &str, is_hydra: bool) -> String {
        let reach = self.reach();
        let reach = reach.display();
        if is_hydra {
            return format!("{mpiexec} -iface v0 -launcher ssh -launcher-exec {reach}");
        }
        let networks = "--mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include v0 --mca oob_tcp_if_include v0";
        format!("{mpiexec} {networks} --mca plm_rsh_agent {reach}")
    }

    /// The options of an MPI's launcher that name the hosts.
    pub fn names_for(&self, is_hydra: bool, ranks: u32) -> String {
        if is_hydra {
            return format!("-hosts {}", ADDRESSES.join(","));
        }
        let each = ranks.div_ceil(2);
        format!("--host {}", ADDRESSES.map(|address| format!("{address}:{each}")).join(","))
    }

    /// The option of `vgasnetrun` that does.
    pub fn addresses() -> String {
        ADDRESSES.join(",")
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            // All programs there have ended.
            let _ = said(&mut words(&format!("ip netns del {name}")));
        }
    }
}
