from collections.abc import Sequence
from datetime import timedelta
from zoneinfo import ZoneInfo

import orjson
import pytest

from factories import T0, deletion, entry, operation, plan, status, xml
from msgexchange.codec.catalogue_file import default_catalogue
from msgexchange.codec.decode import decode
from msgexchange.codec.limits import Limits
from msgexchange.flight.dynamic import UnknownFlight
from msgexchange.ids import Flid
from msgexchange.lifecycle.failure import FailurePolicy
from msgexchange.lifecycle.identity import IdentityPolicy
from msgexchange.lifecycle.states import ErrorClass, MessageState
from msgexchange.pipeline.fold import Fold
from msgexchange.pipeline.incoming import Incoming, judge
from msgexchange.pipeline.rules import PumpRules, View
from msgexchange.ports import Batch, MessageResult, TextMissing

CATALOGUE = default_catalogue()
ZONE = ZoneInfo("Asia/Shanghai")
EMPTY = View(holders={}, flights={}, last_versions={}, newest_plans={}, exhausted_kinds=frozenset())


def rules(
    *, unknown: UnknownFlight = UnknownFlight.SKIP, identity: IdentityPolicy | None = None
) -> PumpRules:
    return PumpRules(
        identity=identity or IdentityPolicy(),
        failure=FailurePolicy(),
        unknown_flight=unknown,
        timezone="Asia/Shanghai",
        codec_version="1",
    )


def incoming(id_: int, text: str | TextMissing, attempts: int = 0) -> Incoming:
    return judge(
        entry(id_, attempts=attempts),
        text,
        lambda raw: decode(raw, CATALOGUE, Limits(), ZONE),
        now=lambda: T0,
    )


def folded(
    texts: Sequence[str | TextMissing], *, view: View = EMPTY, rules_: PumpRules | None = None
) -> tuple[Batch, Fold]:
    fold = Fold(view, rules_ or rules(), now=T0, started_at=T0)
    for id_, text in enumerate(texts, start=1):
        if not fold.take(incoming(id_, text)):
            break
    return fold.batch(), fold


def outcomes(batch: Batch) -> list[tuple[MessageState, ErrorClass | None]]:
    return [(result.state, result.error_class) for result in batch.messages]


def error(result: MessageResult) -> str:
    assert result.error is not None
    return result.error


def test_each_message_sees_what_the_ones_before_it_in_the_batch_did() -> None:
    batch, _ = folded([plan("9001"), status("9001", "BRD"), status("9001", "DEP", seqn=3)])
    assert [result.state for result in batch.messages] == [MessageState.SUCCEEDED] * 3
    [write] = batch.flights
    assert write.before is None
    assert (write.after.version, write.after.last_message_id) == (3, 3)
    assert write.after.content["STAT"] == "DEP"
    assert [(row.version, row.message_id) for row in batch.changes] == [(1, 1), (2, 2), (3, 3)]


def test_every_applied_message_makes_one_notice_and_one_upsert_per_flight() -> None:
    batch, _ = folded([plan("9001", "9002"), status("9001", "BRD")])
    made = [(event.message_id, event.flid, event.type.value) for event in batch.events]
    assert made == [
        (1, "9001", "NOTICE"),
        (1, "9001", "UPSERT"),
        (1, "9002", "NOTICE"),
        (1, "9002", "UPSERT"),
        (2, "9001", "NOTICE"),
        (2, "9001", "UPSERT"),
    ]


def test_a_message_that_changes_nothing_still_gets_its_version_and_both_events() -> None:
    batch, _ = folded([plan("9001"), status("9001", "BRD"), status("9001", "BRD", seqn=3)])
    assert batch.flights[0].after.version == 3
    notice = orjson.loads(batch.events[-2].payload or b"")
    assert notice["changes"] == {"cleared": [], "replaced": {}, "set": {}}


def test_a_deletion_goes_out_as_notice_and_tombstone_and_blocks_operations() -> None:
    batch, fold = folded([plan("9001"), deletion("9001"), status("9001", "BRD", seqn=9)])
    assert [event.type.value for event in batch.events[-2:]] == ["NOTICE", "TOMBSTONE"]
    assert batch.events[-1].payload is None
    assert orjson.loads(batch.events[-2].payload or b"")["kind"] == "FDEL"
    assert error(batch.messages[2]) == "deleted:9001"
    assert any(name == "skipped-deleted" for name, _ in fold.alerts)


def test_a_plan_brings_a_deleted_flight_back_from_an_empty_state() -> None:
    batch, _ = folded(
        [
            plan("9001"),
            status("9001", "BRD"),
            deletion("9001"),
            plan("9001", seqn=4, dttm="20260903190000"),
        ]
    )
    after = batch.flights[0].after
    assert (after.version, after.status.value) == (4, "ACTIVE")
    assert "STAT" not in after.content
    cleared = [row for row in orjson.loads(batch.changes[-1].changes) if row[0] == "STAT"]
    assert cleared == [["STAT", "BRD", None]]


