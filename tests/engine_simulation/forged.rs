//! Engines that get messages no rank sends: they end the job with one line or go on, and never panic.
//!
//! `vgasnet_fuzzing` says how to run more of these.

use crate::client::{Range, What};
use crate::job::{Job, PAGE_BYTES};
use crate::mapper;
use crate::shape::Shape;
use fastrand::Rng;
use vgasnet_conduit::Urgency;
use vgasnet_fuzzing::{bytes, mutate, odd_number, run};
use vgasnet_memory as memory;
use vgasnet_protocol::Rank;
use vgasnet_protocol::barrier::{BarrierMessage, Name};
use vgasnet_protocol::byte_message::{
    AnswerHead, AtomicOp, PieceHead, PieceKind, RequestHead, TAG_ANSWER, TAG_REQUEST,
};
use vgasnet_protocol::coherence::{
    Access, CoherenceBody, CoherenceMessage, CopyVersion, Forward, FrameId, PageId, Priority, Share, ToCache, ToHome,
};
use vgasnet_protocol::guests::GuestMessage;
use vgasnet_protocol::replacement::PolicyKind;
use vgasnet_protocol::writes::{AnswerHead as AnswerHeadOfWrites, Question, TAG_WRITES};
use vgasnet_settings::UserError;
use vgasnet_sim_conduit::Settings;
use zerocopy::IntoBytes;

/// Steps of a job, unless a rank refuses a message before.
const STEPS_MAX: usize = 300;

const PAGES: u32 = 2;
const FRAMES: u32 = 2;

fn small(random: &mut Rng, end: u32) -> u32 {
    if random.u32(0..64) == 0 { odd_number(random) as u32 } else { random.u32(0..end) }
}

/// A message about a page of `home`, sent by the home or to it.
fn about_a_page(random: &mut Rng, ranks: u32, home: Rank, to: Rank) -> Vec<u8> {
    let version = CopyVersion(random.u64(0..12));
    let (copy, frame) = (version, FrameId(small(random, FRAMES)));
    let access = if random.bool() { Access::Read } else { Access::Write };
    let forward = Forward { version, to: Rank(small(random, ranks)), frame, access, grant: random.bool() };
    let priority = [Priority::Now, Priority::Soon, Priority::Later][random.usize(0..3)];
    let body = match random.u32(0..11) {
        _ if home == to => CoherenceBody::Home(match random.u32(0..9) {
            0 => ToHome::Read { frame, priority },
            1 => ToHome::Write { frame, copy: random.bool().then_some(copy) },
            2 => ToHome::Done { version },
            3 => ToHome::Nack { version },
            4 => ToHome::Acknowledge { version, copies: small(random, 4) },
            5 => ToHome::Evict { frame, copy, keep: random.bool(), priority },
            6 => ToHome::Hurry,
            7 => ToHome::Decline { version },
            _ => ToHome::Forget { copy },
        }),
        0 | 1 => CoherenceBody::Cache(ToCache::Forward(forward)),
        2 => CoherenceBody::Cache(ToCache::Invalidate { version }),
        3 => CoherenceBody::Cache(ToCache::Grant { version }),
        4 => CoherenceBody::Cache(ToCache::Data { version, grant: random.bool(), zeros: random.bool() }),
        5 => CoherenceBody::Cache(ToCache::Evicted { copy }),
        6 => CoherenceBody::Cache(ToCache::Unread),
        8 => CoherenceBody::Cache(ToCache::Acknowledge { version, copies: small(random, 4) }),
        9 => {
            let to = [0; 3].map(|_| Rank(small(random, ranks)));
            CoherenceBody::Cache(ToCache::Relay { version, to: Share::new(&to[..random.usize(1..4)]) })
        }
        7 => CoherenceBody::Cache(ToCache::Fetch { version, priority }),
        _ => CoherenceBody::Cache(ToCache::Recall { copy }),
    };
    CoherenceMessage { body, page: PageId::of_segment(home, small(random, PAGES)) }.encode().to_vec()
}

/// A request for bytes of pages, or an answer to one.
fn about_bytes(random: &mut Rng, ranks: u32) -> Vec<u8> {
    let (pieces, id) = (random.u16(1..4), small(random, 3));
    if random.bool() {
        let head = AnswerHead { tag: TAG_ANSWER, cause: 0, pieces, id };
        let statuses: Vec<u8> = (0..pieces).map(|_| random.u8(0..3)).collect();
        return [head.as_bytes(), &statuses, &bytes(random, 64)].concat();
    }
    let head = RequestHead { tag: TAG_REQUEST, is_direct: random.u8(0..2), pieces, id };
    let heads = (0..pieces).map(|_| {
        let page = PageId::of_segment(Rank(small(random, ranks)), small(random, PAGES));
        let kind = [PieceKind::Get, PieceKind::Put, PieceKind::Atomic][random.usize(0..3)];
        let offset_bytes = small(random, PAGE_BYTES as u32) / 8 * 8;
        PieceHead { page, offset_bytes, len_bytes: 8, kind, op: AtomicOp::Add }
    });
    let heads: Vec<PieceHead> = heads.collect();
    let payload: usize = heads.iter().map(PieceHead::request_bytes).sum();
    let heads: Vec<u8> = heads.iter().flat_map(|head| head.as_bytes().to_vec()).collect();
    [head.as_bytes(), &heads, &vec![7; payload]].concat()
}

