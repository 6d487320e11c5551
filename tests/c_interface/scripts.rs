//! `scripts/` and their products in users' surroundings: other directories, files of other software, and linkers,
//! compilers and package managers unlike the developers'. Stand-ins for these programs record their calls.

use crate::install::{build_dir, built, built_small, install, is_here, launch_as, prefix};
use crate::support::compile::source_dir;
use crate::support::run::{say_not_run, succeed};
use crate::uninstall::stand_in;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The command with programs of `dir` before those of the machine.
fn with_programs_of<'a>(dir: &Path, command: &'a mut Command) -> &'a mut Command {
    command.env("PATH", format!("{}:{}", dir.display(), std::env::var("PATH").expect("a path")))
}

fn script(name: &str) -> Command {
    let mut command = Command::new(source_dir().join("scripts").join(name));
    for variable in ["DESTDIR", "BUILT", "CARGO_NET_OFFLINE", "CARGO_TARGET_DIR", "CC", "CXX", "FC"] {
        command.env_remove(variable);
    }
    command
}

/// The one line of a script that refuses.
fn refused(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.lines().count() == 1, "{output:?}");
    said
}

/// As next to an installed GASNet, whose clients search for the same names.
#[test]
fn files_of_others_stay() {
    let root = build_dir("of-others");
    fs::create_dir(root.join("include")).expect("a directory of ours");
    let theirs = root.join("include/gasnet.h");
    fs::write(&theirs, "theirs").expect("a file of ours");
    let said = refused(&install(&[]).arg(&root).arg(built_small()).output().expect("a script"));
    assert!(said.contains(&format!("{}, one of 1 such files, is there", theirs.display())), "{said}");
    // In a directory of their own the names are free.
    let apart = ["--gasnet", "gasnet"];
    succeed(install(&apart).arg(&root).arg(built_small()));
    succeed(install(&apart).arg(&root).arg(built_small()));
    // A file to be copied later is in the way. Known only after the other files are copied.
    let program = root.join("bin/vgasnet-info");
    succeed(install(&["--uninstall"]).arg(&root));
    fs::create_dir(root.join("bin")).expect("it was removed");
    symlink("nowhere", &program).expect("a new link");
    let said = refused(&install(&apart).arg(&root).arg(built_small()).output().expect("a script"));
    assert!(said.contains("bin/vgasnet-info, one of 1 such"), "{said}");
    assert_eq!(fs::read_link(&program).expect("it stays"), Path::new("nowhere"));
    assert_eq!(fs::read_to_string(&theirs).expect("it stays"), "theirs");
    assert!(!root.join("share").exists());
}

/// As after a failure for lack of rights, or an interrupt by the user.
#[test]
fn a_removal_that_was_interrupted_is_done_again() {
    let (root, tools) = (build_dir("interrupted").join("prefix"), build_dir("interrupting"));
    succeed(install(&[]).arg(&root).arg(built_small()));
    stand_in(&tools, "rm", "case $* in */include/vgasnet.h) exit 1 ;; esac\nexec /bin/rm \"$@\"");
    let mut command = install(&["--uninstall"]);
    let output = with_programs_of(&tools, command.arg(&root)).output().expect("a script");
    assert!(!output.status.success() && root.join("include/vgasnet.h").is_file(), "{output:?}");
    succeed(install(&["--uninstall"]).arg(&root));
    assert!(!root.exists());
}

/// As after an update of the sources without a build.
#[test]
fn what_was_built_of_another_version_is_refused() {
    let (root, other) = (build_dir("mixed").join("prefix"), build_dir("of-another-version"));
    for name in ["libvgasnet.so", "libvgasnet.a", "vgasnetrun", "vgasnet-bench"] {
        fs::write(other.join(name), "").expect("a file of ours");
    }
    stand_in(&other, "vgasnet-info", "echo vgasnet-info 0.0.9");
    let said = refused(&install(&[]).arg(&root).arg(&other).output().expect("a script"));
    assert!(said.contains("--version says vgasnet-info 0.0.9; build that anew") && !root.exists(), "{said}");
}

