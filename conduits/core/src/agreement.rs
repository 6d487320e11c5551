//! Agreement of all ranks: what goes wrong on one rank fails on all.

use crate::{ConduitError, EXCHANGE_BYTES_MAX};

/// What each rank told, in rank order; or the lowest rank that failed, and what it told of that.
pub type Heard = Result<Vec<Vec<u8>>, (usize, Vec<u8>)>;

/// Tells every rank whether this one failed, with some bytes, and hears what all ranks tell. `exchange` is
/// [`Conduit::exchange`](crate::Conduit::exchange) or what will be that. Collective. At most `EXCHANGE_BYTES_MAX - 1` bytes.
///
/// # Errors
/// The exchange fails.
pub fn hear_all(
    exchange: impl FnOnce(&[u8]) -> Result<Vec<Vec<u8>>, ConduitError>,
    mine: Result<&[u8], &[u8]>,
) -> Result<Heard, ConduitError> {
    let told = match mine {
        Ok(well) => [&[0], well].concat(),
        Err(badly) => [&[1], badly].concat(),
    };
    assert!(told.len() <= EXCHANGE_BYTES_MAX);
    let all = exchange(&told)?;
    let said = |told: &Vec<u8>| told.get(1..).unwrap_or_default().to_vec();
    let bad = all.iter().position(|told| told.first() != Some(&0));
    Ok(bad.map_or_else(|| Ok(all.iter().map(said).collect()), |rank| Err((rank, said(&all[rank])))))
}

/// As [`hear_all`], for a rank that fares badly with an error: all ranks get that of the lowest such rank.
///
/// # Errors
/// A rank fares badly, or the exchange fails.
pub fn agree<T>(
    exchange: impl FnOnce(&[u8]) -> Result<Vec<Vec<u8>>, ConduitError>,
    mine: &Result<T, ConduitError>,
    say: &[u8],
) -> Result<Vec<Vec<u8>>, ConduitError> {
    let mine = mine.as_ref().map(|_| say).map_err(|ConduitError(text)| {
        let ends = 0..=text.len().min(EXCHANGE_BYTES_MAX - 1);
        let end = ends.rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        &text.as_bytes()[..end]
    });
    hear_all(exchange, mine)?
        .map_err(|(rank, text)| ConduitError(format!("rank {rank}: {}", String::from_utf8_lossy(&text))))
}
