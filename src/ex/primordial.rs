//! The objects a job begins with: the client, its endpoint, the team of all ranks, and after attach the segment.

use super::objects::{Header, Object, check_handles, give_out};
use super::teams::Team;
use crate::job::{self, Failure, FailureClass, Job, Runtime};
use std::ffi::{CStr, CString};
use std::sync::OnceLock;
use vgasnet_memory as memory;
use vgasnet_protocol::collectives::TEAM_ALL;
use vgasnet_settings::UserError;

/// `gex_Client_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Client {
    header: Header,
    /// The flags given to init.
    pub flags: u32,
    /// The name given to init.
    pub name: CString,
}

/// `gex_EP_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Endpoint {
    header: Header,
    /// Its number among the endpoints of this process.
    pub index: u16,
}

/// `gex_Segment_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Segment {
    header: Header,
    /// Its address and size.
    pub bound: Bound,
}

/// The place of a rank's segment, in the rank's own address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The first address.
    pub address: usize,
    /// The size requested by the rank.
    pub size_bytes: usize,
}

// SAFETY: each begins with its header.
unsafe impl Object for Client {
    const MARK: u64 = 0x7667_636c_6965_6e74;
    const WHAT: &'static str = "client";
    fn header(&self) -> &Header {
        &self.header
    }
}
// SAFETY: it begins with its header.
unsafe impl Object for Endpoint {
    const MARK: u64 = 0x7667_656e_6470_6f69;
    const WHAT: &'static str = "endpoint";
    fn header(&self) -> &Header {
        &self.header
    }
}
// SAFETY: it begins with its header.
unsafe impl Object for Segment {
    const MARK: u64 = 0x7667_7365_676d_656e;
    const WHAT: &'static str = "segment";
    fn header(&self) -> &Header {
        &self.header
    }
}

/// The objects of a job from init on.
#[derive(Debug)]
pub struct Primordial {
    /// The one client.
    pub client: Client,
    /// Its endpoint.
    pub endpoint: Endpoint,
    /// The team of all ranks.
    pub team: Team,
}

static PRIMORDIAL: OnceLock<Primordial> = OnceLock::new();
static BOUND: OnceLock<Box<[Bound]>> = OnceLock::new();
static SEGMENT: OnceLock<Segment> = OnceLock::new();

/// The objects of this job. Makes them for a client of this name if there are none yet. `None` before init.
pub fn start(name: &CStr, flags: u32) -> Option<&'static Primordial> {
    let job = job::job()?;
    let conduit = job.conduit();
    let objects = PRIMORDIAL.get_or_init(|| Primordial {
        client: Client { header: Header::of::<Client>(), flags, name: name.to_owned() },
        endpoint: Endpoint { header: Header::of::<Endpoint>(), index: 0 },
        team: Team::of_all(conduit.rank().0, conduit.ranks()),
    });
    if job.config().strict {
        check_handles();
        give_out(&objects.client);
        give_out(&objects.endpoint);
        give_out(&objects.team);
    }
    Some(objects)
}

/// `GEX_FLAG_USES_GASNET1`: the flags of a job started by GASNet-1's init.
const USES_GASNET1: u32 = 1;

/// The objects of this job, started by either interface. `None` before init.
#[inline]
pub fn primordial() -> Option<&'static Primordial> {
    PRIMORDIAL.get().or_else(|| start(c"GASNET1", USES_GASNET1))
}

/// Gives this rank a segment of the wanted bytes, together with all other ranks. On return each rank has its segment
/// and knows the segments of all others. A rank that has returned may send a message, and its handler may use both.
///
/// # Errors
/// As [`job::Job::attach_segment`].
pub fn attach_segment(job: &Job, runtime: &Runtime, wanted: Result<u64, UserError>) -> Result<(), Failure> {
    let sizes = job.attach_segment(runtime, wanted)?;
    let bound = |(segment, size): (memory::Segment, u64)| Bound { address: segment.base, size_bytes: size as usize };
    // Not set before: a job attaches once.
    let _ = BOUND.set(runtime.space().segments.all().zip(sizes).map(bound).collect());
    let met = runtime.coll().gather_all(TEAM_ALL, 0_u8);
    met.map(drop).map_err(|line| Failure::with_line(FailureClass::Resource, line))
}

/// The place of a rank's segment; `None` if it has none, or before attach.
#[inline]
pub fn bound_of_rank(rank: u32) -> Option<Bound> {
    let all = BOUND.get().map(|bound| &**bound).or_else(bound_by_gasnet1)?;
    let bound = all.get(rank as usize).copied()?;
    (bound.size_bytes > 0).then_some(bound)
}

/// The segments made by GASNet-1's attach, in the sizes it reports.
#[cold]
fn bound_by_gasnet1() -> Option<&'static [Bound]> {
    if job::job()?.awaits_segment() {
        return None;
    }
    let segments = job::runtime()?.space().segments.all();
    let bound = |segment: memory::Segment| Bound { address: segment.base, size_bytes: segment.size_bytes };
    Some(BOUND.get_or_init(|| segments.map(bound).collect()))
}

/// This rank's segment, if any.
pub fn bound() -> Option<&'static Segment> {
    let rank = job::job()?.conduit().rank().0;
    let bound = bound_of_rank(rank)?;
    let segment = SEGMENT.get_or_init(|| Segment { header: Header::of::<Segment>(), bound });
    Some(give_out(segment))
}
