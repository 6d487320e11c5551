//! Atomic domains. A domain has a type of numbers in the segments of a team's ranks, and the operations allowed on
//! them.
//!
//! All domains carry out operations in the same way, where the number's page is. A domain is therefore only a promise
//! of the client, and each rank has its own.
//!
//! Source: GASNet-EX, "Remote Atomic Operations".

use super::objects::{Header, Object, find};
use super::teams::Team;
use crate::coll::{Coll, ElementType};
use crate::ops::{AtomicOperation, Kind, Remote};
use vgasnet_protocol::byte_message::{AtomicOp, Operands};
use vgasnet_settings::UserError;

/// The names of the operations, `GEX_OP_AND` and so on, by bit. Operations from bit 15 on return the number's old
/// value.
const NAMES: [&str; 28] = [
    "AND", "OR", "XOR", "ADD", "SUB", "MULT", "MIN", "MAX", "INC", "DEC", "SET", "CAS", "", "", "", "FAND", "FOR",
    "FXOR", "FADD", "FSUB", "FMULT", "FMIN", "FMAX", "FINC", "FDEC", "SWAP", "FCAS", "GET",
];
const FETCHING_SHIFT: u32 = 15;
const BITWISE: u32 = 0b111 | 0b111 << FETCHING_SHIFT;
const SET: u32 = 1 << 10;
const GET: u32 = 1 << 27;
const ALL: u32 = 0xfff | 0xfff << FETCHING_SHIFT | GET;

/// `GEX_FLAG_AD_MY_RANK` and `GEX_FLAG_AD_MY_NBRHD`: a neighbourhood is one rank.
const OWN_NUMBER: u32 = 1 << 11 | 1 << 12;
/// `GEX_FLAG_RANK_IS_JOBRANK`.
const IS_JOBRANK: u32 = 1 << 13;
/// The flags of a domain: `GEX_FLAG_AD_FAVOR_MY_RANK`, `_MY_NBRHD` and `_REMOTE`.
const FAVORS: u32 = 0b111;
/// `GEX_FLAG_SELF_SEG_` and `GEX_FLAG_PEER_SEG_` name the kind of memory. They are ignored, since it is looked up.
const SEGMENTS: u32 = 0xff << 3;

/// A client's request for an operation on a number.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The type of the number.
    pub data_type: ElementType,
    /// The operation's bit.
    pub op: u32,
    /// The two operands, as bits. Operands the operation does not need may be anything.
    pub operands: (u64, u64),
    /// The rank with the number.
    pub rank: u32,
    /// The number's address.
    pub address: usize,
    /// The client's flags.
    pub flags: u32,
}

/// The plan for a [`Request`].
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The operation to carry out.
    pub operation: AtomicOperation,
    /// Its kind among implicit operations.
    pub kind: Kind,
    /// Whether the client receives the number's old value.
    pub is_fetching: bool,
}

/// `gex_AD_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Domain {
    header: Header,
    /// The team of the ranks with the numbers. It may have been destroyed.
    pub team: &'static Team,
    /// The type of the numbers.
    pub data_type: ElementType,
    /// The bits of the operations.
    pub ops: u32,
    /// The client's flags.
    pub flags: u32,
}

// SAFETY: it begins with its header.
unsafe impl Object for Domain {
    const MARK: u64 = 0x7667_646f_6d61_696e;
    const WHAT: &'static str = "atomic domain";
    fn header(&self) -> &Header {
        &self.header
    }
}

impl ElementType {
    /// The bits of 1.
    fn one(self) -> u64 {
        match self {
            ElementType::F32 => 1_f32.to_bits().into(),
            ElementType::F64 => 1_f64.to_bits(),
            _ => 1,
        }
    }

    /// The bits of the negated number.
    fn negated(self, bits: u64) -> u64 {
        match self {
            ElementType::F32 => bits ^ 1 << 31,
            ElementType::F64 => bits ^ 1 << 63,
            _ => bits.wrapping_neg(),
        }
    }

