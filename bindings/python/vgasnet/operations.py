"""Operations without waiting, and their completion."""

from __future__ import annotations

import ctypes
from typing import Any, Iterable, List, Optional, Sequence

from . import raw
from ._core import attached, pending, thread
from .errors import of_code


class Operation:
    """A get, put or the like under way. It is complete when ``wait`` has returned or ``test`` has returned True::

        with segment.get_nb(0, block):
            compute()          # block is undefined here
        use(block)

    Until then the program must not change arrays that are read, and arrays that are written are undefined. They are kept alive,
    also if the operation itself is forgotten.
    """

    _wait_all, _test_all, _wait_some, _test_some = "wait_syncnb_all", "try_syncnb_all", "wait_syncnb_some", "try_syncnb_some"

    def __init__(self, handle: Optional[int], lent: Any, result: Any = None) -> None:
        self._handle = handle or 0
        self._result = result
        if self._handle:
            pending[id(self)] = (self, lent)

    @property
    def result(self) -> Any:
        """The result of a complete operation, if its kind has one."""
        if self._handle:
            raise RuntimeError("the operation is not complete; wait for it first")
        return self._result

    def _end(self) -> None:
        self._handle = 0
        pending.pop(id(self), None)

    def wait(self) -> Any:
        """Waits until the operation is complete, and returns its result, if it has one."""
        if self._handle:
            _call([self], "_wait_all")
        return self._result

    def test(self) -> bool:
        """Whether the operation is complete. Lets the library work a little."""
        return not self._handle or _is_complete(_call([self], "_test_all"))

    def __enter__(self) -> "Operation":
        return self

    def __exit__(self, *_: Any) -> None:
        self.wait()


def _call(operations: Sequence[Operation], which: str) -> int:
    """Calls a sync of several operations, and ends the complete ones."""
    kinds = {getattr(operation, which) for operation in operations}
    if len(kinds) > 1:
        raise TypeError("operations and collectives cannot be waited for together")
    library = attached()
    if not kinds:
        return raw.VGASNET_OK
    handles = (ctypes.c_void_p * len(operations))(*[operation._handle for operation in operations])
    try:
        code = getattr(library, "vgasnet_" + kinds.pop())(handles, len(operations))
    finally:
        # Also when an exception of a signal's handler ends the wait in Python: the library has taken the handles of complete operations.
        for operation, handle in zip(operations, handles):
            if operation._handle and not handle:
                operation._end()
    return raw.VGASNET_OK if code is None else code


def wait_all(operations: Iterable[Operation]) -> None:
    """Waits until all operations are complete."""
    _call(_once(operations), "_wait_all")


def test_all(operations: Iterable[Operation]) -> bool:
    """Whether all operations are complete."""
    return _is_complete(_call(_once(operations), "_test_all"))


def wait_some(operations: Iterable[Operation]) -> List[Operation]:
    """Waits until one more operation is complete. Returns the complete ones."""
    return _some(operations, "_wait_some")


def test_some(operations: Iterable[Operation]) -> List[Operation]:
    """The complete operations."""
    return _some(operations, "_test_some")


def _some(operations: Iterable[Operation], which: str) -> List[Operation]:
    distinct = _once(operations)
    _is_complete(_call(distinct, which))
    return [operation for operation in distinct if not operation._handle]


def _once(operations: Iterable[Operation]) -> List[Operation]:
    return list(dict.fromkeys(operations))


def _is_complete(code: int) -> bool:
    if code not in (raw.VGASNET_OK, raw.VGASNET_ERR_NOT_READY):
        raise of_code(code)
    return code == raw.VGASNET_OK


class access_region:
    """Collects the gets and puts that this thread starts by ``get_nbi`` and ``put_nbi``, and waits for all at its end::

        with vgasnet.access_region():
            for offset in offsets:
                segment.put_nbi(offset, block)

    ``end`` ends the region before, and returns one operation for all of them. A thread has one region open at a time.
    """

    def __init__(self) -> None:
        self._is_open = False

    def __enter__(self) -> "access_region":
        library = attached()
        if thread.region is not None:
            raise RuntimeError("this thread has an access region open; end that first")
        library.vgasnet_begin_nbi_accessregion()
        thread.region = []
        self._is_open = True
        return self

    def end(self) -> Operation:
        """Ends the region. The returned operation is complete when all operations of the region are."""
        if not self._is_open or thread.region is None:
            raise RuntimeError("the access region is not open in this thread")
        library = attached()
        lent, thread.region, self._is_open = thread.region, None, False
        return Operation(library.vgasnet_end_nbi_accessregion(), lent)

    def __exit__(self, *_: Any) -> None:
        if self._is_open:
            self.end().wait()


def note_implicit(lent: Any) -> None:
    """Keeps the objects of an implicit operation, until its region is complete."""
    if thread.region is None:
        raise RuntimeError("implicit operations are started in an access region: with vgasnet.access_region(): ...")
    thread.region.append(lent)
