"""Collectives and teams, on arrays of numpy.

All ranks of a team call the same collectives of the team in the same order, with arrays of the same type and size. Arrays may be
in the own segment. At a time, one thread of a rank calls collectives of a team.
"""

from __future__ import annotations

import ctypes
import os
import sys
import traceback
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import raw
from ._core import attached, initialised, job, lent, number, thread
from .errors import check
from .job import barrier_name
from .operations import Operation

_MINE = raw.VGASNET_COLL_IN_MYSYNC | raw.VGASNET_COLL_OUT_MYSYNC

# The types of reducible arrays. Ranks tell the function the index here.
_TYPES = [np.dtype(name) for name in "?bhilBHILqQefdFD"]

# Functions of two arrays, by name, and registered ones. Ranks tell the function the index here.
_REDUCTIONS: List[Callable[[np.ndarray, np.ndarray], np.ndarray]] = [
    np.add,
    np.multiply,
    np.minimum,
    np.maximum,
    np.bitwise_and,
    np.bitwise_or,
    np.bitwise_xor,
]
_NAMES = {"sum": 0, "prod": 1, "min": 2, "max": 3, "and": 4, "or": 5, "xor": 6}


class Reduction:
    """A function for reductions, registered by the program."""

    def __init__(self, at: int) -> None:
        self._at = at


