//! Atomic domains and transfers between lists, for clients of GASNet-EX.

use crate::ex::{chapter, setup};
use crate::support::gasnet::{Compiler, Mode, ex_program};
use crate::support::run::{run, run_with, some_of};

#[test]
fn atomic_domains() {
    chapter("ex_atomics");
}

#[test]
fn transfers_between_lists() {
    chapter("ex_lists");
}

/// The errors of `ex_bytes_bad`: its arguments, the function that reports the error, and its message.
const REFUSED: [(&str, &str, &str, &str); 34] = [
    ("atomic", "operation", "AD_OpNB_I32", "was made for GEX_OP_SET, GEX_OP_FADD, not for GEX_OP_FSUB"),
    ("atomic", "operations", "AD_OpNB_I32", "0x40400 is no atomic operation; give one of GEX_OP_SET, GEX_OP_FADD"),
    ("atomic", "type", "AD_OpNBI_FLT", "the domain is one of GEX_DT_I32; use the function of that type"),
    ("atomic", "rank", "AD_OpNB_I32", "there is no rank 2 in this team; its ranks are 0 to 1"),
    ("atomic", "jobrank", "AD_OpNB_I32", "rank 2 of the job is not in the domain's team of 2 ranks"),
    ("atomic", "not-mine", "AD_OpNB_I32", "GEX_FLAG_AD_MY_RANK or _MY_NBRHD for a number of rank 0"),
    ("atomic", "crooked", "AD_OpNB_I32", "is not aligned; give an address that is a multiple of 4"),
    ("atomic", "outside", "AD_OpNB_I32", "are not inside the segment of rank 1"),
    ("atomic", "no-result", "AD_OpNBI_I32", "the place for the result of operation 0x40000 is a null pointer"),
    ("atomic", "no-domain", "AD_OpNBI_I32", "the atomic domain is the invalid handle"),
    ("atomic", "destroyed", "AD_OpNB_I32", "is no atomic domain: it was destroyed"),
    ("atomic", "destroyed-twice", "AD_Destroy", "is no atomic domain: it was destroyed"),
    ("atomic", "no-place", "AD_Create", "the place for the atomic domain is a null pointer"),
    ("atomic", "no-team", "AD_Create", "the team is the invalid handle"),
    ("atomic", "pair", "AD_Create", "is no team"),
    ("atomic", "user-type", "AD_Create", "0x40 is no type of numbers; give one of GEX_DT_I32"),
    ("atomic", "two-types", "AD_Create", "0x5 is no type of numbers"),
    ("atomic", "no-operations", "AD_Create", "operations 0x0"),
    ("atomic", "user-operation", "AD_Create", "operations 0x40000000, of which 0x40000000 do not exist"),
    ("atomic", "bits-of-doubles", "AD_Create", "GEX_OP_FXOR on numbers of type GEX_DT_DBL"),
    ("atomic", "two-favors", "AD_Create", "flags 0x5; give one of GEX_FLAG_AD_FAVOR_"),
    ("list", "lengths", "VIS_VectorPutBlocking", "the destination list has 9 bytes and the source list 8"),
    ("list", "no-list", "VIS_VectorGetNBI", "the source list of 2 entries is a null pointer"),
    ("list", "null-region", "VIS_VectorPutBlocking", "source of 8 bytes is a null pointer"),
    ("list", "addresses", "VIS_IndexedPutNBI", "the destination list has 8 bytes and the source list 4"),
    ("list", "no-rank", "VIS_IndexedGetBlocking", "there is no rank 2 in this team"),
    ("list", "no-team", "VIS_IndexedGetBlocking", "the team is the invalid handle"),
    ("list", "before", "VIS_StridedGetBlocking", "are not inside the segment of rank 0"),
    ("list", "no-strides", "VIS_StridedPutBlocking", "the destination stride list of 1 entries is a null pointer"),
    ("list", "no-counts", "VIS_StridedPutBlocking", "the count list of 1 entries is a null pointer"),
    ("list", "huge", "VIS_StridedPutBlocking", "are more than 2^64 bytes"),
    ("list", "handler", "VIS_SetPeerCompletionHandler", "handler 127 is not a client's; give 128 to 255, or 0"),
    ("list", "payload", "VIS_SetPeerCompletionHandler", "a payload of 128 bytes at 0x"),
    ("list", "no-payload", "VIS_SetPeerCompletionHandler", "a payload of 1 bytes at 0x0; give at most 127"),
];

#[test]
fn atomic_operations_and_lists_that_make_no_sense_end_the_job_with_one_line() {
    let program = ex_program("ex_bytes_bad", Compiler::GccC99, Mode::Seq, &[]);
    for (chapter, what, function, text) in some_of(REFUSED) {
        let ended = run(&program, &[chapter, what], setup(2));
        ended.expect(1);
        let lines: Vec<_> = ended.stderr.lines().filter(|line| line.starts_with("vgasnet: rank 1: ")).collect();
        assert_eq!(lines.len(), 1, "{ended}");
        assert!(lines[0].starts_with(&format!("vgasnet: rank 1: gex_{function}: ")), "{what}: {ended}");
        assert!(lines[0].contains(text), "{what}: {ended}");
    }
}

#[test]
fn ranks_that_make_different_atomic_domains_are_told_so() {
    let program = ex_program("ex_bytes_bad", Compiler::GccC99, Mode::Seq, &[]);
    const CHECKED: &[(&str, &str)] = &[("VGASNET_CHECK", "1")];
    run_with(&program, &["differ", "nothing"], setup(3), CHECKED).expect(0);
    for (what, texts) in [
        (
            "operations",
            [
                "GEX_OP_SET, GEX_OP_GET and flags 0x0, but rank 1 of",
                "but rank 0 of the team has given GEX_DT_I64, GEX_OP_SET, GEX_OP_GET",
            ],
        ),
        ("flags", ["flags 0x4, but rank 1 of", "and flags 0x0, but rank 0 of"]),
    ] {
        let ended = run_with(&program, &["differ", what], setup(3), CHECKED);
        let is_line =
            |line: &str| line.contains(": gex_AD_Create: GEX_DT_I64, ") && texts.iter().any(|text| line.contains(text));
        assert!(ended.expect(1).stderr.lines().any(is_line), "{what}: {ended}");
    }
}
