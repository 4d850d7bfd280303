"""Letters folded over what the store says now: predicted, and, under the lock, carried out.

The pre-flight and the leader's pump run the same function, so that what one shows the other does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import orjson

from msgexchange.flight.reference import Record, Reference
from msgexchange.ids import Flid, MailboxId
from msgexchange.lifecycle.letters import why_not_replayed
from msgexchange.lifecycle.states import InboxEntry, MessageState
from msgexchange.pipeline.fold import Fold
from msgexchange.pipeline.incoming import Broken, Decode, Incoming, judge
from msgexchange.pipeline.prediction import FieldChange, Newer, Prediction
from msgexchange.pipeline.rules import PumpRules
from msgexchange.pipeline.view import view_of
from msgexchange.ports import (
    ChangeRow,
    Letter,
    MessageResult,
    ReplayReads,
    Saying,
    Text,
    TextMissing,
)

GONE = "text-gone: neither the own store nor the mailbox has its text any more"
OTHER_TEXT = "text-differs: the mailbox has another text under its id now"
UNKNOWN = "not known here"
_RULING = {
    TextMissing.TOO_LARGE: "text-too-large: its text is over the limit (codec.limits.text-max)",
}


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What became of each message, in id order; ``fold`` holds what a commit writes, ``incoming``
    what it was made of.
    """

    predictions: Sequence[Prediction]
    fold: Fold
    incoming: Sequence[Incoming]


def rehearse(
    reads: ReplayReads,
    ids: Sequence[MailboxId],
    texts: Mapping[MailboxId, Text],
    *,
    decode: Decode,
    rules: PumpRules,
    now: datetime,
) -> Rehearsal:
    """Fold these messages in id order; those that cannot be replayed are left out, with why."""
    known = {letter.message_id: letter for letter in reads.letters(ids)}
    incoming: dict[MailboxId, Incoming] = {}
    refused: dict[MailboxId, str] = {}
    for id_ in sorted(set(ids)):
        one = _incoming(known.get(id_), texts.get(id_, TextMissing.ROW_GONE), decode, now)
        if isinstance(one, str):
            refused[id_] = one
        else:
            incoming[id_] = one
    view = view_of(reads, list(incoming.values()), rules)
    fold = Fold(view, rules, now=now, started_at=now, replaying=True)
    past = _Past(reads, incoming, now)
    predictions = {
        id_: Prediction(
            message_id=id_, was=_was(known.get(id_)), outcome=f"refused: {why}", refused=why
        )
        for id_, why in refused.items()
    }
    for id_, one in incoming.items():
        predictions[id_] = _taken(fold, one, known[id_], past)
    told = [predictions[id_] for id_ in sorted(predictions)]
    return Rehearsal(told, fold, list(incoming.values()))


def _incoming(letter: Letter | None, text: Text, decode: Decode, now: datetime) -> Incoming | str:
    """The message as the fold takes it, or why it is not replayed."""
    if letter is None:
        return UNKNOWN
    fault = why_not_replayed(
        letter.state, letter.error_class, letter.error, discarded=letter.discarded_at is not None
    )
    if fault is not None:
        return fault
    if isinstance(text, TextMissing):
        return _RULING.get(text, GONE)
    entry = InboxEntry(
        message_id=letter.message_id,
        state=MessageState.PENDING,
        identity=None,
        attempts=0,
        next_attempt_at=None,
        processing_started_at=None,
        received_at=letter.received_at,
        text_bytes=letter.text_bytes,
        traceparent=letter.traceparent,
    )
    one = judge(entry, text, decode, now=lambda: now)
    return one if letter.digest in (None, one.digest) else OTHER_TEXT


def _taken(fold: Fold, one: Incoming, letter: Letter, past: "_Past") -> Prediction:
    changes, events = len(fold.changes), len(fold.events)
    records = _records(fold, one)
    try:
        fold.take(one)
    except MemoryError:
        raise
    except Exception as failure:  # noqa: BLE001 - told of the message that causes it
        reason = f"deciding failed: {type(failure).__name__}: {failure}"
        fold.take(replace(one, judged=Broken(reason)))
    result = fold.messages[-1]
    applied = fold.changes[changes:]
    newer = past.newer(one)
    return Prediction(
        message_id=one.entry.message_id,
        was=_was(letter),
        outcome=_said(result.state, result.error_class, result.error),
        changes=[
            *past.changes(one.entry.message_id, applied),
            *_record_changes(fold, one, records, result, past),
        ],
        events=[(event.target, event.type, event.flid) for event in fold.events[events:]],
        newer=newer,
    )