def test_a_duplicate_in_the_same_batch_is_skipped_unbound_and_a_different_one_alerts() -> None:
    batch, fold = folded(
        [plan("9001"), status("9001", "BRD"), status("9001", "BRD"), status("9001", "DEP")]
    )
    assert [error(result) for result in batch.messages[2:]] == ["duplicate-of:2"] * 2
    assert [result.identity is None for result in batch.messages] == [False, False, True, True]
    assert [name for name, _ in fold.alerts] == ["duplicate-differs"]


def test_identity_is_judged_before_the_body() -> None:
    broken = xml("<FLOP><FLID>9001</FLID></FLOP>", seqn=2)
    batch, _ = folded([plan("9001"), status("9001", "BRD"), broken])
    assert error(batch.messages[2]) == "duplicate-of:2"


def test_a_corrected_resend_in_the_same_batch_takes_the_identity_over() -> None:
    broken = xml("<FLOP><FLID>9001</FLID></FLOP>", seqn=2)
    batch, _ = folded([plan("9001"), broken, status("9001", "BRD")])
    rejected, corrected = batch.messages[1:]
    assert (rejected.error_class, rejected.identity) == (ErrorClass.PROTOCOL, None)
    assert (corrected.state, corrected.decision_note) == (MessageState.SUCCEEDED, "supersedes:2")
    assert corrected.taken_over_from is None


def test_a_message_that_must_fail_ends_the_batch_before_it() -> None:
    unsupported = xml("<ZZZZ/>", type_="ZZZZ", styp="", seqn=5)
    batch, _ = folded([plan("9001"), unsupported, status("9001", "BRD")])
    assert outcomes(batch) == [(MessageState.SUCCEEDED, None)]


def test_a_message_that_must_fail_and_stands_first_fails_alone() -> None:
    unsupported = xml("<ZZZZ/>", type_="ZZZZ", styp="", seqn=5)
    fold = Fold(EMPTY, rules(), now=T0, started_at=T0)
    assert fold.take(incoming(1, unsupported))
    [result] = fold.batch().messages
    assert (result.state, result.error_class) == (MessageState.FAILED, ErrorClass.UNSUPPORTED)
    assert result.next_attempt_at == T0 + timedelta(seconds=1)
    assert result.identity == "AODB|ZZZZ||000005"
    assert result.dead_text is None


def test_nobody_overtakes_a_message_that_failed() -> None:
    unsupported = xml("<ZZZZ/>", type_="ZZZZ", styp="", seqn=5)
    batch, _ = folded([unsupported, plan("9001")])
    assert outcomes(batch) == [(MessageState.FAILED, ErrorClass.UNSUPPORTED)]
    assert not batch.flights


def test_the_fifth_failure_exhausts_names_its_cause_and_keeps_the_text() -> None:
    unsupported = xml("<ZZZZ/>", type_="ZZZZ", styp="", seqn=5)
    fold = Fold(EMPTY, rules(), now=T0, started_at=T0)
    fold.take(incoming(1, unsupported, attempts=4))
    [result] = fold.batch().messages
    assert (result.state, result.error_class, result.last_cause) == (
        MessageState.DEAD,
        ErrorClass.EXHAUSTED,
        ErrorClass.UNSUPPORTED,
    )
    assert result.dead_text == unsupported
    assert fold.batch().exhausted_kinds == [("ZZZZ", "")]


@pytest.mark.parametrize(
    ("text", "error_class"),
    [
        (TextMissing.ROW_GONE, ErrorClass.MALFORMED),
        (TextMissing.TOO_LARGE, ErrorClass.MALFORMED),
        ("<MSG>", ErrorClass.MALFORMED),
        (xml("<FLOP><FLID>9001</FLID></FLOP>"), ErrorClass.PROTOCOL),
    ],
)
def test_what_no_retry_can_cure_is_dead_at_once(
    text: str | TextMissing, error_class: ErrorClass
) -> None:
    batch, fold = folded([text])
    assert outcomes(batch) == [(MessageState.DEAD, error_class)]
    assert [name for name, _ in fold.alerts] == ["dead-letter"]


def test_unknown_flights_are_skipped_by_name_or_created_without_a_day() -> None:
    batch, _ = folded([status("7777", "BRD")])
    assert error(batch.messages[0]) == "no-match:7777"
    batch, _ = folded([status("7777", "BRD")], rules_=rules(unknown=UnknownFlight.CREATE))
    assert batch.flights[0].after.operation_day is None
    batch, _ = folded(
        [status("7777", "BRD"), plan("7777", seqn=3)],
        rules_=rules(unknown=UnknownFlight.CREATE),
    )
    assert str(batch.flights[0].after.operation_day) == "2026-09-03"