/// Shells complete the name of a directory with a slash at its end.
#[test]
fn directories_may_be_named_in_several_ways() {
    for (libdir, name, up) in [("lib/", "lib", "../../.."), ("./lib//x/", "lib/x", "../../../.."), (".", ".", "../..")]
    {
        let root = build_dir("named").join("prefix");
        succeed(install(&["--libdir", libdir, "--gasnet-ex", "./ex/"]).arg(&root).arg(built_small()));
        assert!(root.join(name).join("libvgasnet.so").is_file() && root.join("ex/lib/libvgasnet.so").is_file());
        let config = root.join(name).join("cmake/vgasnet/vgasnet-config.cmake");
        let config = fs::read_to_string(config).expect("CMake's file");
        assert!(config.contains(&format!("/{up}\" ABSOLUTE)")), "{libdir}: {config}");
    }
}

/// If `ld` is lld or mold, binutils' linker has another name.
#[test]
fn another_linker_may_be_ld() {
    let tools = build_dir("linkers");
    let real = Command::new("sh").args(["-c", "command -v ld.bfd"]).output().expect("a shell");
    let real = String::from_utf8_lossy(&real.stdout).trim().to_owned();
    if real.is_empty() {
        return say_not_run("another linker", "there is no ld.bfd besides ld");
    }
    let other =
        format!("case \" $* \" in *' --version '*) echo other ;; *' -r '*) exit 1 ;; *) exec {real} \"$@\" ;; esac");
    stand_in(&tools, "ld", &other);
    let root = build_dir("linked").join("prefix");
    succeed(with_programs_of(&tools, install(&[]).arg(&root).arg(built_small())));
    stand_in(&tools, "ld.bfd", &other);
    let output = with_programs_of(&tools, install(&[]).arg(&root).arg(built_small())).output().expect("a script");
    let said = refused(&output);
    assert!(said.contains("ld.bfd is none of GNU's"), "{said}");
}

/// Each compiler of Fortran has its own option for the directory of modules.
#[test]
fn compilers_of_fortran_are_told_where_modules_go() {
    let tools = build_dir("fortran-compilers");
    let compiles = |option: &str| {
        format!(
            "case $* in --version) echo \"${{0##*/}} 1\"; exit ;; esac\nwhile [ $# -gt 0 ]; do\ncase $1 in\n{option}) echo >\"$2/vgasnet.mod\" ;;\n\
             -o) echo >\"$2\" ;;\nesac\nshift\ndone"
        )
    };
    for (compiler, option) in
        [("ifx", "-module"), ("nvfortran", "-module"), ("flang-new", "-module-dir"), ("gfortran", "-J")]
    {
        stand_in(&tools, compiler, &compiles(option));
        let tree = build_dir("fortran-tree");
        succeed(script("install-languages").arg(&tree).env("FC", tools.join(compiler)));
        assert!(tree.join("include/vgasnet/fortran/vgasnet.mod").is_file(), "{compiler}");
    }
}

/// A stand-in for Rust that only records its calls, and these programs.
fn machine(name: &str, programs: &[(&str, &str)]) -> PathBuf {
    let dir = build_dir(name);
    for (program, text) in programs {
        stand_in(&dir, program, text);
    }
    dir
}

const CARGO: (&str, &str) =
    ("cargo", "case $* in --version) echo cargo 1.99.0 ;; *) echo \"$CARGO_TARGET_DIR\" >\"${0%/*}/into\" ;; esac");

/// The configuration of cargo may name another directory.
#[test]
fn cargo_is_told_where_to_build() {
    let tools = machine("cargo-tools", &[("cargo", &format!("{}; [ \"$1\" = --version ]", CARGO.1))]);
    let mut command = script("install");
    command.arg(tools.join("prefix")).env("CARGO_HOME", &tools);
    assert!(!with_programs_of(&tools, &mut command).output().expect("a script").status.success());
    assert_eq!(fs::read_to_string(tools.join("into")).expect("cargo was called"), "target\n");
}

/// It may also name a target, for which cargo builds in a subdirectory.
#[test]
fn what_cargo_has_built_is_where_cargo_says() {
    let json = format!(
        "{{\"reason\":\"compiler-artifact\",\"executable\":\"{}/vgasnet-info\",\"fresh\":true}}",
        built().display()
    );
    let cargo = format!(
        "case $* in --version) echo cargo 1.99.0 ;; *=json) echo '{{\"reason\":\"other\"}}'; echo '{json}' ;; esac"
    );
    let tools = machine("cargo-says", &[("cargo", &cargo)]);
    let mut command = install(&[]);
    command.arg(tools.join("prefix")).env("CARGO_HOME", &tools).env_remove("BUILT");
    succeed(with_programs_of(&tools, &mut command));
    assert!(tools.join("prefix/bin/vgasnet-info").is_file());
}

