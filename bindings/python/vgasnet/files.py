"""Shared files: all ranks of a team open a file together, and their pools cache it coherently. See docs/reference/files.md."""

from __future__ import annotations

import ctypes
import io
import os
from contextlib import contextmanager
from typing import Any, Iterator, List, Optional, Sequence, Tuple, Union

from . import raw
from ._core import attached, lent, number
from .collectives import WORLD, Team
from .errors import check
from .operations import Operation
from .segment import advice_of

_MODES = {
    "r": raw.VGASNET_FILE_READ,
    "r+": raw.VGASNET_FILE_READ | raw.VGASNET_FILE_WRITE,
    "w": raw.VGASNET_FILE_WRITE | raw.VGASNET_FILE_CREATE | raw.VGASNET_FILE_TRUNCATE,
    "w+": raw.VGASNET_FILE_READ | raw.VGASNET_FILE_WRITE | raw.VGASNET_FILE_CREATE | raw.VGASNET_FILE_TRUNCATE,
    "x": raw.VGASNET_FILE_WRITE | raw.VGASNET_FILE_CREATE | raw.VGASNET_FILE_EXCLUSIVE,
    "x+": raw.VGASNET_FILE_READ | raw.VGASNET_FILE_WRITE | raw.VGASNET_FILE_CREATE | raw.VGASNET_FILE_EXCLUSIVE,
}
_OFFSET_MAX = (1 << 63) - 1