def test_an_unasked_answer_is_skipped() -> None:
    batch, fold = folded([plan("9001", styp="RESP")])
    assert error(batch.messages[0]).startswith("no-open-request: nobody has asked")
    assert fold.snapshots[0].outcome == "no-open-request"


def test_a_swept_flights_version_continues() -> None:
    view = View(
        holders={},
        flights={},
        last_versions={Flid("9001"): 17},
        newest_plans={},
        exhausted_kinds=frozenset(),
    )
    batch, _ = folded([plan("9001")], view=view)
    assert batch.flights[0].after.version == 18


def test_an_unreadable_dttm_is_malformed_only_where_the_identity_needs_its_date() -> None:
    text = plan("9001", dttm="yesterday")
    assert outcomes(folded([text])[0]) == [(MessageState.SUCCEEDED, None)]
    by_day = rules(identity=IdentityPolicy(include_day_boundary=True))
    batch, _ = folded([text], rules_=by_day)
    assert outcomes(batch) == [(MessageState.DEAD, ErrorClass.MALFORMED)]


def test_a_decision_that_breaks_is_charged_and_leaves_no_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def breaks(*_args: object) -> bytes:
        raise ValueError("no bytes for you")

    fold = Fold(EMPTY, rules(), now=T0, started_at=T0)
    assert fold.take(incoming(1, plan("9001")))
    monkeypatch.setattr("msgexchange.pipeline.fold.encode", breaks)
    gates = operation("9001", '<GTDT GTNO="1"><GATE>A1</GATE></GTDT>', styp="GTDT")
    with pytest.raises(ValueError, match="no bytes"):
        fold.take(incoming(2, gates))
    monkeypatch.undo()
    batch = fold.batch()
    assert len(batch.messages) == 1
    assert batch.flights[0].after.version == 1
    assert len(batch.events) == 2


def test_every_decoded_plan_leaves_one_line_that_names_its_outcome() -> None:
    wrong_count = xml("<SCHD><RCNT>3</RCNT></SCHD>", type_="SCHD", styp="DNLD", seqn=5)
    _, fold = folded(
        [
            plan("9001"),
            plan("9001"),
            plan("9001", seqn=2, dttm="20260903110000"),
            plan("9001", seqn=3, styp="RESP"),
            plan("9001", seqn=4, day="04SEP26", dttm="20260904110000"),
            wrong_count,
            status("9001", "BRD", seqn=9),
        ]
    )
    assert [entry.outcome for entry in fold.snapshots] == [
        "applied",
        "duplicate",
        "stale",
        "no-open-request",
        "rejected",
        "rejected",
    ]
    assert all(entry.reason for entry in fold.snapshots[1:])


def test_unknown_values_beside_the_flights_are_kept_on_the_message() -> None:
    text = deletion("9001").replace("</META>", "<ZZZ>z</ZZZ></META>")
    text = text.replace("</FDEL>", "<WHY>fog</WHY></FDEL>")
    batch, _ = folded([plan("9001"), text])
    assert batch.messages[1].kept == {"ZZZ": "z", "WHY": "fog"}
    assert batch.messages[1].unknown == ("ZZZ", "WHY")


def airports(styp: str, *records: str, seqn: int = 1) -> str:
    body = "".join(f"<RECD>{record}</RECD>" for record in records)
    text = f"<ARPT><RCNT>{len(records)}</RCNT>{body}</ARPT>"
    return xml(text, type_="ARPT", styp=styp, seqn=seqn)


def test_reference_messages_see_what_the_ones_before_them_in_the_batch_did() -> None:
    first = airports("ADD", "<CODE>PEK</CODE><CITY>BJS</CITY>", "<CODE>CAN</CODE>")
    second = airports("UPD", "<CODE>PEK</CODE><NAME>Beijing</NAME>", seqn=2)
    third = airports("DEL", "<CODE>CAN</CODE>", seqn=3)
    batch, _ = folded([first, second, third])
    assert [result.state for result in batch.messages] == [MessageState.SUCCEEDED] * 3
    record = {"CODE": "PEK", "CITY": "BJS", "NAME": "Beijing"}
    assert batch.references.written == {("ARPT", "PEK"): (record, 2)}
    assert batch.references.removed == {("ARPT", "CAN")}
    assert batch.events == []


def test_a_reference_answer_nobody_asked_for_is_skipped_and_alerts() -> None:
    batch, fold = folded([airports("RESP", "<CODE>PEK</CODE>")])
    assert batch.messages[0].state is MessageState.SKIPPED
    assert error(batch.messages[0]).startswith("no-open-request: nobody has asked")
    assert not batch.references
    assert [name for name, _ in fold.alerts] == ["skipped-no-open-request"]
