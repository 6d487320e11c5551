//! How the shared library is linked.

include!("packaging/soname.rs");

// Which symbols it exports, rustc tells the linker by a version script of its own: those of the C boundary and the interposed
// functions, and nothing else (`tests/c_interface/header.rs`). Linkers take no second script, so symbols have no versions.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=packaging/soname.rs");
    versioned("libvgasnet.so", "libvgasnet.so");
    // Its threads run until the process ends, so dlclose must not unmap it.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    unwinds_by_itself();
}

/// Has the shared library bring GCC's unwinder along, of which it needs a few functions when a panic is caught. By default it would
/// depend on libgcc_s.so.1 for them, which not every machine has that runs C programs. The linker finds a script by that library's name
/// first. GCC's unwinders of different versions take each other's contexts.
fn unwinds_by_itself() {
    if std::env::var("CARGO_CFG_TARGET_ENV").as_deref() != Ok("gnu") {
        return;
    }
    let dir = std::path::PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    std::fs::write(dir.join("libgcc_s.so"), "INPUT(libgcc_eh.a)\n").expect("a file of ours");
    println!("cargo::rustc-cdylib-link-arg=-L{}", dir.display());
}
