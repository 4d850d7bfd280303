"""Values as bytes of JSON, the same value always the same bytes; and back (spec 1.4)."""

from collections.abc import Mapping
from typing import Any

import orjson

from msgexchange.flight.state import Content, Json


def encode(value: object) -> bytes:
    """Keys sorted, no blanks, UTF-8; tuples are arrays, any mapping is an object."""
    return orjson.dumps(value, default=_plain, option=orjson.OPT_SORT_KEYS)


def parse_content(octets: bytes | str) -> Content:
    """The content ``encode`` wrote: objects as maps, arrays as tuples.

    ``ValueError`` if it is not JSON, not an object, or holds what no message can say (numbers,
    booleans, null).
    """
    value = parse_json(octets)
    if isinstance(value, str | tuple):
        raise ValueError("not an object of names and values")  # noqa: TRY004
    return value


def parse_json(octets: bytes | str) -> Json:
    """One value ``encode`` wrote; ``ValueError`` as for ``parse_content``."""
    return _value(orjson.loads(octets))


def _plain(value: object) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} has no form in JSON")


def _value(loaded: object) -> Json:
    match loaded:
        case str():
            return loaded
        case list():
            return tuple(map(_value, loaded))
        case dict():
            return {name: _value(value) for name, value in loaded.items()}
        case _:
            raise ValueError(f"{loaded!r} is neither text, an array nor an object")
