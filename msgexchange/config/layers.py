"""Where settings are given: the TOML file, a ``.env`` file, the environment."""

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from dotenv import dotenv_values

from msgexchange.config.dsn import is_secret_name
from msgexchange.config.keys import KEYS, PREFIX, SECTIONS, Key, nearest
from msgexchange.config.problem import Problem

FILE_SUFFIX: Final = "-file"
_TEST_PREFIX = PREFIX + "TEST_"
_SECRET_BYTES_MAX = 65_536
_DOTTED_TABLE = "kafka.client"

Slot: TypeAlias = tuple[str, str | None]
"""A key, and for a table's entry its name."""


@dataclass(frozen=True, slots=True)
class Given:
    """One value as somebody wrote it; ``in_clear`` if it stands in the TOML file itself."""

    slot: Slot
    value: Any
    origin: str
    in_clear: bool = False

    @property
    def written(self) -> str:
        """The key as a person knows it, a table's entry included."""
        key, entry = self.slot
        return key if entry is None else f"{key}.{entry}"


@dataclass(slots=True)
class Layer:
    """What one place gives, and what is wrong with how it gives it."""

    given: dict[Slot, Given] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def add(self, given: Given) -> None:
        """Take one value; the same setting twice in one place is a problem."""
        if given.slot in self.given:
            what = "is given twice here, as itself and as a file or table"
            self.problems.append(Problem(given.written, given.origin, what, "keep one of the two"))
        self.given[given.slot] = given

    def add_secret_file(self, given: Given) -> None:
        """Take a secret from the file that ``given`` names."""
        try:
            path = Path(given.value)
            with path.open("rb") as file:
                secret = file.read(_SECRET_BYTES_MAX + 1).decode().strip("\r\n")
        except (OSError, TypeError, ValueError) as exc:
            reason = getattr(exc, "strerror", None) or "not a readable text file"
            self._refuse_file(given, f"the file it names cannot be read ({reason})")
            return
        if not secret or len(secret) > _SECRET_BYTES_MAX:
            self._refuse_file(given, "the file it names is empty or no secret by its size")
            return
        self.add(replace(given, value=secret, in_clear=False))

    def _refuse_file(self, given: Given, what: str) -> None:
        fix = "name a file that holds the secret and that this user may read"
        self.problems.append(Problem(given.written + FILE_SUFFIX, given.origin, what, fix))


def toml_layer(path: Path) -> Layer:
    """The settings of a TOML file."""
    layer = Layer()
    origin = f"file:{path}"
    try:
        with path.open("rb") as file:
            tree = tomllib.load(file)
    except OSError as exc:
        what = f"cannot be read ({exc.strerror})"
        layer.problems.append(Problem("--config", origin, what, "name a file that can be read"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        what = f"is not TOML: {exc}"
        layer.problems.append(Problem("--config", origin, what, "correct the file there"))
    else:
        for dotted, value in _leaves(tree):
            _take(layer, dotted, value, origin)
    return layer


def _leaves(tree: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Every key of the file with its value; what lies below a key of ours is its value."""
    for name, value in tree.items():
        dotted = f"{above}.{name}" if above else name
        if dotted in SECTIONS and isinstance(value, Mapping):
            yield from _leaves(value, dotted)
        else:
            yield dotted, value


def _take(layer: Layer, dotted: str, value: Any, origin: str) -> None:
    key = KEYS.get(dotted)
    owner = KEYS.get(dotted.removesuffix(FILE_SUFFIX))
    if key is not None and key.is_table and isinstance(value, Mapping):
        for entry, one in _entries(value):
            _take_entry(layer, Given((dotted, entry), one, origin, in_clear=True))
    elif key is not None:
        layer.add(Given((dotted, None), value, origin, in_clear=True))
    elif owner is not None and owner.is_secret:
        layer.add_secret_file(Given((owner.dotted, None), value, origin))
    elif dotted in SECTIONS:
        what = "is a section, not a value"
        layer.problems.append(Problem(dotted, origin, what, f"write [{dotted}] and its keys below"))
    else:
        layer.problems.append(_unknown(dotted, origin, tuple(KEYS)))


def _entries(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """A table's entries; ``linger.ms = 5`` without quotes is the entry ``linger.ms``."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _entries(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _take_entry(layer: Layer, given: Given) -> None:
    key, entry = given.slot
    base = (entry or "").removesuffix(FILE_SUFFIX)
    if base != entry and is_secret_name(base):
        layer.add_secret_file(replace(given, slot=(key, base)))
    else:
        layer.add(given)


def dotenv_layer(path: Path) -> Layer:
    """The settings of a ``.env`` file; other programs' variables in it are left alone."""
    if not path.is_file():
        return Layer()
    # Without interpolation: a "$" in a password is a "$".
    values = dotenv_values(path, interpolate=False)
    return variables_layer({name: value or "" for name, value in values.items()}, of_file=True)


def variables_layer(variables: Mapping[str, str], *, of_file: bool = False) -> Layer:
    """The settings of environment variables; those that name test servers are none."""
    layer = Layer()
    for name, text in variables.items():
        upper = name.upper()
        if upper.startswith(PREFIX) and not upper.startswith(_TEST_PREFIX):
            _take_variable(layer, upper, text, ".env" if of_file else f"env {name}")
    return layer


_BY_VARIABLE: Final[Mapping[str, Key]] = {key.variable: key for key in KEYS.values()}
_BY_FILE_VARIABLE: Final[Mapping[str, Key]] = {
    f"{key.variable}_FILE": key for key in KEYS.values() if key.is_secret
}


def _take_variable(layer: Layer, name: str, text: str, origin: str) -> None:
    key = _BY_VARIABLE.get(name)
    table = next((k for k in KEYS.values() if name.startswith(f"{k.variable}__")), None)
    if key is not None and (key.is_table or key.is_list):
        _take_json(layer, key, text, origin)
    elif key is not None:
        layer.add(Given((key.dotted, None), text, origin))
    elif name in _BY_FILE_VARIABLE:
        layer.add_secret_file(Given((_BY_FILE_VARIABLE[name].dotted, None), text, origin))
    elif table is not None and table.is_table:
        entry = _entry_name(table, name.removeprefix(f"{table.variable}__"))
        _take_entry(layer, Given((table.dotted, entry), text, origin))
    else:
        layer.problems.append(_unknown(name, origin, tuple(_BY_VARIABLE)))


def _entry_name(table: Key, name: str) -> str:
    """A column keeps its capitals; a Kafka client's setting is small, with dots."""
    if table.dotted != _DOTTED_TABLE:
        return name
    is_file = name.endswith("_FILE")
    return name.removesuffix("_FILE").lower().replace("_", ".") + (FILE_SUFFIX if is_file else "")


def _take_json(layer: Layer, key: Key, text: str, origin: str) -> None:
    """A list is JSON or its parts with commas between; a table is JSON."""
    try:
        value = json.loads(text) if text.lstrip()[:1] in {"[", "{"} else None
    except ValueError:
        fix = "write " + key.wanted + " as JSON"
        layer.problems.append(Problem(key.dotted, origin, "is not JSON", fix))
        return
    if value is None and key.is_list:
        value = [part.strip() for part in text.split(",")]
    if key.is_table and isinstance(value, dict):
        for entry, one in _entries(value):
            _take_entry(layer, Given((key.dotted, entry), one, origin))
    else:
        layer.add(Given((key.dotted, None), text if value is None else value, origin))


def _unknown(name: str, origin: str, known: tuple[str, ...]) -> Problem:
    return Problem(name, origin, "no such setting", f"did you mean {nearest(name, known)}?")
