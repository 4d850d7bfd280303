"""How settings are written: durations, sizes, names of foreign columns, secrets."""

import re
from datetime import time, timedelta
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, StringConstraints
from pydantic_core import PydanticCustomError

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|h|d)")
_SECONDS_OF = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_TIME_OF_DAY = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_SIZE = re.compile(r"(\d+)\s*(B|KiB|MiB|GiB)")
_BYTES_OF = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def _read_duration(value: Any) -> Any:
    if isinstance(value, bool):
        raise PydanticCustomError("duration", "a duration is wanted, not true or false")
    if isinstance(value, int | float):
        return timedelta(seconds=value)
    if not isinstance(value, str):
        return value
    text = value.strip()
    if re.fullmatch(r"\d+(?:\.\d+)?", text):
        return timedelta(seconds=float(text))
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError("not a duration")
    return timedelta(seconds=float(match[1]) * _SECONDS_OF[match[2]])


def _read_size(value: Any) -> Any:
    if not isinstance(value, str) or value.strip().isdigit():
        return value
    match = _SIZE.fullmatch(value.strip())
    if match is None:
        raise ValueError("not a size")
    return int(match[1]) * _BYTES_OF[match[2]]


def _read_time_of_day(value: Any) -> Any:
    if isinstance(value, time):
        return value
    match = _TIME_OF_DAY.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError("not a time of day")
    return time(int(match[1]), int(match[2]))


Duration: TypeAlias = Annotated[timedelta, BeforeValidator(_read_duration)]
"""Written ``20 ms``, ``1 s``, ``10 min``, ``24 h``, ``7 d``, or as a number of seconds."""

TimeOfDay: TypeAlias = Annotated[time, BeforeValidator(_read_time_of_day)]
"""Written ``03:30``, by the airport's clocks."""

Size: TypeAlias = Annotated[int, BeforeValidator(_read_size)]
"""A number of bytes, written ``64 MiB`` or as the number itself."""

TableName: TypeAlias = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_$]{0,63}(\.[A-Za-z_][A-Za-z0-9_$]{0,63})?$"),
]
"""A table, with its schema where needed; nothing that could be more than a name."""

ColumnName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_$]{0,63}$")]
"""One column; nothing that could be more than a name."""


def written_duration(value: timedelta) -> str:
    """The duration in the largest unit that keeps it whole: ``90 s``, ``24 h``, ``20 ms``."""
    milliseconds = round(value.total_seconds() * 1000)
    for unit in ("d", "h", "min", "s"):
        unit_ms = round(_SECONDS_OF[unit] * 1000)
        if milliseconds and milliseconds % unit_ms == 0 and (unit != "d" or milliseconds > unit_ms):
            return f"{milliseconds // unit_ms} {unit}"
    return f"{milliseconds} ms"


def written_size(value: int) -> str:
    """The size in the largest unit that keeps it whole: ``64 MiB``."""
    for unit in ("GiB", "MiB", "KiB"):
        if value and value % _BYTES_OF[unit] == 0:
            return f"{value // _BYTES_OF[unit]} {unit}"
    return f"{value} B"
