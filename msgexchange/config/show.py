"""What is in force and where it came from, as people may see it."""

from collections.abc import Iterator
from datetime import time, timedelta
from enum import Enum
from typing import Any, NamedTuple

from pydantic import SecretStr

from msgexchange.config.dsn import MASK, is_secret_name, masked
from msgexchange.config.keys import KEYS, Key
from msgexchange.config.settings import Settings
from msgexchange.config.values import written_duration, written_size


class Row(NamedTuple):
    """One line of ``config show``; an unset value is the empty text."""

    key: str
    value: str
    origin: str


class Unconfirmed(NamedTuple):
    """Something this system assumes of the site until the site sets it."""

    key: str
    value: str
    question: str
    if_wrong: str


def rows(settings: Settings) -> tuple[Row, ...]:
    """Every setting, in the order of the documentation; a table has a row for each entry."""
    return tuple(row for key in KEYS.values() for row in _rows(key, settings))


def _rows(key: Key, settings: Settings) -> Iterator[Row]:
    value = key.value(settings)
    if not key.is_table:
        yield Row(key.dotted, _shown(key, value), settings.origin(key.dotted))
        return
    for entry, one in value.items():
        name = f"{key.dotted}.{entry}"
        yield Row(name, MASK if is_secret_name(entry) else _plain(one), settings.origin(name))
    if not value:
        yield Row(key.dotted, "", "default")


def _shown(key: Key, value: Any) -> str:
    if isinstance(value, SecretStr):
        return masked(value) if key.dotted.endswith(".url") else MASK
    return written_size(value) if key.is_size else _plain(value)


def _plain(value: Any) -> str:
    match value:
        case None | bool():
            shown = _WORDS[value]
        case timedelta():
            shown = written_duration(value)
        case time():
            shown = f"{value:%H:%M}"
        case Enum():
            shown = str(value.value)
        case dict():
            shown = ", ".join(value)
        case tuple():
            shown = ", ".join(str(one) for one in value)
        case _:
            shown = str(value)
    return shown


_WORDS = {None: "", True: "true", False: "false"}

_QUESTIONS = {
    "pipeline.max-commit-delay": (
        "Are mailbox ids monotonic, and how late can a commit be?",
        "late rows are quarantined as LATE",
    ),
    "pipeline.overdue-backfill": (
        "R: when must a mark be there?",
        "alerts come too early or too late",
    ),
    "mailbox.processed-values": (
        "Which mark values does the owner accept; do dead and skipped rows get the same mark?",
        "the owner's reader misjudges rows",
    ),
    "identity.reuse-after": (
        "How does SEQN restart or wrap?",
        "new messages look like duplicates",
    ),
    "mailbox.retention": (
        "How long does the owner keep raw texts?",
        "replay finds no text",
    ),
    "mailbox.inbound.extra-columns": (
        "Which CMINMSGS columns must an insert fill?",
        "an insert is refused",
    ),
    "mailbox.outbound.extra-columns": (
        "Which COUTMSGS columns must an insert fill?",
        "an insert is refused",
    ),
    "requests.match": (
        "Do answers echo the request?",
        "answers are matched approximately",
    ),
    "mailbox.outbound.rows-removed": (
        "Does the owner remove COUTMSGS rows it has sent?",
        "a request may be sent twice after a crash",
    ),
    "codec.catalogue": (
        "The kinds, their fields and clear rules",
        "UNSUPPORTED messages, or counts of unknown names",
    ),
}


def unconfirmed(settings: Settings) -> tuple[Unconfirmed, ...]:
    """What the site has not said yet, so that a default stands for it (spec, last table).

    A setting that was given anywhere counts as confirmed, also at its default value.
    """
    return tuple(
        Unconfirmed(key, _shown(KEYS[key], KEYS[key].value(settings)), question, if_wrong)
        for key, (question, if_wrong) in _QUESTIONS.items()
        if not _is_set(settings, key)
    )


def _is_set(settings: Settings, key: str) -> bool:
    said = [
        origin
        for name, origin in settings.origins.items()
        if name == key or (KEYS[key].is_table and name.startswith(f"{key}."))
    ]
    return any(not origin.startswith("profile ") for origin in said)
