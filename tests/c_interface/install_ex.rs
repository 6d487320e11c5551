//! The files of `scripts/install` for clients of GASNet-EX, in `gasnet-ex/`: programs are built against them alone, and
//! by the stand-in for GASNet-EX's sources.

use crate::install::{build_dir, client, is_here, launch_as, prefix};
use crate::support::run::succeed;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The networks under whose names clients find this library.
const NETWORKS: &[&str] = if cfg!(feature = "mpi") { &["udp", "mpi"] } else { &["udp"] };

fn tree() -> PathBuf {
    prefix().join("gasnet-ex")
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A variable of a package, or its flags, as words.
fn package(name: &str, which: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.args(which).arg(name).env("PKG_CONFIG_PATH", tree().join("lib/pkgconfig"));
    succeed(&mut command).split_whitespace().map(str::to_owned).collect()
}

fn run(launcher: &str, two: &[&str], program: &Path) {
    let (status, said) = launch_as(launcher, two, program, &[]);
    assert_eq!(status, Some(0), "{} with {launcher}: {said}", program.display());
}

#[test]
fn the_tree_is_complete() {
    for header in std::fs::read_dir(client("../include/gasnet-ex")).expect("the headers") {
        let path = header.expect("a file").path();
        let installed = tree().join("include").join(path.file_name().expect("a name"));
        assert_eq!(text(&path), text(&installed), "{}", installed.display());
    }
    for file in [
        "include/vgasnet.h",
        "include/vgasnet/job.h",
        "lib/libvgasnet.so",
        "lib/libvgasnet.so.0",
        "lib/libvgasnet.a",
        "source/configure",
    ] {
        assert!(tree().join(file).is_file(), "{file} is missing");
    }
    for network in NETWORKS {
        assert!(tree().join(format!("bin/gasnetrun_{network}")).is_file(), "{network}");
        for mode in ["seq", "parsync", "par"] {
            for file in [
                format!("include/{network}-conduit/{network}-{mode}.mak"),
                format!("lib/pkgconfig/gasnet-{network}-{mode}.pc"),
            ] {
                let text = text(&tree().join(&file));
                assert!(
                    !text.contains('@') && text.contains(&format!(" -lgasnet-{network}-{mode} ")),
                    "{file}: {text}"
                );
            }
            // As Realm's build searches for the library.
            for kind in ["so", "a"] {
                let library = tree().join(format!("lib/libgasnet-{network}-{mode}.{kind}"));
                assert!(library.is_file(), "{}", library.display());
            }
        }
    }
    // As UPC++'s configure searches for the version.
    let spec = text(&tree().join("source/docs/GASNet-EX.txt"));
    assert!(spec.contains("\nGEX_SPEC_VERSION_MAJOR 0\nGEX_SPEC_VERSION_MINOR 19\n"), "{spec}");
    if is_here("pkg-config") {
        assert_eq!(package("gasnet-udp-seq", &["--modversion"]), ["2025.8.0"]);
    }
}

/// As Caffeine's installation parses a package.
#[test]
fn packages_name_compilers_and_libraries_by_their_paths() {
    if !is_here("pkg-config") {
        return;
    }
    let lib = tree().join("lib").display().to_string();
    for variable in ["GASNET_CC", "GASNET_CXX", "GASNET_LD"] {
        let words = package("gasnet-udp-par", &[&format!("--variable={variable}")]);
        assert!(Path::new(&words[0]).is_absolute(), "{words:?}");
    }
    let libraries = package("gasnet-udp-par", &["--variable=GASNET_LIBS"]);
    assert_eq!(libraries[0], format!("-L{lib}"));
    assert!(libraries.iter().all(|word| word.starts_with("-L") || word.starts_with("-l")), "{libraries:?}");
    assert_eq!(package("gasnet-udp-par", &["--variable=GASNET_LDFLAGS"]), [format!("-Wl,-rpath,{lib}")]);
}

#[test]
fn through_pkg_config() {
    if !is_here("pkg-config") {
        return;
    }
    let dir = build_dir("ex-pkg-config");
    let other = dir.join("other.c");
    std::fs::write(&other, "#include <gasnetex.h>\nint other(void) { return 0; }\n").expect("a file of ours");
    for network in NETWORKS {
        for (mode, compiler, language) in [("par", "cc", "c"), ("seq", "c++", "c++"), ("parsync", "cc", "c")] {
            let program = dir.join(format!("{network}-{mode}-{language}"));
            let mut command = Command::new(compiler);
            command.args(["-x", language]).args([client("c/ex_path.c"), other.clone()]);
            command.args(["-x", "none", "-o"]).arg(&program);
            succeed(command.args(package(&format!("gasnet-{network}-{mode}"), &["--cflags", "--libs"])));
            run(&format!("gasnet-ex/bin/gasnetrun_{network}"), &["-n", "2"], &program);
            // upcxx-run finds the launcher by this mark, which must occur once.
            let mark = format!("$GASNetConduitName: {} $\0", network.to_uppercase());
            let bytes = std::fs::read(&program).expect("a program");
            let marks = bytes.windows(mark.len()).filter(|window| *window == mark.as_bytes()).count();
            assert_eq!(marks, 1, "{mark}");
        }
    }
}

#[test]
fn launchers_take_gasnets_options() {
    let launched = |name: &str, arguments: &[&str]| {
        let mut command = Command::new(tree().join("bin").join(name));
        command
            .args(arguments)
            .args(["sh", "-c", "echo rank"])
            .env("GASNET_SPAWNFN", "L")
            .env_remove("GASNET_PSHM_NODES");
        succeed(&mut command).lines().filter(|line| *line == "rank").count()
    };
    for name in ["amudprun", "gasnetrun_udp"] {
        assert_eq!(launched(name, &["-np", "3"]), 3);
        assert_eq!(launched(name, &["-n", "2", "-E", "A,B", "-v"]), 2);
        let shown = Command::new(tree().join("bin").join(name)).args(["-v", "-EA,B", "-n", "1", "true"]).output();
        let shown = String::from_utf8_lossy(&shown.expect("a script").stderr).into_owned();
        assert!(shown.contains(" --env A,B "), "{shown}");
        assert_eq!(launched(name, &["-N", "1", "-n2", "--"]), 2);
        assert_eq!(launched(name, &[]), 1);
        for wrong in [&["-np"][..], &["-n", "2"], &["-z", "true"]] {
            let output = Command::new(tree().join("bin").join(name)).args(wrong).output().expect("a script");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.code() == Some(2) && said.starts_with(&format!("usage: {name} ")),
                "{wrong:?}: {said}"
            );
        }
    }
}