/// Cargo fails to build the tests of the protocol.
#[test]
fn a_step_of_the_inner_loop_names_the_command_that_repeats_it() {
    let cargo =
        "case $* in *-p\\ vgasnet-protocol*) exit 101 ;; *blocking\\ --list) echo 'programs::blocking: test' ;; esac";
    let tools = machine("step-tools", &[("cargo", cargo)]);
    let said_by = |args: &[&str]| {
        let mut command = script("one");
        command.args(args).env("CARGO_HOME", &tools);
        let output = with_programs_of(&tools, &mut command).output().expect("a script");
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        (output.status.code(), said.concat())
    };
    let (status, said) = said_by(&["scenario", "transcripts"]);
    let command = "cargo test --profile quick -p vgasnet-protocol --test coherence -- transcripts --skip exploration::";
    assert!(status == Some(101) && said.ends_with(&format!("; again: {command}\n")), "{status:?} {said}");
    let (status, said) = said_by(&["program", "programs::blocking"]);
    let command = "cargo test --profile quick -p vgasnet --test c_interface -- programs::blocking";
    assert!(status == Some(0) && said.lines().last().is_some_and(|line| line.ends_with(command)), "{status:?} {said}");
    let (status, said) = said_by(&["program", "blockign"]);
    assert!(status == Some(1) && said.contains("no test has blockign in its name"), "{status:?} {said}");
    for wrong in [&["program"][..], &["crate"], &["nothing", "x"], &[]] {
        let (status, said) = said_by(wrong);
        assert!(status == Some(2) && said.starts_with("Usage: scripts/one check"), "{wrong:?}: {status:?} {said}");
    }
}

/// From any directory, with a file name relative to it.
#[test]
fn the_main_job_takes_a_file_from_where_its_user_is() {
    let cargo = "case $* in --version) echo cargo 1.99.0 ;; *=json) echo \"{\\\"executable\\\":\\\"${0%/*}/vgasnet-main-job\\\"}\" ;; esac";
    let tools = machine("main-job", &[("cargo", cargo), ("rustc", "echo /"), ("tar", "echo some >\"$2\"; exit 1")]);
    stand_in(&tools, "vgasnet-main-job", "echo \"$PWD: $@\"");
    fs::write(tools.join("data"), "bytes").expect("a file of ours");
    let job = || {
        let mut command = script("main-job");
        command.current_dir(&tools).env("CARGO_TARGET_DIR", &tools).env("CARGO_HOME", &tools);
        with_programs_of(&tools, &mut command);
        command
    };
    let said = succeed(job().args(["data", "--rounds", "1"]));
    assert!(said.contains(&format!("{}: data --rounds 1\n", tools.display())), "{said}");
    // A partial archive is no input of the next job.
    assert!(!job().output().expect("a script").status.success());
    let left = fs::read_dir(&tools).expect("a directory of ours").map(|entry| entry.expect("an entry").file_name());
    assert!(!left.into_iter().any(|name| name.to_string_lossy().starts_with("main-job.input")));
}

