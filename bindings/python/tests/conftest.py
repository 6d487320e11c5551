"""Runs the programs of this directory as jobs.

The launcher is VGASNETRUN, else vgasnetrun in PATH, and the library is found as by any program. CHECK_CONDUIT=mpi runs the ranks
over MPI, for which both must be built."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

HERE = Path(__file__).parent
PATIENCE_S = 240


class Ended(NamedTuple):
    status: int
    stdout: str
    stderr: str


def conduit() -> str:
    return os.environ.get("CHECK_CONDUIT", "smp")


def _take_signals() -> None:
    """A shell's background jobs ignore these signals, and so would the launcher."""
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """A function that runs a program as a job, and checks its end."""

    def run_program(
        name: str,
        *arguments: str,
        ranks: int = 2,
        page: str = "64K",
        pool: str = "1M",
        status: int = 0,
        launcher: str = "",
        **variables: str,
    ) -> Ended:
        storage = tmp_path / "storage"
        storage.mkdir(exist_ok=True)
        kept = [name for name in os.environ if not name.startswith("VGASNET_") or name == "VGASNET_LIBRARY"]
        environment = {name: os.environ[name] for name in kept}
        environment.update(
            VGASNET_STORAGE_DIR=str(storage),
            VGASNET_PAGE_SIZE=page,
            VGASNET_POOL_SIZE=pool,
            VGASNET_CONDUIT=conduit(),
            PYTHONPATH=str(HERE.parent),
            PYTHONDONTWRITEBYTECODE="1",
            # Of Open MPI: tests in containers run as root, and with more ranks than processors.
            OMPI_ALLOW_RUN_AS_ROOT="1",
            OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
            OMPI_MCA_rmaps_base_oversubscribe="1",
        )
        environment.update(variables)
        program = HERE / "programs" / name if "/" not in name else HERE.parents[2] / name
        launcher = launcher or os.environ.get("VGASNETRUN", "vgasnetrun")
        command = [launcher, "-n", str(ranks), sys.executable, str(program), *arguments]
        how = {"capture_output": True, "text": True, "timeout": PATIENCE_S, "stdin": subprocess.DEVNULL}
        how["preexec_fn"] = _take_signals
        ended = subprocess.run(command, env=environment, **how)
        stderr = "".join(line for line in ended.stderr.splitlines(True) if "the kernel refused io_uring" not in line)
        said = f"{' '.join(command)}\nstatus {ended.returncode}\n{ended.stdout}{stderr}"
        assert ended.returncode == status, said
        assert not list(storage.iterdir()), f"left behind: {list(storage.iterdir())}"
        return Ended(ended.returncode, ended.stdout, stderr)

    return run_program
