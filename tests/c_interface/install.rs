//! The tree of `scripts/install`: programs in C and C++ are built against it alone, in the way of clients' build
//! systems, and run with its launchers.

use crate::support::compile::{library, source_dir};
use crate::support::run::{IN_CONTAINERS, finish, fresh_dir, say_not_run, succeed};
use crate::support::tools::tool;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The installed tree, made once.
pub fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("installed");
        std::fs::remove_dir_all(&prefix).ok();
        // The same place by a relative path, from another directory.
        let somewhere = prefix.parent().expect("a directory").join("somewhere");
        std::fs::create_dir_all(&somewhere).expect("a directory of ours");
        succeed(install(&[]).current_dir(&somewhere).arg("../installed").arg(built()));
        prefix
    })
}

/// A directory with the products of this test's build: cargo would build into the directory read by other tests.
pub fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let built = build_dir("built");
        let libraries = [library("libvgasnet.so"), library("libvgasnet.a")];
        for file in libraries.into_iter().chain(before_mpi()).chain(PROGRAMS.map(tool)) {
            std::os::unix::fs::symlink(&file, built.join(file.file_name().expect("a file"))).expect("a new link");
        }
        built
    })
}

/// As [`built`], with libraries of one function, which are linked at once: for tests of the installation alone.
pub fn built_small() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let built = build_dir("built-small");
        let dynamic = succeed(Command::new("readelf").arg("-d").arg(library("libvgasnet.so")));
        let name = dynamic.lines().find(|line| line.contains("SONAME")).expect("the library has a name");
        let name = name.split(['[', ']']).nth(1).expect("a name in brackets").to_owned();
        std::fs::write(built.join("one.c"), "unsigned vgasnet_mynode(void) { return 0; }\n").expect("a file of ours");
        let compile = |arguments: &[&str]| {
            succeed(Command::new("cc").current_dir(&built).args(["-fPIC", "one.c"]).args(arguments))
        };
        compile(&["-c", "-o", "one.o"]);
        compile(&["-shared", "-o", "libvgasnet.so", &format!("-Wl,-soname,{name}")]);
        succeed(Command::new("ar").current_dir(&built).args(["rcs", "libvgasnet.a", "one.o"]));
        for program in PROGRAMS {
            std::os::unix::fs::symlink(tool(program), built.join(program)).expect("a new link");
        }
        built
    })
}

/// The interposing libraries for MPI, as far as they were built with this test.
pub fn before_mpi() -> Vec<PathBuf> {
    let library = library("libvgasnet.so");
    let dirs = library.ancestors().skip(1).take(2);
    let find = |name: &str| dirs.clone().map(|dir| dir.join(name)).find(|path| path.is_file());
    let names = ["libvgasnet_mpi_cache.so", "libvgasnet_mpi_io.so"].into_iter();
    names.filter(|_| cfg!(feature = "mpi")).filter_map(find).collect()
}

/// The installed programs.
pub const PROGRAMS: [&str; 3] = ["vgasnetrun", "vgasnet-bench", "vgasnet-info"];

/// The installation of this test's build, with these options.
pub fn install(options: &[&str]) -> Command {
    let mut install = Command::new(source_dir().join("scripts/install"));
    #[cfg(feature = "mpi")]
    install.args(["--with", "mpi"]).env("MPICC", vgasnet_mpi::MPICC);
    #[cfg(feature = "gasnet")]
    install.args(["--with", "gasnet"]);
    install.env_remove("DESTDIR").args(options);
    install
}

/// All files below a directory, by relative path, with the targets of links.
fn files_below(dir: &Path) -> Vec<String> {
    let mut found =
        succeed(Command::new("find").args([".", "!", "-type", "d", "-printf", "%P %l\\n"]).current_dir(dir))
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>();
    found.sort();
    found
}

/// The conduits under whose names GASNet's clients find this library.
const CONDUITS: &[&str] = if cfg!(feature = "mpi") { &["smp", "mpi"] } else { &["smp"] };

/// An empty directory to build in.
pub fn build_dir(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("build-{name}"));
    std::fs::remove_dir_all(&dir).ok();
    std::fs::create_dir(&dir).expect("a new directory");
    dir
}

/// Whether a program needed by a test is installed. Prints a line loudly if not.
pub fn is_here(tool: &str) -> bool {
    let is_here = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !is_here {
        say_not_run("installation", &format!("{tool} is not installed; scripts/test installs it"));
    }
    is_here
}

/// Runs a program with an installed launcher, on two ranks, and returns its status.
fn launch(launcher: &str, program: &Path, variables: &[(&str, &str)]) -> (Option<i32>, String) {
    launch_as(&format!("bin/{launcher}"), &["-n", "2"], program, variables)
}