/// The whole tour, with the library of these tests, and without a terminal.
#[test]
fn the_tour_shows_what_it_says() {
    let json = format!("{{\"executable\":\"{}/vgasnetrun\"}}", built().display());
    let cargo = format!("case $* in --version) echo cargo 1.99.0 ;; *=json) echo '{json}' ;; esac");
    let (tools, storage) = (machine("tour-tools", &[("cargo", &cargo)]), build_dir("tour"));
    if !is_here("cc") || !Path::new("/usr/lib/python3/dist-packages/numpy").is_dir() {
        return say_not_run(
            "scripts/try",
            "there is no cc or no numpy of the distribution; scripts/test installs them",
        );
    }
    let mut command = script("try");
    command.env("CARGO_HOME", &tools).env("TMPDIR", &storage).env("VGASNET_STATS_FILE", "/nowhere/at/all");
    let said = succeed(with_programs_of(&tools, &mut command).stdin(Stdio::null()));
    for part in [
        "rank 0 of 1: 512 MiB stored and loaded, every word is right",
        "numpy array of 512 MiB, sum 201129984 is right",
        "rank 1 of 2: 512 MiB stored and loaded, as many got from the next rank",
        "vgasnet: statistics of 2 ranks",
        "was killed by signal 9 (SIGKILL); the other ranks were ended\nThe status is 137. No process and no file is left.",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // With 64 MiB of memory for pages.
    let in_use = said.lines().filter_map(|line| line.rsplit_once("memory in use: ")?.1.strip_suffix(" MiB"));
    let in_use: Vec<u64> = in_use.map(|number| number.parse().expect("a number")).collect();
    assert!(in_use.len() == 5 && in_use.iter().all(|mib| *mib < 128), "{said}");
    for page in said.lines().filter_map(|line| line.strip_prefix("More: ")) {
        assert!(source_dir().join(page).is_file(), "{page}");
    }
    assert_eq!(fs::read_dir(&storage).expect("a directory of ours").count(), 0);
    // It takes no arguments.
    assert!(refused(&script("try").arg("--fast").output().expect("a script")).contains("without arguments"));
}

/// An ordinary user's machine without Rust, with these further tools. Its `sudo` passes no variables on, as by default.
fn ordinary(name: &str, tools: &[&str]) -> PathBuf {
    let called = "echo \"$* $DEBIAN_FRONTEND\" >>\"${0%/*}/${0##*/}.called\"";
    let programs = [
        ("id", "echo 1000"),
        ("sudo", "exec env -i PATH=\"$PATH\" \"$@\""),
        // Another process reads the lists of packages at first.
        (
            "apt-get",
            &format!(
                "{called}\nnumber=$(sed -n '$=' \"$0.called\")\n[ \"$number\" != 1 ] || {{ echo 'E: Could not get lock /var/lib/apt/lists/lock.' >&2; exit 100; }}"
            ),
        ),
        ("python3", ""),
        ("curl", &format!("{called}; exit 6")),
    ];
    let dir = machine(name, &programs);
    for program in ["sh", "env", "sed", "dirname"].iter().chain(tools) {
        let path = succeed(Command::new("sh").args(["-c", &format!("command -v {program}")]));
        symlink(path.trim(), dir.join(program)).expect("a new link");
    }
    dir
}

fn on<'a>(machine: &Path, command: &'a mut Command) -> &'a mut Command {
    command.env("PATH", machine).env("CARGO_HOME", machine.join("cargo")).env("HOME", machine)
}

#[test]
fn what_lacks_is_installed_without_a_question() {
    let tools = ["cat", "cut", "date", "mktemp", "rm", "sleep", "tail", "timeout"];
    let machine = ordinary("ordinary", &tools);
    let output = on(&machine, script("prepare").arg("what:package")).output().expect("a script");
    let told = fs::read_to_string(machine.join("apt-get.called")).expect("it was called");
    // It waits while others read the lists of packages or install.
    let expected = "update -qq \nupdate -qq \n-o DPkg::Lock::Timeout=900 install -y -qq package noninteractive\n";
    assert_eq!(told.replace(" ca-certificates", ""), expected);
    // Without network Rust is missing, and the script says so.
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("cannot install Rust 1."), "{output:?}");
}

#[test]
fn documents_need_no_rust() {
    let machine = ordinary("writer", &[]);
    // This machine lacks the tools to build the site, too. Only the installations before the build matter here. Without
    // `rm` the script cannot remove the site generator that other tests use.
    let said = on(&machine, &mut script("docs")).output().expect("a script");
    assert!(String::from_utf8_lossy(&said.stderr).contains("cmp: not found"), "{said:?}");
    assert!(!machine.join("curl.called").exists() && !machine.join("apt-get.called").exists());
}

/// make takes such a path for two. Nothing is removed in either.
#[test]
fn packages_are_not_built_in_a_directory_with_blanks() {
    if !is_here("make") {
        return;
    }
    let dir = build_dir("debian");
    let (sources, neighbour) = (dir.join("vgasnet copy"), dir.join("vgasnet"));
    fs::create_dir_all(sources.join("debian")).expect("a new directory");
    fs::create_dir_all(sources.join("scripts")).expect("a new directory");
    fs::create_dir(&neighbour).expect("a new directory");
    fs::copy(source_dir().join("debian/rules"), sources.join("debian/rules")).expect("a copy");
    stand_in(&sources.join("scripts"), "install", "mkdir -p debian/tmp/usr/share/modulefiles");
    let mut make = Command::new("make");
    let output =
        make.args(["-f", "debian/rules", "override_dh_auto_install"]).current_dir(&sources).output().expect("make");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("has blanks; choose one without"), "{said}");
    assert!(neighbour.is_dir());
}

