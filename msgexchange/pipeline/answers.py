"""Answers of one batch, and what they do to the requests that wait for them (spec 5.1)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import assert_never

from msgexchange.codec.times import unit_of
from msgexchange.flight.messages import Message, Plan
from msgexchange.flight.reference import Reference
from msgexchange.lifecycle.answer import (
    Answer,
    AnswerPolicy,
    Foreign,
    MatchBy,
    Matched,
    Unmatched,
    Verdict,
    answered,
    judge_answer,
)
from msgexchange.lifecycle.request import PLAN, ReferenceWanted, Request, RequestState
from msgexchange.pipeline.incoming import Incoming
from msgexchange.ports import Act

ACTOR = "msgexchange"


class Answers:
    """Open requests as the messages of a batch leave them, in fold order."""

    def __init__(
        self, requests: Mapping[str, Request], policy: AnswerPolicy, *, now: datetime
    ) -> None:
        self._open = dict(requests)
        self._policy = policy
        self._now = now
        self._changed: dict[str, Request] = {}
        self.acts: list[Act] = []
        """Approximate matches, for the audit."""
        self.counts: Counter[str] = Counter()
        """Answers by how they were taken."""

    @property
    def changed(self) -> Sequence[Request]:
        return list(self._changed.values())

    def judge(self, incoming: Incoming, message: Message, body: Plan | Reference) -> Verdict:
        """Whose answer the message is."""
        return judge_answer(_answer(incoming, message, body), self._open, self._policy)

    def refused(self) -> None:
        """One that was nobody's was not applied."""
        self.counts["unmatched"] += 1

    def applied(
        self, incoming: Incoming, message: Message, body: Plan | Reference, verdict: Verdict
    ) -> Incoming:
        """The message with a note of how it was matched; its request moves on."""
        match verdict:
            case Matched(request, by):
                self._progress(incoming, message, body, request, by)
                told = f"{by.value}, approximate" if by is MatchBy.KIND else by.value
                return _noted(incoming, f"answers:{request.request_id} ({told})")
            case Foreign():
                self.counts["foreign"] += 1
                return _noted(incoming, "foreign-request")
            case Unmatched():
                # A person replays it, whoever asked.
                return incoming
            case _:
                assert_never(verdict)

    def failed(self, echo: str | None, incoming: Incoming) -> Request | None:
        """The request that an error message names, which it ends; None if it names none."""
        named = [one for one in self._open.values() if echo is not None and one.seqn == echo]
        for request in named:
            why = f"refused by the AODB: error message {incoming.entry.message_id}"
            self._write(request.closed(RequestState.FAILED, why, now=self._now))
            return request
        return None

    def _progress(
        self,
        incoming: Incoming,
        message: Message,
        body: Plan | Reference,
        request: Request,
        by: MatchBy,
    ) -> None:
        answer = _answer(incoming, message, body)
        cause = incoming.entry.message_id
        self._write(answered(request, answer, by=by, cause=cause, now=self._now))
        self.counts[by.value] += 1
        if by is MatchBy.KIND:
            self.acts.append(
                Act(
                    at=self._now,
                    by=ACTOR,
                    act="answer-match",
                    subject=f"request {request.request_id}",
                    reason="requests.match is kind",
                    outcome=f"message {cause} taken as its answer, approximately",
                    outcomes={},
                )
            )

    def _write(self, request: Request) -> None:
        kind = request.wanted.kind
        self._changed[request.request_id] = request
        if request.is_open:
            self._open[kind] = request
        else:
            del self._open[kind]


def _answer(incoming: Incoming, message: Message, body: Plan | Reference) -> Answer:
    return Answer(
        kind=PLAN if isinstance(body, Plan) else ReferenceWanted(body.type).kind,
        days=frozenset(body.operation_days) if isinstance(body, Plan) else frozenset(),
        echo=message.echo,
        said_at=message.meta.sent_at,
        said_unit=unit_of(message.meta.dttm),
        received_at=incoming.entry.received_at,
    )


def _noted(incoming: Incoming, note: str) -> Incoming:
    return replace(incoming, note=note if incoming.note is None else f"{incoming.note}; {note}")
