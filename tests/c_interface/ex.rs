//! Clients of GASNet-EX: the programs `tests/c/ex_*.c`, through `gasnetex.h` and `gasnet.h`.

use crate::support::gasnet::{Compiler, Mode, ex_program, in_all_ways};
use crate::support::run::{Setup, run, run_with, some_of};
use std::path::{Path, PathBuf};

/// A segment may be several times as large as the pool.
pub const fn setup(ranks: u32) -> Setup {
    Setup { ranks, page_bytes: 64 << 10, pool_pages: 8, peer_memory: ranks != 4, cooperative: true }
}

pub fn chapter(name: &str) {
    in_all_ways(|compiler, mode| ex_program(name, compiler, mode, &[]), &[1, 2, 4], setup);
}

#[test]
fn from_init_to_the_end_of_main() {
    chapter("ex_path");
}

#[test]
fn objects_and_what_they_say() {
    chapter("ex_objects");
}

#[test]
fn gets_and_puts() {
    chapter("ex_rma");
}

#[test]
fn messages() {
    chapter("ex_messages");
}

#[test]
fn messages_whose_payload_is_negotiated() {
    chapter("ex_prepared");
}

#[test]
fn what_threads_and_programs_do_last() {
    chapter("ex_ends");
}

/// The stack above the throwing frame of the client is intact when its runtime ends the process.
#[test]
fn exceptions_end_the_rank_where_they_are_thrown() {
    for compiler in [Compiler::GccC99, Compiler::GccCxx17, Compiler::ClangCxx17] {
        if !compiler.is_here() {
            continue;
        }
        let program = ex_program("ex_thrown", compiler, Mode::Par, &[]);
        run(&program, &["caught"], setup(2)).expect(0);
        let is_cxx = !matches!(compiler, Compiler::GccC99);
        for (part, left) in [("handler", "a handler of Active Messages"), ("reduction", "a function of a reduction")] {
            let ended = run(&program, &[part], setup(2));
            if is_cxx {
                let line = format!("exception: an exception leaves {left}, which it must not; catch it there");
                assert!(ended.stderr.contains(&line) && ended.stderr.contains("thrown on purpose"), "{ended}");
                assert_eq!(ended.status, Some(128 + libc::SIGABRT), "{ended}");
            } else {
                ended.expect(0);
            }
        }
    }
}

#[test]
fn a_client_communicates_before_it_has_a_segment() {
    chapter("ex_early");
    let program = ex_program("ex_early", Compiler::GccC99, Mode::Seq, &[]);
    for ranks in [1, 3] {
        run(&program, &["nothing"], setup(ranks)).expect(0);
        run(&program, &["none"], setup(ranks)).expect(0);
    }
    let put = run(&program, &["put"], setup(2));
    assert!(put.stderr.contains(" attached no segment"), "{}", put.stderr);
    assert_ne!(put.status, Some(0));
}

#[test]
fn both_interfaces_mixed() {
    chapter("ex_mixed");
}

/// The segment is all that there may be, as Chapel's heap.
#[test]
fn a_runtime_with_its_stacks_and_locks_in_the_segment() {
    let program = ex_program("ex_locales", Compiler::GccC99, Mode::Par, &[]);
    for (ranks, pool_pages) in [(1, 16), (2, 16), (2, 400), (4, 32)] {
        let setup = Setup { pool_pages, ..setup(ranks) };
        run_with(&program, &["6291456"], setup, &[("GASNET_MAX_SEGSIZE", "6M")]).expect(0);
    }
}

#[test]
fn teams_by_color_and_by_list() {
    chapter("ex_teams");
}

#[test]
fn collectives_of_teams() {
    chapter("ex_coll");
    let program = ex_program("ex_coll", Compiler::GccC99, Mode::Seq, &[]);
    run_with(&program, &[], setup(2), &[("VGASNET_COOPERATIVE", "0")]).expect(0);
}

