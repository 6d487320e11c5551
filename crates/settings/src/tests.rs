use super::edit_distance::edit_distance;
use super::*;
use std::path::Path;

const GIB: u64 = 1 << 30;

fn config(vars: &[(&str, &str)], ranks_on_host: u32, memory_available_bytes: u64) -> Result<Config, String> {
    let vars = vars.iter().map(|(name, value)| (name.to_string(), value.to_string()));
    Config::from_env(vars, ranks_on_host, &Machine { memory_available_bytes }).map_err(|error| error.to_string())
}

fn refused(name: &str, value: &str) -> String {
    let line = config(&[(name, value)], 2, 16 * GIB).expect_err(&format!("{name}={value:?} is refused"));
    assert!(line.contains(name), "{line}");
    line
}

#[test]
fn defaults() {
    let config = config(&[("PATH", "/bin"), ("GASNET_X", "1")], 2, 16 * GIB).unwrap();
    assert_eq!(
        config,
        Config {
            storage_dir: "/var/tmp".into(),
            page_bytes: 4 << 20,
            pool_bytes: 4 * GIB,
            segment_limit_bytes: None,
            memory_share_bytes: 8 * GIB,
            caching: Caching {
                cooperative: true,
                cyclic_homes: false,
                keeps_guests: false,
                home_keeps: false,
                peer_memory: true,
                ships: true,
            },
            get_cache_bytes: GIB / 2,
            checks_readonly: false,
            spills: false,
            spill_bytes: None,
            io_fault: None,
            strict: false,
            catches_exit: true,
            stats: false,
            stats_file: None,
            unknown: Vec::new(),
        }
    );
}

#[test]
fn the_default_pool_is_whole_pages_between_one_and_the_maximum() {
    assert_eq!(config(&[], 1, 4 << 40).unwrap().pool_bytes, POOL_BYTES_DEFAULT_MAX);
    assert_eq!(config(&[], 1, 0).unwrap().pool_bytes, 4 << 20);
    assert_eq!(config(&[], 3, (100 << 20) + 1).unwrap().pool_bytes, 16 << 20);
    assert_eq!(config(&[("VGASNET_PAGE_SIZE", "64M")], 64, GIB).unwrap().pool_bytes, 64 << 20);
}

/// A value of each variable.
const VARS: [(&str, &str); 31] = [
    ("TMPDIR", "/ignored"),
    ("GASNET_CATCH_EXIT", "no"),
    ("VGASNET_STORAGE_DIR", "/mnt/nvme"),
    ("VGASNET_PAGE_SIZE", "64k"),
    ("VGASNET_POOL_SIZE", "100K"),
    ("VGASNET_MAX_SEGSIZE", "1T"),
    ("VGASNET_COOPERATIVE", "0"),
    ("VGASNET_HOMES", "owner"),
    ("VGASNET_IDLE_POOLS", "1"),
    ("VGASNET_HOME_KEEPS", "1"),
    ("VGASNET_PEER_MEMORY", "0"),
    ("VGASNET_SHIP", "0"),
    ("VGASNET_GET_CACHE_SIZE", "1M"),
    ("VGASNET_CHECK_READONLY", "1"),
    ("VGASNET_CHECK", "1"),
    ("VGASNET_FILE_SPILL", "1"),
    ("VGASNET_FILE_SPILL_SIZE", "2G"),
    ("VGASNET_STATS", "1"),
    ("VGASNET_STATS_FILE", "/tmp/stats"),
    ("VGASNET_CONDUIT", "smp"),
    ("VGASNET_TEST_IO_ERROR", "write:3"),
    ("VGASNET_SMP_JOB", "anything at all"),
    ("VGASNET_HOST_TIMEOUT", "3600"),
    ("VGASNET_MPIEXEC", "mpiexec -iface v0"),
    ("VGASNET_LAUNCHER", "anything at all"),
    ("VGASNET_AGENT", "anything at all"),
    ("VGASNET_LIBRARY", "anything at all"),
    ("VGASNET_MPI_FILES", "anything at all"),
    ("VGASNET_MPI_CACHE", "anything at all"),
    ("VGASNET_MPI_CACHE_SIZE", "anything at all"),
    ("VGASNET_MPI_CACHE_STATS", "anything at all"),
];

