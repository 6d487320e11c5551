//! Collectives of teams, as a state machine: messages in, actions out.
//!
//! A [`plan`] is the work of one rank in a collective, in rounds. The [`Machine`] runs the plans of all collectives in
//! flight.

mod action;
#[cfg(test)]
mod forged;
mod in_flight;
mod machine;
mod message;
pub mod plan;
mod reading;
mod team;
#[cfg(test)]
mod tests;

pub use action::{ANNOUNCED_BYTES_MIN, Action, Announcing, Misfit, Reading, Sending};
pub use machine::{Arrived, Client, Machine, WINDOW};
pub use message::{CollectiveBody, CollectiveKey, CollectiveMessage, Source};
pub use reading::READ_BYTES_MAX;
pub use team::{TEAM_ALL, TEAM_TAG_MAX, Team, Vote, list_hash, listed_team, named_team, split, team_of_file};
