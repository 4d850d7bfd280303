"""Dead letters: found by what is known of them, closed all or none, every act written down."""

from collections.abc import Sequence
from datetime import datetime

import pytest
from store_builders import T0, commit, later, lead, receive, result

from factories import status
from fakes.line import decode_or_die
from msgexchange.ids import Flid, Identity, MailboxId
from msgexchange.lifecycle.states import ErrorClass, MessageState
from msgexchange.pipeline.letters import LetterDesk, NotDone
from msgexchange.ports import Batch, LetterQuery, MarkOutcome, MessageResult, MetaColumns
from msgexchange.store.sql_store import SqlStore

EXHAUSTED, LATE = ErrorClass.EXHAUSTED, ErrorClass.LATE
UNSUPPORTED, PROTOCOL = ErrorClass.UNSUPPORTED, ErrorClass.PROTOCOL


def dead(id_: int, class_: ErrorClass = EXHAUSTED, text: str | None = None) -> MessageResult:
    cause = UNSUPPORTED if class_ is EXHAUSTED else None
    return result(
        id_,
        MessageState.DEAD,
        error_class=class_,
        last_cause=cause,
        error="why",
        attempts=5,
        dead_text=text,
    )


def skipped(id_: int, reason: str) -> MessageResult:
    return result(id_, MessageState.SKIPPED, error=reason)


def filled(store: SqlStore) -> LetterDesk:
    """1 to 8: a success, two exhausted, two of no use, a duplicate, an unknown, an old plan."""
    fence = lead(store)
    receive(store, *range(1, 5))
    receive(store, *range(5, 9), at=later(60))
    other = MetaColumns(sndr="GHS", type="NOPE", styp="", seqn="000009", dttm="20260903183000")
    results = [
        result(1),
        dead(2, text=status("900", "BRD")),
        result(
            3,
            MessageState.DEAD,
            error_class=EXHAUSTED,
            last_cause=UNSUPPORTED,
            error="why",
            meta=other,
            dead_text="<!-- POISON -->",
        ),
        dead(4, PROTOCOL),
        dead(5, ErrorClass.MALFORMED),
        skipped(6, "duplicate-of:1"),
        skipped(7, "no-match:900,901; deleted:902"),
        skipped(8, "stale-plan: 2026-09-03 has a newer one"),
    ]
    commit(store, fence, Batch(messages=results), now=later(61))
    return LetterDesk(store.letters, decode=decode_or_die, now=lambda: later(100))


def ids(desk: LetterDesk, flid: str | None = None, **given: object) -> Sequence[int]:
    found = desk.find(
        LetterQuery(**given),  # type: ignore[arg-type]
        flid=None if flid is None else Flid(flid),
    )
    return [one.letter.message_id for one in found]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, [5, 4, 3, 2]),
        ({"limit": 2}, [5, 4]),
        ({"error_class": EXHAUSTED}, [3, 2]),
        ({"error_class": UNSUPPORTED}, [3, 2]),
        ({"error_class": PROTOCOL}, [4]),
        ({"kind": "FLOP/STAT"}, [5, 4, 2]),
        ({"kind": "FLOP"}, [5, 4, 2]),
        ({"kind": "FLOP/GTDT"}, []),
        ({"kind": "NOPE"}, [3]),
        ({"sender": "GHS"}, [3]),
        ({"since": later(60)}, [5]),
        ({"before": later(60)}, [4, 3, 2]),
        ({"skipped": True}, [8, 7]),
        ({"skipped": True, "skip_code": "no-match"}, [7]),
        ({"skipped": True, "flid": "902"}, [7]),
        ({"flid": "900"}, [2]),
        ({"discarded": True}, []),
        ({"ids": [MailboxId(1), MailboxId(6), MailboxId(99)]}, [6, 1]),
    ],
)
def test_letters_are_found_by_what_is_known_of_them(
    store: SqlStore, given: dict[str, object], expected: list[int]
) -> None:
    assert ids(filled(store), **given) == expected  # type: ignore[arg-type]


