//! Finds the GASNet that is installed, compiles the shim with its flags, makes bindings of the shim's header, and links it all.

#[cfg(feature = "link")]
#[path = "build/site.rs"]
mod site;

#[cfg(feature = "link")]
#[path = "build/link.rs"]
mod link;

#[cfg(not(feature = "link"))]
fn main() {}

#[cfg(feature = "link")]
fn main() {
    for variable in ["GASNET_PC", "GASNET_ROOT", "GASNET_CONDUIT", "PKG_CONFIG", "PKG_CONFIG_PATH"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=build");
    if let Err(line) = build() {
        println!("cargo::error=the gasnet conduit: {line}");
        std::process::exit(1);
    }
}

#[cfg(feature = "link")]
fn build() -> Result<(), String> {
    let site = site::Site::find()?;
    println!("cargo::rustc-env=VGASNET_GASNET_BIN={}", site.programs().display());
    println!("cargo::rustc-env=VGASNET_GASNET_COMPILE={}", [&site.compiler[..], &site.flags].concat().join(" "));
    println!("cargo::rustc-env=VGASNET_GASNET_MPIEXEC={}", site.mpi_launcher());
    compile(&site)?;
    bind()?;
    println!("cargo::rustc-env=VGASNET_GASNET_LIBRARIES={}", link::link(&site)?.join(" "));
    Ok(())
}

#[cfg(feature = "link")]
fn compile(site: &site::Site) -> Result<(), String> {
    let is_ex = site.includes.iter().any(|dir| dir.join("gasnetex.h").is_file());
    let compiler = site.compiler.first().ok_or("GASNet does not name its C compiler")?;
    let mut build = cc::Build::new();
    build.compiler(compiler).flags(&site.compiler[1..]).flags(&site.flags);
    build.file("src/shim_both.c").file(if is_ex { "src/shim_ex.c" } else { "src/shim_1.c" });
    // Warnings of GASNet's headers are not for us to report.
    build.warnings(false);
    build.try_compile("vgasnet_gasnet_shim").map_err(|error| {
        let is_missing = error.to_string().contains("NotFound");
        let what = if is_missing {
            "is not here: install it, or build GASNet with a compiler that is"
        } else {
            "fails, as it says above"
        };
        format!("`{compiler}`, the C compiler of the GASNet found as {}, {what}", site.name)
    })
}

/// Bindgen panics where it finds no libclang.
#[cfg(feature = "link")]
fn bind() -> Result<(), String> {
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets no OUT_DIR")?);
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let made = std::panic::catch_unwind(|| {
        bindgen::Builder::default()
            .header("src/shim.h")
            .allowlist_item("vgasnet_gn_.*|VGASNET_GN_.*")
            .derive_default(true)
            .layout_tests(false)
            .rust_edition(bindgen::RustEdition::Edition2024)
            .generate()
    });
    std::panic::set_hook(quiet);
    let bindings = match made {
        Ok(made) => made.map_err(|error| format!("bindgen cannot read the shim's header: {error}"))?,
        Err(_) => {
            return Err("bindgen finds no libclang; install it (Debian: libclang-dev), or set LIBCLANG_PATH".into());
        }
    };
    bindings.write_to_file(out.join("bindings.rs")).map_err(|error| format!("cannot write bindings.rs: {error}"))
}
