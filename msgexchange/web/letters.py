"""Dead letters as programs read them."""

from collections.abc import Mapping
from datetime import datetime

from msgexchange.lifecycle.letters import advice, why_not_replayed
from msgexchange.pipeline.letters import Listed
from msgexchange.ports import Act, Letter, MetaColumns
from msgexchange.web.answers import written_time, written_time_or_none


def letter_document(listed: Listed, now: datetime) -> Mapping[str, object]:
    """One line of a list; fields without a value are null."""
    letter = listed.letter
    return {
        "id": letter.message_id,
        "state": letter.state.value,
        "errorClass": letter.error_class,
        "lastCause": letter.last_cause,
        "error": letter.error,
        "kind": kind_of(letter.meta),
        "sender": letter.meta.sndr,
        "seqn": letter.meta.seqn,
        "flids": list(listed.flids),
        "attempts": letter.attempts,
        "receivedAt": written_time(letter.received_at),
        "finishedAt": written_time_or_none(letter.finished_at),
        "discardedAt": written_time_or_none(letter.discarded_at),
        "replayedAt": written_time_or_none(letter.replayed_at),
        "ageSeconds": int((now - letter.received_at).total_seconds()),
        "textKept": letter.text_kept,
        "archived": letter.archived,
        "replayable": is_replayable(letter),
        "next": next_of(letter),
    }


def act_document(act: Act) -> Mapping[str, object]:
    """One row of the audit."""
    return {
        "at": written_time(act.at),
        "by": act.by,
        "act": act.act,
        "subject": act.subject,
        "reason": act.reason,
        "outcome": act.outcome,
        "messages": [{"id": id_, "outcome": text} for id_, text in act.outcomes.items()],
    }


def kind_of(meta: MetaColumns) -> str | None:
    """TYPE, or TYPE/STYP."""
    return f"{meta.type}/{meta.styp}" if meta.type and meta.styp else meta.type


def is_replayable(letter: Letter) -> bool:
    discarded = letter.discarded_at is not None
    fault = why_not_replayed(letter.state, letter.error_class, letter.error, discarded=discarded)
    return fault is None


def next_of(letter: Letter) -> str:
    """What a person does with it."""
    return advice(
        letter.state,
        letter.error_class,
        letter.last_cause,
        letter.error,
        discarded=letter.discarded_at is not None,
    )
