//! Options and surroundings refused by the bench, in one line.

use crate::folder::{BENCH, Folder, text};
use std::process::Command;

#[test]
fn without_a_benchmark_it_says_so() {
    let output = Command::new(BENCH).output().expect("the bench starts");
    assert_eq!(
        (output.status.code(), text(&output.stderr)),
        (Some(2), "vgasnet-bench: no benchmark is named; see --help\n".into())
    );
}

/// Arguments, and a part of the line that refuses them.
const NONSENSE: &[(&[&str], &str)] = &[
    (&["sequential", "--size", "1X"], "'1X'"),
    (&["sequential", "--size", "0"], "--size"),
    (&["sequential", "--size", "1000T"], "free"),
    (&["sequential", "-n", "0"], "'0'"),
    (&["sequential", "-n", "2,x"], "'x'"),
    (&["sequential", "-np", "0"], "'0' for '-n"),
    (&["sequential", "--pool", "1K"], "VGASNET_POOL_SIZE=1K"),
    (&["sequential", "--page", "3M"], "VGASNET_PAGE_SIZE=3M"),
    (&["sequential", "--check"], "--cooperative both"),
    (&["random", "--input", "/"], "not a file"),
    (&["random", "--input", "/etc/passwd", "--size", "1M"], "--input"),
    (&["random", "--input", "/dev/null"], "not a file"),
    (&["random", "--plot", "x.png"], ".svg"),
    (&["false-sharing", "--rounds", "0"], "'0'"),
    (&["false-sharing", "--cooperative", "maybe"], "'maybe'"),
    (&["hit", "-n", "1"], "--only-random"),
    (&["hit", "--pool", "8M"], "16M"),
    (&["operations", "--size", "3M"], "power of two"),
    (&["operations", "--pool", "8M"], "from 4K to 4M"),
    (&["triad", "--size", "0"], "--size 0"),
    (&["triad", "--size", "16777215T"], "--size"),
    (&["triad", "--size", "64M,1000T"], "free"),
    (&["triad", "--pool", "12M"], "16M"),
    (&["triad", "--plot", "x.png"], ".svg"),
    (&["fault", "--faults", "0"], "'0'"),
    (&["fault", "--pool", "16M"], "32M"),
    (&["fault", "--page", "3M"], "VGASNET_PAGE_SIZE=3M"),
    (&["false-sharing", "--check"], "--peer-memory off"),
    (&["small", "--pool", "8M", "--page", "4M"], "32M"),
    (&["small", "--pool", "128K", "--page", "4K"], "260K"),
    (&["small", "--only", "fetch"], "'fetch'"),
    (&["small", "--plot", "x.png"], ".svg"),
    (&["table", "--pool", "16M", "--page", "4M"], "32M"),
    (&["table", "-n", "65000"], "'65000'"),
    (&["gets", "--cache", "1K"], "64K"),
    (&["gets", "--distinct", "3"], "'3'"),
    (&["gets", "--ranges", "some"], "'some'"),
    (&["gets", "--pool", "4M"], "8M"),
    (&["lcc", "--parts", "0"], "--parts 0"),
    (&["lcc", "--scale", "40"], "'40'"),
    (&["lcc", "--source", "/none"], "lcc.c is not in /none"),
    (&["lcc", "--plot", "x.png"], ".svg"),
    (&["barnes-hut", "--bodies", "1"], "'1'"),
    (&["messages", "--messages", "0"], "'0'"),
    (&["figures"], "--out"),
    (&["figures", "--out", "x", "--nodes", "4,2"], "ascending"),
    (&["unheard-of"], "unheard-of"),
];

#[test]
fn nonsense_is_one_line_that_names_it() {
    let folder = Folder::new("nonsense");
    let file = folder.path("none/x");
    let of_file: [(&[&str], &str); 3] = [
        (&["random", "--input", &file], "none/x"),
        (&["random", "--json", &file], "--json"),
        (&["figures", "--out", &file], "none/x"),
    ];
    for (args, part) in NONSENSE.iter().chain(&of_file) {
        let output = folder.run(args);
        let said = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{args:?}: {said}");
        assert!(output.stdout.is_empty(), "{args:?}");
        assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
        assert!(said.starts_with("vgasnet-bench: ") && said.contains(part), "{args:?}: {said}");
    }
}

#[test]
fn what_a_rank_does_is_not_for_users() {
    let output = Command::new(BENCH).args(["rank", "{}"]).env_remove("VGASNET_SMP_JOB").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("vgasnet-bench: \"rank\" is for the ranks"), "{}", text(&output.stderr));
}

#[test]
fn a_rank_of_another_job_starts_none_of_its_own() {
    for name in ["VGASNET_SMP_JOB", "OMPI_COMM_WORLD_RANK"] {
        let output = Command::new(BENCH).arg("hit").env(name, "1").output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(&format!("({name} is set)")), "{}", text(&output.stderr));
    }
}