/// Users have links to launchers in directories of their own.
#[test]
fn launchers_are_found_by_links() {
    let link = build_dir("links").join("run");
    symlink(prefix().join("bin/gasnetrun_smp"), &link).expect("a new link");
    let (status, said) = launch_as(link.to_str().expect("text"), &["-n", "2"], Path::new("/bin/true"), &[]);
    assert_eq!(status, Some(0), "{said}");
}

/// If `/lib` is a link to `/usr/lib`, CMake may use either path.
#[test]
fn cmake_finds_headers_by_a_link_to_libraries() {
    if !is_here("cmake") {
        return;
    }
    let dir = build_dir("merged");
    symlink(prefix().join("lib"), dir.join("lib")).expect("a new link");
    let text = "cmake_minimum_required(VERSION 3.10)\nproject(client C)\nfind_package(vgasnet REQUIRED)\nadd_executable(client client.c)\n\
                target_link_libraries(client vgasnet::vgasnet)\n";
    fs::write(dir.join("CMakeLists.txt"), text).expect("a file of ours");
    fs::write(dir.join("client.c"), "#include <vgasnet.h>\nint main(void) { return 0; }\n").expect("a file of ours");
    let found = format!("-Dvgasnet_DIR={}", dir.join("lib/cmake/vgasnet").display());
    succeed(Command::new("cmake").arg("-S").arg(&dir).arg("-B").arg(dir.join("build")).arg(found));
    succeed(Command::new("cmake").arg("--build").arg(dir.join("build")));
}

/// With CDPATH, cd may go elsewhere although a directory of this name is here, and may print its target.
#[test]
fn no_script_heeds_cdpath() {
    let elsewhere = build_dir("cdpath");
    fs::create_dir(elsewhere.join("scripts")).expect("a new directory");
    for (path, from, program, built) in [
        (
            ".:/tmp",
            built_small().parent().expect("a directory"),
            source_dir().join("scripts/install"),
            built_small().file_name().expect("a name"),
        ),
        (elsewhere.to_str().expect("text"), source_dir(), PathBuf::from("scripts/install"), built_small().as_os_str()),
    ] {
        let (mut command, install) = (Command::new("sh"), install(&[]));
        command.args(["-c", "exec \"$@\"", "sh"]).arg(program).args(install.get_args());
        command.envs(install.get_envs().filter_map(|(name, value)| Some((name, value?)))).env_remove("DESTDIR");
        succeed(command.arg(elsewhere.join("prefix")).arg(built).current_dir(from).env("CDPATH", path));
    }
    for script in fs::read_dir(source_dir().join("scripts")).expect("a directory") {
        let path = script.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("a script");
        assert!(!text.contains("cd \"$") || text.contains("\nunset CDPATH\n"), "{}", path.display());
    }
}

/// Sources unpacked in an unrelated repository.
#[test]
fn packages_are_built_inside_another_repository() {
    if !is_here("git") {
        return;
    }
    let outer = build_dir("repository");
    let sources = outer.join("ignored/vgasnet");
    for dir in ["scripts", "debian", "bin"] {
        fs::create_dir_all(sources.join(dir)).expect("a new directory");
    }
    for file in ["scripts/deb", "scripts/prepare", "Cargo.toml", "debian/changelog"] {
        fs::copy(source_dir().join(file), sources.join(file)).expect("a copy");
    }
    fs::write(outer.join(".gitignore"), "ignored\n").expect("a new file");
    succeed(Command::new("git").args(["init", "-q"]).arg(&outer));
    let tools = sources.join("bin");
    for program in ["cc", "c++", "ld", "dh", "dh_python3", "pkg-config", "cargo"] {
        stand_in(&tools, program, "");
    }
    stand_in(&tools, "dpkg-buildpackage", "cat debian/changelog && echo >../vgasnet.deb");
    let mut command = Command::new(sources.join("scripts/deb"));
    command.arg(outer.join("out")).arg(built());
    succeed(with_programs_of(&tools, &mut command));
    assert!(outer.join("out/vgasnet.deb").is_file());
}