class File(io.RawIOBase):
    """A file that the ranks of a team have open together::

        with vgasnet.File("/data/table", "w+") as file:
            file.write_at(vgasnet.rank() * block.nbytes, block)
            vgasnet.barrier()
            file.read_into_at(neighbour * block.nbytes, block)

    After a write has returned, every rank reads its bytes. Collective, with the same arguments on all ranks: opening,
    ``sync``, ``set_size``, ``truncate``, ``set_atomic``, ``set_pointer``, ``preallocate``, ``close`` and the end of ``with``. All
    else is of the calling rank alone. It is an unbuffered binary file of Python, too, with a position of each rank: ``read``,
    ``readinto``, ``write``, ``seek`` and ``tell`` are as in Python. A forgotten file stays open until the job ends.

    ``mode``: as that of ``open``, binary: "r", "r+", "w", "w+", "x" or "x+". ``stripe_bytes``: bytes side by side that have one
    home, a multiple of the page size. ``io_ranks``: how many ranks do I/O. ``atomic``: each read and write is one step to others.
    """

    def __init__(
        self,
        path: Union[str, bytes, "os.PathLike[str]"],
        mode: str = "r",
        team: Team = WORLD,
        *,
        stripe_bytes: int = 0,
        io_ranks: int = 0,
        atomic: bool = False,
        permissions: int = 0o644,
    ) -> None:
        super().__init__()
        self._handle = 0
        mode = mode.replace("b", "")
        if mode not in _MODES:
            raise ValueError(f"mode {mode!r}; give one of {', '.join(_MODES)}")
        permissions = number("permissions", permissions, 0, 0o7777)
        stripe_bytes = number("stripe_bytes", stripe_bytes, 0, _OFFSET_MAX)
        options = raw.vgasnet_file_options_t(0, stripe_bytes, number("io_ranks", io_ranks, 0, (1 << 32) - 1), 0)
        options.struct_bytes = ctypes.sizeof(options)
        self._flags = _MODES[mode] | (raw.VGASNET_FILE_ATOMIC if atomic else 0)
        self._position = 0
        self.name = os.fspath(path)
        handle = ctypes.c_void_p()
        arguments = (team._handle, os.fsencode(path), self._flags, permissions, ctypes.byref(options), ctypes.byref(handle))
        check(attached().vgasnet_file_open(*arguments))
        self._handle = handle.value or 0

    def __del__(self) -> None:
        # Not closed: that is collective.
        pass

    def __repr__(self) -> str:
        return f"<shared file {self.name!r}>"

    def _library(self) -> Any:
        if not self._handle:
            raise ValueError("the file is closed")
        return attached()

    def _call(self, name: str, *arguments: Any) -> None:
        check(getattr(self._library(), f"vgasnet_file_{name}")(self._handle, *arguments))

    def read_at(self, offset: int, nbytes: int) -> bytes:
        """Reads from offset on, as far as the file has bytes."""
        buffer = bytearray(number("nbytes", nbytes, 0, _OFFSET_MAX))
        return bytes(memoryview(buffer)[: self.read_into_at(offset, buffer)])

    def read_into_at(self, offset: int, buffer: Any) -> int:
        """Reads as many bytes as an array or buffer has, which may be in the own segment. Returns how many the file had."""
        library = self._library()
        address, nbytes, _ = lent(buffer, True)
        nread = ctypes.c_size_t()
        arguments = (number("offset", offset, 0, _OFFSET_MAX), address, nbytes, ctypes.byref(nread))
        check(library.vgasnet_file_read_at(self._handle, *arguments))
        return nread.value

    def write_at(self, offset: int, data: Any) -> int:
        """Writes an array or buffer. Makes the file longer if it ends before. Returns the number of bytes."""
        library = self._library()
        address, nbytes, _ = lent(data, False)
        check(library.vgasnet_file_write_at(self._handle, number("offset", offset, 0, _OFFSET_MAX), address, nbytes))
        return nbytes

    def read_into_at_nb(self, offset: int, buffer: Any) -> Operation:
        """``read_into_at`` without waiting. The result is the number of bytes the file had. ``error`` names a failure."""
        library = self._library()
        address, nbytes, kept = lent(buffer, True)
        nread = ctypes.c_size_t()
        arguments = (number("offset", offset, 0, _OFFSET_MAX), address, nbytes, ctypes.byref(nread))
        return Operation(library.vgasnet_file_read_at_nb(self._handle, *arguments), kept, nread.value)

    def write_at_nb(self, offset: int, data: Any) -> Operation:
        """``write_at`` without waiting. ``data`` must not change before. ``error`` names a failure."""
        library = self._library()
        address, nbytes, kept = lent(data, False)
        offset = number("offset", offset, 0, _OFFSET_MAX)
        return Operation(library.vgasnet_file_write_at_nb(self._handle, offset, address, nbytes), kept, nbytes)

    def _lists(self, runs: Sequence[Tuple[int, int]], buffers: Sequence[Any], is_written: bool) -> Tuple[List[Any], Any]:
        """The arguments of C for runs and buffers, and objects to keep alive until the call has returned."""
        places = (raw.vgasnet_file_run_t * len(runs))()
        for place, (offset, nbytes) in zip(places, runs):
            place.offset, place.len = number("offset", offset, 0, _OFFSET_MAX), number("nbytes", nbytes, 0, _OFFSET_MAX)
        memory = [lent(buffer, is_written) for buffer in buffers]
        pieces = (raw.vgasnet_memvec_t * len(memory))(*[raw.vgasnet_memvec_t(address, nbytes) for address, nbytes, _ in memory])
        return [len(runs), places, len(memory), pieces], [kept for _, _, kept in memory]

    def readv_at(self, runs: Sequence[Tuple[int, int]], buffers: Sequence[Any]) -> int:
        """Reads many places at once. A run is an offset and a number of bytes. The bytes of all runs, in their order, fill the
        buffers, in their order. Ends at the end of the file. Returns the number of bytes read."""
        nread = ctypes.c_size_t()
        lists, _ = self._lists(runs, buffers, True)
        self._call("readv_at", *lists, ctypes.byref(nread))
        return nread.value

    def writev_at(self, runs: Sequence[Tuple[int, int]], buffers: Sequence[Any]) -> None:
        """Writes many places at once, as ``readv_at`` reads them."""
        lists, _ = self._lists(runs, buffers, False)
        self._call("writev_at", *lists)

    def sync(self) -> None:
        """Collective. All earlier writes are on the disk."""
        self._call("sync")

    def set_size(self, nbytes: int) -> None:
        """Collective. Cuts the file, or adds zeros."""
        self._call("set_size", number("nbytes", nbytes, 0, _OFFSET_MAX))

    def preallocate(self, nbytes: int) -> None:
        """Collective. The file system has space for so many bytes from the begin of the file on, which has at least so many."""
        self._call("preallocate", number("nbytes", nbytes, 0, _OFFSET_MAX))

    def extend(self, nbytes: int) -> None:
        """The file has at least so many bytes from now on: zeros where nobody has written."""
        self._call("extend", number("nbytes", nbytes, 0, _OFFSET_MAX))

    def set_atomic(self, atomic: bool) -> None:
        """Collective. From now on each read and write is one step to others, or not."""
        self._call("set_atomic", int(bool(atomic)))

    def set_pointer(self, value: int) -> None:
        """Collective. Sets the number that ``take`` adds to, 0 at first."""
        self._call("set_pointer", number("value", value, 0, (1 << 64) - 1))

    def take(self, amount: int) -> int:
        """Adds to a number shared by all ranks, and returns its earlier value. A rank appends by taking the size of its bytes and
        writing them at that offset."""
        before = ctypes.c_uint64()
        self._call("take", number("amount", amount, 0, (1 << 64) - 1), ctypes.byref(before))
        return before.value

    @contextmanager
    def locked(self, offset: int, nbytes: int, shared: bool = False) -> Iterator[None]:
        """Locks bytes against others that lock them. Reads and writes do not look at locks."""
        place = (number("offset", offset, 0, _OFFSET_MAX), number("nbytes", nbytes, 0, _OFFSET_MAX))
        self._call("lock", *place, int(not shared))
        try:
            yield
        finally:
            self._call("unlock", *place)

    def flush(self) -> None:
        """The file system has the writes of this rank."""
        if self._handle and self._flags & raw.VGASNET_FILE_WRITE:
            self._call("flush")

    def advise(self, advice: str, offset: int, nbytes: int) -> None:
        """A hint about bytes of the file: "willneed", "dontneed", "sequential" or "readmostly"."""
        place = (number("offset", offset, 0, _OFFSET_MAX), number("nbytes", nbytes, 0, _OFFSET_MAX))
        self._call("advise", *place, advice_of(advice))

    def size(self) -> int:
        """The size in bytes, with all that any rank has written. Asks the others."""
        nbytes = ctypes.c_uint64()
        self._call("size", ctypes.byref(nbytes))
        return nbytes.value

    def error(self) -> Optional[OSError]:
        """The first error of the file on this rank, if there was one."""
        errno = ctypes.c_int()
        code = self._library().vgasnet_file_error(self._handle, ctypes.byref(errno))
        if code not in (raw.VGASNET_OK, raw.VGASNET_ERR_IO):
            check(code)
        return OSError(errno.value, os.strerror(errno.value), self.name) if code == raw.VGASNET_ERR_IO else None

    def error_count(self) -> int:
        """How many errors the file has had on this rank."""
        errors = ctypes.c_uint64()
        self._call("error_count", ctypes.byref(errors))
        return errors.value

    def close(self) -> None:
        """Collective. Others see all writes. After an error the unwritten bytes are lost."""
        if self._handle:
            library, handle, self._handle = attached(), self._handle, 0
            code = library.vgasnet_file_close(handle)
            super().close()
            check(code)
        else:
            super().close()

    def __exit__(self, kind: Any, *rest: Any) -> None:
        # Others may not come to close it, and the exception matters more.
        if kind is None:
            self.close()

    def readable(self) -> bool:
        self._library()
        return bool(self._flags & raw.VGASNET_FILE_READ)

    def writable(self) -> bool:
        self._library()
        return bool(self._flags & raw.VGASNET_FILE_WRITE)

    def seekable(self) -> bool:
        self._library()
        return True

    def readinto(self, buffer: Any) -> int:
        """Reads from this rank's position on, which goes on behind. Returns how many bytes the file had."""
        nread = self.read_into_at(self._position, buffer)
        self._position += nread
        return nread

    def readall(self) -> bytes:
        """Reads from this rank's position to the end."""
        data = self.read_at(self._position, max(self.size() - self._position, 0))
        self._position += len(data)
        return data

    def write(self, data: Any) -> int:
        """Writes at this rank's position, which goes on behind."""
        nbytes = self.write_at(self._position, data)
        self._position += nbytes
        return nbytes

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Sets this rank's position, from the begin, from where it is, or from the end."""
        if whence not in (os.SEEK_SET, os.SEEK_CUR, os.SEEK_END):
            raise ValueError(f"whence is {whence}; give os.SEEK_SET, SEEK_CUR or SEEK_END")
        self._library()
        begin = {os.SEEK_SET: 0, os.SEEK_CUR: self._position}.get(whence)
        self._position = number("position", (self.size() if begin is None else begin) + offset, 0, _OFFSET_MAX)
        return self._position

    def tell(self) -> int:
        """This rank's position."""
        self._library()
        return self._position

    def truncate(self, size: Optional[int] = None) -> int:
        """``set_size``: collective. Without a size, that of this rank's position."""
        size = self._position if size is None else size
        self.set_size(size)
        return size


