//! vgasnet

pub mod coherence;
