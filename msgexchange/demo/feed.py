"""The feed: every message of the day in the order it reaches the mailbox, and what must follow.

The same departures give the same bytes: no clock, no randomness.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeAlias
from zlib import crc32

from msgexchange.demo.airport import one_in
from msgexchange.demo.departures import Departure
from msgexchange.demo.drafts import Draft
from msgexchange.demo.irregular import irregular
from msgexchange.demo.plan import ad_hoc, plan, stale_plan
from msgexchange.demo.sis import message
from msgexchange.demo.timeline import flight_day
from msgexchange.lifecycle.states import ErrorClass, MessageState

_PLAN_BEFORE_FIRST = timedelta(hours=7)
_STALE_AFTER = timedelta(minutes=30)
_STALE_BY = timedelta(hours=2)
_AD_HOC_ONE_IN = 170
_DUPLICATE_ONE_IN = 200
_ROLL_BACK_ONE_IN = 330


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """A message to write; ``at`` is airport-local time of the simulated day.

    ``reason`` is the skip code or the error class it must end with; ``flights`` how many flights
    it changes, each of which is one msg event.
    """

    at: datetime
    text: str
    kind: str
    state: MessageState
    reason: str
    flights: int


@dataclass(frozen=True, slots=True)
class RollBack:
    """The writer takes a mailbox id and rolls the row back: a gap for ever."""

    at: datetime


Step: TypeAlias = Send | RollBack


@dataclass(frozen=True, slots=True)
class Feed:
    """The steps in order; a roll-back is never the last one."""

    steps: tuple[Step, ...]

    @property
    def messages(self) -> tuple[Send, ...]:
        return tuple(step for step in self.steps if isinstance(step, Send))


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What must have become of a feed once everything is terminal.

    ``skipped`` counts by reason code, ``dead`` by error class; ``notices`` are msg events.
    """

    messages: int
    succeeded: int
    skipped: Mapping[str, int]
    dead: Mapping[ErrorClass, int]
    notices: int
    flights_active: int
    flights_deleted: int
    rolled_back: int


def build_feed(departures: Sequence[Departure], *, messages_max: int | None = None) -> Feed:
    """The day of ``departures`` (in schedule order), with the troubles of a real mailbox.

    Under ``messages_max`` the day keeps every n-th flight, and ends early if that is still too
    much. ``ValueError`` without a departure or with room for no message.
    """
    if not departures:
        raise ValueError("a feed needs at least one departure")
    if messages_max is not None and messages_max < 1:
        raise ValueError(f"messages_max is {messages_max}; a feed has at least one message")
    feed = Feed(tuple(_steps(departures)))
    if messages_max is None or len(feed.messages) <= messages_max:
        return feed
    stride = -(-len(feed.messages) // messages_max)
    return Feed(tuple(_first_messages(_steps(departures[::stride]), messages_max)))


def expected(feed: Feed) -> Expected:
    """The outcome of every step, added up as the feed was built."""
    messages = feed.messages
    by_state = {
        state: Counter(sent.reason for sent in messages if sent.state is state)
        for state in MessageState
    }
    planned = sum(sent.flights for sent in messages if sent.kind.startswith("SCHD/"))
    deleted = sum(sent.flights for sent in messages if sent.kind in {"FDEL", "FLOP/FDEL"})
    return Expected(
        messages=len(messages),
        succeeded=by_state[MessageState.SUCCEEDED].total(),
        skipped=dict(by_state[MessageState.SKIPPED]),
        dead={ErrorClass(name): count for name, count in by_state[MessageState.DEAD].items()},
        notices=sum(sent.flights for sent in messages),
        flights_active=planned - deleted,
        flights_deleted=deleted,
        rolled_back=len(feed.steps) - len(messages),
    )


def _steps(departures: Sequence[Departure]) -> Iterator[Step]:
    return _with_troubles(_numbered(_drafts(departures)))


def _drafts(departures: Sequence[Departure]) -> Sequence[Draft]:
    """Every draft in time order; what happens at the same second keeps its order."""
    unplanned = [departure for departure in departures[1:] if _is_ad_hoc(departure)]
    planned = [departure for departure in departures if departure not in unplanned]
    flown = [departure for departure in planned if departure.left is not None]
    plan_at = departures[0].scheduled - _PLAN_BEFORE_FIRST
    drafts = [
        plan(planned, plan_at),
        stale_plan(planned, plan_at + _STALE_AFTER, older=_STALE_BY),
        *(ad_hoc(departure) for departure in unplanned),
    ]
    for departure in departures:
        drafts.extend(flight_day(departure))
    if flown:
        drafts.extend(irregular(flown))
    return sorted(drafts, key=lambda draft: draft.at)


def _is_ad_hoc(departure: Departure) -> bool:
    return departure.left is not None and one_in(departure, "ad hoc", _AD_HOC_ONE_IN)


def _numbered(drafts: Iterable[Draft]) -> Iterator[Send]:
    """SEQN counts from 1 in the order of sending."""
    for seqn, draft in enumerate(drafts, start=1):
        text = message(
            type_=draft.type_,
            styp=draft.styp,
            seqn=seqn,
            sent_at=draft.at - draft.dated_back,
            body=draft.body,
        )
        yield Send(
            at=draft.at,
            text=draft.spoil(text) if draft.spoil else text,
            kind=f"{draft.type_}/{draft.styp}" if draft.styp else draft.type_,
            state=draft.state,
            reason=draft.reason,
            flights=draft.flights,
        )


def _with_troubles(sends: Iterable[Send]) -> Iterator[Step]:
    """Some messages come again a few steps later, some ids are rolled back."""
    due: dict[int, list[Send]] = {}
    for place, sent in enumerate(sends):
        checksum = crc32(sent.text.encode())
        if checksum % _ROLL_BACK_ONE_IN == 0:
            yield RollBack(sent.at)
        yield sent
        for original in due.pop(place, ()):
            yield _duplicate(original, sent.at)
        if _may_come_again(sent) and checksum % _DUPLICATE_ONE_IN == 1:
            due.setdefault(place + 2 + checksum // _DUPLICATE_ONE_IN % 8, []).append(sent)
        last_at = sent.at
    for originals in due.values():
        for original in originals:
            yield _duplicate(original, last_at)


def _may_come_again(sent: Send) -> bool:
    return sent.state is MessageState.SUCCEEDED and not sent.kind.startswith("SCHD/")


def _duplicate(original: Send, at: datetime) -> Send:
    return replace(original, at=at, state=MessageState.SKIPPED, reason="duplicate-of", flights=0)


def _first_messages(steps: Iterable[Step], messages_max: int) -> Iterator[Step]:
    count = 0
    for step in steps:
        yield step
        count += isinstance(step, Send)
        if count == messages_max:
            return
