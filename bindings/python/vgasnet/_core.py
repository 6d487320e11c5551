"""Shared by the parts of this package: the job of this process, and memory lent to the library."""

from __future__ import annotations

import contextlib
import operator
import sys
import threading
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from . import raw
from .errors import Error


class Job:
    """This process as a rank. All is unset before ``init``; ``segments`` before ``attach``."""

    def __init__(self) -> None:
        self.library: Optional[raw.Library] = None
        self.rank = -1
        self.ranks = 0
        # Address and size of each rank's segment.
        self.segments: List[Tuple[int, int]] = []
        # An uncaught exception ends the program.
        self.has_failed = False
        # Handlers and their thunks, which the library calls as long as the process lives.
        self.kept: List[Any] = []


job = Job()


class _Thread(threading.local):
    """The state of this thread."""

    is_in_handler = False
    # The access region opened by the thread: the list of the objects in use by its operations.
    region: Optional[List[Any]] = None


thread = _Thread()

# The objects in use by pending operations, by the operation. They must live until it is complete.
pending: Dict[int, Any] = {}


def initialised() -> raw.Library:
    """The library, of a process that is a rank."""
    if job.library is None:
        raise _too_early("vgasnet.start, or vgasnet.init,")
    return job.library


def attached() -> raw.Library:
    """The library, of a rank that may communicate, in a thread that runs no handler."""
    if not job.segments:
        raise _too_early("vgasnet.start, or vgasnet.attach,")
    if thread.is_in_handler:
        raise RuntimeError("a handler may reply, use the own segment's arrays and call vgasnet.exit, and nothing else of vgasnet")
    return job.library  # type: ignore[return-value]


def _too_early(missing: str) -> Error:
    return Error(raw.VGASNET_ERR_NOT_INIT, "VGASNET_ERR_NOT_INIT", "", f"call {missing} first")


def whole(what: str, value: Any) -> int:
    """A number as an int. One with a fraction is refused as numpy does it, even if the fraction is 0."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{what} is {value!r}; give an integer") from None


def number(what: str, value: Any, least: int, most: int) -> int:
    """A number for the library, as an int."""
    value = whole(what, value)
    if not least <= value <= most:
        raise ValueError(f"{what} is {value}; give {least} to {most}")
    return value


def lent(buffer: Any, is_written: bool) -> Tuple[int, int, Any]:
    """Address and size in bytes of a buffer, and an object to keep alive while the library uses it. Nothing is copied."""
    array = buffer if isinstance(buffer, np.ndarray) else np.frombuffer(buffer, np.uint8)
    if array.dtype.hasobject:
        raise TypeError(f"an array of {array.dtype} has references to Python's objects, which mean nothing elsewhere")
    if not array.flags.c_contiguous:
        raise ValueError(
            "an array with gaps, or in the order of Fortran; give one that is not, as numpy.ascontiguousarray makes; "
            "a segment has get_strided and put_strided, too"
        )
    if is_written and not array.flags.writeable:
        raise ValueError("the destination is read-only; give a writable array")
    return array.__array_interface__["data"][0], array.nbytes, array


def flush_output() -> None:
    """Flushes stdout and stderr. A closed or broken stream keeps no job from its end."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):
                stream.flush()


def shape_of(shape: Any) -> Tuple[int, ...]:
    """A shape as numpy has it: a number stands for one dimension."""
    dimensions = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    return tuple(number("a dimension", dimension, 0, (1 << 63) - 1) for dimension in dimensions)