    /// The plan for an operation. `place` is its bit number, without the offset of fetching operations.
    #[inline(always)]
    fn plan(self, place: u32, (first, second): (u64, u64)) -> (AtomicOp, Operands) {
        use AtomicOp::{Add, AddFloat, And, CompareSwap, Max, MaxFloat, MaxSigned, Min, MinFloat, MinSigned};
        use AtomicOp::{Get, Multiply, MultiplyFloat, Or, Swap, Xor};
        let add = if self.is_float() { AddFloat } else { Add };
        let by_type = |float, signed, unsigned| match self {
            ElementType::F32 | ElementType::F64 => float,
            ElementType::I32 | ElementType::I64 => signed,
            ElementType::U32 | ElementType::U64 => unsigned,
        };
        let (op, operand) = match place {
            0 => (And, first),
            1 => (Or, first),
            2 => (Xor, first),
            3 => (add, first),
            4 => (add, self.negated(first)),
            5 => (by_type(MultiplyFloat, Multiply, Multiply), first),
            6 => (by_type(MinFloat, MinSigned, Min), first),
            7 => (by_type(MaxFloat, MaxSigned, Max), first),
            8 => (add, self.one()),
            9 => (add, self.negated(self.one())),
            10 => (Swap, first),
            11 => return (CompareSwap, Operands { operand: second, compare: first }),
            _ => (Get, 0),
        };
        (op, Operands { operand, compare: 0 })
    }
}

impl Domain {
    /// A domain for numbers of a type, operations and flags, all as given by the client.
    ///
    /// # Errors
    /// There is no such type, operation or flag, or the operation is undefined on numbers of the type.
    pub fn new(team: &'static Team, data_type: u32, ops: u32, flags: u32) -> Result<Domain, UserError> {
        let data_type = ElementType::of_bit(data_type).ok_or_else(|| {
            UserError::new(format!(
                "{data_type:#x} is no type of numbers; give one of GEX_DT_I32, U32, I64, U64, FLT and DBL"
            ))
        })?;
        if ops == 0 || ops & !ALL != 0 {
            return Err(UserError::new(format!(
                "operations {ops:#x}, of which {:#x} do not exist in atomic domains; give some of GEX_OP_AND to GEX_OP_GET",
                ops & !ALL
            )));
        }
        if data_type.is_float() && ops & BITWISE != 0 {
            let (names, name) = (names(ops & BITWISE), data_type.name());
            return Err(UserError::new(format!(
                "{names} on numbers of type GEX_DT_{name}; give operations on bits for integers only"
            )));
        }
        if flags & !(FAVORS | SEGMENTS) != 0 || (flags & FAVORS).count_ones() > 1 {
            return Err(UserError::new(format!(
                "flags {flags:#x}; give one of GEX_FLAG_AD_FAVOR_, GEX_FLAG_PEER_SEG_, or 0"
            )));
        }
        Ok(Domain { header: Header::of::<Domain>(), team, data_type, ops, flags })
    }

    /// Plans a request.
    ///
    /// # Errors
    /// The domain was not made for it, its team is destroyed or lacks the rank, or the number is not where the flags
    /// say.
    //
    // Inlined together with its callees: copying the answer would take as long as the operation.
    #[inline(always)]
    pub fn ask(&self, request: &Request) -> Result<Asked, UserError> {
        let Request { data_type, op, operands, rank, address, flags } = *request;
        if !op.is_power_of_two() || op & self.ops == 0 || data_type != self.data_type {
            return Err(self.misfit(data_type, op));
        }
        // SAFETY: the domain was made with a valid handle of a team.
        let team = unsafe { find(&raw const *self.team) }?;
        let jobrank = if flags & IS_JOBRANK == 0 { team.jobrank(rank)? } else { member(team, rank)? };
        if flags & OWN_NUMBER != 0 && team.jobrank(team.rank)? != jobrank {
            return Err(UserError::new(format!(
                "GEX_FLAG_AD_MY_RANK or _MY_NBRHD for a number of rank {jobrank} of the job; they are for the own rank only"
            )));
        }
        let place = op.trailing_zeros();
        let (op, operands) = data_type.plan(place % FETCHING_SHIFT, operands);
        let kind = match 1 << place {
            GET => Kind::Get,
            SET => Kind::Put,
            _ => Kind::Atomic,
        };
        let remote = Remote { rank: jobrank, address, len_bytes: data_type.bytes() };
        Ok(Asked { operation: AtomicOperation { op, operands, remote }, kind, is_fetching: place >= FETCHING_SHIFT })
    }

