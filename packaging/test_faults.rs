// Variables for tests. Included by build scripts.

/// Sets `test_faults` in the profiles used for tests. Code under it reads variables with the prefix `VGASNET_TEST_`.
/// Releases are built without it.
fn test_faults() {
    println!("cargo::rustc-check-cfg=cfg(test_faults)");
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    // Cargo's PROFILE/build/PACKAGE/out.
    let profile = out.ancestors().nth(3).and_then(std::path::Path::file_name);
    if profile.is_some_and(|profile| ["quick", "checked", "debug"].iter().any(|name| profile == *name)) {
        println!("cargo::rustc-cfg=test_faults");
    }
}