/// A question about writes, or an answer to one.
fn about_writes(random: &mut Rng) -> Vec<u8> {
    let (id, first, end) = (small(random, 3), small(random, PAGES), small(random, PAGES + 1));
    if random.bool() {
        let head = AnswerHeadOfWrites {
            tag: TAG_WRITES,
            is_answer: 1,
            has_forgotten: 0,
            padding: 0,
            id,
            now: random.u64(0..9),
            next: end,
            pages: random.u32(0..3),
        };
        return [head.as_bytes(), &bytes(random, 40)].concat();
    }
    let (watch, writes_back, since) = (random.u8(0..3), random.u8(0..2), random.u64(0..9));
    Question { tag: TAG_WRITES, is_answer: 0, watch, writes_back, id, since, first, end }.as_bytes().to_vec()
}

/// A message about a page that a rank keeps for another.
fn about_a_guest(random: &mut Rng, ranks: u32) -> Vec<u8> {
    let page = PageId::of_segment(Rank(small(random, ranks)), small(random, PAGES));
    let all = [
        GuestMessage::Offer { page },
        GuestMessage::Offer { page },
        GuestMessage::Kept { page },
        GuestMessage::Needless { page },
        GuestMessage::Refused { page },
    ];
    all[random.usize(0..all.len())].encode().to_vec()
}

/// Sends a forged message from one rank to another.
fn forge(random: &mut Rng, job: &Job) {
    let ranks = job.nodes.len() as u32;
    let (from, to) = (random.u32(0..ranks), random.u32(0..ranks));
    let home = if random.bool() { to } else { from };
    let mut message = match random.u32(0..18) {
        0 => bytes(random, 60),
        1 => BarrierMessage::Arrived(Name::Id(1)).encode(random.u8(32..34)).to_vec(),
        2 => BarrierMessage::Released(Name::Anonymous).encode(random.u8(32..34)).to_vec(),
        3..7 => about_bytes(random, ranks),
        7..9 => about_writes(random),
        9..11 => about_a_guest(random, ranks),
        _ => about_a_page(random, ranks, Rank(home), Rank(to)),
    };
    if random.u32(0..16) == 0 {
        mutate(random, &mut message);
    }
    // Without room in the conduit the message is lost.
    let _ = job.nodes[from as usize].conduit.send(Rank(to), &message, &[], Urgency::Now);
}

/// Lets something happen at a rank.
fn step(random: &mut Rng, job: &mut Job) -> Result<(), UserError> {
    let rank = random.usize(0..job.nodes.len());
    match random.u32(0..8) {
        0..3 => job.drive(rank)?,
        3 => while job.take(rank) {},
        4 if !job.nodes[rank].tasks.is_empty() => job.go_on(rank, random.usize(0..job.nodes[rank].tasks.len())),
        5 if job.nodes[rank].operations.len() < 3 => {
            let home = random.usize(0..job.nodes.len());
            let start_bytes = random.usize(0..PAGES as usize) * PAGE_BYTES;
            let what = if random.bool() { What::Get } else { What::Put };
            job.start(rank, what, Range { home, start_bytes, len_bytes: 64 }, random);
        }
        6 if random.u32(0..20) == 0 => job.nodes[rank].engine.flush(),
        _ => {
            (0..job.nodes[rank].operations.len()).rev().for_each(|at| _ = job.advance(rank, at));
        }
    }
    Ok(())
}

fn attacked_job(random: &mut Rng) -> u64 {
    let ranks = random.u32(2..4);
    let hosts = if random.bool() { (0..ranks).collect() } else { vec![0; ranks as usize] };
    let network = Settings { hosts, seed: random.u64(..), peer_memory: random.bool(), ..Settings::immediate(ranks) };
    let shape = Shape {
        ranks: vec![memory::Shape { pages: PAGES, frames: FRAMES }; ranks as usize],
        network,
        cooperative: random.u32(0..4) > 0,
        stripe_pages: None,
        gap_bytes: 0,
        disk_depth: 2,
        mapper: mapper::Settings::WIDE,
        policy: PolicyKind::default(),
        ships: random.bool().then_some(64),
        offers_max: 1,
        block_slots: 4,
        told_itself_max: 16,
    };
    let mut job = Job::new(shape, random);
    // Peers that break the protocol may cost bytes.
    job.model.is_tainted = true;
    let mut forged = 0;
    for _ in 0..STEPS_MAX {
        if random.u32(0..3) == 0 {
            forge(random, &job);
            forged += 1;
        }
        if let Err(line) = step(random, &mut job) {
            assert!(line.to_string().ends_with("; do all ranks run the same version of vgasnet?"), "{line}");
            break;
        }
    }
    forged
}

#[test]
fn forged_messages_end_the_job_with_a_line_or_are_harmless() {
    run("-p vgasnet --test engine_simulation forged", 20_000, attacked_job);
}
