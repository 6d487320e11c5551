//! Collectives of teams, as a state machine: messages in, actions out.
//!
//! A [`plan`] says what a rank does in each round. The [`Machine`] runs the plans of all collectives that are under way.

mod machine;
mod message;
pub mod plan;
mod team;
#[cfg(test)]
mod tests;

pub use machine::{Action, Arrived, Client, Machine, Misfit, Sending, WINDOW};
pub use message::{Body, CollectiveMessage, Key};
pub use team::{TEAM_ALL, Team, Vote, split};