/// As [`launch`], with the launcher's place in the tree, and its arguments for two ranks.
pub fn launch_as(launcher: &str, two: &[&str], program: &Path, variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let storage = fresh_dir();
    let mut command = Command::new(prefix().join(launcher));
    command.args(two).arg(program).env_remove("LD_LIBRARY_PATH").env("VGASNET_STORAGE_DIR", &storage);
    command.envs(IN_CONTAINERS);
    for (name, value) in [
        ("VGASNET_PAGE_SIZE", "64K"),
        ("VGASNET_POOL_SIZE", "384K"),
        ("CHECK_POOL_BYTES", "393216"),
        ("CHECK_PAGE_BYTES", "65536"),
        ("CHECK_RANKS", "2"),
        ("CHECK_SEED", "2017"),
    ] {
        command.env(name, value);
    }
    command.envs(variables.iter().copied()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (status, stdout, stderr) = finish(command.spawn().expect("a launcher"));
    std::fs::remove_dir(&storage).expect("an empty directory of ours");
    (status, stdout + &stderr)
}

pub fn run(launcher: &str, program: &Path) {
    let (status, said) = launch(launcher, program, &[]);
    assert_eq!(status, Some(0), "{} with {launcher}: {said}", program.display());
}

pub fn client(name: &str) -> PathBuf {
    source_dir().join("tests").join(name)
}

/// The flags of a package from pkg-config, as arguments.
fn flags(package: &str, which: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.args(which).arg(package).env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
    succeed(&mut command).split_whitespace().map(str::to_owned).collect()
}

#[test]
fn the_tree_is_complete() {
    let version = env!("CARGO_PKG_VERSION");
    for file in [
        "bin/vgasnetrun",
        "lib/libvgasnet.so",
        "lib/libvgasnet.a",
        "lib/libvgasnet.so-gdb.py",
        "bin/vgasnet-bench",
        "bin/vgasnet-info",
        "share/man/man1/vgasnetrun.1",
        "share/man/man1/vgasnet-bench.1",
        "share/man/man1/vgasnet-info.1",
        "share/man/man3/vgasnet.3",
        "share/man/man7/vgasnet.7",
        "share/bash-completion/completions/vgasnetrun",
        "share/zsh/site-functions/_vgasnetrun",
        "share/fish/vendor_completions.d/vgasnetrun.fish",
        "share/doc/vgasnet/LICENSE-MIT",
        "include/vgasnet.h",
        "include/vgasnet/job.h",
        "include/gasnet.h",
        "include/gasnet_vis.h",
        "include/gasnet_coll.h",
        "include/gasnet_tools.h",
        "include/gasnet_handler.h",
        "include/portable_platform.h",
        "include/portable_inttypes.h",
    ] {
        assert!(prefix().join(file).is_file(), "{file} is missing");
    }
    for chapter in std::fs::read_dir(source_dir().join("include/vgasnet")).expect("the chapters") {
        let name = chapter.expect("a file").file_name();
        assert!(prefix().join("include/vgasnet").join(&name).is_file(), "{name:?} is missing");
    }
    for conduit in CONDUITS {
        assert!(prefix().join(format!("bin/gasnetrun_{conduit}")).is_file(), "{conduit}");
        assert!(prefix().join(format!("include/{conduit}-conduit/gasnet_core.h")).is_file(), "{conduit}");
    }
    // As OpenSHMEM searches for it.
    let config = std::fs::read_to_string(prefix().join("include/gasnet_config.h")).expect("a header");
    for part in ["MAJOR", "MINOR", "PATCH"] {
        let line = config.lines().find(|line| line.starts_with(&format!("#define GASNET_RELEASE_VERSION_{part} ")));
        let number = line.expect("a line").split_whitespace().nth(2).expect("a number");
        assert!(number.parse::<u32>().is_ok(), "{number}");
    }
    let templates_left = |path: &str| std::fs::read_to_string(prefix().join(path)).expect("a text").contains('@');
    for conduit in CONDUITS {
        for mode in ["seq", "parsync", "par"] {
            assert!(!templates_left(&format!("include/{conduit}-conduit/{conduit}-{mode}.mak")));
            assert!(!templates_left(&format!("lib/pkgconfig/gasnet-{conduit}-{mode}.pc")));
        }
        let launcher = std::fs::read_to_string(prefix().join(format!("bin/gasnetrun_{conduit}"))).expect("a script");
        assert!(!launcher.contains("@CONDUIT@"), "{launcher}");
    }
    if is_here("pkg-config") {
        assert_eq!(flags("vgasnet", &["--modversion"]), [version]);
        let linker = flags("gasnet-smp-seq", &["--variable=GASNET_LD"]);
        assert!(linker.len() == 1 && Path::new(&linker[0]).is_absolute(), "{linker:?}");
    }
}

/// With DESTDIR the files go below another root and have the same content. Their removal leaves nothing.
#[test]
fn what_is_installed_elsewhere_is_the_same_and_goes_again() {
    let of_prefix = files_below(prefix());
    let root = build_dir("root");
    succeed(install(&[]).arg(prefix()).arg(built()).env("DESTDIR", &root));
    let below = root.join(prefix().strip_prefix("/").expect("an absolute path"));
    assert_eq!(files_below(&below), of_prefix);
    let same = Command::new("diff").arg("-r").arg("--no-dereference").args([&below, prefix()]).output().expect("diff");
    assert!(same.status.success(), "{}", String::from_utf8_lossy(&same.stdout));
    // Files of other software stay, and so do their directories.
    let mine = below.join("lib/mine");
    std::fs::write(&mine, "").expect("a file of ours");
    succeed(install(&["--uninstall"]).arg(prefix()).env("DESTDIR", &root));
    assert_eq!(files_below(&root), [format!("{} ", mine.strip_prefix(&root).expect("below it").display())]);
    std::fs::remove_file(&mine).expect("it is there");
    let again = install(&["--uninstall"]).arg(prefix()).env("DESTDIR", &root).output().expect("a script");
    assert_eq!(again.status.code(), Some(1), "{again:?}");
    assert_eq!(String::from_utf8_lossy(&again.stderr).lines().count(), 1, "{again:?}");
}

/// As a distribution installs it: libraries in a directory of the architecture, and the trees for clients outside of
/// the usual places.
#[test]
fn libraries_and_trees_may_lie_elsewhere() {
    let root = build_dir("elsewhere");
    let trees =
        ["--libdir", "lib/arch", "--gasnet", "lib/arch/vgasnet/gasnet", "--gasnet-ex", "lib/arch/vgasnet/gasnet-ex"];
    succeed(install(&trees).arg(&root).arg(built()));
    assert!(!root.join("include/gasnet.h").exists() && !root.join("gasnet-ex").exists());
    for of in ["lib/arch", "lib/arch/vgasnet/gasnet/lib", "lib/arch/vgasnet/gasnet-ex/lib"] {
        for name in ["libvgasnet.so", "libvgasnet.so.0", "libvgasnet.a"] {
            assert!(root.join(of).join(name).is_file(), "{of}/{name}");
        }
    }
    if !is_here("pkg-config") {
        return;
    }
    for (packages, package, source) in [
        ("lib/arch/pkgconfig", "vgasnet", "c/values.c"),
        ("lib/arch/vgasnet/gasnet/lib/pkgconfig", "gasnet-smp-par", "gasnet/job.c"),
    ] {
        let mut command = Command::new("pkg-config");
        command.args(["--cflags", "--libs"]).arg(package).env("PKG_CONFIG_PATH", root.join(packages));
        let flags = succeed(&mut command);
        let program = root.join(package);
        succeed(Command::new("cc").arg(client(source)).arg("-o").arg(&program).args(flags.split_whitespace()));
        run("vgasnetrun", &program);
    }
}

#[test]
fn a_bad_prefix_is_refused() {
    for arguments in [
        &[][..],
        &["a", "b", "c"],
        &[""],
        &["/tmp/with blank"],
        &["--with", "x", "/tmp/a"],
        &["--libdir", "/lib", "/tmp/a"],
        &["--gasnet", "../x", "/tmp/a"],
        &["--gasnet-ex"],
        &["--uninstall"],
        &["--what", "/tmp/a"],
    ] {
        let output = Command::new(source_dir().join("scripts/install")).args(arguments).output().expect("a script");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{arguments:?}");
    }
    for character in "\"'`#$&|\\;:,<>()[]{}*?!% é\n".chars() {
        let output = install(&[]).arg(format!("/tmp/a{character}b")).arg(built()).output().expect("a script");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains("choose a path of letters"), "{character:?}: {said}");
    }
}

