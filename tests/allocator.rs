//! An ordinary allocator works inside a segment: `examples/allocator.rs`, as a job.

mod tools;

use std::process::{Command, Stdio};
use vgasnet_conduit::conformance::example;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn run(ranks: u64, page_bytes: u64, pool_bytes: u64) {
    let mut command = Command::new(tools::tool("vgasnetrun"));
    command.env("VGASNET_STORAGE_DIR", env!("CARGO_TARGET_TMPDIR"));
    command.env("VGASNET_PAGE_SIZE", page_bytes.to_string()).env("VGASNET_POOL_SIZE", pool_bytes.to_string());
    command.args(["-n", &ranks.to_string()]).arg(example("allocator")).stdin(Stdio::null());
    let output = command.output().expect("vgasnetrun starts");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{}\n{stdout}{stderr}", output.status);
    let lines: Vec<_> = stdout.lines().collect();
    assert_eq!(lines.len() as u64, ranks, "{stdout}");
    for line in lines {
        // "rank R: N blocks of LIVE bytes in a heap of SIZE bytes"
        let words: Vec<_> = line.split(' ').collect();
        let live_bytes: u64 = words[5].parse().expect("a number of bytes");
        assert!(live_bytes >= 8 * pool_bytes, "{line}");
    }
}

#[test]
fn blocks_of_eight_pools() {
    run(1, 64 * KIB, 512 * KIB);
    run(3, 64 * KIB, MIB);
    run(1, 256 * KIB, 4 * MIB);
}
