//! All data in one segment of the paper's machine, whose pages have their homes in turns.

use std::path::Path;
use vgasnet_sim::{Homes, Machine, Order, Point};

const PAGE_BYTES: usize = 4 << 20;

fn rates(homes: Homes, ranks: u32, order: Order, data_pools: f64) -> Vec<f64> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("machines/paper.toml");
    let machine = Machine::read(&path).expect("it is well-formed");
    let point = Point { homes, passes: 2, ..Point::reads(ranks, order, data_pools, PAGE_BYTES) };
    let passes = point.run(&machine).expect("the job ends");
    passes.iter().map(|outcome| outcome.megabytes_a_second_each).collect()
}

/// As long as the data fits all pools together.
#[test]
fn at_random_32_ranks_read_28_times_as_much_as_one() {
    for data_pools in [0.9, 4.0, 28.0] {
        let (all, one) =
            (rates(Homes::Cyclic, 32, Order::Random, data_pools), rates(Homes::First, 1, Order::Random, data_pools));
        let times: Vec<f64> = all.iter().zip(&one).map(|(all, one)| 32.0 * all / one).collect();
        assert!(times.iter().all(|times| *times >= 28.0), "data of {data_pools} pools: {times:?}");
    }
}

#[test]
fn in_order_it_is_faster_than_from_one_home() {
    for data_pools in [0.9, 4.0, 28.0] {
        let [cyclic, first] =
            [Homes::Cyclic, Homes::First].map(|homes| rates(homes, 32, Order::Sequential, data_pools));
        assert!(cyclic[0] >= 1.5 * first[0], "data of {data_pools} pools: {cyclic:?}, {first:?}");
    }
}
