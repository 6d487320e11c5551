//! The kinds of gets and puts.

/// A kind of get or put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    pub const ALL: [Kind; 8] =
        [Kind::Get, Kind::Put, Kind::GetVal, Kind::PutVal, Kind::GetNb, Kind::PutNb, Kind::GetNbi, Kind::PutNbi];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Get => "get",
            Kind::Put => "put",
            Kind::GetVal => "get_val",
            Kind::PutVal => "put_val",
            Kind::GetNb => "get_nb",
            Kind::PutNb => "put_nb",
            Kind::GetNbi => "get_nbi",
            Kind::PutNbi => "put_nbi",
        }
    }

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
