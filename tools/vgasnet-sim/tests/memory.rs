//! A job frees all its memory. No other test may run at the same time: this one measures the address space of the
//! process.

use vgasnet_sim::{Machine, Order, Point};

/// Bytes of all mappings of this process.
fn mapped_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("it is there");
    let pages: u64 = text.split_whitespace().next().and_then(|pages| pages.parse().ok()).expect("it is a number");
    pages * vgasnet_conduit::page_bytes() as u64
}

#[test]
fn a_job_that_has_ended_keeps_no_addresses() {
    let machine = Machine::paper();
    let point = Point { scale: 4, ..Point::reads(32, Order::Sequential, 0.01, machine.node.page as usize) };
    let before = mapped_bytes();
    for _ in 0..3 {
        point.run(&machine).expect("the job ends");
    }
    let kept = mapped_bytes().saturating_sub(before);
    assert!(kept < machine.node.pool / point.scale, "{kept} bytes");
}
