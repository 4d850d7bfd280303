"""What a batch says of each attempt to whoever traces it, and what its events carry of that."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from msgexchange.ids import MailboxId
from msgexchange.lifecycle.states import MessageState
from msgexchange.pipeline.incoming import Incoming
from msgexchange.ports import Batch, MessageResult
from msgexchange.ports.tracing import Attempted


def attempted(
    incoming: Sequence[Incoming], results: Sequence[MessageResult], decided_at: Sequence[datetime]
) -> list[Attempted]:
    """The attempts of one batch; ``decided_at`` holds its beginning and each decision's end."""
    return [
        Attempted(
            entry=one.entry,
            result=result,
            kind=None if one.message is None else one.message.meta.kind,
            about=one,
            decoded=one.decoded,
            decided=(decided_at[index], decided_at[index + 1]),
        )
        for index, (one, result) in enumerate(zip(incoming, results, strict=False))
    ]


def replayed(
    incoming: Sequence[Incoming],
    results: Sequence[MessageResult],
    *,
    since: datetime,
    until: datetime,
) -> list[Attempted]:
    """The messages a replay carries out; they are decoded and decided as one."""
    found = {one.entry.message_id: one for one in incoming}
    return [
        Attempted(
            entry=one.entry,
            result=result,
            kind=None if one.message is None else one.message.meta.kind,
            about=one,
            decoded=None,
            decided=(since, until),
        )
        for result in results
        if (one := found.get(result.message_id)) is not None
    ]


def in_context(batch: Batch, contexts: Mapping[MailboxId, str]) -> Batch:
    """The batch with its traced messages' events inside their attempt's span."""
    if not contexts:
        return batch
    events = [
        replace(event, traceparent=contexts[event.message_id])
        if event.message_id in contexts
        else event
        for event in batch.events
    ]
    return replace(batch, events=events)


def trace_id(traceparent: str | None) -> str | None:
    """The trace a line or answer names."""
    return None if traceparent is None else traceparent.split("-")[1]


def failure_fields(
    one: Incoming, result: MessageResult, traceparent: str | None = None
) -> dict[str, object]:
    """What the log line of a failure carries (spec 6.3); its trace, where that is not the row's."""
    return {
        "message_id": result.message_id,
        "state": result.state.value,
        "error_class": result.error_class,
        "attempts": result.attempts,
        "next_attempt_at": result.next_attempt_at,
        "error": result.error,
        "trace_id": trace_id(traceparent or one.entry.traceparent),
    }


def failures(
    incoming: Sequence[Incoming],
    results: Sequence[MessageResult],
    contexts: Mapping[MailboxId, str],
) -> list[dict[str, object]]:
    """``failure_fields`` of each that failed or died, in its trace of these."""
    found = {one.entry.message_id: one for one in incoming}
    return [
        failure_fields(found[id_], result, contexts.get(id_))
        for result in results
        if result.state in (MessageState.FAILED, MessageState.DEAD)
        and (id_ := result.message_id) in found
    ]
