//! What ranks do together before they have segments. Barriers go through the conduit's exchange. The first message makes all ranks attach
//! without a segment, since the engine is made for segments of one size: a rank that wants one attaches before it sends.

use super::primordial::is_started;
use crate::error::UserError;
use crate::job::{self, Runtime};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use vgasnet_protocol::barrier::{Misuse, Name};

/// The name with which this rank has notified.
static NOTIFIED: Mutex<Option<Name>> = Mutex::new(None);

/// One thread attaches.
static ATTACHING: Mutex<()> = Mutex::new(());

/// This rank has attached without a segment, for its messages.
static IS_WITHOUT_SEGMENT: AtomicBool = AtomicBool::new(false);

/// Whether this rank may do such things: a client of GASNet-EX has initialised the job, and has not attached.
pub fn is_early() -> bool {
    job::runtime().is_none() && job::job().is_some() && is_started()
}

/// Whether this rank has attached without a segment.
pub fn is_without_segment() -> bool {
    IS_WITHOUT_SEGMENT.load(Ordering::Acquire)
}

/// The runtime, for messages. Where the rank has not attached yet it does so without a segment, with all others.
///
/// # Errors
/// The job is not initialised by a client of GASNet-EX, or it cannot attach.
pub fn runtime_for_messages() -> Result<&'static Runtime, UserError> {
    if let Some(runtime) = job::runtime() {
        return Ok(runtime);
    }
    let _attaching = ATTACHING.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_early() {
        let line = "the job is not initialised; call gex_Client_Init first";
        return job::runtime().ok_or_else(|| UserError::new(line));
    }
    let runtime = job::attach(0);
    IS_WITHOUT_SEGMENT.store(true, Ordering::Release);
    runtime.map_err(|failure| failure.line.unwrap_or_else(|| UserError::new("another rank cannot attach")))
}

/// Arrives at a barrier.
///
/// # Errors
/// This rank has notified already.
pub fn notify(name: Name) -> Result<(), Misuse> {
    match notified().replace(name) {
        None => Ok(()),
        Some(_) => Err(Misuse::NotifiedTwice),
    }
}

/// Waits until every rank has arrived. Returns whether the names match.
///
/// # Errors
/// This rank has not notified; or, outside, the conduit cannot go on.
pub fn wait(name: Name) -> Result<Result<bool, Misuse>, UserError> {
    let Some(notified) = notified().take() else { return Ok(Err(Misuse::NotNotified)) };
    let conduit = job::job().ok_or_else(|| UserError::new("the job is not initialised"))?.conduit();
    let all = conduit.exchange(&encode(notified)).map_err(|error| UserError::new(error.to_string()))?;
    let outcome = all.iter().map(|bytes| decode(bytes)).fold(Name::Anonymous, Name::join);
    Ok(Ok(outcome != Name::Mismatch && notified.at_wait(name, outcome) != Name::Mismatch))
}

fn notified() -> std::sync::MutexGuard<'static, Option<Name>> {
    NOTIFIED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn encode(name: Name) -> Vec<u8> {
    match name {
        Name::Id(id) => id.to_ne_bytes().to_vec(),
        Name::Anonymous => vec![0],
        Name::Mismatch => vec![1],
    }
}

/// What no rank of this version tells counts as a mismatch.
fn decode(bytes: &[u8]) -> Name {
    match bytes {
        [0] => Name::Anonymous,
        bytes => bytes.try_into().map_or(Name::Mismatch, |bytes| Name::Id(i32::from_ne_bytes(bytes))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_as_they_are() {
        for name in [Name::Id(7), Name::Id(-1), Name::Anonymous, Name::Mismatch] {
            assert_eq!(decode(&encode(name)), name);
        }
        assert_eq!(decode(&[]), Name::Mismatch);
    }
}
