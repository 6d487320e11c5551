//! The installation as seen by CMake.

use crate::install::{build_dir, is_here, prefix, run};
use crate::support::compile::source_dir;
use crate::support::run::succeed;
use std::path::Path;
use std::process::Command;

#[test]
fn shared_static_gasnet_and_fortran_are_found() {
    if !is_here("cmake") {
        return;
    }
    let dir = build_dir("cmake");
    std::fs::copy(source_dir().join("tests/gasnet/transfers.c"), dir.join("transfers.cpp")).expect("a copy");
    let text = format!(
        "cmake_minimum_required(VERSION 3.10)\n\
         project(clients C CXX)\n\
         find_package(vgasnet {version} REQUIRED COMPONENTS shared static gasnet)\n\
         find_package(vgasnet 99 QUIET)\n\
         if(vgasnet_FOUND)\n  message(FATAL_ERROR \"a version that there is not\")\nendif()\n\
         find_package(vgasnet {version} QUIET COMPONENTS java)\n\
         if(vgasnet_FOUND)\n  message(FATAL_ERROR \"a component that there is not\")\nendif()\n\
         add_executable(plain {tests}/c/blocking.c)\n\
         target_link_libraries(plain vgasnet::vgasnet)\n\
         add_executable(gasnet transfers.cpp)\n\
         target_include_directories(gasnet PRIVATE {tests}/gasnet)\n\
         target_link_libraries(gasnet vgasnet::gasnet-par)\n\
         add_executable(static {tests}/c/values.c)\n\
         target_link_libraries(static vgasnet::static)\n\
         if(vgasnet_fortran_FOUND)\n  enable_language(Fortran)\n  add_executable(fortran {tests}/../examples/fortran/out_of_core.f90)\n  \
         target_link_libraries(fortran vgasnet::fortran)\nendif()\n",
        version = env!("CARGO_PKG_VERSION"),
        tests = source_dir().join("tests").display()
    );
    std::fs::write(dir.join("CMakeLists.txt"), text).expect("a file of ours");
    let build = dir.join("build");
    let path = format!("-DCMAKE_PREFIX_PATH={}", prefix().display());
    succeed(Command::new("cmake").arg("-S").arg(&dir).arg("-B").arg(&build).arg(path));
    succeed(Command::new("cmake").arg("--build").arg(&build));
    for program in ["plain", "gasnet", "static"] {
        run("vgasnetrun", &build.join(program));
    }
    assert_eq!(build.join("fortran").is_file(), prefix().join("lib/libvgasnet-fortran.a").is_file());
    is_found_by_a_link(&dir);
}

/// As for an installation in /usr/lib that CMake finds by /lib.
fn is_found_by_a_link(dir: &Path) {
    let link = dir.join("lib");
    std::os::unix::fs::symlink(prefix().join("lib"), &link).expect("a link");
    let build = dir.join("build-by-a-link");
    let package = format!("-Dvgasnet_DIR={}", link.join("cmake/vgasnet").display());
    succeed(Command::new("cmake").arg("-S").arg(dir).arg("-B").arg(&build).arg(package));
    succeed(Command::new("cmake").arg("--build").arg(&build).args(["--target", "plain"]));
}
