"""Segments: arrays on the own one, gets and puts to all."""

from __future__ import annotations

import ctypes
import math
from contextlib import contextmanager
from typing import Any, Iterator, Optional, Sequence, Tuple

import numpy as np

from . import raw
from ._core import attached, initialised, job, lent, number, shape_of, whole
from .errors import check
from .operations import Operation, note_implicit

_ADVICE = {
    "willneed": raw.VGASNET_ADVISE_WILLNEED,
    "dontneed": raw.VGASNET_ADVISE_DONTNEED,
    "sequential": raw.VGASNET_ADVISE_SEQUENTIAL,
    "readmostly": raw.VGASNET_ADVISE_READMOSTLY,
}

# By name: the operation on numbers without a sign, and on those with one.
_ATOMICS = {
    "add": (raw.VGASNET_ATOMIC_ADD, raw.VGASNET_ATOMIC_ADD),
    "and": (raw.VGASNET_ATOMIC_AND, raw.VGASNET_ATOMIC_AND),
    "or": (raw.VGASNET_ATOMIC_OR, raw.VGASNET_ATOMIC_OR),
    "xor": (raw.VGASNET_ATOMIC_XOR, raw.VGASNET_ATOMIC_XOR),
    "swap": (raw.VGASNET_ATOMIC_SWAP, raw.VGASNET_ATOMIC_SWAP),
    "cas": (raw.VGASNET_ATOMIC_CAS, raw.VGASNET_ATOMIC_CAS),
    "min": (raw.VGASNET_ATOMIC_MIN, raw.VGASNET_ATOMIC_IMIN),
    "max": (raw.VGASNET_ATOMIC_MAX, raw.VGASNET_ATOMIC_IMAX),
}

_ATOMIC_TYPES = [np.dtype(name) for name in ("int32", "uint32", "int64", "uint64")]