class _Past:
    """Who said what last, with what this set itself says on top."""

    def __init__(
        self, reads: ReplayReads, incoming: Mapping[MailboxId, Incoming], now: datetime
    ) -> None:
        self._now = now
        flids = {flid for one in incoming.values() for flid in one.flids}
        self._sayings: Mapping[Flid, Sequence[Saying]] = reads.sayings(flids) if flids else {}
        types = {
            one.message.meta.type
            for one in incoming.values()
            if one.message is not None and isinstance(one.message.content, Reference)
        }
        self._applied = reads.succeeded_after(types, min(incoming)) if types else {}
        self._last: dict[tuple[str, str], Newer] = {
            (flid, name): Newer(message_id=saying.message_id, at=saying.at)
            for flid, sayings in self._sayings.items()
            for saying in sayings
            for name in saying.fields
        }

    def changes(self, message_id: MailboxId, applied: Sequence[ChangeRow]) -> Sequence[FieldChange]:
        """What these versions change; from here on this message has said them last."""
        found = []
        for row in applied:
            for name, old, new in orjson.loads(row.changes):
                last = self._last.get((row.flid, name))
                if old != new:
                    goes_back = last is not None and last.message_id > message_id
                    found.append(
                        FieldChange(
                            about=row.flid,
                            field=name,
                            old=old,
                            new=new,
                            backwards=last if goes_back else None,
                        )
                    )
                self._last[row.flid, name] = Newer(message_id=message_id, at=self._now)
        return found

    def newer(self, one: Incoming) -> Mapping[str, Sequence[Newer]]:
        """By flight, the newer messages that were applied to it."""
        found: dict[str, Sequence[Newer]] = {}
        for flid in one.flids:
            later = [
                Newer(message_id=saying.message_id, at=saying.at)
                for saying in self._sayings.get(flid, ())
                if saying.message_id > one.entry.message_id
            ]
            if later:
                found[flid] = later
        return found

    def newest_of_type(self, type_: str, message_id: MailboxId) -> Newer | None:
        """The newest message of a reference type above this one."""
        later = [Newer(message_id=id_, at=at) for id_, at in self._applied.get(type_, ())]
        return later[-1] if later and later[-1].message_id > message_id else None


def _records(fold: Fold, one: Incoming) -> Mapping[str, Record | None]:
    told = one.message.content if one.message is not None else None
    if not isinstance(told, Reference):
        return {}
    return {key: fold.references.record((told.type, key)) for key in told.records}


def _record_changes(
    fold: Fold,
    one: Incoming,
    before: Mapping[str, Record | None],
    result: MessageResult,
    past: _Past,
) -> Sequence[FieldChange]:
    """Reference records: whole types are judged by the newest message of the type."""
    told = one.message.content if one.message is not None else None
    if not isinstance(told, Reference) or result.state is not MessageState.SUCCEEDED:
        return []
    newer = past.newest_of_type(told.type, one.entry.message_id)
    found = []
    if told.replaces_all:
        whole = f"these {len(told.records)} records"
        found.append(
            FieldChange(about=told.type, field="every record", old=None, new=whole, backwards=newer)
        )
    for key, old in before.items():
        new = fold.references.record((told.type, key))
        if old != new:
            about = f"{told.type} {key}"
            found.append(
                FieldChange(about=about, field="record", old=old, new=new, backwards=newer)
            )
    return found


def _was(letter: Letter | None) -> str:
    if letter is None:
        return "unknown"
    return _said(letter.state, letter.error_class, letter.error)


def _said(state: MessageState, error_class: object, error: str | None) -> str:
    if state is MessageState.SKIPPED:
        return f"SKIPPED({error})"
    if state is MessageState.DEAD:
        return f"DEAD({error_class}): {error}"
    return state.value
