//! The C interface of GASNet-EX: the functions of `include/gasnet-ex/vgasnet_ex.h` and its chapters, over which the headers there define
//! GASNet-EX's names. A file a chapter.

mod am;
mod atomics;
mod coll;
mod events;
mod lists;
mod objects;
mod prepared;
mod rma;
mod start;
mod system;
mod teams;
mod tools;

use super::ERR_NOT_READY;
use super::boundary::Answer;
use std::ffi::c_int;

/// The answer of a function whose numbers are no error codes: 0 if it has done what it is for. Where its arguments make no sense, the job
/// ends, since a client would take another number for "not now".
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome(c_int);

impl Outcome {
    const DONE: Outcome = Outcome(0);
    /// There was no credit.
    const NOT_SENT: Outcome = Outcome(1);
    /// `GASNET_ERR_NOT_READY`.
    const NOT_READY: Outcome = Outcome(ERR_NOT_READY);
}

impl Answer for Outcome {}
