"""Past flights as compressed NDJSON, by operation day (spec 5.4, history store ``files``).

A slice of a sweep becomes one part per operation day; parts are joined to the day's file later.
"""

import gzip
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from msgexchange.codec.encode import encode
from msgexchange.codec.state_form import read_state, state_document
from msgexchange.flight.past import PastFlight
from msgexchange.ids import Flid
from msgexchange.ports import HistoryFailed

WITHOUT_DAY = "without-day"
_SUFFIX = ".ndjson.gz"
_NAME_BYTES = 8

Lines: TypeAlias = Mapping[tuple[str, int], bytes]
"""By FLID and version, each once."""


class HistoryFiles:
    """A ``HistoryStore`` in a folder; nothing of it is ever changed in place."""

    def __init__(self, folder: Path, *, sync: Callable[[int], None] = os.fsync) -> None:
        """``sync`` makes what was written to a descriptor durable."""
        self._folder = folder
        self._sync = sync

    def write(self, flights: Sequence[PastFlight]) -> None:
        by_day: dict[str, list[PastFlight]] = {}
        for past in flights:
            by_day.setdefault(_day(past), []).append(past)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for day, group in by_day.items():
                lines = {_key(past): _line(past) for past in group}
                self._put(self._folder / f"{day}.{_digest(lines)}{_SUFFIX}", lines)
        except OSError as error:
            raise HistoryFailed(f"{self._folder} takes no flights: {error}") from error

    def lives(self, flid: Flid) -> Sequence[PastFlight]:
        wanted = encode({"flid": flid})[1:-1]
        found: dict[int, PastFlight] = {}
        for file in self._files():
            for line in _read(file):
                if wanted in line:
                    past = _past(line, file)
                    if past.state.flid == flid:
                        found.setdefault(past.state.version, past)
        return [found[version] for version in sorted(found)]

    def tidy(self) -> bool:
        """Join the parts of one day; True if another day has parts as well."""
        days: dict[str, list[Path]] = {}
        for file in self._files():
            days.setdefault(file.name.partition(".")[0], []).append(file)
        scattered = [(day, files) for day, files in days.items() if len(files) > 1]
        if not scattered:
            return False
        day, files = scattered[0]
        try:
            joined: dict[tuple[str, int], bytes] = {}
            for file in files:
                for line in _read(file):
                    joined.setdefault(_key(_past(line, file)), line)
            whole = self._folder / f"{day}{_SUFFIX}"
            self._put(whole, joined)
            for file in files:
                if file != whole:
                    file.unlink()
        except OSError as error:
            raise HistoryFailed(f"the parts of {day} cannot be joined: {error}") from error
        return len(scattered) > 1

    def _files(self) -> list[Path]:
        """The day's own file before its parts."""
        try:
            return sorted(self._folder.glob(f"*{_SUFFIX}"), key=lambda file: _order(file.name))
        except OSError as error:
            raise HistoryFailed(f"{self._folder} cannot be read: {error}") from error

    def _put(self, file: Path, lines: Lines) -> None:
        """Under its name whole, or not at all; durable on return."""
        draft = file.with_name(file.name + ".new")
        with draft.open("wb") as raw:
            with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as packed:
                packed.writelines(line + b"\n" for line in lines.values())
            raw.flush()
            self._sync(raw.fileno())
        draft.replace(file)
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            self._sync(folder)
        finally:
            os.close(folder)


def _read(file: Path) -> Iterator[bytes]:
    try:
        with gzip.open(file, "rb") as packed:
            yield from (line.rstrip(b"\n") for line in packed)
    except (OSError, EOFError) as error:
        raise HistoryFailed(f"{file} cannot be read: {error}") from error


def _past(line: bytes, file: Path) -> PastFlight:
    try:
        written_at = datetime.fromisoformat(orjson.loads(line)["writtenAt"])
        return PastFlight(read_state(line), written_at)
    except (ValueError, KeyError, TypeError) as error:
        raise HistoryFailed(f"{file} holds a line that is no flight: {error}") from error


def _line(past: PastFlight) -> bytes:
    document: dict[str, Any] = state_document(past.state)
    return encode(document | {"writtenAt": past.written_at.isoformat()})


def _key(past: PastFlight) -> tuple[str, int]:
    return past.state.flid, past.state.version


def _day(past: PastFlight) -> str:
    day = past.state.operation_day
    return WITHOUT_DAY if day is None else day.isoformat()


def _digest(lines: Lines) -> str:
    """The same flights at the same versions have the same name: written again, they replace."""
    text = "\n".join(f"{flid}/{version}" for flid, version in sorted(lines))
    return hashlib.blake2b(text.encode(), digest_size=_NAME_BYTES).hexdigest()


def _order(name: str) -> tuple[str, int, str]:
    return name.partition(".")[0], len(name), name
