"""Reference records: written with the batch or not at all, read by type and by key."""

import pytest
from store_builders import T0, Lost, abandon, commit, later, lead, receive, result

from msgexchange.flight.reference import ReferenceChanges
from msgexchange.ids import Fence, MailboxId
from msgexchange.ports import Batch
from msgexchange.store.sql_store import SqlStore


def told(*keys: str, type_: str = "ARPT", by: int = 1, **given: frozenset[object]) -> Batch:
    written = {(type_, key): ({"CODE": key, "NAME": f"{key} 名"}, MailboxId(by)) for key in keys}
    changes = ReferenceChanges(written=written, **given)  # type: ignore[arg-type]
    return Batch(messages=(), references=changes)


def keys(store: SqlStore, type_: str = "ARPT") -> list[str]:
    return [one.key for one in store.reads.references(type_, after=None, limit=100)]


def filled(store: SqlStore) -> Fence:
    fence = lead(store)
    commit(store, fence, told("B", "A", "C"))
    commit(store, fence, told("A", type_="GATS", by=2))
    return fence


def test_records_are_read_by_type_in_key_order_page_by_page(store: SqlStore) -> None:
    filled(store)
    assert keys(store) == ["A", "B", "C"]
    [second] = store.reads.references("ARPT", after="A", limit=1)
    assert (second.key, second.record) == ("B", {"CODE": "B", "NAME": "B 名"})
    assert (second.last_message_id, second.updated_at) == (1, T0)
    assert keys(store, "ARLN") == []


def test_a_record_written_again_is_the_newest_one(store: SqlStore) -> None:
    fence = filled(store)
    commit(store, fence, told("A", by=7), now=later(1))
    [first] = store.reads.references("ARPT", after=None, limit=1)
    assert (first.last_message_id, first.updated_at) == (7, later(1))
    assert len(keys(store)) == 3


def test_replaced_types_go_and_single_records_go(store: SqlStore) -> None:
    fence = filled(store)
    commit(store, fence, told("D", replaced_types=frozenset({"ARPT"})))
    assert (keys(store), keys(store, "GATS")) == (["D"], ["A"])
    commit(store, fence, told(removed=frozenset({("ARPT", "D"), ("ARPT", "NONE")})))
    assert (keys(store), keys(store, "GATS")) == ([], ["A"])


def test_records_are_found_by_type_and_key_together(store: SqlStore) -> None:
    fence = filled(store)
    wanted = [("ARPT", "A"), ("GATS", "B"), ("ARLN", "C")]
    assert set(store.reads.records(wanted)) == {("ARPT", "A")}
    with store.pump.transaction(fence) as transaction:
        assert set(transaction.references(wanted)) == {("ARPT", "A")}


def test_a_batch_that_does_not_commit_leaves_no_record(store: SqlStore) -> None:
    fence = lead(store)
    receive(store, 1)
    with pytest.raises(Lost):
        abandon(store, fence, Batch(messages=[result(1)], references=told("A").references))
    assert keys(store) == []
