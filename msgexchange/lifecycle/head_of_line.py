"""Who is next: only the smallest non-terminal ids may be worked on (spec 3.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from msgexchange.lifecycle.states import InboxEntry


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing waits."""


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """The head backs off; everyone behind it waits too."""

    head: InboxEntry
    at: datetime


@dataclass(frozen=True, slots=True)
class Work:
    """Consecutive due heads that may share a transaction, in id order."""

    entries: tuple[InboxEntry, ...]


Step: TypeAlias = Idle | WaitUntil | Work


def next_step(heads: Sequence[InboxEntry], *, now: datetime, text_bytes_max: int) -> Step:
    """What the pump does with the non-terminal messages in id order.

    The batch ends before a message that backs off and before ``text_bytes_max`` is exceeded;
    one message alone may exceed it.
    """
    if not heads:
        return Idle()
    due: list[InboxEntry] = []
    text_bytes = 0
    for entry in heads:
        if entry.next_attempt_at is not None and entry.next_attempt_at > now:
            break
        text_bytes += entry.text_bytes or 0
        if due and text_bytes > text_bytes_max:
            break
        due.append(entry)
    if not due:
        head = heads[0]
        assert head.next_attempt_at is not None
        return WaitUntil(head, head.next_attempt_at)
    return Work(tuple(due))
