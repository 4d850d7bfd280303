"""What the position committed with the last transaction means to this store (spec 4.2).

Every transaction that publishes events also commits a position: which store published up to which
event. After a crash, or an answer that never came, it tells whether the last window went out.
"""

from dataclasses import dataclass
from typing import TypeAlias

from msgexchange.ids import EventId

_VERSION = "1"
_PARTS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The last event of the last transaction, whose store numbered it, and the flush it ended.

    ``flush_id`` only where a transaction stands for a flush: the order of ids is then no help.
    """

    store_id: str
    generation: int
    event_id: EventId
    nonce: int
    flush_id: str | None = None

    def encode(self) -> str:
        """As the committed offset's metadata carries it."""
        parts = (self.store_id, self.generation, self.event_id, self.nonce, self.flush_id or "")
        return "/".join([_VERSION, *map(str, parts)])

    @classmethod
    def decode(cls, text: str) -> "Position":
        """``ValueError`` for anything that ``encode`` did not write."""
        parts = text.split("/")
        if len(parts) != _PARTS or parts[0] != _VERSION:
            raise ValueError(f"{text!r} is no position of msgexchange")
        _, store_id, generation, event_id, nonce, flush_id = parts
        return cls(
            store_id=store_id,
            generation=int(generation),
            event_id=EventId(int(event_id)),
            nonce=int(nonce),
            flush_id=flush_id or None,
        )


@dataclass(frozen=True, slots=True)
class Mark:
    """The last event that the store itself knows to be published."""

    event_id: EventId
    nonce: int


@dataclass(frozen=True, slots=True)
class Known:
    """What the store has under a position's number: who it is, whether it waits, whose flush."""

    nonce: int
    waits: bool = True
    flush_id: str | None = None


@dataclass(frozen=True, slots=True)
class GoOn:
    """The store's own record counts; ``doubt`` is what a person should know about it."""

    doubt: str | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """Everything up to the position, or its flush, is on the broker: mark it SENT first."""

    position: Position


@dataclass(frozen=True, slots=True)
class Stop:
    """Nothing may be sent before a person has acted; ``reason`` says why and what to do."""

    reason: str


Verdict: TypeAlias = GoOn | Published | Stop


def judge(
    position: Position | None,
    *,
    store_id: str,
    generation: int,
    mark: Mark | None,
    here: Known | None,
) -> Verdict:
    """What to do before the first send.

    ``here`` is this store's event with the position's number, None where there is none.
    """
    if position is None:
        return GoOn() if mark is None else GoOn(_lost(mark))
    stop = _is_not_ours(position, store_id, generation)
    if stop is not None:
        return stop
    if mark == Mark(position.event_id, position.nonce):
        return GoOn()
    if here is not None and _tells_what_went_out(here, position):
        return Published(position)
    if position.generation < generation:
        return GoOn(
            f"the topic was last written by generation {position.generation}; from here on "
            f"generation {generation} counts, and events may come again under new ids"
        )
    return Stop(
        f"the topic has event {position.event_id} of generation {position.generation}, which this "
        "store does not have (or has another one in its place, or not yet in that flush): the "
        "store was restored from a backup; run `run.py store new-generation`, so that consumers "
        "compare versions"
    )


def _tells_what_went_out(here: Known, position: Position) -> bool:
    """Whether the store can mark what the position stands for.

    A nonce is random, so equal nonces mean the very same event. A flush went out claimed: an event
    that waits unclaimed is from before its claim, and which others went with it is lost.
    """
    if here.nonce != position.nonce:
        return False
    return position.flush_id is None or not here.waits or here.flush_id == position.flush_id


def _is_not_ours(position: Position, store_id: str, generation: int) -> Stop | None:
    if position.store_id != store_id:
        return Stop(
            f"the committed position belongs to store {position.store_id}, this is store "
            f"{store_id}: give each store its own kafka.prefix, and a copied store its own id "
            "(`run.py store new-id`)"
        )
    if position.generation > generation:
        return Stop(
            f"the topic was last written by generation {position.generation}, this store is at "
            f"generation {generation}: it was restored from a backup made before that; run "
            f"`run.py store new-generation --above {position.generation}`"
        )
    return None


def _lost(mark: Mark) -> str:
    return (
        f"no position is committed, though event {mark.event_id} is known to be published: a new "
        "cluster, or the position was lost; the store's own record counts, and the last window "
        "may come again"
    )
