// The versioned name of a shared library. Included by build scripts.

/// The version of the binary interface. A program that was linked with a library of another number does not start with this one.
/// docs/internals/packages.md says when it goes up.
const ABI: u32 = 0;

/// Has the linker write a versioned name into the shared library `installed`. Cargo calls the file `built`: links of the versioned name
/// beside it let programs that were linked with it run from cargo's directories, too.
fn versioned(installed: &str, built: &str) {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{installed}.{ABI}");
    // By this a debugger finds what scripts/install takes out of the library.
    println!("cargo::rustc-cdylib-link-arg=-Wl,--build-id=sha1");
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    // Cargo's PROFILE/build/PACKAGE/out.
    let Some(profile) = out.ancestors().nth(3) else { return };
    for dir in [profile.to_owned(), profile.join("deps")] {
        let link = dir.join(format!("{built}.{ABI}"));
        if dir.is_dir() && !link.is_symlink() {
            // Another build may have made it meanwhile.
            let made = std::os::unix::fs::symlink(built, &link);
            assert!(made.is_ok() || link.is_symlink(), "{}: {made:?}", link.display());
        }
    }
}
