//! Agreement of all ranks: an error on one rank fails on all.

use vgasnet_protocol::PROTOCOL_VERSION;

use crate::{ConduitError, EXCHANGE_BYTES_MAX};

/// Each rank's bytes, in rank order; or the lowest failed rank, with its bytes.
pub type Heard = Result<Vec<Vec<u8>>, (usize, Vec<u8>)>;

/// Tells every rank whether this one failed, with some bytes, and returns the answers of all ranks. `exchange` is
/// [`Conduit::exchange`](crate::Conduit::exchange) or the function behind it. Collective. At most
/// `EXCHANGE_BYTES_MAX - 1` bytes.
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
    let mut all = exchange(&told)?;
    let bad = all.iter().position(|told| told.first() != Some(&0));
    // In place: with many ranks there are many bytes.
    all.iter_mut().for_each(|told| drop(told.drain(..told.len().min(1))));
    Ok(match bad {
        None => Ok(all),
        Some(rank) => Err((rank, all.swap_remove(rank))),
    })
}

/// As [`hear_all`], for a result: if any rank has an error, all ranks get the one of the lowest such rank.
///
/// # Errors
/// A rank has an error, or the exchange fails.
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

/// A contribution to the first exchange of a job: the version of this rank, then `mine`.
pub fn greet(mine: &[u8]) -> Vec<u8> {
    [&PROTOCOL_VERSION.to_ne_bytes()[..], mine].concat()
}

/// Removes the versions from contributions made by [`greet`].
///
/// # Errors
/// The ranks have different versions. All checking ranks get the same error.
pub fn check_versions(all: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, ConduitError> {
    let version = |told: &Vec<u8>| told.first_chunk::<{ size_of::<u64>() }>().copied();
    // Names an odd first rank rather than all others.
    let own = PROTOCOL_VERSION.to_ne_bytes();
    if let Some(rank) = all.iter().position(|told| version(told).is_none() || version(told) != version(&all[0])) {
        let (other, first) = if rank == 0 { (0, 1) } else { (rank, 0) };
        return Err(ConduitError(format!(
            "rank {other} runs another version of vgasnet than rank {first}; give all ranks the same one"
        )));
    }
    if version(&all[0]) != Some(own) {
        return Err(ConduitError(
            "this rank runs another version of vgasnet than the others; give all ranks the same one".into(),
        ));
    }
    Ok(all.into_iter().map(|told| told[size_of::<u64>()..].to_vec()).collect())
}

/// The error for a rank whose contribution this version cannot produce at this point.
pub fn of_other_version(rank: usize, what: &str) -> ConduitError {
    ConduitError(format!(
        "rank {rank} sent a malformed message in place of {what}; do all ranks run the same version of vgasnet?"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_another_version_are_refused() {
        let mine = || greet(b"host");
        let other = || [&(PROTOCOL_VERSION ^ 1).to_ne_bytes()[..], b"host"].concat();
        assert_eq!(check_versions(vec![mine(), mine()]), Ok(vec![b"host".to_vec(); 2]));
        let line = |rank, first| {
            format!("rank {rank} runs another version of vgasnet than rank {first}; give all ranks the same one")
        };
        for (all, expected) in [
            (vec![mine(), mine(), other()], line(2, 0)),
            (vec![other(), mine(), mine()], line(1, 0)),
            // Versions that contribute no version.
            (vec![mine(), b"4f3a-91 box".to_vec()], line(1, 0)),
            (vec![mine(), vec![]], line(1, 0)),
            (vec![vec![], mine()], line(0, 1)),
        ] {
            assert_eq!(check_versions(all), Err(ConduitError(expected)));
        }
        assert!(check_versions(vec![other(), other()]).is_err());
    }

    #[test]
    fn all_hear_what_is_told_or_the_lowest_rank_that_fares_badly() {
        let hear = |others: &[&[u8]]| {
            let others: Vec<_> = others.iter().map(|told| told.to_vec()).collect();
            hear_all(|mine| Ok([vec![mine.to_vec()], others].concat()), Ok(b"here")).expect("the exchange succeeds")
        };
        assert_eq!(hear(&[b"\0there", b"\0"]), Ok(vec![b"here".to_vec(), b"there".to_vec(), vec![]]));
        assert_eq!(hear(&[b"\0there", b"\x01why", b"\x01too"]), Err((2, b"why".to_vec())));
        assert_eq!(hear(&[b"", b"\x01why"]), Err((1, vec![])));
    }

    #[test]
    fn what_ranks_tell_may_be_anything() {
        for told in [vec![], vec![0], vec![1], vec![2, 0xff], vec![0xff; EXCHANGE_BYTES_MAX]] {
            let _ = agree(|mine| Ok(vec![mine.to_vec(), told.clone()]), &Ok(()), b"well");
        }
    }
}
