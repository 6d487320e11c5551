//! How the shared library is linked.

include!("packaging/soname.rs");
include!("packaging/test_faults.rs");

// Which symbols it exports, rustc tells the linker by a version script of its own: those of the C boundary and the interposed
// functions, and nothing else (`tests/c_interface/header.rs`). Symbols have versions once scripts/install has linked it again.
//
// GCC's unwinder stays in libgcc_s: that of glibc's thread cancellation calls into frames of the library, and a copy in here would not know
// its contexts.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=packaging/soname.rs");
    println!("cargo::rerun-if-changed=packaging/test_faults.rs");
    versioned("libvgasnet.so", "libvgasnet.so");
    // Its threads run until the process ends, so dlclose must not unmap it.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    test_faults();
}
