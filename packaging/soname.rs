// The versioned name of a shared library. Included by build scripts.

/// The version of the binary interface. A program linked with another version does not start with this library.
/// docs/internals/packages.md has the rules for incrementing it.
const ABI: u32 = 0;

/// Passes the versioned name of the shared library `installed` to the linker. Cargo calls the file `built`. Links with
/// the versioned name next to it let linked programs run from cargo's directories, too.
fn versioned(installed: &str, built: &str) {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{installed}.{ABI}");
    // The build ID lets a debugger find the debug information split off by scripts/install.
    println!("cargo::rustc-cdylib-link-arg=-Wl,--build-id=sha1");
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    // Cargo's PROFILE/build/PACKAGE/out.
    let Some(profile) = out.ancestors().nth(3) else { return };
    for dir in [profile.to_owned(), profile.join("deps")] {
        let link = dir.join(format!("{built}.{ABI}"));
        if dir.is_dir() && !link.is_symlink() {
            // A concurrent build may have created it in the meantime.
            let made = std::os::unix::fs::symlink(built, &link);
            assert!(made.is_ok() || link.is_symlink(), "{}: {made:?}", link.display());
        }
    }
}