/// GASNet may be named by a package of pkg-config, not only by the path of a file.
#[test]
fn a_gasnet_may_be_named_as_pkg_config_knows_it() {
    if !is_here("pkg-config") {
        return;
    }
    let dir = build_dir("named-gasnet");
    let package = "Name: g\nDescription: of a test\nVersion: 1\nGASNET_LD=cc\n";
    std::fs::write(dir.join("gasnet-ibv-par.pc"), package).expect("a file of ours");
    let mut command = install(&["--with", "gasnet"]);
    command.env("PKG_CONFIG_PATH", &dir).env("GASNET_PC", "gasnet-ibv-par");
    succeed(command.arg(dir.join("prefix")).arg(built()));
    assert!(dir.join("prefix/include/ibv-conduit/ibv-par.mak").is_file());
}

/// Nothing is installed, and each missing thing is named with its remedy.
#[test]
fn a_network_that_is_not_there_is_refused() {
    let none = build_dir("no-network").join("none");
    for (network, variable, said) in [
        ("mpi", "MPICC", "; install an MPI, or name its compiler by MPICC"),
        ("gasnet", "GASNET_PC", "; GASNET_ROOT and GASNET_CONDUIT, or GASNET_PC, name an installed GASNet"),
    ] {
        let mut command = Command::new(source_dir().join("scripts/install"));
        command.args(["--with", network]).arg(none.with_file_name("prefix")).arg(built()).env(variable, &none);
        let output = command.output().expect("a script");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert_eq!(stderr, format!("scripts/install: there is no {}{said}\n", none.display()));
    }
}

