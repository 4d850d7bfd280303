"""Replay: predicted exactly, carried out whole or not at all, in the order of ids."""

import re

import pytest
from replay_world import Site

from factories import deletion, operation, plan, status, xml
from msgexchange.flight.events import EventType, Target
from msgexchange.ids import Flid, MailboxId
from msgexchange.lifecycle.states import MessageState
from msgexchange.pipeline.letters import NotDone
from msgexchange.pipeline.prediction import Newer
from msgexchange.ports import LetterQuery
from msgexchange.store.sql_store import SqlStore


def gate(flid: str, name: str, *, seqn: int) -> str:
    element = f'<GTDT GTNO="1"><GATE>{name}</GATE></GTDT>'
    return operation(flid, element, styp="GTDT", seqn=seqn)


def content(site: Site, flid: str = "900") -> dict[str, object]:
    found = site.store.reads.flight(Flid(flid))
    assert found is not None
    return dict(found.content)


def dead_status(site: Site, id_: int = 2, value: str = "MENDME") -> None:
    """A plan, and a status that the decoder cannot take yet."""
    site.broken = {"MENDME"}
    site.take(1, plan("900"))
    site.take(id_, status("900", value, seqn=id_))
    assert site.outcome(id_) == "EXHAUSTED"
    site.broken = set()


def test_the_prediction_tells_outcome_changes_and_events_and_is_carried_out(
    store: SqlStore,
) -> None:
    site = Site(store)
    dead_status(site)
    seen = site.plan(2)
    [one] = seen.predictions
    assert (one.outcome, one.refused) == ("SUCCEEDED", None)
    assert one.was.startswith("DEAD(EXHAUSTED)")
    assert [(c.about, c.field, c.old, c.new) for c in one.changes] == [
        ("900", "STAT", None, "MENDME")
    ]
    assert one.events == [
        (Target.MSG, EventType.NOTICE, "900"),
        (Target.SCHD, EventType.UPSERT, "900"),
    ]
    assert one.newer == {}
    assert "STAT" not in content(site)
    order = site.run(seen.token)
    assert order.outcome == "done"
    assert content(site)["STAT"] == "MENDME"
    view = site.line.message(2)
    assert (view.state, view.attempts, view.started_at) == (MessageState.SUCCEEDED, 0, None)
    assert view.identity == "AODB|FLOP|STAT|000002"
    assert [failure.attempt for failure in view.failures] == [1, 2, 3, 4, 5]
    assert store.letters.texts([MailboxId(2)]) == {}
    [act] = store.audit.acts(act="replay", limit=9)
    assert (act.by, act.reason) == ("jl", "mended")
    assert re.match(r"DEAD\(EXHAUSTED\).* -> SUCCEEDED", act.outcomes[MailboxId(2)])
    assert site.broken_promises() == []


def test_a_field_that_a_newer_message_said_goes_back_only_with_consent(store: SqlStore) -> None:
    site = Site(store)
    dead_status(site)
    at = site.line.clock.now()
    site.take(3, status("900", "NEW", seqn=3))
    seen = site.plan(2)
    [one] = seen.predictions
    [change] = one.backwards
    assert isinstance(change.backwards, Newer)
    assert change.backwards.message_id == 3
    assert change.backwards.at >= at
    assert [n.message_id for n in one.newer["900"]] == [3]
    with pytest.raises(NotDone, match="allow-regression"):
        site.run(seen.token)
    assert content(site)["STAT"] == "NEW"
    assert site.run(seen.token, allow_regression=True).outcome == "done, regression allowed"
    assert content(site)["STAT"] == "MENDME"
    assert site.broken_promises() == []


def test_a_value_that_a_newer_message_only_confirmed_counts_as_said_by_it(store: SqlStore) -> None:
    site = Site(store)
    site.take(1, plan("900"))
    site.take(2, status("900", "BRD", seqn=2))
    site.broken = {"MENDME"}
    site.take(3, status("900", "MENDME", seqn=3))
    site.broken = set()
    site.take(4, status("900", "BRD", seqn=4))
    [one] = site.plan(3).predictions
    assert [c.backwards and c.backwards.message_id for c in one.changes] == [4]
    assert [c.changes for c in store.reads.changes(Flid("900"))][-1] == []


def test_another_field_of_a_flight_that_moved_on_is_no_regression(store: SqlStore) -> None:
    site = Site(store)
    dead_status(site)
    site.take(3, gate("900", "A1", seqn=3))
    seen = site.plan(2)
    [one] = seen.predictions
    assert [n.message_id for n in one.newer["900"]] == [3]
    assert not one.backwards
    site.take(4, gate("900", "A2", seqn=4))
    assert site.run(seen.token).outcome == "done"