/// As UPC++ configures and builds GASNet: in a directory of its own, with these options and targets.
#[test]
fn what_stands_in_for_the_sources_builds_clients() {
    if !is_here("make") {
        return;
    }
    let dir = build_dir("ex-source");
    succeed(Command::new(tree().join("source/Bootstrap")).arg("-y"));
    let mut configure = Command::new(tree().join("source/configure"));
    configure.args([
        "--disable-parsync",
        "--enable-seq",
        "--enable-par",
        "--enable-pthreads",
        "--enable-udp",
        "--enable-debug",
    ]);
    configure.args(["--with-cc=/usr/bin/cc -g", "--with-cxx=c++", "--with-cflags=-Wall"]).current_dir(&dir);
    succeed(&mut configure);
    let make = |arguments: &[&str]| succeed(Command::new("make").arg("-C").arg(&dir).args(arguments));
    for arguments in [
        &["-C", "udp-conduit", "udp-seq.mak", "seq", "par"][..],
        &["-C", "other/amudp", "amudprun"],
        &["all", "seq", "par", "parsync"],
    ] {
        make(arguments);
    }
    let installed = dir.join("installed");
    make(&["install", &format!("prefix={}", installed.display())]);
    std::fs::write(dir.join("in"), "@CONDUITS@, @CXX_FAMILY@, @CC_SUBFAMILY@, @GASNET_THREAD_LIBS@\n")
        .expect("a file of ours");
    succeed(Command::new("./config.status").env("CONFIG_FILES", "out:in").current_dir(&dir));
    let filled = text(&dir.join("out"));
    assert_eq!(filled, format!("{}, GNU, none, -lpthread\n", NETWORKS.join(" ")));
    // Clients that read the file without make find all variables in it.
    let fragment = text(&installed.join("include/udp-conduit/udp-seq.mak"));
    let mut lines = fragment.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    assert!(fragment.contains("\nGASNET_LIBS = -L") && lines.all(|line| line.contains(" =")), "{fragment}");
    // From the build directory and from the installation.
    for (fragments, name) in [(dir.clone(), "built"), (installed.join("include"), "installed")] {
        let makefile = format!(
            "include {fragments}/udp-conduit/udp-par.mak\n\
             {name}-program: {source}\n\
             \t$(GASNET_CC) $(GASNET_CPPFLAGS) $(GASNET_CFLAGS) $< -o $@ $(GASNET_LIBS)\n",
            fragments = fragments.display(),
            source = client("c/ex_path.c").display()
        );
        let file = format!("{name}.mk");
        std::fs::write(dir.join(&file), makefile).expect("a file of ours");
        let said = make(&["-f", &file]);
        assert!(said.contains("/usr/bin/cc -g") && said.contains("-O0 -g -Wall"), "{said}");
        run("gasnet-ex/bin/amudprun", &["-np", "2"], &dir.join(format!("{name}-program")));
    }
    for launcher in ["udp-conduit/contrib/gasnetrun_udp", "other/amudp/amudprun", "installed/bin/amudprun"] {
        succeed(Command::new(dir.join(launcher)).arg("true"));
    }
}

#[test]
fn networks_that_are_not_there_are_refused() {
    let dir = build_dir("ex-refused");
    for (network, says) in [("smp", "--with-default-network=udp"), ("ibv", "has no network ibv; there are: udp")] {
        let mut configure = Command::new(tree().join("source/configure"));
        let output = configure.arg(format!("--enable-{network}")).current_dir(&dir).output().expect("a script");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains(says) && said.lines().count() == 1, "{said}");
        assert!(!dir.join("gasnet_config.h").exists());
    }
}