    #[cold]
    fn misfit(&self, data_type: ElementType, op: u32) -> UserError {
        let (name, made_for) = (self.data_type.name(), names(self.ops));
        if data_type != self.data_type {
            return UserError::new(format!("the domain is one of GEX_DT_{name}; use the function of that type"));
        }
        if !op.is_power_of_two() || op & ALL == 0 {
            return UserError::new(format!("{op:#x} is no atomic operation; give one of {made_for}"));
        }
        let op = names(op);
        UserError::new(format!(
            "the domain was made for {made_for}, not for {op}; name all operations that it is for when you create it"
        ))
    }
}

/// Checks that all ranks of the team make the same domain. Collective over the team.
///
/// # Errors
/// Another rank's domain has another type, other operations or other flags.
pub fn agree_on_domain(domain: &Domain, coll: &Coll) -> Result<(), UserError> {
    let mine = [domain.data_type.bit(), domain.ops, domain.flags];
    let all = coll.gather_all(domain.team.id, mine)?;
    let Some(other) = all.iter().position(|theirs| *theirs != mine) else { return Ok(()) };
    Err(differing(domain, other, all[other]))
}

#[cold]
fn differing(domain: &Domain, other: usize, [data_type, ops, flags]: [u32; 3]) -> UserError {
    let (name, made_for) = (domain.data_type.name(), names(domain.ops));
    let theirs = ElementType::of_bit(data_type).map_or("", ElementType::name);
    UserError::new(format!(
        "GEX_DT_{name}, {made_for} and flags {:#x}, but rank {other} of the team has given GEX_DT_{theirs}, {} and flags {flags:#x}; give \
         the same on all ranks",
        domain.flags,
        names(ops)
    ))
}

/// The rank itself, if it is a member's rank in the job.
#[inline]
fn member(team: &Team, jobrank: u32) -> Result<u32, UserError> {
    team.rank_of(jobrank).map(|_| jobrank).ok_or_else(|| {
        UserError::new(format!("rank {jobrank} of the job is not in the domain's team of {} ranks", team.size))
    })
}

/// The name of the one operation with this bit, without `GEX_OP_`.
pub fn operation_name(op: u32) -> Option<&'static str> {
    let known = NAMES.get(op.trailing_zeros() as usize).filter(|name| op.is_power_of_two() && !name.is_empty());
    known.copied()
}