def reduction(function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Reduction:
    """Registers a function of two arrays that returns the reduced one, for ``reduce``. It is associative. All ranks register the
    same functions in the same order. It calls nothing of this package; an exception in it ends the job with status 1."""
    _REDUCTIONS.append(function)
    return Reduction(len(_REDUCTIONS) - 1)


def _reduce(results: int, count: int, left: int, _: int, right: int, bytes_each: int, flags: int, told: int) -> None:
    """Called by the library: reduces count elements."""
    thread.is_in_handler = True
    try:
        dtype = _TYPES[told & 0xFF]
        memory: Any = ctypes.c_char * (count * bytes_each)
        arrays = [np.frombuffer(memory.from_address(place), dtype) for place in (results, left, right)]
        arrays[0][:] = _REDUCTIONS[told >> 8](arrays[1], arrays[2])
    except BaseException:
        print(f"vgasnet: rank {job.rank}: a reduction has raised an exception, which ends the job:", file=sys.stderr)
        traceback.print_exc()
        sys.stderr.flush()
        # Nothing of the library may be called here. The job ends since this rank has failed.
        os._exit(1)
    finally:
        thread.is_in_handler = False


_REDUCE = raw.vgasnet_coll_reduce_fn_t(_reduce)


def register() -> None:
    """Tells the library the one function that reduces. Called by attach."""
    entry = raw.vgasnet_coll_fn_entry_t(ctypes.cast(_REDUCE, ctypes.c_void_p).value, 0)
    initialised().vgasnet_coll_init(None, 0, ctypes.byref(entry), 1, 0)


class Collective(Operation):
    """A collective under way, as an ``Operation``. Its result is that of the function without ``_nb``."""

    _wait_all, _test_all = "coll_wait_sync_all", "coll_try_sync_all"
    _wait_some, _test_some = "coll_wait_sync_some", "coll_try_sync_some"


def _filled(out: Any, shape: Tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """``out`` if it is such an array; without it, a new one."""
    if out is None:
        return np.empty(shape, dtype)
    if not isinstance(out, np.ndarray) or out.dtype != dtype or out.size != int(np.prod(shape, dtype=np.int64)):
        raise ValueError(f"out is no array of {dtype} with the {shape} elements of the result")
    return out


class Team:
    """Ranks that call collectives together, numbered from 0. ``vgasnet.WORLD`` has all of the job.

    By default a collective begins when all ranks have called it, and is complete when it is so at all ranks. With ``ready=True`` it
    waits only for the ranks whose data this rank needs.
    """

    def __init__(self, handle: int) -> None:
        self._handle = handle

    @property
    def size(self) -> int:
        """The number of ranks in the team."""
        return initialised().vgasnet_coll_team_size(self._handle)

    @property
    def rank(self) -> int:
        """This rank's number in the team."""
        return self.number_of(job.rank)

    def rank_of(self, number_in_team: int) -> int:
        """The job's number of a rank of the team."""
        at = number("number_in_team", number_in_team, 0, self.size - 1)
        return initialised().vgasnet_coll_team_rank2node(self._handle, at)

    def number_of(self, rank: int) -> int:
        """The team's number of a rank of the job, which is in the team; if not, the job ends."""
        return initialised().vgasnet_coll_team_node2rank(self._handle, number("rank", rank, 0, job.ranks - 1))

    def _start(self, name: str, result: Any, arrays: Sequence[Any], ready: bool, *arguments: Any) -> Collective:
        function = getattr(attached(), f"vgasnet_coll_{name}_nb")
        return Collective(function(self._handle, *arguments, _MINE if ready else 0), arrays, result)

    def _root(self, root: int) -> int:
        return number("root", root, 0, self.size - 1)

    def broadcast_nb(self, array: np.ndarray, root: int = 0, ready: bool = False) -> Collective:
        """``broadcast`` without waiting."""
        attached()
        root = self._root(root)
        address, nbytes, kept = lent(array, self.rank != root)
        return self._start("broadcast", array, [kept], ready, address, root, address, nbytes)

    def broadcast(self, array: np.ndarray, root: int = 0, ready: bool = False) -> np.ndarray:
        """Copies the array of ``root`` into the arrays of all ranks. Returns it."""
        return self.broadcast_nb(array, root, ready).wait()

    def scatter_nb(self, blocks: Optional[np.ndarray], out: np.ndarray, root: int = 0, ready: bool = False) -> Collective:
        """``scatter`` without waiting."""
        attached()
        root = self._root(root)
        to, nbytes, kept = lent(out, True)
        source, kept_blocks = 0, None
        if self.rank == root:
            source, total, kept_blocks = lent(_must_be(blocks), False)
            if total != nbytes * self.size:
                raise ValueError(f"blocks have {total} bytes; give {self.size} blocks of {nbytes}")
        return self._start("scatter", out, [kept, kept_blocks], ready, to, root, source, nbytes)

    def scatter(self, blocks: Optional[np.ndarray], out: np.ndarray, root: int = 0, ready: bool = False) -> np.ndarray:
        """Brings block i of the array of ``root``, along its first dimension, to ``out`` of rank i. Returns that."""
        return self.scatter_nb(blocks, out, root, ready).wait()

    def gather_nb(self, block: np.ndarray, out: Any = None, root: int = 0, ready: bool = False) -> Collective:
        """``gather`` without waiting."""
        attached()
        root = self._root(root)
        block = np.asarray(block)
        source, nbytes, kept = lent(block, False)
        to, kept_out = 0, None
        if self.rank == root:
            out = _filled(out, (self.size, *block.shape), block.dtype)
            to, _, kept_out = lent(out, True)
        else:
            out = None
        return self._start("gather", out, [kept, kept_out], ready, root, to, source, nbytes)

    def gather(self, block: np.ndarray, out: Any = None, root: int = 0, ready: bool = False) -> Optional[np.ndarray]:
        """Brings the array of each rank to ``root``, side by side along a new first dimension. Returns that there, else None."""
        return self.gather_nb(block, out, root, ready).wait()

    def gather_all_nb(self, block: np.ndarray, out: Any = None, ready: bool = False) -> Collective:
        """``gather_all`` without waiting."""
        attached()
        block = np.asarray(block)
        source, nbytes, kept = lent(block, False)
        out = _filled(out, (self.size, *block.shape), block.dtype)
        to, _, kept_out = lent(out, True)
        return self._start("gather_all", out, [kept, kept_out], ready, to, source, nbytes)

    def gather_all(self, block: np.ndarray, out: Any = None, ready: bool = False) -> np.ndarray:
        """Brings the array of each rank to all, side by side along a new first dimension."""
        return self.gather_all_nb(block, out, ready).wait()

    def exchange_nb(self, blocks: np.ndarray, out: Any = None, ready: bool = False) -> Collective:
        """``exchange`` without waiting."""
        attached()
        blocks = np.asarray(blocks)
        source, nbytes, kept = lent(blocks, False)
        if blocks.ndim == 0 or blocks.shape[0] != self.size:
            raise ValueError(f"blocks have the shape {blocks.shape}; the first dimension is that of the team, {self.size}")
        out = _filled(out, blocks.shape, blocks.dtype)
        to, _, kept_out = lent(out, True)
        return self._start("exchange", out, [kept, kept_out], ready, to, source, nbytes // self.size)

    def exchange(self, blocks: np.ndarray, out: Any = None, ready: bool = False) -> np.ndarray:
        """Brings block j of rank i to block i of rank j, along the first dimension."""
        return self.exchange_nb(blocks, out, ready).wait()

    def reduce_nb(
        self, array: Any, op: Union[str, Reduction] = "sum", root: int = 0, out: Any = None, ready: bool = False
    ) -> Collective:
        """``reduce`` without waiting."""
        attached()
        root = self._root(root)
        array = np.asarray(array)
        told = _told(op, array.dtype)
        source, _, kept = lent(array, False)
        to, kept_out = 0, None
        if self.rank == root:
            out = _filled(out, array.shape, array.dtype)
            to, _, kept_out = lent(out, True)
        else:
            out = None
        numbers = (0, 0, array.itemsize, array.size, 0, told)
        return self._start("reduce", out, [kept, kept_out], ready, root, to, source, *numbers)

    def reduce(
        self, array: Any, op: Union[str, Reduction] = "sum", root: int = 0, out: Any = None, ready: bool = False
    ) -> Optional[np.ndarray]:
        """Reduces the arrays of all ranks element by element, in the order of the ranks, and returns the result at ``root``, else
        None. ``op``: "sum", "prod", "min", "max", "and", "or", "xor", or a result of ``reduction``."""
        return self.reduce_nb(array, op, root, out, ready).wait()

    def reduce_all(self, array: Any, op: Union[str, Reduction] = "sum", out: Any = None) -> np.ndarray:
        """``reduce`` and ``broadcast``: the result is at all ranks."""
        array = np.asarray(array)
        out = _filled(out, array.shape, array.dtype)
        self.reduce(array, op, 0, out if self.rank == 0 else None, True)
        return self.broadcast(out)

    def barrier(self, name: Optional[int] = None) -> None:
        """Waits until all ranks of the team are here; see ``vgasnet.barrier``."""
        check(attached().vgasnet_coll_barrier(self._handle, *barrier_name(name)))

    def split(self, color: int, key: int = 0) -> "Team":
        """Makes a team of all ranks of this one that give the same color, ordered by key, then by their numbers. All ranks of the
        team call, while no collective of it is under way."""
        color, key = (number(what, value, 0, (1 << 32) - 1) for what, value in (("color", color), ("key", key)))
        return Team(attached().vgasnet_coll_team_split(self._handle, color, key, None))

    def free(self) -> None:
        """Forgets the team at this rank, when its collectives are complete here."""
        if self._handle == raw.VGASNET_TEAM_ALL:
            raise ValueError("the team of all ranks stays")
        library, handle, self._handle = attached(), self._handle, 0
        library.vgasnet_coll_team_free(handle)


def team_of(ranks: Sequence[int], tag: int) -> Team:
    """Makes a team of these ranks of the job, in this order. Only they call, with the same arguments. Teams that exist at the same
    time and have the same first rank have different tags, 0 to 2147483647."""
    members = [number("a rank", rank, 0, job.ranks - 1) for rank in ranks]
    if job.rank not in members or len(set(members)) != len(members):
        raise ValueError(f"ranks {members}; each is there once, and rank {job.rank}, which calls, among them")
    table = (ctypes.c_uint32 * len(members))(*members)
    return Team(attached().vgasnet_coll_team_of(len(members), table, number("tag", tag, 0, (1 << 31) - 1)))


def _told(op: Union[str, Reduction], dtype: np.dtype) -> int:
    """The argument of the function that reduces."""
    if dtype not in _TYPES:
        raise TypeError(f"arrays of {dtype} cannot be reduced; give numbers of this machine's byte order")
    if isinstance(op, Reduction):
        return op._at << 8 | _TYPES.index(dtype)
    if op not in _NAMES:
        raise ValueError(f"operation {op!r}; give one of {', '.join(_NAMES)}, or register a reduction")
    return _NAMES[op] << 8 | _TYPES.index(dtype)


def _must_be(blocks: Optional[np.ndarray]) -> np.ndarray:
    if blocks is None:
        raise ValueError("the root gives the blocks")
    return np.asarray(blocks)


WORLD = Team(raw.VGASNET_TEAM_ALL)
