//! vgasnet

pub mod coherence;
pub mod config;
pub mod error;
pub mod storage;