/// The error, the number of ranks, the function that reports it, and its message.
const WRONG_COLLECTIVES: [(&str, u32, &str, &str); 26] = [
    ("gone", 1, "gex_Coll_BarrierNB", "is no team: it was destroyed, or is something else"),
    ("gone-twice", 1, "gex_TM_Destroy", "is no team: it was destroyed, or is something else"),
    ("all", 1, "gex_TM_Destroy", "the team of all ranks is destroyed; it stays until the job ends"),
    ("under-way", 2, "gex_TM_Destroy", "under way; sync them first"),
    ("color", 1, "gex_TM_Split", "the color is -5; give 0 or more"),
    ("pair", 1, "gex_TM_Split", "0x1 is no team"),
    ("scratch", 1, "gex_TM_Split", "the scratch, 32 bytes at 0x"),
    ("twice", 1, "gex_TM_Create", "rank 0 is listed twice"),
    ("outside", 2, "gex_TM_Create", "there is no rank 2 in this team; its ranks are 0 to 1"),
    ("no-rank", 1, "gex_TM_Create", "rank 99 of the job is listed, and is not in the parent"),
    ("endpoint", 1, "gex_TM_Create", "entry 0 of the list names endpoint 7"),
    ("places", 1, "gex_TM_Create", "3 new teams at 0x"),
    ("kinds", 1, "gex_TM_Create", "flags 0x28; give one of GEX_FLAG_TM_GLOBAL_SCRATCH"),
    ("lists", 2, "gex_TM_Create", "of the job is listed, and is not in the parent or lists others"),
    ("root", 2, "gex_Coll_BroadcastNB", "there is no rank 2 in this team; its ranks are 0 to 1"),
    ("null", 1, "gex_Coll_BroadcastNB", "the destination is a null pointer"),
    ("of-pair", 1, "gex_Coll_BarrierNB", "0x1 is no team"),
    ("reduce-root", 1, "gex_Coll_ReduceToOneNB", "there is no rank 9 in this team; its ranks are 0 to 0"),
    ("type", 1, "gex_Coll_ReduceToOneNB", "data type 0x28 is unknown"),
    ("size", 1, "gex_Coll_ReduceToOneNB", "elements of data type 0x8 have 4 bytes; give 8"),
    ("no-size", 1, "gex_Coll_ReduceToOneNB", "elements of data type 0x40 have 0 bytes; give at least 1"),
    ("much", 1, "gex_Coll_ReduceToOneNB", "4611686018427387904 elements of 8 bytes are more than 2^64 bytes"),
    ("operation", 1, "gex_Coll_ReduceToOneNB", "operation 0x40000 is not a reduction"),
    ("bits", 1, "gex_Coll_ReduceToOneNB", "operation 0x4 does not go with data type 0x20"),
    ("user-type", 1, "gex_Coll_ReduceToOneNB", "operation 0x8 does not go with data type 0x40"),
    ("function", 1, "gex_Coll_ReduceToOneNB", "operation GEX_OP_USER comes with a null pointer"),
];

#[test]
fn wrong_teams_and_collectives_end_the_job_with_a_line() {
    let program = ex_program("ex_coll_bad", Compiler::GccC99, Mode::Seq, &[]);
    for (what, ranks, call, says) in some_of(WRONG_COLLECTIVES) {
        let ended = run(&program, &[what], setup(ranks));
        let says_so = |line: &str| line.contains(&format!(": {call}: ")) && line.contains(says);
        assert!(ended.expect(1).stderr.lines().any(says_so), "{what}: {ended}");
    }
}

const COMPILERS: [Compiler; 4] = [Compiler::GccC99, Compiler::GccCxx17, Compiler::ClangC99, Compiler::ClangCxx17];