def test_a_flight_that_changed_meanwhile_refuses_the_order_and_tells_what(store: SqlStore) -> None:
    site = Site(store)
    dead_status(site)
    seen = site.plan(2)
    site.take(3, status("900", "NEW", seqn=3))
    before = store.evidence.facts()
    order = site.run(seen.token, allow_regression=True)
    assert order.outcome is not None
    assert order.outcome.startswith("refused, nothing was changed")
    assert '900 STAT was absent -> "MENDME", is now "NEW" -> "MENDME"' in order.outcome
    assert "newer message 3" in order.outcome
    assert store.evidence.facts() == before
    [act] = store.audit.acts(act="replay", limit=9)
    assert act.outcomes == {2: "not replayed"}
    assert site.outcome(2) == "EXHAUSTED"


def test_one_difference_refuses_the_whole_set(store: SqlStore) -> None:
    site = Site(store)
    site.broken = {"MENDME"}
    site.take(1, plan("900", "901"))
    site.take(2, status("900", "MENDME", seqn=2))
    site.take(3, status("901", "MENDME", seqn=3))
    site.broken = set()
    seen = site.plan(2, 3)
    site.take(4, deletion("901", seqn=4))
    outcome = site.run(seen.token).outcome or ""
    assert "message 3: SUCCEEDED predicted, now SKIPPED(deleted:901)" in outcome
    assert [site.outcome(2), site.outcome(3)] == ["EXHAUSTED", "EXHAUSTED"]


def test_messages_run_in_id_order_and_see_each_other(store: SqlStore) -> None:
    site = Site(store)
    site.broken = {"MENDME"}
    site.take(2, plan("900", extra="<RMRK>MENDME</RMRK>"))
    site.take(3, status("900", "MENDME", seqn=3))
    site.take(5, gate("900", "MENDME", seqn=5))
    site.broken = set()
    seen = site.plan(5, 3, 2)
    assert [(one.message_id, one.outcome) for one in seen.predictions] == [
        (2, "SUCCEEDED"),
        (3, "SUCCEEDED"),
        (5, "SUCCEEDED"),
    ]
    assert site.run(seen.token).outcome == "done"
    versions = [(c.version, c.message_id) for c in store.reads.changes(Flid("900"))]
    assert versions == [(1, 2), (2, 3), (3, 5)]
    assert site.broken_promises() == []


def test_skipped_messages_are_replayed_once_their_reason_is_gone(store: SqlStore) -> None:
    site = Site(store)
    site.take(1, status("900", "BRD", seqn=1))
    assert site.line.message(1).error == "no-match:900"
    [still] = site.plan(1).predictions
    assert still.outcome == "SKIPPED(no-match:900)"
    site.take(2, plan("900", seqn=2))
    assert site.run(site.plan(1).token).outcome == "done"
    assert content(site)["STAT"] == "BRD"
    assert site.broken_promises() == []


def test_a_stale_plan_is_applied_where_a_person_wants_it(store: SqlStore) -> None:
    site = Site(store)
    site.take(1, plan("900", seqn=1, dttm="20260903180000"))
    site.take(2, plan("901", seqn=2, dttm="20260903170000"))
    assert (site.line.message(2).error or "").startswith("stale-plan")
    assert site.run(site.plan(2).token).outcome == "done"
    assert content(site, "901")["FLNO"] == "CZ901"
    site.take(3, plan("902", seqn=3, dttm="20260903173000"))
    assert (site.line.message(3).error or "").startswith("stale-plan"), "the newest stays newest"


def test_an_answer_nobody_asked_for_is_applied_where_a_person_wants_it(store: SqlStore) -> None:
    site = Site(store)
    site.take(1, plan("900", styp="RESP"))
    assert str(site.line.message(1).error).startswith("no-open-request")
    assert site.run(site.plan(1).token).outcome == "done"
    assert content(site)["FLNO"] == "CZ900"


def test_late_rows_are_applied_where_a_person_wants_it(store: SqlStore) -> None:
    site = Site(store)
    site.take(1, plan("900"))
    site.take(3, gate("900", "A1", seqn=3))
    site.late(2, status("900", "BRD", seqn=2))
    seen = site.plan(2)
    assert seen.predictions[0].was.startswith("DEAD(LATE)")
    assert site.run(seen.token).outcome == "done"
    assert content(site)["STAT"] == "BRD"
    assert site.broken_promises() == []


def test_a_late_row_that_came_before_under_another_id_is_a_duplicate(store: SqlStore) -> None:
    site = Site(store)
    site.take(1, plan("900"))
    site.take(3, status("900", "BRD", seqn=3))
    site.late(2, status("900", "BRD", seqn=3))
    seen = site.plan(2)
    assert seen.predictions[0].outcome == "SKIPPED(duplicate-of:3)"
    assert site.run(seen.token).outcome == "done"
    assert site.line.message(2).error == "duplicate-of:3"


