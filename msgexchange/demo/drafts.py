"""A message of the feed before it has its number, and what must become of it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from msgexchange.demo.sis import element, leaf
from msgexchange.ids import Flid
from msgexchange.lifecycle.states import ErrorClass, MessageState


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """``reason`` is the skip code (``no-match``) or the error class, empty where it is applied.

    ``flights`` is how many flights it changes; ``dated_back`` how much older DTTM is than the
    time of sending; ``spoil`` what happens to the finished text on its way.
    """

    at: datetime
    type_: str
    styp: str
    body: str
    state: MessageState = MessageState.SUCCEEDED
    reason: str = ""
    flights: int = 1
    dated_back: timedelta = timedelta()
    spoil: Callable[[str], str] | None = None


def operation(flid: Flid, at: datetime, styp: str, *content: str) -> Draft:
    """One FLOP of one flight; ``content`` are the elements that STYP names."""
    body = element("FLOP", leaf("FLID", flid), *content)
    return Draft(at=at, type_="FLOP", styp=styp, body=body)


def deletion(flid: Flid, at: datetime, *, as_operation: bool) -> Draft:
    """The flight is gone; in one of the two forms of spec 1.2."""
    if as_operation:
        return operation(flid, at, "FDEL", element("FDEL"))
    return Draft(at=at, type_="FDEL", styp="", body=element("FDEL", leaf("FLID", flid)))


def skipped(draft: Draft, reason: str) -> Draft:
    return replace(draft, state=MessageState.SKIPPED, reason=reason, flights=0)


def dead(draft: Draft, error_class: ErrorClass) -> Draft:
    return replace(draft, state=MessageState.DEAD, reason=error_class.value, flights=0)