/// The headers for clients, each included before and after the others. All but `gasnet_fwd.h` need the thread mode.
#[test]
fn headers_may_be_included_in_any_order() {
    let headers = [
        "gasnetex",
        "gasnet",
        "gasnet_coll",
        "gasnet_fwd",
        "gasnet_mk",
        "gasnet_portable_platform",
        "gasnet_ratomic",
        "gasnet_tools",
        "gasnet_vis",
    ];
    for header in headers {
        let others: String = headers.iter().map(|other| format!("#include <{other}.h>\n")).collect();
        let text = format!("#include <{header}.h>\n{others}#include <{header}.h>\nextern gex_Rank_t declared;\n");
        let path = source(&format!("ex-alone-{header}.c"), &text);
        for compiler in COMPILERS.into_iter().filter(|compiler| compiler.is_here()) {
            for mode in [Mode::Seq, Mode::Parsync, Mode::Par] {
                let (is_taken, said) = compiler.check_ex(&path, &[mode.define(), "-pedantic"]);
                assert!(is_taken, "{header}.h, {compiler:?}, {mode:?}: {said}");
            }
        }
    }
    let path = source("ex-forward.c", "#include <gasnet_fwd.h>\nextern gex_Event_t declared;\n");
    for compiler in COMPILERS.into_iter().filter(|compiler| compiler.is_here()) {
        let (is_taken, said) = compiler.check_ex(&path, &["-pedantic"]);
        assert!(is_taken, "gasnet_fwd.h, {compiler:?}: {said}");
    }
}

fn source(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("a file of ours");
    path
}

/// Calls that end the job, with the function and a part of its line.
const FATAL: [(&str, &str, &str); 41] = [
    ("team-source", "gex_RMA_PutBlocking", "the local address is 0x12345678"),
    ("team-dest", "gex_RMA_GetBlocking", "the local address is 0x12345678"),
    ("wild-team", "gex_RMA_PutBlocking", "0x12345678 is no team"),
    ("zero-team", "gex_RMA_PutBlocking", "is no team"),
    ("wild-parent", "gex_TM_Split", "0x12345678 is no team"),
    ("wild-endpoint", "gex_EP_QueryIndex", "0x12345678 is no endpoint"),
    ("wild-segment", "gex_Segment_QueryAddr", "0xfffffffffffffff8 is no segment"),
    ("wild-client", "gex_Client_QueryFlags", "0x12345678 is no client"),
    ("wild-domain", "gex_AD_Destroy", "0x12345678 is no atomic domain"),
    ("wild-event", "gex_Event_Wait", "event 0x12345678 is unknown"),
    ("high-event", "gex_Event_WaitAll", "event 0xffffffffffffffff is unknown"),
    ("leaf-late", "gex_Event_Wait", "is a leaf whose root was synced before"),
    ("rank", "gex_RMA_GetBlocking", "there is no rank 1 in this team"),
    ("pair-rank", "gex_RMA_GetBlocking", "rank 5"),
    ("outside", "gex_RMA_PutBlocking", "segment"),
    ("no-team", "gex_RMA_PutBlocking", "is no team"),
    ("null-team", "gex_TM_QuerySize", "the invalid handle"),
    ("collective-pair", "gex_Coll_BarrierNB", "is no team"),
    ("endpoint", "gex_TM_Pair", "there is no endpoint 3"),
    ("no-op", "gex_Event_Wait", "GEX_EVENT_NO_OP is no event"),
    ("group", "gex_RMA_PutNB", "GEX_EVENT_GROUP is for implicit operations"),
    ("event", "gex_RMA_PutNBI", "an implicit put has no event of its own"),
    ("value", "gex_RMA_PutBlockingVal", "a value of 9 bytes"),
    ("region", "gex_NBI_EndAccessRegion", "no access region to end"),
    ("category", "gex_NBI_Wait", "the mask 0x100 names no category"),
    ("waited-twice", "gex_Event_Wait", "names no operation in flight"),
    ("handler", "gex_AM_RequestShort", "handler 5"),
    ("large", "gex_AM_RequestMedium", "131072 bytes"),
    ("defer", "gex_AM_RequestMedium", "event of local completion"),
    ("prepare-defer", "gex_AM_PrepareRequestMedium", "event of local completion"),
    ("request-in-handler", "gex_AM_RequestShort", "a handler sends a request"),
    ("reply-twice", "gex_AM_ReplyShort", "replied to twice"),
    ("described", "active message", "a Short request of 2 arguments for handler 200"),
    ("most", "gex_AM_PrepareRequestMedium", "the least payload, 9 bytes, is more than the most, 8 bytes"),
    ("least", "gex_AM_PrepareRequestMedium", "a payload of at least 131072 bytes; at most 65536"),
    ("nested", "gex_AM_PrepareRequestMedium", "prepared a message already"),
    ("too-much", "gex_AM_CommitRequestMedium", "a payload of 9 bytes in a message that is prepared for 8"),
    ("count", "gex_AM_CommitRequestMedium", "2 arguments for a message that is prepared for 1"),
    ("kind", "gex_AM_CancelRequestLong", "was prepared by gex_AM_PrepareRequestMedium"),
    ("cancelled", "gex_AM_CommitRequestMedium", "is no message that this thread has prepared"),
    ("unknown", "", ""),
];

