"""The sweep of marks over every store: what is marked, when it is tried again (spec 3.6)."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from store_builders import commit, later, lead, receive, result

from fakes.manual_clock import ManualClock
from fakes.steps import Told
from msgexchange.ids import MailboxId
from msgexchange.lifecycle.states import ErrorClass, MessageState
from msgexchange.mailbox.columns import ColumnMap
from msgexchange.mailbox.sqlite import SqliteMailbox, open_sqlite_mailbox
from msgexchange.pipeline.backfill import BackfillRules, BackfillSweep
from msgexchange.ports import Batch, Dependency, Mailbox, MarkOutcome, MetaColumns, Unavailable
from msgexchange.store.sql_store import SqlStore

DOWN = Unavailable(Dependency.MAILBOX, "down")


class Marking:
    """A mailbox whose marks are lost on the way there, or whose answers are on the way back."""

    def __init__(self, mailbox: SqliteMailbox) -> None:
        self._mailbox = mailbox
        self.refuses = False
        self.reply_lost = False
        self.asked: list[Sequence[MailboxId]] = []

    def mark(
        self, ids: Sequence[MailboxId], *, overwrite: bool = False
    ) -> Mapping[MailboxId, MarkOutcome]:
        self.asked.append(list(ids))
        if self.refuses:
            raise DOWN
        marked = self._mailbox.mark(ids, overwrite=overwrite)
        if self.reply_lost:
            raise DOWN
        return marked


@pytest.fixture
def mailbox(tmp_path: Path) -> Iterator[SqliteMailbox]:
    opened = open_sqlite_mailbox(tmp_path / "mailbox.sqlite", ColumnMap())
    yield opened
    opened.close()


class Site:
    """Rows in a mailbox, their messages in the store, and one sweep on a clock that stands."""

    def __init__(self, store: SqlStore, mailbox: SqliteMailbox, folder: Path, rows: int) -> None:
        self.store = store
        self.mailbox = mailbox
        self.marking = Marking(mailbox)
        self.clock = ManualClock()
        self.told = Told()
        self._owner = create_engine(
            f"sqlite:///{folder / 'mailbox.sqlite'}", isolation_level="AUTOCOMMIT"
        )
        ids = [mailbox.insert("<MSG/>") for _ in range(rows)]
        receive(store, *ids)
        self.at(0)

    def at(self, seconds: float) -> None:
        self.clock.seconds += (later(seconds) - self.clock.now()).total_seconds()

    def sweep(self, *, batch: int = 500) -> float:
        port: Mailbox = self.marking  # type: ignore[assignment]
        return BackfillSweep(
            store=self.store.backfill,
            mailbox=port,
            clock=self.clock,
            fence=lead(self.store),
            rules=BackfillRules(batch_max=batch),
            telemetry=self.told,
        ).step()

    def marks(self) -> dict[MailboxId, bool]:
        return dict(self.mailbox.marks_after(0, limit=100))

    def run(self, statement: str) -> None:
        with self._owner.connect() as connection:
            connection.execute(text(statement))


def test_whatever_ended_is_marked_and_nothing_else(
    store: SqlStore, mailbox: SqliteMailbox, tmp_path: Path
) -> None:
    """A dead letter that nobody could decode is marked by its id alone."""
    site = Site(store, mailbox, tmp_path, rows=5)
    undecodable = result(
        3,
        MessageState.DEAD,
        error_class=ErrorClass.MALFORMED,
        error="no META",
        meta=MetaColumns(),
        identity=None,
        sent_at=None,
    )
    failed = result(
        4,
        MessageState.FAILED,
        error_class=ErrorClass.UNSUPPORTED,
        error="?",
        attempts=1,
        next_attempt_at=later(1),
    )
    ended = [result(1), result(2, MessageState.SKIPPED), undecodable, failed]
    commit(store, lead(store), Batch(messages=ended))
    assert site.sweep() == 30
    assert site.marks() == {1: True, 2: True, 3: True, 4: False, 5: False}
    assert site.marking.asked == [[1, 2, 3]]


def test_while_the_mailbox_is_down_pauses_double_from_thirty_seconds_to_fifteen_minutes(
    store: SqlStore, mailbox: SqliteMailbox, tmp_path: Path
) -> None:
    site = Site(store, mailbox, tmp_path, rows=1)
    commit(store, lead(store), Batch(messages=[result(1)]))
    site.marking.refuses = True
    due_s = 0.0
    for pause_s in (30, 60, 120, 240, 480, 900, 900):
        site.at(due_s)
        with pytest.raises(Unavailable):
            site.sweep()
        due_s += pause_s
        asked = len(site.marking.asked)
        site.at(due_s - 1)
        site.sweep()
        assert len(site.marking.asked) == asked
    message = store.reads.message(MailboxId(1))
    assert message is not None
    assert (message.state, message.marked_at) == (MessageState.SUCCEEDED, None)
    site.marking.refuses = False
    site.at(due_s)
    site.sweep()
    assert site.marks() == {1: True}
    assert store.reads.counts().unmarked == 0


def test_a_reply_that_was_lost_changes_nothing_but_when_the_mark_is_confirmed(
    store: SqlStore, mailbox: SqliteMailbox, tmp_path: Path
) -> None:
    site = Site(store, mailbox, tmp_path, rows=2)
    commit(store, lead(store), Batch(messages=[result(1), result(2)]))
    site.marking.reply_lost = True
    with pytest.raises(Unavailable):
        site.sweep()
    site.run("UPDATE CMINMSGS SET PROC_TIME = '2001-02-03 04:05:06'")
    site.marking.reply_lost = False
    site.at(30)
    site.sweep()
    assert store.reads.counts().unmarked == 0
    with site._owner.connect() as connection:
        times = connection.execute(text("SELECT DISTINCT PROC_TIME FROM CMINMSGS")).scalars().all()
    assert [str(time)[:19] for time in times] == ["2001-02-03 04:05:06"]


def test_a_row_that_its_owner_purged_is_done(
    store: SqlStore, mailbox: SqliteMailbox, tmp_path: Path
) -> None:
    site = Site(store, mailbox, tmp_path, rows=2)
    commit(store, lead(store), Batch(messages=[result(1), result(2)]))
    site.run("DELETE FROM CMINMSGS WHERE CMINMSGS_ID = 1")
    site.sweep()
    assert store.reads.counts().unmarked == 0
    gone, there = (store.reads.message(MailboxId(id_)) for id_ in (1, 2))
    assert gone is not None
    assert there is not None
    assert (gone.mark_error, there.mark_error) == ("row-gone", None)
    assert site.marks() == {2: True}


def test_many_marks_are_made_a_slice_at_a_time_without_a_pause(
    store: SqlStore, mailbox: SqliteMailbox, tmp_path: Path
) -> None:
    site = Site(store, mailbox, tmp_path, rows=5)
    commit(store, lead(store), Batch(messages=[result(id_) for id_ in range(1, 6)]))
    assert [site.sweep(batch=2) for _ in range(3)] == [0, 0, 30]
    assert site.marking.asked == [[1, 2], [3, 4], [5]]
    assert all(site.marks().values())


def test_from_r_on_an_unmarked_message_is_tried_at_every_sweep_with_an_alert(
    store: SqlStore, mailbox: SqliteMailbox, tmp_path: Path
) -> None:
    site = Site(store, mailbox, tmp_path, rows=1)
    commit(store, lead(store), Batch(messages=[result(1)]))
    site.marking.refuses = True
    day_s = 24 * 3_600
    for seconds in (day_s, day_s + 30, day_s + 60):
        site.at(seconds)
        with pytest.raises(Unavailable):
            site.sweep()
    assert len(site.marking.asked) == 3
    assert site.told.alerts == ["mark-overdue"] * 3