def test_what_fails_again_stays_dead_with_its_text_and_can_be_replayed_later(
    store: SqlStore,
) -> None:
    site = Site(store)
    dead_status(site)
    site.broken = {"MENDME"}
    seen = site.plan(2)
    assert seen.predictions[0].outcome.startswith("DEAD(INFRA): decoding failed")
    assert site.run(seen.token).outcome == "done"
    assert site.outcome(2) == "INFRA"
    assert site.line.message(2).identity is None
    site.broken = set()
    site.line.mailbox.rows.clear()
    assert site.run(site.plan(2).token).outcome == "done"
    assert content(site)["STAT"] == "MENDME"


def test_a_purged_mailbox_leaves_the_kept_text(store: SqlStore) -> None:
    site = Site(store)
    dead_status(site)
    site.take(3, status("777", "BRD", seqn=3))
    site.line.mailbox.rows.clear()
    seen = site.plan(2, 3)
    assert [one.refused and one.refused[:8] for one in seen.predictions] == [None, "text-gon"]
    assert site.run(seen.token).outcome == "done"
    assert content(site)["STAT"] == "MENDME"
    assert site.line.message(3).error == "no-match:777"


def test_another_text_under_the_same_id_is_not_replayed(store: SqlStore) -> None:
    site = Site(store)
    site.take(1, status("900", "BRD", seqn=1))
    site.line.mailbox.rows[1] = status("900", "OTHER", seqn=1)
    [one] = site.plan(1).predictions
    assert one.refused is not None
    assert one.refused.startswith("text-differs")


def test_archived_messages_come_back_and_are_replayed(store: SqlStore) -> None:
    site = Site(store)
    site.take(1, status("900", "BRD", seqn=1))
    site.archive([1])
    site.take(2, plan("900", seqn=2))
    assert site.run(site.plan(1).token).outcome == "done"
    [letter] = [one.letter for one in site.letters.find(_named(1))]
    assert not letter.archived
    assert letter.replayed_at is not None
    assert content(site)["STAT"] == "BRD"
    assert site.broken_promises() == []
    site.archive([1])


def test_what_is_not_replayable_is_refused_with_its_reason(store: SqlStore) -> None:
    site = Site(store)
    site.take(1, plan("900"))
    site.take(2, "<MSG>")
    site.take(3, plan("900"))
    site.take(4, xml("", type_="LDM", styp="", seqn=4))
    site.take(5, plan("901", seqn=5).replace("<RCNT>1", "<RCNT>7"))
    site.broken = {"MENDME"}
    site.take(6, status("900", "MENDME", seqn=6))
    site.letters.discard([MailboxId(6)], by="jl", reason="x")
    seen = site.plan(1, 2, 3, 4, 5, 6, 99)
    assert seen.token is None
    told = {one.message_id: one.refused for one in seen.predictions}
    expected = ["SUCCEEDED", "DEAD(MALF", "SKIPPED(dup", "SKIPPED(ign", "DEAD(PROT", "disc", "not"]
    for id_, beginning in zip([1, 2, 3, 4, 5, 6, 99], expected, strict=True):
        assert (told[MailboxId(id_)] or "").startswith(beginning), told[MailboxId(id_)]


def test_two_operators_with_overlapping_sets(store: SqlStore) -> None:
    site = Site(store)
    site.broken = {"MENDME"}
    site.take(1, plan("900", "901", "902"))
    for id_, flid in ((2, "900"), (3, "901"), (4, "902")):
        site.take(id_, status(flid, "MENDME", seqn=id_))
    site.broken = set()
    mine, yours = site.desk, site.desk_of("y")
    tokens = [site.plan(2, 3).token, site.plan(3, 4).token]
    first = mine.order(tokens[0] or "", by="jl", reason="a", allow_regression=False)
    site.line.clock.seconds += 1
    second = yours.order(tokens[1] or "", by="mk", reason="b", allow_regression=False)
    assert site.carried_out(first).outcome == "done"
    refused = site.carried_out(second).outcome or ""
    assert "message 3 is SUCCEEDED: it is applied already" in refused
    assert site.outcome(4) == "EXHAUSTED"
    assert {act.by for act in store.audit.acts(act="replay", limit=9)} == {"mk", "jl"}
    assert len(store.reads.changes(Flid("901"))) == 2


@pytest.mark.parametrize("spoil", ["", "r1.abc.00000000", "r2.x.y", "cut"])
def test_what_is_no_whole_token_is_refused(store: SqlStore, spoil: str) -> None:
    site = Site(store)
    dead_status(site)
    token = site.plan(2).token or ""
    with pytest.raises(NotDone, match="token"):
        site.run(token[:-10] if spoil == "cut" else spoil)


def test_a_plan_looks_without_a_trace(store: SqlStore) -> None:
    site = Site(store)
    dead_status(site)
    before = store.evidence.facts()
    assert site.plan(2) == site.plan(2)
    assert store.evidence.facts() == before
    assert store.replays.orders(limit=9) == []


def _named(*ids: int) -> LetterQuery:
    return LetterQuery(ids=[MailboxId(id_) for id_ in ids])