#[test]
fn calls_that_make_no_sense_end_the_job_with_a_line() {
    let bad = ex_program("ex_bad", Compiler::GccC99, Mode::Par, &[]);
    for (what, call, line) in some_of(FATAL) {
        // A barrier of one rank completes at once, and has no event.
        let ranks = if ["waited-twice", "leaf-late"].contains(&what) { 2 } else { 1 };
        let ended = run_with(&bad, &[what], setup(ranks), &[("VGASNET_CHECK", "1")]);
        if what == "unknown" {
            assert!(ended.expect(0).stdout.contains("returned"), "{ended}");
            continue;
        }
        ended.expect(1);
        let begins = [0, 1].map(|rank| format!("vgasnet: rank {rank}: {call}: "));
        let is_call = |told: &str| begins.iter().any(|begin| told.starts_with(begin));
        let is_told = ended.stderr.lines().any(|told| is_call(told) && told.contains(line));
        // The last of two ranks gets no event, either, and returns.
        assert!(is_told && (ranks == 2 || !ended.stdout.contains("returned")), "{ended}");
    }
}

/// One rank prints why there is no segment, before any rank ends the job.
#[test]
fn an_attach_that_all_ranks_are_refused_is_told_once() {
    let program = ex_program("ex_refused", Compiler::GccC99, Mode::Seq, &[]);
    for (bytes, line) in [("0x4000000000000000", "a segment of "), ("0", "a segment of 0 bytes; give 1 to ")].repeat(10)
    {
        let ended = run(&program, &[bytes], setup(6));
        ended.expect(1);
        let told: Vec<_> = ended.stderr.lines().filter(|told| told.contains(": gex_Segment_Attach: ")).collect();
        let is_it = told.iter().all(|told| told.starts_with("vgasnet: rank 0: ") && told.contains(line));
        assert!(told.len() == 1 && is_it, "{ended}");
    }
}

#[test]
fn calls_that_answer_with_a_code_say_why() {
    let bad = ex_program("ex_bad", Compiler::GccC99, Mode::Seq, &[]);
    for (what, code, call, line) in some_of([
        (
            "register-twice",
            "BAD_ARG",
            "gex_EP_RegisterHandlers",
            "entry 0 of the handler table has index 200 like another",
        ),
        ("register-reserved", "BAD_ARG", "gex_EP_RegisterHandlers", "has index 100"),
        ("register-flags", "BAD_ARG", "gex_EP_RegisterHandlers", "flags without a kind"),
        ("attach-twice", "NOT_INIT", "gex_Segment_Attach", "attached already"),
        ("init-twice", "NOT_INIT", "gex_Client_Init", "initialised already"),
        ("init-both", "NOT_INIT", "vgasnet_init", "initialised already"),
    ]) {
        let ended = run(&bad, &[what], setup(2));
        ended.expect(0);
        let begin = format!(": {call}: ");
        assert!(ended.stdout.contains(&format!("code GASNET_ERR_{code}\n")), "{ended}");
        assert!(ended.stderr.lines().any(|told| told.contains(&begin) && told.contains(line)), "{ended}");
    }
}
