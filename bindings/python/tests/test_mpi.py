"""Programs that use mpi4py beside vgasnet over MPI."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import HERE, conduit


def mpi4py_of_the_library():
    """Whether mpi4py is there, and uses the MPI for which the library was built."""
    if conduit() != "mpi":
        pytest.skip("mpi4py beside vgasnet: CHECK_CONDUIT is not mpi")
    pytest.importorskip("mpi4py", reason="mpi4py beside vgasnet: there is no python3-mpi4py")
    from vgasnet import _library

    library = next(filter(os.path.exists, _library._candidates()), None)
    if library is None:
        pytest.skip("mpi4py beside vgasnet: set VGASNET_LIBRARY to a library that was built for its MPI")

    def of(path):
        lines = subprocess.run(["ldd", str(path)], capture_output=True, text=True).stdout.splitlines()
        return {line.split()[0] for line in lines if line.strip().startswith("libmpi")}

    import mpi4py

    (extension,) = Path(mpi4py.__file__).parent.glob("MPI.*.so")
    if not of(extension) & of(library):
        pytest.skip(f"mpi4py beside vgasnet: it uses {of(extension)}, and the library {of(library)}")


@pytest.mark.parametrize("first", ["mpi4py", "vgasnet", "imported"])
def test_both_work_whoever_starts_mpi(run, first):
    mpi4py_of_the_library()
    run("with_mpi4py.py", first, ranks=2)
    run("with_mpi4py.py", first, ranks=2, VGASNET_PEER_MEMORY="0")


def test_an_exception_ends_the_job(run):
    mpi4py_of_the_library()
    ended = run("with_mpi4py.py", "mpi4py-fails", ranks=2, status=1)
    assert "RuntimeError: for the test" in ended.stderr


def test_mpis_own_launcher(run):
    mpi4py_of_the_library()
    # Debian's names for the launchers of its MPIs.
    launcher = next(filter(shutil.which, ["mpiexec.openmpi", "mpiexec"]), "mpiexec")
    run("with_mpi4py.py", "mpi4py", ranks=2, launcher=launcher)


def test_the_program_of_the_document(run, tmp_path):
    mpi4py_of_the_library()
    text = (HERE.parents[2] / "docs/reference/python.md").read_text()
    program = tmp_path / "program.py"
    program.write_text(text.split("## mpi4py")[1].split("```python\n")[1].split("```")[0])
    assert run(str(program), ranks=4).stdout == "6.0\n"
