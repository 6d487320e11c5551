//! Agreement of all ranks: a call that fails on one rank fails on all, and one rank says why.

use super::{Failure, FailureClass, say};
use crate::error::UserError;
use vgasnet_conduit::{Conduit, ConduitError, EXCHANGE_BYTES_MAX};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Tells all ranks whether this one has succeeded. If all have, each gets the values that the ranks `tell`. Otherwise
/// all fail, after the lowest rank with an error has reported that.
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
        let mine = mine.expect("this rank told that it has succeeded");
        let read = |told: &Vec<u8>| S::read_from_bytes(&told[1..]).ok();
        let all: Option<Vec<S>> = all.iter().map(read).collect();
        return Ok((mine, all.expect("every rank is at this point of the start-up")));
    };
    if let Err(line) = mine.map(drop) {
        if bad == conduit.rank().index() {
            say(&format!("rank {bad}: {call}: {line}"));
        }
    }
    // A rank that fails may end the job, so it waits until the error has been reported.
    conduit.exchange(&[]).map_err(broken)?;
    let class = if all[bad].first() == Some(&1) { FailureClass::BadArgument } else { FailureClass::Resource };
    Err(Failure { class, line: None })
}
