# Copyright the vgasnet authors.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack.package import *


class Vgasnet(Package):
    """A communication runtime for PGAS languages and libraries whose segments are larger than memory: the
    interface of GASNet-1, over shared memory, MPI or GASNet."""

    # Sources come from a checkout: `spack develop --path /where/it/is vgasnet@0.1.0`.
    has_code = True

    license("MIT OR Apache-2.0", checked_by="vgasnet")

    version("0.1.0")

    variant("mpi", default=False, description="Run over MPI between hosts, and build the libraries before MPI")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("rust@1.85:", type="build")
    depends_on("binutils", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi", when="+mpi")

    conflicts("platform=darwin", msg="vgasnet uses Linux's own system calls")
    conflicts("platform=windows", msg="vgasnet uses Linux's own system calls")

    def setup_build_environment(self, env):
        env.set("CARGO_HOME", join_path(self.stage.path, "cargo"))
        if self.spec.satisfies("+mpi"):
            env.set("MPICC", self.spec["mpi"].mpicc)

    def install(self, spec, prefix):
        options = ["--with", "mpi"] if spec.satisfies("+mpi") else []
        Executable("scripts/install")(*options, prefix)

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        Executable(join_path(self.prefix.bin, "vgasnet-info"))("-n", "1")