/// The names of operations.
#[cold]
fn names(ops: u32) -> String {
    let named = NAMES.iter().enumerate().filter(|(place, _)| ops & 1 << place != 0);
    named.map(|(_, name)| format!("GEX_OP_{name}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(data_type: ElementType, ops: u32) -> Domain {
        let team = Box::leak(Box::new(Team::new(7, 1, [4, 1].into(), 0)));
        Domain::new(team, data_type.bit(), ops, 0).expect("it makes sense")
    }

    fn request(data_type: ElementType, name: &str) -> Request {
        let place = NAMES.iter().position(|one| *one == name).expect("an operation");
        Request { data_type, op: 1 << place, operands: (3, 4), rank: 0, address: 64, flags: 0 }
    }

    #[test]
    fn operations_come_to_those_of_the_byte_service() {
        let plan = |data_type: ElementType, name: &str| {
            let asked =
                domain(data_type, request(data_type, name).op).ask(&request(data_type, name)).expect("made for it");
            let AtomicOperation { op, operands, remote } = asked.operation;
            assert_eq!((remote.rank, remote.address), (4, 64));
            (op, operands.operand, operands.compare, asked.is_fetching)
        };
        assert_eq!(plan(ElementType::I32, "SUB"), (AtomicOp::Add, -3_i64 as u64, 0, false));
        assert_eq!(plan(ElementType::U64, "FDEC"), (AtomicOp::Add, u64::MAX, 0, true));
        assert_eq!(plan(ElementType::I64, "MIN"), (AtomicOp::MinSigned, 3, 0, false));
        assert_eq!(plan(ElementType::U32, "FMAX"), (AtomicOp::Max, 3, 0, true));
        assert_eq!(plan(ElementType::U32, "FCAS"), (AtomicOp::CompareSwap, 4, 3, true));
        assert_eq!(plan(ElementType::U32, "CAS"), (AtomicOp::CompareSwap, 4, 3, false));
        assert_eq!(plan(ElementType::I64, "SWAP"), (AtomicOp::Swap, 3, 0, true));
    }

    #[test]
    fn floating_point_numbers_are_subtracted_by_their_sign() {
        let asked = |data_type, name, operands| {
            let request = Request { operands, ..request(data_type, name) };
            domain(data_type, request.op).ask(&request).expect("made for it").operation
        };
        let double = asked(ElementType::F64, "FSUB", (2.5_f64.to_bits(), 0));
        assert_eq!((double.op, double.operands.operand), (AtomicOp::AddFloat, (-2.5_f64).to_bits()));
        let single = asked(ElementType::F32, "DEC", (0, 0));
        assert_eq!((single.op, single.operands.operand), (AtomicOp::AddFloat, (-1_f32).to_bits().into()));
        assert_eq!(asked(ElementType::F32, "MIN", (0, 0)).op, AtomicOp::MinFloat);
        assert_eq!(single.remote.len_bytes, 4);
    }

    #[test]
    fn sets_are_puts_and_gets_are_gets() {
        let kind = |name| {
            let request = request(ElementType::I64, name);
            domain(ElementType::I64, request.op).ask(&request).expect("made for it").kind
        };
        let kinds = ["SET", "GET", "SWAP", "CAS", "INC"].map(kind);
        assert_eq!(kinds, [Kind::Put, Kind::Get, Kind::Atomic, Kind::Atomic, Kind::Atomic]);
    }

    #[test]
    fn what_a_domain_was_not_made_for_is_refused() {
        let line = |made_for: &str, asked: Request| {
            let made_for = request(ElementType::I32, made_for).op;
            domain(ElementType::I32, made_for).ask(&asked).expect_err("refused").to_string()
        };
        assert!(
            line("ADD", request(ElementType::I32, "FADD"))
                .starts_with("the domain was made for GEX_OP_ADD, not for GEX_OP_FADD")
        );
        assert!(line("ADD", request(ElementType::U32, "ADD")).starts_with("the domain is one of GEX_DT_I32"));
        assert!(
            line("ADD", Request { op: 24, ..request(ElementType::I32, "ADD") })
                .starts_with("0x18 is no atomic operation")
        );
        assert!(
            line("ADD", Request { rank: 2, ..request(ElementType::I32, "ADD") }).contains("no rank 2 in this team")
        );
        let of_job = |rank, more| Request { rank, flags: IS_JOBRANK | more, ..request(ElementType::I32, "ADD") };
        assert!(line("ADD", of_job(2, 0)).starts_with("rank 2 of the job is not in"));
        assert!(line("ADD", of_job(4, 1 << 11)).starts_with("GEX_FLAG_AD_MY_RANK"));
        assert!(domain(ElementType::I32, 1 << 3).ask(&of_job(1, 1 << 11)).is_ok());
    }

    #[test]
    fn domains_that_make_no_sense_are_not_made() {
        let team: &'static Team = Box::leak(Box::new(Team::of_all(0, 2)));
        let line = |data_type, ops, flags| {
            Domain::new(team, data_type, ops, flags).map(drop).expect_err("refused").to_string()
        };
        assert!(line(1 << 6, GET, 0).starts_with("0x40 is no type of numbers"));
        assert!(line(3, GET, 0).starts_with("0x3 is no type"));
        assert!(line(1, 0, 0).starts_with("operations 0x0"));
        assert!(line(1, 1 << 30 | GET, 0).starts_with("operations 0x48000000, of which 0x40000000"));
        assert!(
            line(1 << 4, 1 | 1 << 17 | GET, 0).starts_with("GEX_OP_AND, GEX_OP_FXOR on numbers of type GEX_DT_FLT")
        );
        assert!(line(1, GET, 3).starts_with("flags 0x3"));
    }
}
