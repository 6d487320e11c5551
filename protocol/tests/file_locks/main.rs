//! The tests of file locks: every interleaving of small jobs, random interleavings, and messages that no rank sends.

mod costs;
mod exploration;
mod forged;
mod model;
mod simulation;
mod world;
