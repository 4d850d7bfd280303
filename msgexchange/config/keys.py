"""Every key there is, read off the settings' own types, so that no list can fall behind."""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import time, timedelta
from enum import StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin
from zoneinfo import ZoneInfo

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from msgexchange.config.section import kebab
from msgexchange.config.settings import Settings
from msgexchange.config.values import Size, written_duration, written_size

PREFIX: Final = "MSGEXCHANGE_"
_SIZE_READER = get_args(Size)[1]


@dataclass(frozen=True, slots=True)
class Key:
    """One setting: its path through the settings, what it holds, how it is documented.

    A table's own entries have names that are not ours (columns, client settings).
    """

    path: tuple[str, ...]
    description: str
    default: Any
    wanted: str
    is_secret: bool
    is_table: bool
    is_list: bool
    is_size: bool

    @property
    def dotted(self) -> str:
        """As it is written in the file: ``pipeline.poll-interval``."""
        return ".".join(kebab(part) for part in self.path)

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return PREFIX + "__".join(self.path).upper()

    def value(self, settings: Settings) -> Any:
        """What is in force."""
        held: Any = settings
        for part in self.path:
            held = getattr(held, part)
        return held


def _keys(model: type[BaseModel], above: tuple[str, ...] = ()) -> Iterator[Key]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if field.exclude:
            continue
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _keys(kind, (*above, name))
        else:
            yield _key((*above, name), field)


def _key(path: tuple[str, ...], field: FieldInfo) -> Key:
    kind, metadata = _plain(field.annotation, field.metadata)
    is_size = _SIZE_READER in metadata
    return Key(
        path=path,
        description=field.description or "",
        default=field.get_default(call_default_factory=True, validated_data={}),
        wanted=_wanted(kind, metadata, is_size=is_size),
        is_secret=kind is SecretStr,
        is_table=get_origin(kind) is dict,
        is_list=get_origin(kind) is tuple,
        is_size=is_size,
    )


def _plain(annotation: Any, metadata: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
    """The type without ``None`` and ``Annotated``, and all that was annotated."""
    found = tuple(metadata)
    while True:
        if get_origin(annotation) is Annotated:
            annotation, *more = get_args(annotation)
            for one in more:
                found += tuple(one.metadata) if isinstance(one, FieldInfo) else (one,)
        elif get_origin(annotation) in (Union, UnionType):
            members = [member for member in get_args(annotation) if member is not NoneType]
            if len(members) > 1:
                return annotation, found
            annotation = members[0]
        else:
            return annotation, found


_FORMS = {
    bool: "true or false",
    str: "a text of the form its documentation gives",
    Path: "a path",
    time: 'a time of day such as "03:30"',
    ZoneInfo: 'an IANA time zone such as "Asia/Shanghai"',
    SecretStr: "the secret itself, or name a file that holds it with the same key and -file",
}


def _wanted(kind: Any, metadata: Sequence[Any], *, is_size: bool) -> str:
    """What a value of this kind looks like, in words."""
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return "one of " + ", ".join(member.value for member in kind)
    if get_origin(kind) is dict:
        return "a table of names and values"
    if get_origin(kind) is tuple:
        return 'a list such as ["Y"]'
    if kind is timedelta:
        return 'a duration such as "20 ms", "10 min" or "24 h"' + _range(metadata, written_duration)
    if kind in {int, float}:
        form, written = ('a size such as "64 MiB"', written_size) if is_size else ("a number", str)
        return form + _range(metadata, written)
    return _FORMS.get(kind, "a value of the form its documentation gives")


def _range(metadata: Sequence[Any], written: Callable[[Any], str]) -> str:
    bounds = []
    for one in metadata:
        match one:
            case Ge(limit):
                bounds.append(f"at least {written(limit)}")
            case Gt(limit):
                bounds.append(f"above {written(limit)}")
            case Le(limit):
                bounds.append(f"at most {written(limit)}")
            case Lt(limit):
                bounds.append(f"below {written(limit)}")
            case _:
                pass
    return f" ({', '.join(bounds)})" if bounds else ""


KEYS: Final[Mapping[str, Key]] = {key.dotted: key for key in _keys(Settings)}
"""By dotted key, in the order of the documentation."""

SECTIONS: Final = frozenset(
    ".".join(kebab(part) for part in key.path[:depth])
    for key in KEYS.values()
    for depth in range(1, len(key.path))
)


def nearest(name: str, known: Sequence[str]) -> str:
    """The known name that looks most like this one."""
    return max(known, key=lambda one: difflib.SequenceMatcher(None, name, one).ratio())
