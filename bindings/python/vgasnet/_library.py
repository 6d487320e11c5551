"""Where the library is, and loading it."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import sysconfig
from typing import Any, Iterator, Optional

from ._prototypes import TYPES, VGASNET_CONFIG_STRING, prototypes

if sys.byteorder != "little" or ctypes.sizeof(ctypes.c_void_p) != 8:
    raise ImportError("vgasnet runs on 64-bit little-endian machines only")


class Library:
    """The shared library: each function of vgasnet.h is an attribute. Calls let other threads of Python run."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.dll = ctypes.CDLL(path, use_errno=True)
        for name, result, arguments in prototypes():
            function = getattr(self.dll, name)
            function.restype = TYPES[result]
            function.argtypes = [TYPES[argument] for argument in arguments]
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self.path} has no {name}")


def _candidates() -> Iterator[str]:
    """Where the library may be, most likely first: where VGASNET_LIBRARY says, in the tree that this package is part of, beside
    the vgasnetrun in PATH, where the system looks."""
    name = "libvgasnet.so.0"
    told = os.environ.get("VGASNET_LIBRARY")
    if told:
        yield os.path.join(told, name) if os.path.isdir(told) else told
        return
    # An installation has the package in share/vgasnet/python/vgasnet, and its libraries in one of these.
    below = ["lib", "lib64", os.path.join("lib", sysconfig.get_config_var("MULTIARCH") or "")]
    here = os.path.dirname(os.path.abspath(__file__))
    for place in below:
        yield os.path.join(here, *[os.pardir] * 4, place, name)
    launcher = shutil.which("vgasnetrun")
    if launcher:
        beside = os.path.dirname(os.path.realpath(launcher))
        yield os.path.join(beside, name)
        for place in below:
            yield os.path.join(beside, os.pardir, place, name)
    # bindings/python/vgasnet of the sources, after cargo build --release.
    yield os.path.join(here, os.pardir, os.pardir, "target", "release", name)
    yield name


_loaded: Optional[Library] = None


def library(path: Optional[str] = None) -> Library:
    """The library, which is loaded by the first call: from ``path``, else from where VGASNET_LIBRARY says (a file, or its
    directory), else from where it is usually.

    Raises OSError if it is not found, or is of another version than this package; ValueError for another path than that
    from which it was loaded."""
    global _loaded
    if _loaded is not None:
        if path is not None and os.path.realpath(path) != os.path.realpath(_loaded.path):
            raise ValueError(f"the library was loaded from {_loaded.path}; it cannot be loaded from {path} as well")
        return _loaded
    candidates = [path] if path else list(_candidates())
    for candidate in candidates:
        if candidate == candidates[-1] or os.path.exists(candidate):
            _loaded = _open(candidate)
            return _loaded
    raise AssertionError("the last candidate is tried")


def _open(path: str) -> Library:
    try:
        opened = Library(path)
    except AttributeError as error:
        raise OSError(f"{path} is of another version of vgasnet than this package: {error}") from None
    except OSError as error:
        raise OSError(
            f"{error}; name the library by VGASNET_LIBRARY=/path/to/libvgasnet.so, or put vgasnetrun in PATH"
        ) from None
    version = opened.vgasnet_config_string().decode()
    if version != VGASNET_CONFIG_STRING:
        raise OSError(f"{path} is {version}; this package is for {VGASNET_CONFIG_STRING}")
    return opened
