"""This rank's work, and where its time goes. docs/reference/statistics.md explains each number."""

from __future__ import annotations

import ctypes
from typing import Dict, NamedTuple, Optional, Union

from . import raw
from ._core import attached
from .errors import check


class Times(NamedTuple):
    """How often something happened, and how long it took in nanoseconds."""

    count: int  # type: ignore[assignment]
    sum_ns: int
    p50_ns: int
    p90_ns: int
    p99_ns: int
    max_ns: int


def statistics() -> Optional[Dict[str, Union[int, Times]]]:
    """The numbers of this rank since attach, by their names in stats.h; None unless the job runs with VGASNET_STATS=1 or
    VGASNET_STATS_FILE."""
    numbers = raw.vgasnet_stats_t()
    code = attached().vgasnet_stats(ctypes.byref(numbers), ctypes.sizeof(numbers))
    if code == raw.VGASNET_ERR_NOT_READY:
        return None
    check(code)
    return {name: _plain(getattr(numbers, name)) for name, _ in numbers._fields_}


def _plain(value: "int | raw.vgasnet_stats_times_t") -> Union[int, Times]:
    return value if isinstance(value, int) else Times(*[getattr(value, name) for name, _ in value._fields_])


def readonly_statistics() -> Dict[str, int]:
    """Counts of this rank's gets from its read-only ranges, by the names in readonly.h."""
    numbers = raw.vgasnet_readonly_stats_t()
    check(attached().vgasnet_readonly_stats(ctypes.byref(numbers), ctypes.sizeof(numbers)))
    return {name: getattr(numbers, name) for name, _ in numbers._fields_}
