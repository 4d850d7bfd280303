"""Every shared wire case through octets, codec and core; the shell has its own run of them."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any, assert_never

import pytest
from codec_cases import CATALOGUE, ZONE

from msgexchange.codec.decode import decode
from msgexchange.codec.encode import encode
from msgexchange.codec.limits import Limits
from msgexchange.codec.octets import Undecodable, decode_octets
from msgexchange.flight.decision import Applied, Outcome, Refused, Skipped
from msgexchange.flight.dynamic import UnknownFlight, decide_deletion, decide_operation
from msgexchange.flight.events import schd_value
from msgexchange.flight.messages import (
    Body,
    Decoded,
    Deletion,
    Ignored,
    Inexpressible,
    Malformed,
    Message,
    Meta,
    Operation,
    Plan,
    PlanKind,
    Rejected,
    Unsupported,
)
from msgexchange.flight.reference import Reference
from msgexchange.flight.snapshot import decide_plan
from msgexchange.flight.state import FlightState
from msgexchange.ids import Flid, MailboxId

FOLDER = Path(__file__).parents[2] / "cases"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))


@dataclass
class Fold:
    """The core's part of the pump, in order, in memory."""

    flights: dict[Flid, FlightState] = field(default_factory=dict)
    newest: dict[date, datetime] = field(default_factory=dict)
    seen: set[tuple[str, ...]] = field(default_factory=set)
    messages: int = 0

    def take(self, text: str) -> dict[str, Any]:
        self.messages += 1
        decoded = decode(text, CATALOGUE, Limits(), ZONE)
        state, error_class, error = self._judge(decoded)
        unknown = decoded.unknown if isinstance(decoded, Message) else ()
        return {"state": state, "errorClass": error_class, "error": error, "unknown": unknown}

    def _judge(self, decoded: Decoded) -> tuple[str, str | None, str]:
        if isinstance(decoded, Malformed):
            return "DEAD", "MALFORMED", decoded.reason
        meta = decoded.meta
        identity = (meta.sndr, meta.type, meta.styp, meta.seqn)
        if identity in self.seen:
            return "SKIPPED", None, "duplicate-of"
        self.seen.add(identity)
        if isinstance(decoded.content, Plan | Operation | Deletion):
            return self._apply(self._decide(decoded.content, meta))
        assert not isinstance(decoded.content, Reference), "no case has reference data"
        return self._unapplied(decoded.content)

    @staticmethod
    def _unapplied(
        content: Ignored | Rejected | Unsupported | Inexpressible,
    ) -> tuple[str, str | None, str]:
        match content:
            case Ignored(type_):
                return "SKIPPED", None, f"ignored:{type_}"
            case Rejected(reason):
                return "DEAD", "PROTOCOL", reason
            case Unsupported(reason):
                return "FAILED", "UNSUPPORTED", reason
            case Inexpressible(reason):
                return "FAILED", "CODEC_ERROR", reason
            case _:
                assert_never(content)

    def _decide(self, body: Body, meta: Meta) -> Outcome:
        cause = MailboxId(self.messages)
        if isinstance(body, Deletion):
            return decide_deletion(self.flights, body, cause=cause)
        if isinstance(body, Operation):
            return decide_operation(
                self.flights, body, cause=cause, unknown=UnknownFlight.SKIP, last_versions={}
            )
        outcome = decide_plan(
            self.flights,
            body,
            cause=cause,
            sent_at=meta.sent_at,
            newest_sent_at=self.newest,
            last_versions={},
        )
        if isinstance(outcome, Applied) and body.kind is not PlanKind.ADFT and meta.sent_at:
            self.newest.update(dict.fromkeys(body.operation_days, meta.sent_at))
        return outcome

    def _apply(self, outcome: Outcome) -> tuple[str, str | None, str]:
        match outcome:
            case Applied(decisions):
                self.flights.update({decision.after.flid: decision.after for decision in decisions})
                return "SUCCEEDED", None, ""
            case Skipped(reason):
                return "SKIPPED", None, reason
            case Refused(reason):
                return "DEAD", "PROTOCOL", reason
            case _:
                assert_never(outcome)


def bodies(case: dict[str, Any]) -> Iterator[str]:
    for send in case["sends"]:
        text = decode_octets(base64.b64decode(send["body_base64"]), send["content_type"])
        if send.get("http") == 400:
            assert isinstance(text, Undecodable)
        else:
            assert isinstance(text, str)
            yield text


def check_flight(shown: dict[str, Any], expected: dict[str, Any]) -> None:
    for key, value in expected.items():
        if key == "absent":
            assert not set(value) & set(shown["state"])
        elif key == "state":
            assert {name: shown["state"].get(name) for name in value} == value
        else:
            assert shown[key] == value


@pytest.mark.parametrize("name", NAMES)
def test_a_shared_case_ends_as_it_says(name: str) -> None:
    case = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    fold = Fold()
    outcomes = [fold.take(text) for text in bodies(case)]
    expect = case["expect"]
    for outcome, expected in zip(outcomes, expect["messages"], strict=True):
        assert outcome["state"] == expected["state"], outcome
        assert expected.get("error", "") in outcome["error"]
        if "errorClass" in expected:
            assert outcome["errorClass"] == expected["errorClass"]
        assert set(expected.get("unknown", ())) <= set(outcome["unknown"])
    for flid, flight in expect.get("flights", {}).items():
        value = schd_value(fold.flights[Flid(flid)], "Asia/Shanghai")
        check_flight(json.loads(encode(value)), flight)
    assert not set(expect.get("no_flights", ())) & set(fold.flights)


def test_there_are_cases() -> None:
    assert len(NAMES) >= 28
