"""Day after day with every job: what is worked with does not grow with the days (spec 5.4).

MSGEXCHANGE_SOAK_FLIGHTS=274 and MSGEXCHANGE_SOAK_DAYS=365 make it a year of 100,000 flights and
2,000,000 messages with the times to keep as they come; ``pytest -s`` prints the figures.
"""

import os
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select, text

from factories import deletion, operation, plan, status
from fakes.line import Line
from fakes.topic import OneByOne, Topic
from msgexchange.app.duties import daily_jobs, leaves_by_plan
from msgexchange.config.loading import load
from msgexchange.config.settings import Settings
from msgexchange.flight.events import Target
from msgexchange.history.files import HistoryFiles
from msgexchange.ids import Flid
from msgexchange.lifecycle.states import MessageState
from msgexchange.pipeline.delivery import DeliveryRules
from msgexchange.pipeline.dispatch import Dispatch
from msgexchange.pipeline.jobs import Jobs
from msgexchange.pipeline.publish_flights import SchdFlush
from msgexchange.pipeline.step import Step
from msgexchange.store.sql_store import SqlStore
from msgexchange.store.tables import metadata

FLIGHTS = int(os.environ.get("MSGEXCHANGE_SOAK_FLIGHTS", "8"))
DAYS = int(os.environ.get("MSGEXCHANGE_SOAK_DAYS", "24"))
UPDATES = 19
"""Messages of one flight, the last of which says that it arrived."""
IS_YEAR = DAYS > 200
FIRST = date(2026, 9, 3)
DAY_S = 86_400
GROWS = {"proc_state_hst", "flight_last_version", "plan_day"}
"""Kept for ever by rule: identities and versions outlive their messages and flights; and one row
for each operation day.
"""

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(7_200)]


class Site:
    """The whole line on PostgreSQL under a clock of its own; both topics are in memory."""

    def __init__(self, store: SqlStore, settings: Settings, folder: Path) -> None:
        self.store = store
        self.line = Line(
            store, sweep=leaves_by_plan(settings), history=HistoryFiles(folder / "history")
        )
        self.topics = (Topic(), Topic())
        self.seqn = 0
        self.messages = 0
        common = {
            "clock": self.line.clock,
            "fence": self.line.fence,
            "generation": 1,
            "telemetry": self.line.told,
        }
        self._deliveries: list[Step] = [
            Dispatch(
                target=Target.MSG,
                store=store.outbox,
                producer=OneByOne(self.topics[0]),
                rules=DeliveryRules(),
                idle_poll=timedelta(seconds=1),
                **common,  # type: ignore[arg-type]
            ),
            SchdFlush(
                store=store.schd,
                producer=OneByOne(self.topics[1]),
                rules=DeliveryRules(),
                flush_period=timedelta(seconds=1),
                new_flush_id=self._flush_id,
                **common,  # type: ignore[arg-type]
            ),
        ]
        self._flushes = 0
        self.jobs = Jobs(
            daily_jobs(
                settings,
                store,
                clock=self.line.clock,
                fence=self.line.fence,
                telemetry=self.line.told,
            ),
            self.line.clock,
            self.line.told,
        )

    def live(self, day: int) -> None:
        """The day's messages from the plan to the last arrival, then the night's jobs."""
        self.line.clock.seconds = day * DAY_S
        self.line.mailbox.now = self.line.clock.now()
        for message in self._texts(day):
            self.line.mailbox.insert(message)
            self.messages += 1
        while self.line.ingest.step() == 0:
            continue
        self.line.run()
        for delivery in self._deliveries:
            while delivery.step() == 0:
                continue
        for topic in self.topics:
            topic.records.clear()
        # The owner keeps raw texts for a day.
        newest = self.line.mailbox.newest_id()
        self.line.mailbox.rows = {newest: self.line.mailbox.rows[newest]}
        self._night(until=(day + 1) * DAY_S - 1)

    def _night(self, until: float) -> None:
        clock = self.line.clock
        while clock.seconds < until:
            clock.seconds += max(self.jobs.step(), 0.001)

    def _texts(self, day: int) -> Iterator[str]:
        at = FIRST + timedelta(days=day)
        dttm = f"{at:%Y%m%d}180000"
        flids = [f"{day:03}{n:05}" for n in range(FLIGHTS)]
        yield plan(*flids, seqn=self._next(), dttm=dttm, day=f"{at:%d%b%y}".upper())
        for update in range(UPDATES - 1):
            for n, flid in enumerate(flids):
                if update % 6 == 5:
                    gate = f'<GTDT GTNO="1"><GATE>A{update + n}</GATE></GTDT>'
                    yield operation(flid, gate, styp="GTDT", seqn=self._next(), dttm=dttm)
                else:
                    yield status(flid, f"S{update}", seqn=self._next(), dttm=dttm)
        for n, flid in enumerate(flids):
            if n % 20 == 0:
                yield deletion(flid, seqn=self._next())
            else:
                done = f"<ACTM>{at:%d%b%y}2300</ACTM>".upper()
                yield operation(flid, done, styp="ACTM", seqn=self._next(), dttm=dttm)

    def _next(self) -> int:
        self.seqn = self.seqn % 999_999 + 1
        return self.seqn

    def _flush_id(self) -> str:
        self._flushes += 1
        return str(self._flushes)

    def rows(self) -> dict[str, int]:
        with self.store.engine.connect() as connection:
            return {
                name: connection.execute(select(func.count()).select_from(table)).scalar_one()
                for name, table in metadata.tables.items()
            }

    def mib(self) -> dict[str, float]:
        """With indexes and what is not yet vacuumed."""
        with self.store.engine.connect() as connection:
            query = text(
                "SELECT relname, pg_total_relation_size(relid) AS bytes "
                "FROM pg_catalog.pg_statio_user_tables"
            )
            return {row.relname: row.bytes / (1 << 20) for row in connection.execute(query)}


