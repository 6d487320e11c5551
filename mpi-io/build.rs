//! Compiles the C layer with the headers of the site's MPI, as `mpi-front` does.

fn main() {
    for name in ["mpi_4", "open_mpi"] {
        println!("cargo::rustc-check-cfg=cfg({name})");
    }
    if std::env::var_os("CARGO_FEATURE_LINK").is_none() {
        return;
    }
    for file in ["src/layer.c", "src/layer.h", "src/types.c"] {
        println!("cargo::rerun-if-changed={file}");
    }
    let told =
        |what: &str| std::env::var(format!("DEP_VGASNET_MPI_FRONT_{what}")).expect("mpi-front's build script says it");
    let mut build = cc::Build::new();
    build.files(["src/layer.c", "src/types.c"]);
    build.std("c11").define("_GNU_SOURCE", None).warnings(true).extra_warnings(true);
    build.include(told("INCLUDE")).flags(told("FLAGS").split_whitespace()).compile("vgasnet_mpi_io_layer");
    for name in told("NAMES").split_whitespace() {
        println!("cargo::rustc-cfg={name}");
    }
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libvgasnet-mpi-io.so");
    println!("cargo::rustc-env=VGASNET_MPICC={}", told("MPICC"));
}
