"""Business identity: which two mailbox rows are the same message (spec 3.4)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from msgexchange.ids import Identity, MailboxId
from msgexchange.lifecycle.states import ErrorClass, MessageState


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityPolicy:
    """``identity.reuse-after`` and ``identity.include-day-boundary``."""

    reuse_after: timedelta = timedelta(days=7)
    include_day_boundary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The message an identity is bound to, from inbox or archive."""

    message_id: MailboxId
    state: MessageState
    error_class: ErrorClass | None
    sent_at: datetime | None
    discarded: bool
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class Own:
    """The identity is free or already this message's: go on."""


@dataclass(frozen=True, slots=True)
class DuplicateOf:
    """SKIPPED: another message holds the identity."""

    holder: MailboxId


@dataclass(frozen=True, slots=True)
class TakesOver:
    """The holder gives the identity up; ``note`` (``reuses:<id>``, ``supersedes:<id>``) is kept."""

    holder: MailboxId
    note: str


Binding: TypeAlias = Own | DuplicateOf | TakesOver


def identity_of(
    *, sndr: str, type_: str, styp: str, seqn: str, sent_at: datetime | None, policy: IdentityPolicy
) -> Identity:
    r"""SNDR, TYPE, STYP, SEQN joined by ``|``; a ``|`` or ``\`` inside a part is escaped by ``\``.

    With the day boundary on, DTTM's airport-local date is the fifth part; ``sent_at`` must then
    be known.
    """
    parts = [sndr, type_, styp, seqn]
    if policy.include_day_boundary:
        assert sent_at is not None
        parts.append(sent_at.date().isoformat())
    return Identity("|".join(part.replace("\\", "\\\\").replace("|", "\\|") for part in parts))


def bind(
    message_id: MailboxId, sent_at: datetime | None, holder: Holder | None, policy: IdentityPolicy
) -> Binding:
    """Whether the message may call the identity its own."""
    if holder is None or holder.message_id == message_id:
        return Own()
    if holder.discarded or (
        holder.state is MessageState.DEAD and holder.error_class is ErrorClass.PROTOCOL
    ):
        return TakesOver(holder.message_id, f"supersedes:{holder.message_id}")
    if (
        sent_at is not None
        and holder.sent_at is not None
        and sent_at - holder.sent_at > policy.reuse_after
    ):
        return TakesOver(holder.message_id, f"reuses:{holder.message_id}")
    return DuplicateOf(holder.message_id)
