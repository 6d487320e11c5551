//! The programs of these tests, and the means to run them.
#![allow(dead_code, reason = "each test uses some of it")]

use vgasnet_preloaded::Suite;

pub static SUITE: Suite = Suite {
    mpicc: env!("VGASNET_MPICC"),
    programs: concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs"),
    scratch: env!("CARGO_TARGET_TMPDIR"),
    library: ("libvgasnet_mpi_io.so", "libvgasnet-mpi-io.so"),
    beside: &["libvgasnet.so.0"],
    tool: None,
    variables: &[
        "VGASNET_MPI_FILES",
        "VGASNET_PAGE_SIZE",
        "VGASNET_POOL_SIZE",
        "VGASNET_CONDUIT",
        "EXPECT_CACHED",
        "TOOL_FILE",
        "VGASNET_MPICC",
        "VGASNET_TEST_MPI_TOOLS",
    ],
};

/// All files are to be cached.
pub const ALL_FILES: (&str, &str) = ("VGASNET_MPI_FILES", "*");

/// The program requires its files to be cached.
pub const EXPECTED: (&str, &str) = ("EXPECT_CACHED", "1");