class Segment:
    """A rank's segment. Places in it are offsets in bytes.

    Attributes:
        rank: its rank
        address: its first byte, in its own rank
        nbytes: its size
    """

    def __init__(self, rank: int, address: int, nbytes: int) -> None:
        self.rank = rank
        self.address = address
        self.nbytes = nbytes

    def __repr__(self) -> str:
        return f"<segment of rank {self.rank}, {self.nbytes} bytes>"

    @property
    def is_own(self) -> bool:
        """Whether it is this rank's."""
        return self.rank == job.rank

    def _place(self, offset: int, nbytes: int) -> int:
        """The address of so many bytes of the segment."""
        offset, nbytes = whole("offset", offset), whole("nbytes", nbytes)
        if offset < 0 or nbytes < 0 or offset + nbytes > self.nbytes:
            raise IndexError(f"{nbytes} bytes at offset {offset} of the segment of rank {self.rank}, which has {self.nbytes}")
        return self.address + offset

    def _bytes_from(self, offset: int, nbytes: Optional[int]) -> int:
        """The size of a range: without a number, that of all from offset on."""
        return max(self.nbytes - whole("offset", offset), 0) if nbytes is None else whole("nbytes", nbytes)

    def _must_be_own(self) -> None:
        if not self.is_own:
            raise ValueError(f"the segment is that of rank {self.rank}; this is for the own one: get and put others'")

    def array(self, dtype: Any = np.uint8, shape: Any = None, offset: int = 0) -> np.ndarray:
        """A part of the own segment as an array, without a copy: elements are loaded and stored in place, their pages from the disk
        if need be. Without a shape, everything from offset on. Other ranks see the stores, and their puts are seen. The array
        cannot hold objects of Python.

        A slice that an operation of numpy reads or writes may be larger than the pool. Other libraries that hand memory to the kernel
        or to MPI need ordinary memory: ``array.copy()``.
        """
        attached_or_handler()
        self._must_be_own()
        dtype = np.dtype(dtype)
        if dtype.hasobject or dtype.itemsize == 0:
            raise TypeError(f"elements of {dtype} cannot be in a segment")
        if shape is None:
            shape = self._bytes_from(offset, None) // dtype.itemsize
        shape = shape_of(shape)
        nbytes = dtype.itemsize * math.prod(shape)
        place = self._place(offset, nbytes)
        if nbytes == 0:
            return np.empty(shape, dtype)
        memory = (ctypes.c_char * nbytes).from_address(place)
        return np.frombuffer(memory, np.uint8).view(dtype).reshape(shape)

    def get(self, offset: int, shape: Any, dtype: Any = np.uint8) -> np.ndarray:
        """A copy of the array of this shape and type at offset."""
        attached()
        shape, dtype = shape_of(shape), np.dtype(dtype)
        # Before there is memory for it.
        self._place(offset, dtype.itemsize * math.prod(shape))
        copy = np.empty(shape, dtype)
        self.get_into(offset, copy)
        return copy

    def get_into(self, offset: int, out: Any) -> Any:
        """Gets as many bytes as ``out`` has, and returns it."""
        library = attached()
        address, nbytes, _ = lent(out, True)
        library.vgasnet_get_bulk(address, self.rank, self._place(offset, nbytes), nbytes)
        return out

    def put(self, offset: int, data: Any) -> None:
        """Puts the bytes of an array or buffer. When it returns, no rank can read the old ones any more."""
        library = attached()
        address, nbytes, _ = lent(data, False)
        library.vgasnet_put_bulk(self.rank, self._place(offset, nbytes), address, nbytes)

    def fill(self, offset: int, nbytes: int, value: int = 0) -> None:
        """Sets bytes to a value of 0 to 255."""
        library = attached()
        place = self._place(offset, nbytes)
        library.vgasnet_memset(self.rank, place, number("value", value, 0, 255), whole("nbytes", nbytes))

    def get_nb(self, offset: int, out: Any) -> Operation:
        """``get_into`` without waiting. The result is ``out``."""
        library = attached()
        address, nbytes, kept = lent(out, True)
        handle = library.vgasnet_get_nb_bulk(address, self.rank, self._place(offset, nbytes), nbytes)
        return Operation(handle, kept, out)

    def put_nb(self, offset: int, data: Any) -> Operation:
        """``put`` without waiting. ``data`` must not change until it is complete."""
        library = attached()
        address, nbytes, kept = lent(data, False)
        return Operation(library.vgasnet_put_nb_bulk(self.rank, self._place(offset, nbytes), address, nbytes), kept)

    def fill_nb(self, offset: int, nbytes: int, value: int = 0) -> Operation:
        """``fill`` without waiting."""
        library = attached()
        place = self._place(offset, nbytes)
        return Operation(library.vgasnet_memset_nb(self.rank, place, number("value", value, 0, 255), whole("nbytes", nbytes)), None)

    def get_nbi(self, offset: int, out: Any) -> None:
        """``get_into`` without waiting, in an ``access_region``, which waits for it."""
        library = attached()
        address, nbytes, kept = lent(out, True)
        place = self._place(offset, nbytes)
        note_implicit(kept)
        library.vgasnet_get_nbi_bulk(address, self.rank, place, nbytes)

    def put_nbi(self, offset: int, data: Any) -> None:
        """``put`` without waiting, in an ``access_region``, which waits for it."""
        library = attached()
        address, nbytes, kept = lent(data, False)
        place = self._place(offset, nbytes)
        note_implicit(kept)
        library.vgasnet_put_nbi_bulk(self.rank, place, address, nbytes)

    def _lists(self, offsets: Sequence[int], buffers: Sequence[Any], is_written: bool) -> Tuple[Any, Any, int, Any]:
        """A list of pieces of the segment and one of pieces of memory, as C has them."""
        if len(offsets) != len(buffers):
            raise ValueError(f"{len(offsets)} offsets and {len(buffers)} buffers; give as many")
        memory = [lent(buffer, is_written) for buffer in buffers]
        count = len(memory)
        there, here = (raw.vgasnet_memvec_t * count)(), (raw.vgasnet_memvec_t * count)()
        for at, (offset, (address, nbytes, _)) in enumerate(zip(offsets, memory)):
            there[at].addr, there[at].len = self._place(offset, nbytes), nbytes
            here[at].addr, here[at].len = address, nbytes
        return there, here, count, [kept for _, _, kept in memory]

    def get_list(self, offsets: Sequence[int], outs: Sequence[Any]) -> None:
        """Many gets at once, a buffer for each offset."""
        self.get_list_nb(offsets, outs).wait()

    def put_list(self, offsets: Sequence[int], data: Sequence[Any]) -> None:
        """Many puts at once: each buffer goes to its offset."""
        self.put_list_nb(offsets, data).wait()

    def get_list_nb(self, offsets: Sequence[int], outs: Sequence[Any]) -> Operation:
        """``get_list`` without waiting."""
        library = attached()
        there, here, count, kept = self._lists(offsets, outs, True)
        return Operation(library.vgasnet_getv_nb_bulk(count, here, self.rank, count, there), kept, outs)

    def put_list_nb(self, offsets: Sequence[int], data: Sequence[Any]) -> Operation:
        """``put_list`` without waiting."""
        library = attached()
        there, here, count, kept = self._lists(offsets, data, False)
        return Operation(library.vgasnet_putv_nb_bulk(self.rank, count, there, count, here), kept)

    def _strides(self, offset: int, strides: Sequence[int], array: np.ndarray) -> Tuple[int, Any, Any, Any, int]:
        """A place, and the strides there, here, and the counts of a transfer between arrays of the same shape."""
        if len(strides) != array.ndim:
            raise ValueError(f"{len(strides)} strides for an array of {array.ndim} dimensions; give one for each")
        if array.dtype.hasobject:
            raise TypeError(f"elements of {array.dtype} cannot be in a segment")
        strides = [whole("a stride", stride) for stride in strides]
        if any(stride < 0 for stride in (*strides, *array.strides)):
            raise ValueError("a stride is negative; give an array whose strides are not, as array.copy()")
        reach = array.itemsize + sum(stride * (n - 1) for stride, n in zip(strides, array.shape)) if array.size else 0
        levels = array.ndim
        counts = (ctypes.c_size_t * (levels + 1))(array.itemsize, *reversed(array.shape))
        there = (ctypes.c_size_t * max(levels, 1))(*reversed(strides))
        here = (ctypes.c_size_t * max(levels, 1))(*reversed(array.strides))
        return self._place(offset, reach), there, here, counts, levels

    def get_strided(self, offset: int, strides: Sequence[int], out: np.ndarray) -> np.ndarray:
        """Gets an array of the shape of ``out``. In the segment its elements are ``strides`` bytes apart, dimension by dimension.
        ``out`` may be a slice with gaps, too."""
        library = attached()
        if not out.flags.writeable:
            raise ValueError("the destination is read-only; give a writable array")
        place, there, here, counts, levels = self._strides(offset, strides, out)
        library.vgasnet_gets_bulk(out.__array_interface__["data"][0], here, self.rank, place, there, counts, levels)
        return out

    def put_strided(self, offset: int, strides: Sequence[int], data: np.ndarray) -> None:
        """Puts an array so that its elements are ``strides`` bytes apart in the segment, dimension by dimension. It may be a slice
        with gaps, too."""
        library = attached()
        place, there, here, counts, levels = self._strides(offset, strides, data)
        library.vgasnet_puts_bulk(self.rank, place, there, data.__array_interface__["data"][0], here, counts, levels)

    def _number(self, offset: int, dtype: Any) -> Tuple[int, np.dtype, str]:
        """The place of an atomic number, its type, and how the functions for it end."""
        dtype = np.dtype(dtype)
        if dtype not in _ATOMIC_TYPES:
            raise TypeError(f"{dtype} is not atomic; give int32, uint32, int64 or uint64")
        place = self._place(offset, dtype.itemsize)
        if place % dtype.itemsize:
            raise ValueError(f"offset {offset} is no multiple of {dtype.itemsize}, the size of the number")
        return place, dtype, f"u{dtype.itemsize * 8}"

    def atomic(self, op: str, offset: int, operand: int, compare: int = 0, dtype: Any = np.int64) -> int:
        """Changes a number of 32 or 64 bits in place, and returns its earlier value. Atomic against all other such operations on it.

        ``op``: "add" (which wraps), "and", "or", "xor", "min", "max", "swap", or "cas", which sets it to ``operand`` if it is
        ``compare``."""
        library = attached()
        place, dtype, end = self._number(offset, dtype)
        function = getattr(library, f"vgasnet_atomic_{end}")
        was = function(self.rank, place, _atomic_of(op, dtype), _bits(operand, dtype), _bits(compare, dtype))
        return was - (1 << dtype.itemsize * 8) if dtype.kind == "i" and was >> dtype.itemsize * 8 - 1 else was

    def atomic_nb(self, op: str, offset: int, operand: int, compare: int = 0, dtype: Any = np.int64) -> Operation:
        """``atomic`` without waiting. The result is an array of one element, the earlier value."""
        library = attached()
        place, dtype, end = self._number(offset, dtype)
        was = np.zeros(1, dtype)
        function = getattr(library, f"vgasnet_atomic_{end}_nb")
        numbers = (_atomic_of(op, dtype), _bits(operand, dtype), _bits(compare, dtype))
        return Operation(function(was.__array_interface__["data"][0], self.rank, place, *numbers), was, was)

    def fetch_add(self, offset: int, operand: int, dtype: Any = np.int64) -> int:
        """Adds to a number, and returns its earlier value."""
        return self.atomic("add", offset, operand, 0, dtype)

    def compare_and_swap(self, offset: int, compare: int, operand: int, dtype: Any = np.int64) -> int:
        """Sets a number to ``operand`` if it is ``compare``, and returns its earlier value."""
        return self.atomic("cas", offset, operand, compare, dtype)

    @contextmanager
    def readonly(
        self,
        offset: int = 0,
        nbytes: Optional[int] = None,
        *,
        keep: bool = False,
        cache_bytes_max: int = 0,
        get_bytes_max: int = 0,
        object_bytes: int = 0,
    ) -> Iterator["Segment"]:
        """Promises that no rank writes to a range meanwhile; small gets from it are served from copies then::

            with segment.readonly():
                ...
            vgasnet.barrier()       # now it may be written

        ``keep``: copies of an earlier phase are used again. The others: readonly.h."""
        library = attached()
        nbytes = self._bytes_from(offset, nbytes)
        place = self._place(offset, nbytes)
        bounds = {"cache_bytes_max": cache_bytes_max, "get_bytes_max": get_bytes_max, "object_bytes": object_bytes}
        bounds = {name: number(name, value, 0, (1 << 63) - 1) for name, value in bounds.items()}
        options = raw.vgasnet_readonly_options_t(**bounds)
        options.struct_bytes = ctypes.sizeof(options)
        flags = raw.VGASNET_READONLY_KEEP if keep else 0
        check(library.vgasnet_readonly_begin(self.rank, place, nbytes, flags, ctypes.byref(options)))
        try:
            yield self
        finally:
            check(library.vgasnet_readonly_end(self.rank, place, nbytes))

    @contextmanager
    def pinned(self, offset: int, nbytes: int, write: bool = False) -> Iterator[np.ndarray]:
        """Keeps pages of the own segment in memory, for code that gives addresses to the kernel. Gives the bytes as an array. Pin
        briefly, and wait for no other rank meanwhile, since a rank that writes there waits."""
        library = attached()
        memory = self.array(np.uint8, nbytes, offset)
        place = self._place(offset, nbytes)
        check(library.vgasnet_pin(place, nbytes, raw.VGASNET_PIN_WRITE if write else raw.VGASNET_PIN_READ))
        try:
            yield memory
        finally:
            check(library.vgasnet_unpin(place, nbytes))

    def advise(self, advice: str, offset: int = 0, nbytes: Optional[int] = None) -> None:
        """A hint about a range of the own segment: "willneed", "dontneed", "sequential" or "readmostly"."""
        library = attached()
        self._must_be_own()
        nbytes = self._bytes_from(offset, nbytes)
        check(library.vgasnet_advise(self._place(offset, nbytes), nbytes, advice_of(advice)))


