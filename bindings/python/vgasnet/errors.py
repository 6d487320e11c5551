"""Failures as exceptions with the library's line."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Optional

from . import raw


class Error(Exception):
    """A call that the library has refused. The job goes on; an exception that nobody catches ends it, with status 1.

    Attributes:
        code: the number, one of ``raw.VGASNET_ERR_...``
        name: the name of the code
        line: the library's message, without ``vgasnet: ``: rank, call, value, allowed values. "" if another rank has
            printed it.
    """

    def __init__(self, code: int, name: str, line: str, meaning: str = "") -> None:
        super().__init__(line or f"{name}: {meaning}")
        self.code = code
        self.name = name
        self.line = line
        self._meaning = meaning

    def __reduce__(self) -> "tuple[Any, ...]":
        # Exceptions travel between processes, as those of multiprocessing and mpi4py: by default with what the text is made from.
        return type(self), (self.code, self.name, self.line, self._meaning)


class FileError(Error, OSError):
    """The file system has refused something; ``errno`` is its number, or None if this rank was not told."""

    def __init__(self, code: int, name: str, line: str, meaning: str = "", errno: Optional[int] = None) -> None:
        Error.__init__(self, code, name, line, meaning)
        self.errno = errno
        self.strerror = os.strerror(errno) if errno else None

    def __reduce__(self) -> "tuple[Any, ...]":
        return type(self), (self.code, self.name, self.line, self._meaning, self.errno)

    def __str__(self) -> str:
        return str(self.args[0])


class BarrierMismatch(Error):
    """The ranks came to a barrier with different names."""


def check(code: int) -> None:
    """Raises the exception of a code other than ``VGASNET_OK``."""
    if code != raw.VGASNET_OK:
        raise of_code(code)


def of_code(code: int) -> Error:
    """The exception of a code that this thread's last call has returned."""
    errno = ctypes.get_errno()
    library = raw.library()
    name, meaning = library.vgasnet_ErrorName(code).decode(), library.vgasnet_ErrorDesc(code).decode()
    line = library.vgasnet_ErrorLine().decode(errors="replace")
    if code == raw.VGASNET_ERR_BARRIER_MISMATCH:
        return BarrierMismatch(code, name, line, meaning)
    if not line:
        meaning += "; another rank has printed more of it"
    if code == raw.VGASNET_ERR_IO:
        return FileError(code, name, line, meaning, errno or None)
    return Error(code, name, line, meaning)
