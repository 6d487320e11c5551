//! The cache of small gets: its invariants on runs that a seed makes, and traces of programs against other policies.

mod belady;
mod model;
mod paper;
mod replay;
mod traces;
mod twin;
