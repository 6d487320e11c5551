//! Misuse of the C interface by programs: one line each, and the end of the job where GASNet ends it.

use crate::programs::small;
use crate::support::compile::{self, Language, Linking};
use crate::support::run::{run, run_with, some_of};

/// Errors of `fatal`: its argument, the function that reports the error, and its message.
const ERRORS: [(&str, &str, &str); 32] = [
    ("outside", "vgasnet_get", "are not inside the segment of rank 0"),
    ("wild-number", "vgasnet_get", "the local address is 0x1000, and not all of the 8 bytes from there are memory"),
    ("wild-source", "vgasnet_put_nb_bulk", "argument 3 is 0x1000, and not all of the 300 bytes"),
    ("wild-table", "vgasnet_getSegmentInfo", "argument 1 is 0x1000, and not all of the "),
    ("wild-list", "vgasnet_putv_bulk", "argument 5 is 0x1000, and not all of the 48 bytes"),
    ("misaligned-handles", "vgasnet_try_syncnb_all", "; give an address that is a multiple of 8"),
    ("short-handles", "vgasnet_wait_syncnb_all", "with items of more than 2^64 bytes"),
    ("before-segment", "vgasnet_put_nb", "are not inside the segment of rank 0"),
    ("too-long", "vgasnet_memset", "18446744073709551615 bytes"),
    ("no-such-rank", "vgasnet_put_nbi_bulk", "there is no rank "),
    ("null-destination", "vgasnet_get_nb_bulk", "destination of 8 bytes is a null pointer"),
    ("null-source", "vgasnet_put", "source of 8 bytes is a null pointer"),
    ("value-of-9", "vgasnet_put_val", "a value has 1 to 8 bytes"),
    ("value-of-0", "vgasnet_get_nb_val", "a value has 1 to 8 bytes"),
    ("null-handles", "vgasnet_wait_syncnb_some", "3 handles is a null pointer"),
    ("null-valget", "vgasnet_wait_syncnb_valget", "null handle"),
    ("null-name", "vgasnet_getenv", "null pointer"),
    ("unknown-flags", "vgasnet_barrier_notify", "flags 0x4"),
    ("wait-without-notify", "vgasnet_barrier_wait", "has not notified"),
    ("try-without-notify", "vgasnet_barrier_try", "has not notified"),
    ("end-without-begin", "vgasnet_end_nbi_accessregion", "no access region"),
    ("no-handler", "active message", "for handler 200, which is not registered here"),
    ("notify-twice", "vgasnet_barrier_notify", "has notified already"),
    ("begin-twice", "vgasnet_begin_nbi_accessregion", "open already"),
    ("sync-in-region", "vgasnet_try_syncnbi_puts", "access region is open"),
    ("dead-handle", "vgasnet_try_syncnb_all", "names no operation in flight"),
    ("twice-in-array", "vgasnet_wait_syncnb_all", "names no operation in flight"),
    ("atomic-misaligned", "vgasnet_atomic_u64", "4 of rank 0 is not aligned; give an address that is a multiple of 8"),
    (
        "atomic-misaligned-half",
        "vgasnet_atomic_u32_nbi",
        "2 of rank 0 is not aligned; give an address that is a multiple of 4",
    ),
    ("atomic-unknown", "vgasnet_atomic_u64_nb", "operation 10; give one of VGASNET_ATOMIC_ADD to VGASNET_ATOMIC_IMAX"),
    ("atomic-no-such-rank", "vgasnet_atomic_u32", "; ranks are 0 to "),
    ("atomic-outside", "vgasnet_atomic_u64_nbi", "are not inside the segment of rank 0"),
];

#[test]
fn errors_without_a_code_end_the_job_with_one_line() {
    let program = compile::program("fatal", Language::C99, Linking::Shared);
    for ranks in some_of([1, 3]) {
        for (error, function, text) in ERRORS {
            let ended = run_with(&program, &[error], small(ranks, 4, true, true), &[("VGASNET_CHECK", "1")]);
            ended.expect(1);
            let lines: Vec<_> = ended.stderr.lines().collect();
            assert_eq!(lines.len(), 2, "{ended}");
            assert!(lines[0].starts_with(&format!("vgasnet: rank {}: {function}: ", ranks - 1)), "{ended}");
            assert!(lines[0].contains(text), "{ended}");
        }
    }
}

#[test]
fn what_gasnet_lets_pass_passes_with_one_warning_of_a_kind() {
    let program = compile::program("habits", Language::C99, Linking::Shared);
    for ranks in [1, 3] {
        let ended = run(&program, &[], small(ranks, 5, true, true));
        let mut lines: Vec<_> = ended.expect(0).stderr.lines().collect();
        assert!(lines.iter().all(|line| line.contains("; the call is ignored, and VGASNET_CHECK=1 ends")), "{ended}");
        lines.sort_unstable();
        let said = |rank, text: &str| {
            lines.iter().filter(|line| line.starts_with(&format!("vgasnet: rank {rank}: {text}"))).count()
        };
        for rank in 0..ranks {
            assert_eq!(said(rank, "vgasnet_barrier_notify: warning: this rank has notified already"), 1, "{ended}");
            assert_eq!(said(rank, "vgasnet_hsl_unlock: warning: a free lock is unlocked"), 1, "{ended}");
        }
        assert_eq!(lines.len(), 2 * ranks as usize, "{ended}");
    }
}

#[test]
fn a_message_for_no_handler_ends_the_job_at_its_target() {
    let program = compile::program("fatal", Language::C99, Linking::Shared);
    let ended = run(&program, &["no-handler-there"], small(3, 4, true, true));
    let line = "vgasnet: rank 0: active message: rank 2 sent a message for handler 201, which is not registered here";
    assert!(ended.expect(1).stderr.contains(line), "{ended}");
}

#[test]
fn calls_that_come_too_early_say_what_to_call_first() {
    let program = compile::program("fatal", Language::Cxx17, Linking::Shared);
    let early = [
        ("mynode-before-init", "vgasnet: vgasnet_mynode: the job is not initialised; call vgasnet_init first"),
        ("put-before-attach", "rank 0: vgasnet_put_val: this rank is not attached; call vgasnet_attach first"),
        ("notify-before-attach", "rank 0: vgasnet_barrier_notify: this rank is not attached"),
    ];
    for (error, line) in early {
        let ended = run(&program, &[error], small(1, 4, true, true));
        assert!(ended.expect(1).stderr.contains(line), "{ended}");
    }
    let ended = run(&program, &["too-large"], small(3, 4, true, true));
    ended.expect(4);
    assert_eq!(ended.stderr.matches("vgasnet_attach: a segment of ").count(), 1, "{ended}");
}
