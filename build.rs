//! How the shared library is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Programs find the library by this name, wherever it was when they were linked.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libvgasnet.so");
    // Its threads run until the process ends, so dlclose must not unmap it.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
