//! The kinds of gets and puts.

use crate::prelude::*;

/// A kind of get or put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Get,
    Put,
    GetVal,
    PutVal,
    /// With a handle, waited for immediately.
    GetNb,
    PutNb,
    /// Many in flight, waited for together.
    GetNbi,
    PutNbi,
}

impl Kind {
    pub fn is_get(self) -> bool {
        matches!(self, Kind::Get | Kind::GetVal | Kind::GetNb | Kind::GetNbi)
    }

    /// Maximum number of bytes in an operation.
    pub fn size_bytes_max(self) -> usize {
        match self {
            Kind::GetVal | Kind::PutVal => size_of::<usize>(),
            _ => usize::MAX,
        }
    }
}