#[test]
fn every_variable_is_taken() {
    let of_vgasnet = VARIABLES.iter().filter(|variable| variable.audience != Audience::GasnetClients);
    assert_eq!(VARS.len() - 2, of_vgasnet.count());
    assert_eq!(
        config(&VARS, 1, GIB).unwrap(),
        Config {
            storage_dir: "/mnt/nvme".into(),
            page_bytes: 64 << 10,
            pool_bytes: 64 << 10,
            segment_limit_bytes: Some(1 << 40),
            memory_share_bytes: GIB,
            caching: Caching {
                cooperative: false,
                cyclic_homes: false,
                keeps_guests: true,
                home_keeps: true,
                peer_memory: false,
                ships: false,
            },
            get_cache_bytes: 1 << 20,
            checks_readonly: true,
            spills: true,
            spill_bytes: Some(2 << 30),
            io_fault: Some(IoFault::once(IoDirection::Write, 3)),
            strict: true,
            catches_exit: false,
            stats: true,
            stats_file: Some("/tmp/stats".into()),
            unknown: Vec::new(),
        }
    );
}

#[test]
fn homes_in_turns_go_with_what_they_can_serve() {
    let homes = ("VGASNET_HOMES", "cyclic");
    assert!(config(&[homes, ("VGASNET_COOPERATIVE", "1")], 1, GIB).unwrap().caching.cyclic_homes);
    assert_eq!(
        refused("VGASNET_HOMES", "all"),
        "VGASNET_HOMES=all is neither owner nor cyclic; allowed: owner or cyclic"
    );
    for (name, value) in [("VGASNET_COOPERATIVE", "0"), ("VGASNET_CHECK_READONLY", "1")] {
        let line = config(&[homes, (name, value)], 1, GIB).unwrap_err();
        assert_eq!(line, format!("VGASNET_HOMES=cyclic does not go with {name}={value}; unset one of the two"));
    }
}

#[test]
fn tmpdir_is_the_default_directory() {
    assert_eq!(config(&[("TMPDIR", "/fast")], 1, GIB).unwrap().storage_dir, Path::new("/fast"));
    assert_eq!(config(&[("TMPDIR", "")], 1, GIB).unwrap().storage_dir, Path::new("/var/tmp"));
    let line = config(&[("TMPDIR", "here")], 1, GIB).unwrap_err();
    assert_eq!(line, "TMPDIR=here is not an absolute path; set VGASNET_STORAGE_DIR");
}

#[test]
fn refuses_malformed_values() {
    for value in ["", "tmp", "./x"] {
        assert!(refused("VGASNET_STORAGE_DIR", value).contains("absolute path"));
    }
    for value in ["", "0", "2K", "4095", "128M", "3M", "4 M", "4MB", "-4M", "18446744073709551616"] {
        assert!(refused("VGASNET_PAGE_SIZE", value).ends_with("where that is larger, to 64M"));
    }
    for value in ["", "lots", "1.5G", "2Q"] {
        assert!(refused("VGASNET_POOL_SIZE", value).contains("is not a size"));
        assert!(refused("VGASNET_MAX_SEGSIZE", value).contains("is not a size"));
    }
    for value in ["", "yes", "2", "01", "true"] {
        assert!(refused("VGASNET_COOPERATIVE", value).ends_with("allowed: 0 or 1"));
    }
    for value in ["63K", "65G", "99999999T"] {
        let line = refused("VGASNET_GET_CACHE_SIZE", value);
        assert!(line.ends_with("allowed: a size from 64K to 64G"), "{line}");
    }
    for value in ["", "SMP", "pigeon"] {
        assert!(refused("VGASNET_CONDUIT", value).contains("allowed: smp, or mpi or gasnet"));
    }
    assert!(refused("GASNET_CATCH_EXIT", "perhaps").contains("is neither yes nor no; allowed: yes or no"));
    for value in ["", "4", "3601", "1.5", "soon"] {
        let line = refused("VGASNET_HOST_TIMEOUT", value);
        assert!(line.ends_with("allowed: a number from 5 to 3600"));
        assert_eq!(host_timeout(Some(value)).unwrap_err().to_string(), line);
    }
    assert_eq!(host_timeout(None).unwrap().as_secs(), 30);
    for value in [
        "",
        "read",
        "read:",
        "read:0",
        "read:+1",
        "read:x",
        "erase:1",
        "read:1:2:3",
        "read:1:0",
        "full:1",
        "full:0:1",
        "full:1:",
        "full:1:2:3",
        "file:1",
        "file-file-read:1",
    ] {
        assert!(refused("VGASNET_TEST_IO_ERROR", value).ends_with("N from 1"), "{value}");
    }
}

#[test]
fn refuses_a_pool_that_cannot_work() {
    assert_eq!(
        refused("VGASNET_POOL_SIZE", "1M"),
        "VGASNET_POOL_SIZE=1M is less than one page; allowed: at least 4M, or less with a lower VGASNET_PAGE_SIZE"
    );
    assert_eq!(
        refused("VGASNET_POOL_SIZE", "9G"),
        "VGASNET_POOL_SIZE=9G is more than this rank's share of the memory available on this host; \
         allowed: at most 8G with 2 ranks here, or more with fewer ranks per host"
    );
    assert_eq!(config(&[("VGASNET_POOL_SIZE", "8192M")], 2, 16 * GIB).unwrap().pool_bytes, 8 * GIB);
    assert!(refused("VGASNET_MAX_SEGSIZE", "4095K").contains("at least 4M"));
}

