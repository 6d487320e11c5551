"""The package: it has the functions of the headers, and a wheel can be built from it without network."""

import ctypes
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent


def test_a_wheel_is_built_without_network_and_works(tmp_path):
    pytest.importorskip("setuptools", reason="building a wheel needs python3-setuptools")
    pytest.importorskip("wheel", reason="building a wheel needs python3-wheel")
    pytest.importorskip("pip", reason="building a wheel needs python3-pip")
    source = tmp_path / "source"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
    options = ["--no-index", "--no-deps", "--no-build-isolation", "-w", str(tmp_path)]
    ended = subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(source)], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (wheel,) = tmp_path.glob("vgasnet-*-py3-none-any.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = {f"vgasnet/{path.name}" for path in (PACKAGE / "vgasnet").glob("*.py")}
    assert sources | {"vgasnet/py.typed"} <= names
    assert not any(name.startswith("tests/") for name in names)
    for licence in ("LICENSE-MIT", "LICENSE-APACHE"):
        assert any(name.endswith("/" + licence) for name in names), names
    loads = f"import sys; sys.path.insert(0, {str(wheel)!r}); import vgasnet; print(vgasnet.__file__)"
    ended = subprocess.run([sys.executable, "-c", loads], capture_output=True, text=True, cwd=tmp_path)
    assert ended.returncode == 0 and str(wheel) in ended.stdout, ended.stderr


def test_all_that_is_public_is_documented():
    import vgasnet

    for name in vgasnet.__all__:
        thing = getattr(vgasnet, name)
        assert getattr(thing, "__doc__", None), name
        for member, value in vars(thing).items() if isinstance(thing, type) else ():
            if not member.startswith("_") and callable(value) and thing not in (vgasnet.Times, vgasnet.Place):
                is_of_python = thing is vgasnet.File and member in ("readable", "writable", "seekable")
                assert value.__doc__ or is_of_python, f"{name}.{member}"


def test_the_sizes_of_structures():
    # Those of C are compared by tests/c_interface; this is a plain error in the table.
    from vgasnet import raw

    assert ctypes.sizeof(raw.vgasnet_handlerentry_t) == 16
    assert ctypes.sizeof(raw.vgasnet_stats_times_t) == 48
