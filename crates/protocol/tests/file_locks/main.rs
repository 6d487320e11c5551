//! Tests of file locks: every interleaving of small jobs, random interleavings, and forged messages.

mod costs;
mod exploration;
mod forged;
mod model;
mod simulation;
mod world;
