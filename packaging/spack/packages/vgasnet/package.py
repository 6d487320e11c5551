# Copyright the vgasnet authors.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

import pathlib

from spack.package import *

try:
    from spack_repo.builtin.build_systems.generic import Package
except ImportError:
    # Before Spack 1.0 this is a part of the above.
    pass


class Vgasnet(Package):
    """A communication runtime for PGAS languages and libraries whose segments are larger than memory: the
    interface of GASNet-1, over shared memory, MPI or GASNet."""

    # The sources are the commits of the checkout with this recipe. For other sources: `spack develop --path DIR
    # vgasnet@0.1.0`.
    git = pathlib.Path(__file__).resolve().parents[4].as_uri()

    license("MIT OR Apache-2.0", checked_by="vgasnet")

    version("0.1.0", branch="main")

    variant("mpi", default=False, description="Run over MPI between hosts, and build the libraries before MPI")
    variant(
        "gasnet",
        default="none",
        values=("none", "udp", "mpi", "ibv", "ofi", "ucx"),
        multi=False,
        description="Run between hosts over a GASNet with this conduit",
    )
    variant("fortran", default=False, description="Compile the Fortran module, which is installed as source in any case")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("rust@1.85:", type="build")
    depends_on("binutils", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi", when="+mpi")
    for conduit in ("udp", "mpi", "ibv", "ofi", "ucx"):
        depends_on(f"gasnet+par+pic+pthreads conduits={conduit}", when=f"gasnet={conduit}")
        # The bindings are generated from GASNet's headers.
        depends_on("llvm+clang", type="build", when=f"gasnet={conduit}")

    # Clients of GASNet use the recorded compilers. During this build CC and CXX are Spack's wrappers.
    filter_compiler_wrappers("*.pc", "*.mak", "configure", recursive=True)

    conflicts("platform=darwin", msg="vgasnet uses Linux's own system calls")
    conflicts("platform=windows", msg="vgasnet uses Linux's own system calls")

    def setup_build_environment(self, env):
        env.set("CARGO_HOME", join_path(self.stage.path, "cargo"))
        if not self.spec.satisfies("+fortran"):
            env.set("FC", "none")
        if self.spec.satisfies("+mpi"):
            env.set("MPICC", self.spec["mpi"].mpicc)
        if not self.spec.satisfies("gasnet=none"):
            env.set("GASNET_ROOT", self.spec["gasnet"].prefix)
            env.set("GASNET_CONDUIT", self.spec.variants["gasnet"].value)
            env.set("LIBCLANG_PATH", self.spec["llvm"].prefix.lib)

    def install(self, spec, prefix):
        options = ["--with", "mpi"] if spec.satisfies("+mpi") else []
        options += [] if spec.satisfies("gasnet=none") else ["--with", "gasnet"]
        Executable("scripts/install")(*options, prefix)

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        Executable(join_path(self.prefix.bin, "vgasnet-info"))("-n", "1")