/// Otherwise each client's linker would report hundreds of missing functions.
#[cfg(any(feature = "mpi", feature = "gasnet"))]
#[test]
fn a_library_of_a_network_that_is_not_named_is_refused() {
    let prefix = build_dir("not-named").join("prefix");
    let mut command = Command::new(source_dir().join("scripts/install"));
    let output = command.arg(&prefix).arg(built()).output().expect("a script");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.lines().count() == 1 && stderr.contains("name what it was built for by --with"), "{stderr}");
    assert!(!prefix.exists());
}

/// The refusal comes before any build.
#[test]
fn a_place_that_cannot_be_is_refused() {
    let dir = build_dir("refused");
    let file = dir.join("file");
    std::fs::write(&file, "").expect("a file of ours");
    let whole = built().as_os_str();
    for (prefix, built, said) in [
        (Path::new("/"), whole, "choose a directory below it"),
        (&file, whole, "is no directory that this user may write to"),
        (&file.join("below"), whole, "is no directory that this user may write to"),
        (&dir, dir.as_os_str(), "has no libvgasnet.so; name the directory"),
        (&dir, dir.join("none").as_os_str(), "has no libvgasnet.so; name the directory"),
    ] {
        let output = install(&[]).arg(prefix).arg(built).output().expect("a script");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{prefix:?}: {stderr}");
        assert!(stderr.lines().count() == 1 && stderr.contains(said), "{prefix:?}: {stderr}");
    }
}

#[test]
fn through_pkg_config() {
    if !is_here("pkg-config") {
        return;
    }
    let dir = build_dir("pkg-config");
    for (package, source, launcher) in [
        ("gasnet-smp-par", "gasnet/job.c", "gasnetrun_smp"),
        ("gasnet-smp-parsync", "gasnet/values.c", "vgasnetrun"),
        ("gasnet-smp-seq", "gasnet/barriers.c", "gasnetrun_smp"),
        ("vgasnet", "c/values.c", "vgasnetrun"),
    ] {
        let flags = flags(package, &["--cflags", "--libs"]);
        for (compiler, language) in [("cc", "c"), ("c++", "c++")] {
            let program = dir.join(format!("{package}-{language}"));
            let mut command = Command::new(compiler);
            command.args(["-x", language]).arg(client(source)).args(["-x", "none", "-o"]).arg(&program).args(&flags);
            succeed(&mut command);
            run(launcher, &program);
        }
    }
    // Clients in strict C use functions of GNU and POSIX: the packages permit them, as the Makefiles do.
    let extra = dir.join("extra.c");
    let text = "#include <gasnet.h>\nint main(void) { return asprintf(&(char *){NULL}, \"%s\", \"text\") - 4; }\n";
    std::fs::write(&extra, text).expect("a file of ours");
    let mut command = Command::new("cc");
    command.args(["-std=c99", "-Wall", "-Werror", "-fsyntax-only"]).arg(&extra);
    succeed(command.args(flags("gasnet-smp-par", &["--cflags"])));
}

/// A client that asks is told its own conduit, and runs on it.
#[test]
#[cfg(feature = "mpi")]
fn clients_of_another_conduit() {
    if !is_here("pkg-config") {
        return;
    }
    let program = build_dir("conduit").join("client");
    let mut command = Command::new("cc");
    command.arg(client("gasnet/job.c")).args(["-Wall", "-Werror", "-DEXPECTED_CONDUIT=\"MPI\"", "-o"]).arg(&program);
    succeed(command.args(flags("gasnet-mpi-par", &["--cflags", "--libs"])));
    run("gasnetrun_mpi", &program);
}