#[test]
fn an_unknown_name_is_an_error_with_the_nearest_name() {
    let cases = [
        ("VGASNET_POOLSIZE", "VGASNET_POOL_SIZE"),
        ("VGASNET_PAGE_SIZ", "VGASNET_PAGE_SIZE"),
        ("VGASNET_STORAGE", "VGASNET_STORAGE_DIR"),
        ("VGASNET_max_segsize", "VGASNET_MAX_SEGSIZE"),
    ];
    for (unknown, nearest) in cases {
        let line = refused(unknown, "1");
        assert_eq!(line, format!("{unknown} is not a variable of vgasnet; the nearest is {nearest}"));
    }
}

#[test]
fn other_names_are_left_alone() {
    let vars = ["VGASNET_ROOT", "VGASNET_VERSION", "VGASNET_LIB", "VGASNET_SMP_JOBS", "VGASNET_SOMETHING"]
        .map(|name| (name, "1"));
    assert_eq!(config(&vars, 2, 16 * GIB).unwrap().unknown, ["VGASNET_SMP_JOBS", "VGASNET_SOMETHING"]);
}

#[test]
fn the_segment_is_whole_pages_of_what_is_free() {
    let default = config(&[], 1, GIB).unwrap();
    assert_eq!(default.max_segment_bytes(100 * GIB, 4), 25 * GIB / 2 / (4 << 20) * (4 << 20));
    assert_eq!(default.max_segment_bytes(0, 1), 0);
    assert_eq!(default.max_segment_bytes((8 << 20) - 1, 1), 0);
    let limited = config(&[("VGASNET_MAX_SEGSIZE", "10M")], 1, GIB).unwrap();
    for most_bytes in [Config::max_segment_bytes, Config::offered_segment_bytes] {
        assert_eq!(most_bytes(&limited, 100 * GIB, 4), 8 << 20);
        assert_eq!(most_bytes(&limited, 20 << 20, 4), 4 << 20);
    }
}

#[test]
fn the_offer_is_bounded_by_disk_and_memory() {
    let default = config(&[], 4, 16 * GIB).unwrap();
    assert_eq!(default.offered_segment_bytes(1000 * GIB, 4), 16 * GIB);
    assert_eq!(default.offered_segment_bytes(160 * GIB, 4), 10 * GIB);
    assert_eq!(default.offered_segment_bytes((64 << 20) - 1, 4), 0);
    // Three jobs, one after the other, take the whole offer.
    let left = (0..3).fold(64 * GIB, |free, _| free - 4 * default.offered_segment_bytes(free, 4));
    assert!(left > 24 * GIB, "{left}");
    let limited = config(&[("VGASNET_MAX_SEGSIZE", "30G")], 4, 16 * GIB).unwrap();
    assert_eq!(limited.offered_segment_bytes(1000 * GIB, 4), 30 * GIB);
}

#[test]
fn the_users_limit_comes_before_gasnets_and_the_programs() {
    let limit = |vars: &[(&str, &str)], program: Option<u64>| {
        config(vars, 1, GIB).unwrap().or_segment_limit(program).segment_limit_bytes
    };
    let both = [("GASNET_MAX_SEGSIZE", "20M"), ("VGASNET_MAX_SEGSIZE", "10M")];
    assert_eq!(limit(&both, Some(30 << 20)), Some(10 << 20));
    assert_eq!(limit(&both[..1], Some(30 << 20)), Some(20 << 20));
    assert_eq!(limit(&[], Some(30 << 20)), Some(30 << 20));
    assert_eq!(limit(&[], None), None);
    // Limits written for GASNet disregard pages.
    assert_eq!(limit(&[("GASNET_MAX_SEGSIZE", "1M")], None), Some(4 << 20));
    assert_eq!(limit(&[], Some(1)), Some(4 << 20));
    assert_eq!(limit(&[("GASNET_MAX_SEGSIZE", "128.0MB/P")], None), Some(128 << 20));
    let half = config(&[("GASNET_MAX_SEGSIZE", "0.5/H")], 4, GIB).unwrap();
    assert_eq!(half.segment_limit_bytes, Some(GIB / 8));
    assert!(refused("GASNET_MAX_SEGSIZE", "0.5/Q").contains("GASNET_MAX_SEGSIZE=0.5/Q"));
}

