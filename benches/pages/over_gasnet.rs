//! The program over GASNet.

use std::path::Path;
use std::process::Command;

pub const CONDUIT: &str = "gasnet";
pub const SOURCE: &str = "gasnet.c";

/// The networks between two ranks, and the variables for choosing them.
pub fn networks() -> Vec<(String, &'static [(&'static str, &'static str)])> {
    vec![(vgasnet_gasnet::conduit_name(), &[])]
}

pub fn compiler() -> Command {
    let mut words = vgasnet_gasnet::COMPILE.split_whitespace();
    let mut command = Command::new(words.next().expect("GASNet's compiler"));
    command.args(words);
    command
}

/// The static library is linked, because the program and vgasnet have to use the same GASNet.
pub fn link(command: &mut Command, dir: &Path) {
    command.arg(dir.join("libvgasnet.a")).args(vgasnet_gasnet::LIBRARIES.split_whitespace());
    command.args(["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"]);
}
