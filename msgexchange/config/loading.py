"""Settings from everything that gives some, validated whole (spec 6.2)."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from msgexchange.config.checks import contradictions
from msgexchange.config.dsn import holds_secret, is_secret_name
from msgexchange.config.keys import KEYS
from msgexchange.config.layers import (
    Given,
    Layer,
    Slot,
    dotenv_layer,
    toml_layer,
    variables_layer,
)
from msgexchange.config.problem import ConfigError, Problem
from msgexchange.config.profiles import profile_defaults
from msgexchange.config.settings import Profile, Settings


def load(
    file: Path | None, environ: Mapping[str, str], dotenv: Path | None, data_dir: Path
) -> Settings:
    """What is in force: environment over ``.env`` over file over profile over defaults.

    Raises ``ConfigError`` with every problem there is, not only the first.
    """
    layers = [
        Layer() if file is None else toml_layer(file),
        Layer() if dotenv is None else dotenv_layer(dotenv),
        variables_layer(environ),
    ]
    problems = [problem for layer in layers for problem in layer.problems]
    said: dict[Slot, Given] = {}
    for layer in layers:
        said |= layer.given
    profile = _profile(said)
    if profile is not Profile.EMBEDDED:
        problems += _secrets_in_clear(layers[0].given.values(), profile)
    given = _of_profile(profile, data_dir) | said
    settings, refused = _validated(given, data_dir)
    problems += refused
    wrong_keys = {problem.key for problem in problems}
    problems += [found for found in contradictions(settings) if found.key not in wrong_keys]
    if problems:
        raise ConfigError(problems)
    return settings


def _profile(said: Mapping[Slot, Given]) -> Profile:
    given = said.get(("profile", None))
    # A profile that does not exist is reported with everything else; until then: the default.
    return Profile(given.value) if given and given.value in list(Profile) else Profile.EMBEDDED


def _of_profile(profile: Profile, data_dir: Path) -> dict[Slot, Given]:
    origin = f"profile {profile.value}"
    defaults = profile_defaults(profile, data_dir)
    return {(key, None): Given((key, None), value, origin) for key, value in defaults.items()}


def _secrets_in_clear(given: Iterable[Given], profile: Profile) -> list[Problem]:
    return [
        Problem(
            one.written,
            one.origin,
            f"a secret stands in the file, which profile {profile.value} forbids",
            f"take it out and set {_variable(one)}, or name a file with {one.written}-file",
        )
        for one in given
        if one.in_clear and _is_secret(one)
    ]


def _variable(one: Given) -> str:
    key, entry = one.slot
    ending = "" if entry is None else f"__{entry.upper().replace('.', '_')}"
    return KEYS[key].variable + ending


def _is_secret(one: Given) -> bool:
    key, entry = one.slot
    if entry is not None:
        return KEYS[key].dotted == "kafka.client" and is_secret_name(entry)
    if not KEYS[key].is_secret:
        return False
    return not key.endswith(".url") or holds_secret(str(one.value))


def _validated(given: Mapping[Slot, Given], data_dir: Path) -> tuple[Settings, list[Problem]]:
    """The settings, and what had to be left out of them to get there."""
    try:
        return _built(given, data_dir), []
    except ValidationError as exc:
        wrong = [(_slot(error["loc"]), error["msg"]) for error in exc.errors()]
    kept = {slot: one for slot, one in given.items() if not _is_wrong(slot, [w for w, _ in wrong])}
    problems = [_refusal(given, slot, message) for slot, message in wrong]
    return _built(kept, data_dir), problems


def _is_wrong(slot: Slot, wrong: Iterable[Slot]) -> bool:
    return any(slot == one or (one[1] is None and one[0] == slot[0]) for one in wrong)


def _slot(location: tuple[int | str, ...]) -> Slot:
    parts = [str(part) for part in location]
    for length in range(len(parts), 0, -1):
        key = KEYS.get(".".join(parts[:length]))
        if key is not None:
            entry = parts[length] if key.is_table and length < len(parts) else None
            return key.dotted, entry
    return ".".join(parts), None


def _refusal(given: Mapping[Slot, Given], slot: Slot, message: str) -> Problem:
    one = given.get(slot)
    key = KEYS[slot[0]]
    fix = f"set {key.wanted}: {key.description}"
    what = message.removeprefix("Value error, ")
    return Problem(one.written if one else key.dotted, one.origin if one else "default", what, fix)


def _built(given: Mapping[Slot, Given], data_dir: Path) -> Settings:
    tree: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for (dotted, entry), one in given.items():
        *above, name = dotted.split(".")
        table = tree
        for part in above:
            table = table.setdefault(part, {})
        if entry is None:
            table[name] = one.value
        elif isinstance(held := table.setdefault(name, {}), dict):
            held[entry] = one.value
        origins[one.written] = one.origin
    return Settings.model_validate(
        {**tree, "data-dir": data_dir, "origins": MappingProxyType(origins)}
    )