#[test]
fn help_names_every_variable_that_is_for_users() {
    let help = Config::help();
    for Variable { name, audience, meaning, allowed, default, .. } in &VARIABLES {
        let is_told = help.contains(&format!("\n{name}\n"));
        let prefix = if *audience == Audience::GasnetClients { "GASNET_" } else { PREFIX };
        assert!(name.starts_with(prefix) && is_told == (*audience == Audience::Users), "{name}");
        assert!(!is_told || [meaning, allowed, default].into_iter().all(|text| help.contains(text)), "{name}");
    }
}

/// `docs/reference/settings.md` has the table, too: one per audience, a row per variable.
#[test]
fn the_documents_have_every_variable_that_is_for_somebody() {
    let document =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/settings.md")).unwrap();
    let tables: Vec<_> =
        document.split("| variable | meaning | allowed | default |\n| --- | --- | --- | --- |\n").collect();
    let audiences = [Audience::Users, Audience::GasnetClients, Audience::MpiPrograms];
    assert_eq!(tables.len() - 1, audiences.len());
    for (audience, table) in audiences.into_iter().zip(&tables[1..]) {
        let rows: Vec<_> = table.lines().take_while(|line| line.starts_with('|')).collect();
        let expected = variables(audience).map(|variable| {
            format!("| `{}` | {} | {} | {} |", variable.name, variable.meaning, variable.allowed, variable.default)
        });
        assert_eq!(rows, expected.collect::<Vec<_>>());
    }
}

#[test]
fn edit_distances() {
    for (from, to, distance) in [("", "", 0), ("abc", "", 3), ("abc", "abc", 0), ("kitten", "sitting", 3)] {
        assert_eq!(edit_distance(from, to), distance);
    }
}

#[test]
fn a_conduit_is_known_first() {
    let wanted = |vars: &[(&str, &str)]| {
        wanted_transport(&vars.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect::<Vec<_>>())
    };
    assert_eq!(wanted(&[]), Transport { conduit: None, peer_memory: true });
    let both = wanted(&[("VGASNET_PEER_MEMORY", "0"), ("VGASNET_CONDUIT", "smp"), ("VGASNET_PAGE_SIZE", "nonsense")]);
    assert_eq!(both, Transport { conduit: Some(Conduit::Smp), peer_memory: false });
    assert_eq!(wanted(&[("VGASNET_CONDUIT", "pigeon"), ("VGASNET_PEER_MEMORY", "2")]), wanted(&[]));
}

/// Variables of any name and value are settings, a warning or one line.
#[test]
fn variables_may_be_anything() {
    let names: Vec<_> = VARIABLES.iter().map(|variable| variable.name).collect();
    const WORDS: [&str; 16] =
        ["K", "m", "G", "T", "4", "64", "read", "write", "smp", "mpi", "/var/tmp", "/", "on", "VGASNET_", "SIZE", "10"];
    vgasnet_fuzzing::run("-p vgasnet --lib variables_may_be", 100_000, |random| {
        let mut variables = Vec::new();
        for _ in 0..random.usize(1..4) {
            let name = match random.u32(0..8) {
                0 => "TMPDIR".to_owned(),
                1 => GASNET_MAX_SEGSIZE.to_owned(),
                2 => vgasnet_fuzzing::text(random, &names),
                3 => PREFIX.to_owned() + &vgasnet_fuzzing::text(random, &WORDS),
                _ => names[random.usize(0..names.len())].to_owned(),
            };
            variables.push((name, vgasnet_fuzzing::text(random, &WORDS)));
        }
        let _ = wanted_transport(&variables);
        let machine = Machine { memory_available_bytes: vgasnet_fuzzing::odd_number(random) };
        let ranks_on_host = (vgasnet_fuzzing::odd_number(random) as u32).max(1);
        match Config::from_env(variables.into_iter(), ranks_on_host, &machine) {
            Err(line) => assert!(!line.to_string().contains('\n')),
            Ok(config) => {
                assert!(config.page_bytes.is_power_of_two() && config.pool_bytes >= config.page_bytes);
                assert!((page_bytes_min()..=PAGE_BYTES_MAX).contains(&config.page_bytes));
                let free_bytes = vgasnet_fuzzing::odd_number(random);
                assert!(config.max_segment_bytes(free_bytes, ranks_on_host) % config.page_bytes == 0);
            }
        }
        1
    });
}

#[test]
fn sizes_may_be_anything() {
    vgasnet_fuzzing::run("-p vgasnet --lib sizes_may_be", 500_000, |random| {
        let text = vgasnet_fuzzing::text(random, &["K", "m", "G", "T", "0", "1", "16777215", "5", "\u{661}", "."]);
        if let Ok(bytes) = parse_size(&text) {
            assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
            assert!(parse_size(&format_size_about(bytes)).is_ok_and(|about| about <= bytes));
        }
        1
    });
}