def settings_of(folder: Path) -> Settings:
    short = (
        {}
        if IS_YEAR
        else {
            "MSGEXCHANGE_HISTORY__CHANGE_RETENTION": "5d",
            "MSGEXCHANGE_RETENTION__SENT_EVENTS": "3d",
            "MSGEXCHANGE_RETENTION__PLANS": "5d",
            "MSGEXCHANGE_RETENTION__ATTEMPTS": "5d",
            "MSGEXCHANGE_ARCHIVE__AFTER": "4d",
        }
    )
    environ = {"MSGEXCHANGE_HISTORY__STORE": "files", **short}
    return load(None, environ, None, folder)


def figures(by_table: Mapping[str, float]) -> dict[str, int]:
    return {name: round(amount) for name, amount in by_table.items() if amount >= 1}


def test_what_is_worked_with_does_not_grow_with_the_days(
    postgres_store: SqlStore, tmp_path: Path
) -> None:
    site = Site(postgres_store, settings_of(tmp_path), tmp_path)
    seen: list[tuple[dict[str, int], dict[str, float]]] = []
    every = 30 if IS_YEAR else 4
    for day in range(DAYS):
        site.live(day)
        if (day + 1) % every == 0:
            seen.append((site.rows(), site.mib()))
            rows, mib = seen[-1]
            print(day + 1, figures(rows), figures(mib))  # noqa: T201 - shown with -s
    assert site.messages == DAYS * (1 + FLIGHTS * UPDATES)
    counts = site.store.reads.counts().messages
    assert set(counts) == {MessageState.SUCCEEDED}
    # Once the longest time to keep is over, nothing is left to grow.
    settled, last = seen[4 if IS_YEAR else 2], seen[-1]
    for name, amount in last[0].items():
        if name not in GROWS:
            assert amount <= settled[0][name] * 1.1 + 20, name
            assert last[1][name] <= settled[1][name] * 1.5 + 1, name
    assert site.line.told.alerts == []
    # Whoever left is found in history, at the version its deletion or its leaving gave it.
    history = HistoryFiles(tmp_path / "history")
    assert [life.state.version for life in history.lives(Flid("00000000"))] == [UPDATES + 1]
    assert [life.state.version for life in history.lives(Flid("00000001"))] == [UPDATES + 1]
