//! The C interface of GASNet-EX: the functions of `include/gasnet-ex/vgasnet_ex.h` and its chapters. The headers there
//! define GASNet-EX's names over these functions. Each chapter has a file.

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

/// The answer of a function without error codes: 0 on success. Invalid arguments end the job, since a client would read
/// any other number as "not now".
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome(c_int);

impl Outcome {
    const DONE: Outcome = Outcome(0);
    /// No credit was available.
    const NOT_SENT: Outcome = Outcome(1);
    /// `GASNET_ERR_NOT_READY`.
    const NOT_READY: Outcome = Outcome(ERR_NOT_READY);
}

impl Answer for Outcome {}
