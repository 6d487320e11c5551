//! The program over GASNet.

use std::path::Path;
use std::process::Command;

pub const CONDUIT: &str = "gasnet";
pub const SOURCE: &str = "gasnet.c";

/// What there is between two ranks, by variables.
pub fn networks() -> Vec<(String, &'static [(&'static str, &'static str)])> {
    vec![(vgasnet_gasnet::conduit_name(), &[])]
}

pub fn compiler() -> Command {
    let mut words = vgasnet_gasnet::COMPILE.split_whitespace();
    let mut command = Command::new(words.next().expect("GASNet's compiler"));
    command.args(words);
    command
}

/// Both are to use one GASNet, which is why the library is the static one.
pub fn link(command: &mut Command, dir: &Path) {
    command.arg(dir.join("libvgasnet.a")).args(vgasnet_gasnet::LIBRARIES.split_whitespace());
    command.args(["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"]);
}
