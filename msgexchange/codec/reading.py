"""What one message's reading knows, and what it notices on the way."""

from functools import lru_cache
from zoneinfo import ZoneInfo

from msgexchange.codec.catalogue import Catalogue, Envelope
from msgexchange.codec.limits import Limits
from msgexchange.codec.refusal import rejected, shown
from msgexchange.codec.times import read_time

REPORTED_NAMES_MAX = 100
"""A message names so many unknown or unreadable fields; more would only repeat the alarm."""
REPORTED_CHARACTERS_MAX = 80


class Reading:
    """The dialect and limits a message is read by, and the names it will report."""

    def __init__(self, catalogue: Catalogue, limits: Limits, zone: ZoneInfo) -> None:
        self.catalogue = catalogue
        self.limits = limits
        self.zone = zone
        # Dicts as ordered sets: names in order of first sight.
        self._unknown: dict[str, None] = {}
        self._unreadable_times: dict[str, None] = {}

    @property
    def unknown(self) -> tuple[str, ...]:
        return tuple(self._unknown)

    @property
    def unreadable_times(self) -> tuple[str, ...]:
        return tuple(self._unreadable_times)

    def report(self, name: str) -> None:
        """An element or attribute that is kept as an extra, or not applied."""
        if len(self._unknown) < REPORTED_NAMES_MAX:
            self._unknown[name[:REPORTED_CHARACTERS_MAX]] = None

    def check_time(self, name: str, value: str) -> None:
        """Notice a time that cannot be read; it is kept as it came all the same."""
        if (
            value
            and read_time(value, self.zone) is None
            and len(self._unreadable_times) < REPORTED_NAMES_MAX
        ):
            self._unreadable_times[name] = None

    def check_value(self, where: str, name: str, value: str) -> str:
        """The value, if it is within the limit."""
        if len(value) > self.limits.value_characters_max:
            raise rejected(
                f"{where}, {shown(name)}",
                f"the value has {len(value)} characters, at most "
                f"{self.limits.value_characters_max} are taken; shorten it",
            )
        return value

    def is_taken(self, name: str) -> bool:
        """The catalogue knows the name, so that a flight's extra may not stand under it."""
        return name in self.catalogue.groups or name in envelope_names(self.catalogue.envelope)


@lru_cache(maxsize=16)
def envelope_names(envelope: Envelope) -> frozenset[str]:
    """Names of elements around the content of a message."""
    return frozenset(
        {
            envelope.plan,
            envelope.count,
            envelope.planned_flight,
            envelope.operation,
            envelope.deletion,
            envelope.flid,
            envelope.operation_day,
        }
    )