def advice_of(advice: str) -> int:
    """The number of an advice."""
    if advice not in _ADVICE:
        raise ValueError(f"advice {advice!r}; give one of {', '.join(_ADVICE)}")
    return _ADVICE[advice]


def _atomic_of(op: str, dtype: np.dtype) -> int:
    if op not in _ATOMICS:
        raise ValueError(f"operation {op!r}; give one of {', '.join(_ATOMICS)}")
    return _ATOMICS[op][dtype.kind == "i"]


def _bits(value: int, dtype: np.dtype) -> int:
    """A number as the one without a sign that has the same bits."""
    limits = np.iinfo(dtype)
    return number("a number", value, int(limits.min), int(limits.max)) & ((1 << dtype.itemsize * 8) - 1)


def attached_or_handler() -> None:
    """Raises an Error before attach."""
    if not job.segments:
        initialised()
        attached()


def segment(rank: Optional[int] = None) -> Segment:
    """The segment of a rank; without a number, the own one."""
    attached_or_handler()
    rank = job.rank if rank is None else number("rank", rank, 0, job.ranks - 1)
    return Segment(rank, *job.segments[rank])


def segments() -> "list[Segment]":
    """The segments of all ranks."""
    attached_or_handler()
    return [Segment(rank, *place) for rank, place in enumerate(job.segments)]


def array(dtype: Any = np.uint8, shape: Any = None, offset: int = 0) -> np.ndarray:
    """A part of the own segment as an array: ``segment().array``."""
    return segment().array(dtype, shape, offset)
