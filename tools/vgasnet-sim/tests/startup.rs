//! The model of startup, compared with the library: init and attach run as rank 0 of 262,144 over a network that
//! records contributions. No other test may run at the same time: this one counts the memory of the process.

use std::sync::{Arc, Mutex};
use vgasnet::{job, live_bytes};
use vgasnet_conduit::{Arrival, Busy, ConduitError, Rank, Region, Transfer, Urgency};
use vgasnet_hybrid::{HybridConduit, Network};
use vgasnet_sim::startup::{Network as Model, Step};

const RANKS: u32 = 262_144;

/// The network of rank 0, alone on its host. The other ranks are on hosts of 64 and contribute the same as rank 0.
#[derive(Clone, Default)]
struct Tally {
    told_bytes: Arc<Mutex<Vec<usize>>>,
}

impl Network for Tally {
    fn name(&self) -> &str {
        "tally"
    }
    fn rank(&self) -> Rank {
        Rank(0)
    }
    fn ranks(&self) -> u32 {
        RANKS
    }
    fn exchange(&self, mine: &[u8], _look: &mut dyn FnMut()) -> Result<Vec<Vec<u8>>, ConduitError> {
        let mut told_bytes = self.told_bytes.lock().expect("nobody panics with it");
        told_bytes.push(mine.len());
        let is_first = told_bytes.len() == 1;
        let told = |rank: u32| match rank {
            1.. if is_first => [mine, format!("{}", rank / 64).as_bytes()].concat(),
            _ => mine.to_vec(),
        };
        Ok((0..RANKS).map(told).collect())
    }
    fn attach(&self, _pool: Region) -> Result<(), ConduitError> {
        self.exchange(&[], &mut || {}).map(drop)
    }
    fn message_bytes_max(&self) -> usize {
        8 << 10
    }
    fn send(&self, _to: Rank, _head: &[u8], _body: &[u8], _urgency: Urgency) -> Result<(), Busy> {
        Ok(())
    }
    fn put(&self, _transfer: &Transfer) -> Result<(), Busy> {
        Ok(())
    }
    fn get(&self, _transfer: &Transfer) -> Result<(), Busy> {
        Ok(())
    }
    fn poll(&self, _sink: &mut dyn FnMut(Arrival<'_>)) -> bool {
        false
    }
    fn is_active(&self) -> bool {
        false
    }
    fn close(&self) {}
    fn exit(&self, status: i32) -> ! {
        std::process::exit(status)
    }
}

#[test]
fn the_library_tells_and_keeps_what_the_model_says() {
    let network = Tally::default();
    let told_bytes = Arc::clone(&network.told_bytes);
    let variables = [("VGASNET_PAGE_SIZE", "64K"), ("VGASNET_POOL_SIZE", "1M")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let before = live_bytes();
    let start = |_: &[(String, String)]| Ok(Arc::new(HybridConduit::start(network, true)?) as _);
    job::init_over(start, || variables.into_iter(), None).expect("all fare well");
    job::attach(0).expect("all fare well");
    let kept_bytes = (live_bytes() - before) as u64 / u64::from(RANKS);

    let in_model = Model::Mpi.steps().into_iter().filter_map(|step| match step {
        Step::Job(what, told, _) => Some((what, told)),
        Step::Host(..) | Step::HandOut(_) => None,
    });
    let (names, in_model): (Vec<_>, Vec<_>) = in_model.unzip();
    let told_bytes = told_bytes.lock().expect("nobody panics with it").clone();
    assert_eq!(told_bytes, in_model, "{names:?}");

    let in_model: u64 = Model::Mpi.kept().iter().map(|(_, bytes)| bytes).sum();
    println!("a rank keeps {kept_bytes} bytes for each other, and {in_model} in the model");
    assert!(kept_bytes.abs_diff(in_model) <= 2 && kept_bytes <= 64, "{kept_bytes} bytes, and {in_model} in the model");
}
