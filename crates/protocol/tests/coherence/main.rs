//! The protocol's tests: golden transcripts, random interleavings, and every interleaving of small jobs.

mod awaiting;
mod crashes;
mod exploration;
mod forged;
mod hosts;
mod simulation;
mod single_rank;
mod transcripts;
mod world;
