"""Failures: exceptions with the library's line, and jobs that end."""

import subprocess
import sys
from pathlib import Path

import pytest

from conftest import conduit

PACKAGE = Path(__file__).parent.parent


def test_refusals_are_exceptions(run, tmp_path):
    run("refusals.py", str(tmp_path), ranks=2)


def test_what_fails_on_one_rank_is_an_exception_on_all(run):
    ended = run("too_large.py", ranks=3)
    assert ended.stderr.count("vgasnet_attach: ") == 1


def test_an_exception_that_nobody_catches_ends_the_job(run):
    ended = run("failures.py", "exception", ranks=3, status=1)
    assert "RuntimeError: for the test" in ended.stderr


def test_an_exception_in_a_handler_ends_the_job(run):
    ended = run("failures.py", "handler", ranks=2, status=1)
    assert "ValueError: in the handler" in ended.stderr
    assert "<short handler fails of 0 arguments> has raised an exception, which ends the job" in ended.stderr


def test_an_exception_in_a_reduction_ends_the_job(run):
    ended = run("failures.py", "reduction", ranks=2, status=1)
    assert "ValueError: in the reduction" in ended.stderr


@pytest.mark.parametrize("how", ["exit", "handler-exit"])
def test_the_status_of_exit_is_that_of_the_job(run, how):
    ended = run("failures.py", how, ranks=2, status=7)
    assert ended.stdout.count("last words") == 1


def test_exit_needs_no_stdout(run):
    run("failures.py", "closed", ranks=2, status=7)


def test_the_library_that_is_not_there():
    environment = {"VGASNET_LIBRARY": "/nowhere/libvgasnet.so", "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}
    program = "import vgasnet\ntry: vgasnet.init()\nexcept OSError as error: print(error)"
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert ended.returncode == 0 and "/nowhere/libvgasnet.so" in ended.stdout, ended.stderr
    assert "name the library by VGASNET_LIBRARY=" in ended.stdout


def test_ctrl_c_ends_the_job(run):
    if conduit() != "smp":
        pytest.skip("launchers of MPI have signals of their own")
    ended = run("failures.py", "interrupt", ranks=2, status=130)
    assert "KeyboardInterrupt" in ended.stderr
