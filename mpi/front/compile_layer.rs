include!("../../packaging/soname.rs");

/// Compiles the C layer of a library loaded before MPI, with the headers found by `mpi/front`, and names the library.
/// Included by build scripts.
fn compile_layer(sources: &[&str], library: &str) {
    for name in ["mpi_4", "open_mpi"] {
        println!("cargo::rustc-check-cfg=cfg({name})");
    }
    if std::env::var_os("CARGO_FEATURE_LINK").is_none() {
        return;
    }
    println!("cargo::rerun-if-changed=src/layer.h");
    println!("cargo::rerun-if-changed=../../packaging/soname.rs");
    sources.iter().for_each(|file| println!("cargo::rerun-if-changed={file}"));
    let told =
        |what: &str| std::env::var(format!("DEP_VGASNET_MPI_FRONT_{what}")).expect("mpi/front's build script says it");
    let mut build = cc::Build::new();
    build.files(sources).std("c11").define("_GNU_SOURCE", None).warnings(true).extra_warnings(true);
    build.include(told("INCLUDE")).flags(told("FLAGS").split_whitespace());
    build.compile(&format!("{}_layer", library.replace('-', "_")));
    for name in told("NAMES").split_whitespace() {
        println!("cargo::rustc-cfg={name}");
    }
    versioned(&format!("lib{library}.so"), &format!("lib{}.so", library.replace('-', "_")));
    println!("cargo::rustc-env=VGASNET_MPICC={}", told("MPICC"));
}
