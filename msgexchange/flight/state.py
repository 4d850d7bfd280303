"""A flight's state: frozen values, protocol names (spec 2.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import TypeAlias

from msgexchange.ids import Flid, MailboxId

Json: TypeAlias = str | tuple["Json", ...] | Mapping[str, "Json"]
"""What a message can say: text, an ordered list, a map by protocol name. Never mutated."""

Item: TypeAlias = Mapping[str, Json]
"""One item of a collection, or an exception: values by field name, the sequence included."""

Content: TypeAlias = Mapping[str, Json]
"""The ``state`` object of spec 1.4, by protocol name.

Scalars are text ("" = present and empty), collections are tuples of items (() = present and
empty), exceptions and text groups are maps, extras stand inline. A name that is absent is absent.
"""


class FlightStatus(StrEnum):
    """ACTIVE, or DELETED by an FDEL and kept until the history sweep."""

    ACTIVE = "ACTIVE"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightState:
    """One flight as the own database holds it."""

    flid: Flid
    operation_day: date | None
    status: FlightStatus
    version: int
    last_message_id: MailboxId
    content: Content


def unborn(flid: Flid, operation_day: date | None, version: int = 0) -> FlightState:
    """The empty state a new flight starts from; ``version`` continues a swept life's (spec 2.6)."""
    return FlightState(
        flid=flid,
        operation_day=operation_day,
        status=FlightStatus.ACTIVE,
        version=version,
        last_message_id=MailboxId(0),
        content={},
    )
