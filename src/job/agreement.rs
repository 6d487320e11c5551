//! Agreement of all ranks: a call that fails on one rank fails on all, and one rank reports why.

use super::{Failure, FailureClass, say};
use vgasnet_conduit::{Conduit, ConduitError, hear_all, of_other_version};
use vgasnet_settings::UserError;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Tells all ranks whether this one has succeeded. If all have, each gets the values that the ranks `tell`. Otherwise
/// all fail, after the lowest failing rank has reported its error.
pub(super) fn agree<T, S: FromBytes + IntoBytes + Immutable>(
    conduit: &dyn Conduit,
    call: &str,
    mine: Result<T, (FailureClass, UserError)>,
    tell: impl FnOnce(&T) -> S,
) -> Result<(T, Vec<S>), Failure> {
    let broken = |error: ConduitError| Failure::new(FailureClass::Resource, error.to_string());
    let offer = mine.as_ref().map(tell);
    let class = offer.as_ref().map_err(|(class, _)| [u8::from(*class == FailureClass::BadArgument)]);
    let told = class.as_ref().map(|offer| offer.as_bytes()).map_err(|class| class.as_slice());
    let (bad, class) = match hear_all(|told| conduit.exchange(told), told).map_err(broken)? {
        Err(bad) => bad,
        Ok(all) => {
            let told = |(rank, told): (usize, &Vec<u8>)| {
                S::read_from_bytes(told).map_err(|_| broken(of_other_version(rank, &format!("its part of {call}"))))
            };
            let all = all.iter().enumerate().map(told).collect::<Result<Vec<S>, Failure>>()?;
            let mine = mine.unwrap_or_else(|_| unreachable!("every rank fares well"));
            return Ok((mine, all));
        }
    };
    let mine = mine.err().filter(|_| bad == conduit.rank().index());
    let said = mine.map(|(_, line)| format!("rank {bad}: {call}: {line}"));
    if let Some(said) = &said {
        say(said);
    }
    // A failing rank may end the job, so it waits until the error has been reported.
    conduit.exchange(&[]).map_err(broken)?;
    let class = if class == [1] { FailureClass::BadArgument } else { FailureClass::Resource };
    Err(Failure { class, line: None, said })
}