#[test]
fn through_a_makefile() {
    if !is_here("make") {
        return;
    }
    for mode in ["seq", "parsync", "par"] {
        let dir = build_dir(&format!("make-{mode}"));
        let text = format!(
            "include {prefix}/include/smp-conduit/smp-{mode}.mak\n\
             all: c cxx\n\
             c: {source}\n\
             \t$(GASNET_CC) $(GASNET_CPPFLAGS) $(GASNET_CFLAGS) -c $< -o c.o\n\
             \t$(GASNET_LD) $(GASNET_LDFLAGS) -o $@ c.o $(GASNET_LIBS)\n\
             cxx: {source}\n\
             \t$(GASNET_CXX) $(GASNET_CXXCPPFLAGS) $(GASNET_CXXFLAGS) -x c++ -c $< -o cxx.o\n\
             \t$(GASNET_LD) $(GASNET_LDFLAGS) -o $@ cxx.o $(GASNET_LIBS)\n",
            prefix = prefix().display(),
            source = client("gasnet/extras.c").display()
        );
        std::fs::write(dir.join("Makefile"), text).expect("a file of ours");
        succeed(Command::new("make").arg("-C").arg(&dir));
        run("gasnetrun_smp", &dir.join("c"));
        run("gasnetrun_smp", &dir.join("cxx"));
    }
}

/// No warning may appear. The C library warns of functions that need its shared objects.
#[test]
fn fully_static_programs() {
    if cfg!(any(feature = "mpi", feature = "gasnet")) {
        return say_not_run("fully static programs", "MPI and GASNet are shared libraries here");
    }
    if !is_here("pkg-config") {
        return;
    }
    let dir = build_dir("fully-static");
    for name in ["values", "files", "sockets"] {
        let program = dir.join(name);
        let mut command = Command::new("cc");
        command.arg("-static").arg(client(&format!("c/{name}.c"))).arg("-o").arg(&program);
        command.args(flags("vgasnet", &["--static", "--cflags", "--libs"]));
        let output = command.output().expect("a compiler");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{command:?}\n{said}");
        run("vgasnetrun", &program);
    }
}

#[test]
fn gasnets_own_variables_are_heeded() {
    let dir = build_dir("variables");
    let program = dir.join("job");
    let mut command = Command::new("cc");
    command.arg("-DGASNET_SEQ").arg("-I").arg(prefix().join("include")).arg(client("gasnet/job.c"));
    command.arg(prefix().join("lib/libvgasnet.so")).arg("-o").arg(&program);
    command.arg(format!("-Wl,-rpath,{}", prefix().join("lib").display()));
    succeed(&mut command);
    let launched = |value| launch("gasnetrun_smp", &program, &[("GASNET_MAX_SEGSIZE", value)]);
    assert_eq!(launched("8M").0, Some(0));
    let (status, said) = launched("64K");
    assert!(status == Some(1) && said.contains("global >= segment_bytes()"), "{said}");
    let (status, said) = launched("much");
    assert!(status == Some(1) && said.contains("GASNET_MAX_SEGSIZE=much"), "{said}");
    // The variable sets the number of nodes left open by gasnetrun_smp.
    let mut command = Command::new(prefix().join("bin/gasnetrun_smp"));
    let output =
        command.args(["-v", "sh", "-c", "echo rank"]).env("GASNET_PSHM_NODES", "3").output().expect("a script");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "rank\n".repeat(3));
    for wrong in [&["-N", "2", "true"][..], &["-q", "true"], &[]] {
        let status = Command::new(prefix().join("bin/gasnetrun_smp")).args(wrong).stderr(Stdio::null()).status();
        assert_eq!(status.expect("a script").code(), Some(2), "{wrong:?}");
    }
}

/// gdb loads the library's script with the library, if its configuration permits the place.
#[test]
fn gdb_loads_the_script_from_where_it_may() {
    if !is_here("gdb") {
        return;
    }
    let lib = prefix().join("lib");
    let told = |directory: &Path| {
        let mut gdb = Command::new("gdb");
        gdb.args(["-nx", "-batch", "-iex", &format!("add-auto-load-safe-path {}", directory.display())]);
        let output = gdb.args(["-ex", "help vgasnet read"]).arg(lib.join("libvgasnet.so")).output().expect("gdb");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(told(&lib).contains("vgasnet read ADDRESS COUNT"), "{}", told(&lib));
    assert!(!told(&lib.join("pkgconfig")).contains("vgasnet read ADDRESS COUNT"));
}
