//! Agreement of all ranks: what one rank finds wrong makes the call fail on all, and one rank says why.

use super::{Failure, FailureClass, say};
use crate::error::UserError;
use vgasnet_conduit::{Conduit, ConduitError, EXCHANGE_BYTES_MAX};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Tells all ranks how this one fares. If all fare well, each gets what every rank has to `tell`. Else all of them fail,
/// when the lowest rank that fares badly has reported it.
pub(super) fn agree<T, S: FromBytes + IntoBytes + Immutable>(
    conduit: &dyn Conduit,
    call: &str,
    mine: Result<T, (FailureClass, UserError)>,
    tell: impl FnOnce(&T) -> S,
) -> Result<(T, Vec<S>), Failure> {
    let broken = |error: ConduitError| Failure::new(FailureClass::Resource, error.to_string());
    let (told, mine) = match mine {
        Ok(mine) => ([&[0], tell(&mine).as_bytes()].concat(), Ok(mine)),
        Err((class, line)) => (vec![if class == FailureClass::BadArgument { 1 } else { 2 }], Err(line)),
    };
    assert!(told.len() <= EXCHANGE_BYTES_MAX);
    let all = conduit.exchange(&told).map_err(broken)?;
    let Some(bad) = all.iter().position(|told| told.first() != Some(&0)) else {
        let mine = mine.expect("this rank told that it fares well");
        let read = |told: &Vec<u8>| S::read_from_bytes(&told[1..]).ok();
        let all: Option<Vec<S>> = all.iter().map(read).collect();
        return Ok((mine, all.expect("every rank is at this point of the start-up")));
    };
    if let Err(line) = mine.map(drop) {
        if bad == conduit.rank().index() {
            say(&format!("rank {bad}: {call}: {line}"));
        }
    }
    // A rank that fails may end the job; it waits until the reason is told.
    conduit.exchange(&[]).map_err(broken)?;
    let class = if all[bad].first() == Some(&1) { FailureClass::BadArgument } else { FailureClass::Resource };
    Err(Failure { class, line: None })
}
