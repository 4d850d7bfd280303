"""Outcomes of a batch, gathered in id order: what one commit writes on each message (spec 3.4)."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import assert_never

from msgexchange.ids import MailboxId
from msgexchange.lifecycle.failure import (
    Charge,
    Exhaust,
    FailurePolicy,
    Retry,
    charge,
    charge_crash,
)
from msgexchange.lifecycle.identity import Holder
from msgexchange.lifecycle.states import ErrorClass, MessageState
from msgexchange.pipeline.incoming import Incoming
from msgexchange.ports import MessageResult, MetaColumns

ERROR_CHARS_MAX = 2_000
"""A stored error text is never longer (spec 1.1)."""

CURABLE_BY_CATALOGUE = frozenset({ErrorClass.UNSUPPORTED, ErrorClass.CODEC_ERROR})
"""A kind that died of these gets one attempt until catalogue or version change (spec 3.3)."""


class Results:
    """Terminal and failed results of one batch, and the alerts that go with them."""

    def __init__(
        self,
        policy: FailurePolicy,
        hopeless: Collection[tuple[str, str]],
        *,
        now: datetime,
        started_at: datetime,
        replaying: bool = False,
    ) -> None:
        """``replaying``: nobody stands at the head, so a failure is dead, with its own class."""
        self._replaying = replaying
        self._policy = policy
        self._hopeless = hopeless
        self._now = now
        self._started_at = started_at
        self.messages: list[MessageResult] = []
        self.exhausted_kinds: list[tuple[str, str]] = []
        self.alerts: list[tuple[str, str]] = []

    def succeed(self, incoming: Incoming) -> None:
        self._add(incoming, MessageState.SUCCEEDED)

    def skip(self, incoming: Incoming, reason: str, *, alert: bool = False) -> None:
        self._add(incoming, MessageState.SKIPPED, error=reason)
        if alert:
            name = "skipped-" + reason.partition(":")[0]
            self.alerts.append((name, f"message {incoming.entry.message_id}: {reason}"))

    def skip_error(self, incoming: Incoming, type_: str, told: str) -> None:
        """SKIPPED: the sender says that something of ours is wrong."""
        self.skip(incoming, f"ignored:{type_}")
        self.alerts.append(
            ("aodb-error", f"message {incoming.entry.message_id} is an {type_}; {told}")
        )

    def skip_duplicate(self, incoming: Incoming, of: MailboxId, holder: Holder | None) -> None:
        """SKIPPED, unbound; a duplicate that says something else alerts."""
        self._add(incoming, MessageState.SKIPPED, error=f"duplicate-of:{of}")
        if holder is not None and holder.digest not in (None, incoming.digest):
            self.alerts.append(
                (
                    "duplicate-differs",
                    f"message {incoming.entry.message_id} has the identity of {of}, other content",
                )
            )

    def die(self, incoming: Incoming, error_class: ErrorClass, reason: str) -> None:
        """DEAD at once: no further attempt can change it."""
        self._add(incoming, MessageState.DEAD, error_class=error_class, error=reason)

    def fail(self, incoming: Incoming, error_class: ErrorClass, reason: str) -> bool:
        """One charged failure; False (nothing written) unless the message stands first."""
        if self._replaying:
            self.die(incoming, error_class, reason)
            return True
        if self.messages:
            return False
        entry = incoming.entry
        verdict = charge(
            entry,
            started_at=entry.processing_started_at or self._started_at,
            now=self._now,
            policy=self._policy,
            hopeless=error_class in CURABLE_BY_CATALOGUE and _kind(incoming) in self._hopeless,
        )
        self._charge(incoming, error_class, reason, verdict)
        return True

    def crash(self, incoming: Incoming, reason: str, crashes: int) -> bool:
        """The charged failure of a message under which a process ended for the n-th time."""
        if self.messages:
            return False
        verdict = charge_crash(incoming.entry, crashes=crashes, now=self._now, policy=self._policy)
        self._charge(incoming, ErrorClass.CRASH, reason, verdict)
        return True

    def _charge(
        self, incoming: Incoming, error_class: ErrorClass, reason: str, verdict: Charge
    ) -> None:
        match verdict:
            case Retry(attempts, next_attempt_at):
                self._add(
                    incoming,
                    MessageState.FAILED,
                    error_class=error_class,
                    cause=error_class,
                    error=reason,
                    attempts=attempts,
                    next_attempt_at=next_attempt_at,
                )
            case Exhaust(attempts):
                self._add(
                    incoming,
                    MessageState.DEAD,
                    error_class=ErrorClass.EXHAUSTED,
                    cause=error_class,
                    error=reason,
                    attempts=attempts,
                )
                kind = _kind(incoming)
                if kind is not None and error_class in CURABLE_BY_CATALOGUE:
                    self.exhausted_kinds.append(kind)
            case _:
                assert_never(verdict)

    def _held_here(self, holder: MailboxId) -> bool:
        """True when the holder of a taken-over identity is of this batch; it gives it up here."""
        for place, result in enumerate(self.messages):
            if result.message_id == holder:
                self.messages[place] = replace(result, identity=None)
                return True
        return False

    def _add(
        self,
        incoming: Incoming,
        state: MessageState,
        *,
        error_class: ErrorClass | None = None,
        cause: ErrorClass | None = None,
        error: str | None = None,
        attempts: int | None = None,
        next_attempt_at: datetime | None = None,
    ) -> None:
        entry = incoming.entry
        message = incoming.message
        given_up = incoming.taken_over_from
        here = given_up is not None and self._held_here(given_up)
        dead = state is MessageState.DEAD
        if dead:
            self.alerts.append(
                ("dead-letter", f"message {entry.message_id} is DEAD({error_class}): {error}")
            )
        self.messages.append(
            MessageResult(
                message_id=entry.message_id,
                state=state,
                meta=_meta_columns(incoming),
                identity=incoming.identity,
                sent_at=message.meta.sent_at if message else None,
                error_class=error_class,
                last_cause=cause,
                error=None if error is None else error.replace("\0", "")[:ERROR_CHARS_MAX],
                attempts=entry.attempts if attempts is None else attempts,
                next_attempt_at=next_attempt_at,
                started_at=entry.processing_started_at or self._started_at,
                taken_over_from=None if here else given_up,
                dead_text=incoming.text if dead else None,
                unknown=message.unknown if message else (),
                kept=message.meta.unknown if message else {},
                decision_note=incoming.note,
                digest=incoming.digest,
            )
        )


def _kind(incoming: Incoming) -> tuple[str, str] | None:
    message = incoming.message
    return (message.meta.type, message.meta.styp) if message else None


def _meta_columns(incoming: Incoming) -> MetaColumns:
    message = incoming.message
    if message is None:
        return MetaColumns()
    meta = message.meta
    return MetaColumns(
        sndr=meta.sndr, type=meta.type, styp=meta.styp, seqn=meta.seqn, dttm=meta.dttm
    )
