//! The cache of small gets: invariants on seeded random runs, and program traces against other policies.

mod belady;
mod lingering;
mod model;
mod paper;
mod replay;
mod traces;
mod twin;
