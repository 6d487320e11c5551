//! All data in one segment of the paper's machine, with homes of its pages round robin.

use vgasnet_sim::twice::Choice;
use vgasnet_sim::twice::homes::{DATA_POOLS, times};
use vgasnet_sim::{Homes, Machine, Order, Point};

const CHOICE: Choice = Choice { scale: 64, seed: 1 };

/// This holds as long as the data fits into all pools together.
#[test]
fn at_random_32_ranks_read_28_times_as_much_as_one() {
    for data_pools in DATA_POOLS {
        let times = times(&Machine::paper(), CHOICE, Homes::Cyclic, Order::Random, data_pools).expect("the jobs end");
        assert!(times.iter().all(|times| *times >= 28.0), "data of {data_pools} pools: {times:?}");
    }
}

#[test]
fn in_order_it_is_faster_than_from_one_home() {
    for data_pools in DATA_POOLS {
        let first =
            |homes| times(&Machine::paper(), CHOICE, homes, Order::Sequential, data_pools).expect("the jobs end")[0];
        let (cyclic, one) = (first(Homes::Cyclic), first(Homes::First));
        assert!(cyclic >= 1.5 * one, "data of {data_pools} pools: {cyclic} and {one}");
    }
}

#[test]
fn pools_of_few_pages_have_a_scale_of_their_own() {
    let mut machine = Machine::paper();
    machine.node.pool = 256 * machine.node.page;
    let times = |scale| times(&machine, Choice { scale, ..CHOICE }, Homes::Cyclic, Order::Sequential, 0.9);
    assert!(times(64).is_err_and(|line| line.contains("give a scale of at most 16")));
    assert!(times(16).expect("the jobs end")[0] >= 28.0);
}

#[test]
fn idle_pools_cost_little_where_no_pool_is_idle() {
    let machine = Machine::paper();
    let reads = Point::reads(32, Order::Sequential, 28.0, machine.node.page as usize);
    let [without, with] = [false, true].map(|guests| {
        let point = Point { homes: Homes::Cyclic, guests, ..reads };
        point.run(&machine).expect("the job ends")[0].megabytes_a_second_each
    });
    assert!(with >= 0.9 * without, "{with} MB/s a rank, and {without} without");
}
