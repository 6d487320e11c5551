//! Collectives of teams, as a state machine: messages in, actions out.
//!
//! A [`plan`] is the work of one rank in a collective, in rounds. The [`Machine`] runs the plans of all collectives in
//! flight.

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

pub use machine::{Action, Arrived, Client, Machine, Misfit, Sending, WINDOW};
pub use message::{CollectiveBody, CollectiveKey, CollectiveMessage, Source};
pub use reading::{ANNOUNCED_BYTES_MIN, Announcing, READ_BYTES_MAX, Reading};
pub use team::{TEAM_ALL, TEAM_TAG_MAX, Team, Vote, list_hash, listed_team, named_team, split, team_of_file};
