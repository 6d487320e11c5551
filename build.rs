//! Linking of the shared library.

include!("packaging/soname.rs");

// rustc passes the exported symbols to the linker in its own version script: only the C boundary and the interposed
// functions (`tests/c_interface/header.rs`). scripts/install links the library again to give the symbols versions.
//
// GCC's unwinder stays in libgcc_s. glibc's thread cancellation unwinds through frames of the library with the unwinder
// of libgcc_s, and a second copy in here would not know its contexts.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=packaging/soname.rs");
    versioned("libvgasnet.so", "libvgasnet.so");
    // The library's threads run until the process ends, so dlclose must not unmap it.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
