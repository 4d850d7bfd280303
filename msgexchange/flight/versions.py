"""A flight as it was: an earlier version unfolded from what each later or earlier one changed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise
from typing import Protocol

from msgexchange.flight.state import FlightState, FlightStatus, Json
from msgexchange.ids import Flid, MailboxId

STATUS = "status"
OPERATION_DAY = "operationDay"

Change = tuple[str, Json | None, Json | None]
"""Name, old and new value, None for absent; ``status`` and ``operationDay`` stand before them."""


class Version(Protocol):
    """One version of a flight: what changed, when, and by which message."""

    @property
    def version(self) -> int: ...
    @property
    def message_id(self) -> MailboxId: ...
    @property
    def at(self) -> datetime: ...
    @property
    def changes(self) -> Sequence[Change]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Up to and including this time; of the versions at that very time, those of messages up to
    ``message_id`` (None: all of them), because messages that share a commit share its time.
    """

    at: datetime
    message_id: MailboxId | None = None

    def has_seen(self, version: Version) -> bool:
        if version.at != self.at or self.message_id is None:
            return version.at <= self.at
        return version.message_id <= self.message_id


@dataclass(frozen=True, slots=True, kw_only=True)
class StateThen:
    """A flight as it was, which version that was, and which one followed."""

    state: FlightState
    since: datetime
    next: Version | None


class NotKept(Exception):
    """What would have to be known of that moment is not kept; the text says what is."""


def state_then(
    flid: Flid, versions: Sequence[Version], known: Sequence[FlightState], moment: Moment
) -> StateThen | None:
    """The flight at that moment, None where there was none of that FLID yet.

    ``versions`` is all that is kept of what changed, in version order; ``known`` are states that
    are held whole: the standing one and those of past lives. ``NotKept`` where the versions do
    not reach from the beginning of that life, or from a whole state, to the moment.
    """
    seen = [version for version in versions if moment.has_seen(version)]
    if not seen:
        if versions and not _is_birth(versions[0]):
            first = versions[0]
            raise NotKept(
                f"what is kept of flight {flid} begins with version {first.version} at "
                f"{first.at.isoformat()}"
            )
        return None
    wanted = seen[-1]
    life = _life_of(wanted, versions)
    later = next((one for one in versions if one.version > wanted.version), None)
    if _is_birth(life[0]):
        path = [one for one in life if one.version <= wanted.version]
        _require_unbroken(flid, path)
        return StateThen(state=_folded(flid, path), since=wanted.at, next=later)
    anchor = _anchor(flid, wanted, life, known)
    path = [one for one in life if wanted.version < one.version <= anchor.version]
    _require_unbroken(flid, [wanted, *path])
    return StateThen(state=_undone(anchor, path, wanted), since=wanted.at, next=later)


def _is_birth(version: Version) -> bool:
    """The first version of a life is the only one that had no status before."""
    first = version.changes[0] if version.changes else None
    return first is not None and first[:2] == (STATUS, None)


def _life_of(wanted: Version, versions: Sequence[Version]) -> list[Version]:
    """The versions of the same life: from its birth, or what is kept, to the next birth."""
    life: list[Version] = []
    for one in versions:
        if _is_birth(one):
            if one.version > wanted.version:
                break
            life = []
        life.append(one)
    return life


def _anchor(
    flid: Flid, wanted: Version, life: Sequence[Version], known: Sequence[FlightState]
) -> FlightState:
    reach = {one.version for one in life}
    fitting = [one for one in known if one.version >= wanted.version and one.version in reach]
    if not fitting:
        raise NotKept(
            f"of flight {flid} neither its first version nor its last is kept in the life that "
            f"version {wanted.version} belongs to"
        )
    return min(fitting, key=lambda one: one.version)


def _require_unbroken(flid: Flid, path: Sequence[Version]) -> None:
    for one, following in pairwise(path):
        if following.version != one.version + 1:
            raise NotKept(f"version {one.version + 1} of flight {flid} is not kept")


def _folded(flid: Flid, path: Sequence[Version]) -> FlightState:
    values: dict[str, Json] = {}
    for one in path:
        for name, _, new in one.changes:
            _put(values, name, new)
    return _state(flid, path[-1], values)


def _undone(anchor: FlightState, path: Sequence[Version], wanted: Version) -> FlightState:
    values = dict(_values(anchor))
    for one in reversed(path):
        for name, old, _ in one.changes:
            _put(values, name, old)
    return _state(anchor.flid, wanted, values)


def _put(values: dict[str, Json], name: str, value: Json | None) -> None:
    if value is None:
        values.pop(name, None)
    else:
        values[name] = value


def _values(state: FlightState) -> Iterator[tuple[str, Json]]:
    yield STATUS, state.status.value
    if state.operation_day is not None:
        yield OPERATION_DAY, state.operation_day.isoformat()
    yield from state.content.items()


def _state(flid: Flid, version: Version, values: dict[str, Json]) -> FlightState:
    status = values.pop(STATUS)
    day = values.pop(OPERATION_DAY, None)
    return FlightState(
        flid=flid,
        operation_day=None if day is None else date.fromisoformat(str(day)),
        status=FlightStatus(str(status)),
        version=version.version,
        last_message_id=version.message_id,
        content=values,
    )
