"""Runs the Spack recipe without Spack, which no registry has: a module stands in for `spack.package`, and notes what the recipe says.

Held against the sources: versions, the licence, the repository, variables and options of scripts/install, and the conduits of GASNet. Not
checked: whether Spack finds a build with these dependencies, and the build itself.
Usage: recipe.py, in the root of the sources.
"""

import pathlib
import re
import subprocess
import sys
import types

ROOT = pathlib.Path.cwd()
RECIPE = ROOT / "packaging/spack/packages/vgasnet/package.py"
DIRECTIVES = ["license", "version", "variant", "depends_on", "conflicts", "filter_compiler_wrappers"]


class Spec:
    """A spec with these variants, whose dependencies lie below `/deps`."""

    def __init__(self, **variants):
        self.variants = {name: types.SimpleNamespace(value=value) for name, value in variants.items()}

    def satisfies(self, condition):
        if condition.startswith("+"):
            return self.variants[condition[1:]].value
        name, value = condition.split("=")
        return self.variants[name].value == value

    def __getitem__(self, name):
        return types.SimpleNamespace(prefix=types.SimpleNamespace(lib=f"/deps/{name}/lib"), mpicc=f"/deps/{name}/bin/mpicc")


def loaded(said, started):
    """The recipe's class. Directives are noted in `said`, programs that it starts in `started`."""
    stand_in = types.ModuleType("spack.package")
    for name in DIRECTIVES:
        said[name] = []
        setattr(stand_in, name, lambda *words, _name=name, **more: said[_name].append((words, more)))
    stand_in.Package = type("Package", (), {})
    stand_in.Executable = lambda path: lambda *words: started.append([path, *words])
    stand_in.join_path = lambda *parts: "/".join(map(str, parts))
    stand_in.run_after = stand_in.on_package_attributes = lambda *_, **__: lambda function: function
    sys.modules.update({"spack": types.ModuleType("spack"), "spack.package": stand_in})
    names = {"__file__": str(RECIPE), "__name__": "recipe"}
    exec(compile(RECIPE.read_text(), str(RECIPE), "exec"), names)
    return names["Vgasnet"]


def installed_by(recipe, started, **variants):
    """What the recipe starts, and sets, to install with these variants."""
    started.clear()
    package, environment = recipe(), {}
    package.spec, package.stage = Spec(**variants), types.SimpleNamespace(path="/stage")
    package.prefix = types.SimpleNamespace(bin="/prefix/bin")
    package.setup_build_environment(types.SimpleNamespace(set=environment.__setitem__))
    package.install(package.spec, "/prefix")
    return started[0], environment


def main():
    said, started = {}, []
    recipe = loaded(said, started)
    manifest = (ROOT / "Cargo.toml").read_text()
    value = lambda key: re.search(rf'^{key} = "(.*)"', manifest, re.M).group(1)
    assert [words for words, _ in said["version"]] == [(value("version"),)], said["version"]
    assert said["license"][0][0] == (value("license"),), said["license"]
    assert recipe.__doc__ and recipe.git == ROOT.resolve().as_uri(), recipe.git
    depended = {words[0] for words, _ in said["depends_on"]}
    assert f"rust@{value('rust-version')}:" in depended, depended
    variants = {words[0]: more for words, more in said["variant"]}
    assert all(more["default"] in more.get("values", [False]) for more in variants.values()), variants
    of_gasnet = set(variants["gasnet"]["values"]) - {"none"}
    conditions = {more["when"] for _, more in said["depends_on"] if "when" in more}
    assert conditions == {"+mpi", "+fortran"} | {f"gasnet={conduit}" for conduit in of_gasnet}, conditions

    # Installed files name compilers. During the build these are Spack's wrappers, which run nowhere else.
    ((filtered, how),) = said["filter_compiler_wrappers"]
    for template in (ROOT / "packaging").glob("*.in"):
        names_compiler = re.search(r"@CC@|@CXX@", template.read_text())
        name = "configure" if template.name == "gasnet_configure.in" else "*" + template.with_suffix("").suffix
        assert not names_compiler or name in filtered and how["recursive"], (template, filtered, how)

    script = (ROOT / "scripts/install").read_text() + (ROOT / "scripts/install-languages").read_text()
    command, plain = installed_by(recipe, started, mpi=False, gasnet="none", fortran=False)
    assert command == ["scripts/install", "/prefix"] and plain["FC"] == "none", (command, plain)
    for conduit in of_gasnet:
        command, environment = installed_by(recipe, started, mpi=True, gasnet=conduit, fortran=True)
        assert command == ["scripts/install", "--with", "mpi", "--with", "gasnet", "/prefix"], command
        assert environment["GASNET_CONDUIT"] == conduit and "FC" not in environment, environment
        unread = [name for name in environment if name not in script and not name.startswith(("CARGO_", "LIBCLANG_"))]
        assert not unread, f"scripts/install reads no {unread}"
    options = subprocess.run(["scripts/install", "--help"], capture_output=True, text=True, check=True).stdout
    assert "--with mpi" in options and "--with gasnet" in options, options
    print("the recipe is sound, as far as it can be seen without Spack")


main()
