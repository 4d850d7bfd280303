"""States of a message and of an event, and why a message failed (spec 3.4, 4.1)."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from msgexchange.ids import Identity, MailboxId


class MessageState(StrEnum):
    """PENDING and FAILED occupy the head of the line; the others are terminal."""

    PENDING = "PENDING"
    FAILED = "FAILED"
    SUCCEEDED = "SUCCEEDED"
    SKIPPED = "SKIPPED"
    DEAD = "DEAD"


TERMINAL = frozenset({MessageState.SUCCEEDED, MessageState.SKIPPED, MessageState.DEAD})


class EventState(StrEnum):
    """PENDING waits for delivery; SENT means that the broker has it."""

    PENDING = "PENDING"
    SENT = "SENT"
    SUPERSEDED = "SUPERSEDED"
    CANCELLED = "CANCELLED"
    DEAD = "DEAD"


class ErrorClass(StrEnum):
    """Why a message failed or died."""

    MALFORMED = "MALFORMED"
    PROTOCOL = "PROTOCOL"
    CODEC_ERROR = "CODEC_ERROR"
    UNSUPPORTED = "UNSUPPORTED"
    INFRA = "INFRA"
    CRASH = "CRASH"
    EXHAUSTED = "EXHAUSTED"
    LATE = "LATE"


REPLAYABLE = frozenset(
    {
        ErrorClass.CODEC_ERROR,
        ErrorClass.UNSUPPORTED,
        ErrorClass.INFRA,
        ErrorClass.CRASH,
        ErrorClass.EXHAUSTED,
        ErrorClass.LATE,
    }
)
"""Classes that a fix outside the message can cure; MALFORMED and PROTOCOL are not (spec 3.4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxEntry:
    """A non-terminal message of the inbox, as the pump needs to know it.

    ``text_bytes`` is the raw text's length in the mailbox, None where the row holds no text.
    """

    message_id: MailboxId
    state: MessageState
    identity: Identity | None
    attempts: int
    next_attempt_at: datetime | None
    processing_started_at: datetime | None
    received_at: datetime
    text_bytes: int | None
    traceparent: str | None