def test_a_letter_tells_its_flights_and_whether_its_text_is_kept(store: SqlStore) -> None:
    found = {one.letter.message_id: one for one in filled(store).find(LetterQuery())}
    assert [found[MailboxId(id_)].letter.text_kept for id_ in (2, 3, 4)] == [True, True, False]
    assert found[MailboxId(2)].flids == ("900",)
    assert found[MailboxId(3)].flids == ()


def test_discarded_letters_wait_no_more_and_lose_their_text(store: SqlStore) -> None:
    desk = filled(store)
    assert desk.discard([MailboxId(4), MailboxId(2)], by="jl", reason="sent again") == [2, 4]
    assert ids(desk) == [5, 3]
    assert ids(desk, discarded=True) == [4, 2]
    assert store.letters.texts([MailboxId(2), MailboxId(3)]).keys() == {3}
    [act] = store.audit.acts(limit=9)
    assert (act.act, act.by, act.reason, act.at) == ("discard", "jl", "sent again", later(100))
    assert act.outcomes == {2: "discarded", 4: "discarded"}


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ([1], "message 1: SUCCEEDED"),
        ([2, 7], "message 7: SKIPPED"),
        ([2, 99], "message 99: not known"),
        ([3, 4], "message 3: discarded already"),
        ([], "no message"),
    ],
)
def test_a_discard_is_refused_whole(store: SqlStore, named: list[int], why: str) -> None:
    desk = filled(store)
    desk.discard([MailboxId(3)], by="jl", reason="x")
    with pytest.raises(NotDone, match=why):
        desk.discard([MailboxId(id_) for id_ in named], by="jl", reason="x")
    assert ids(desk) == [5, 4, 2]
    assert len(store.audit.acts(limit=9)) == 1


@pytest.mark.parametrize(("by", "reason"), [("", "x"), (" ", "x"), ("jl", "")])
def test_an_act_says_who_and_why(store: SqlStore, by: str, reason: str) -> None:
    with pytest.raises(NotDone, match="by"):
        filled(store).discard([MailboxId(2)], by=by, reason=reason)


def test_a_discarded_identity_is_taken_over_by_a_corrected_message(store: SqlStore) -> None:
    desk = filled(store)
    identity = Identity("AODB|FLOP|STAT|000002")
    desk.discard([MailboxId(2)], by="jl", reason="x")
    with store.pump.transaction(lead(store)) as transaction:
        assert transaction.holders([identity])[identity].discarded


def test_what_is_discarded_or_skipped_is_found_in_the_archive(store: SqlStore) -> None:
    desk = filled(store)
    desk.discard([MailboxId(2)], by="jl", reason="x")
    marks = {MailboxId(id_): MarkOutcome.MARKED for id_ in range(1, 9)}
    store.pump.record_marks(marks, now=T0)
    store.archive.archive(
        lead(store),
        after=MailboxId(0),
        ended_before=later(1_000),
        marks=True,
        limit=99,
        now=later(1_000),
    )
    assert ids(desk) == [5, 4, 3]
    assert ids(desk, discarded=True) == [2]
    assert ids(desk, skipped=True) == [8, 7]
    [letter] = [one.letter for one in desk.find(LetterQuery(ids=[MailboxId(7)]))]
    assert letter.archived


def test_acts_are_found_by_kind_person_and_time(store: SqlStore) -> None:
    times = [later(200), later(300)]
    desk = filled(store)
    taken = iter(times)
    desk.now = lambda: next(taken)
    desk.discard([MailboxId(2)], by="jl", reason="a")
    desk.discard([MailboxId(3)], by="mk", reason="b")

    def reasons(since: datetime | None = None, **given: str) -> list[str | None]:
        return [act.reason for act in store.audit.acts(since=since, limit=9, **given)]

    assert reasons() == ["b", "a"]
    assert reasons(by="jl") == ["a"]
    assert reasons(act="discard") == ["b", "a"]
    assert reasons(act="redeliver") == []
    assert reasons(since=later(250)) == ["b"]
