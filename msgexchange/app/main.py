"""``run.py``: the command line over everything behind it."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from msgexchange.app.adapters import (
    connect_store,
    migrate,
    open_catalogue,
    open_mailbox,
    open_store,
)
from msgexchange.app.addresses import BOOTSTRAP_FILE
from msgexchange.app.asking import request_schedules
from msgexchange.app.benching import bench, bench_profile
from msgexchange.app.demo import demo
from msgexchange.app.desks import letter_desk, replay_desk, request_desk
from msgexchange.app.duties import open_history, schedules
from msgexchange.app.observing import Broker, Sources, observe, verify
from msgexchange.app.process import serve
from msgexchange.app.steps import limits_of
from msgexchange.bench.profiling import Profile
from msgexchange.bench.run import Measured
from msgexchange.cli.commands import run
from msgexchange.cli.context import (
    BenchOptions,
    DemoOptions,
    JobView,
    Misuse,
    Simulated,
    UpgradeRefused,
    Verification,
)
from msgexchange.codec.encode import encode
from msgexchange.config import Settings, load
from msgexchange.flight.events import schd_value
from msgexchange.flight.past import PastFlight
from msgexchange.ids import EventId, Flid
from msgexchange.lifecycle.daily import ONE_DAY, Daily
from msgexchange.lifecycle.request import Request, Wanted
from msgexchange.pipeline.accept_restart import accept_restart
from msgexchange.pipeline.import_states import (
    ImportOrder,
    ImportRefused,
    import_states,
    read_states,
)
from msgexchange.pipeline.letters import LetterDesk
from msgexchange.pipeline.redeliver import redeliver
from msgexchange.pipeline.replaying import ReplayDesk
from msgexchange.ports import Acceptance, Audit, JobRun, Reads, Redelivery, StoreInfo
from msgexchange.simulation.campaign import campaign
from msgexchange.store.schema import MigrationEdited, at_head
from msgexchange.store.sql_store import SqlStore


class Site:
    """What the commands need, built from settings on demand."""

    def load(self, config: Path | None, data_dir: Path) -> Settings:
        dotenv = Path(".env")
        return load(config, os.environ, dotenv if dotenv.is_file() else None, data_dir)

    @contextmanager
    def reads(self, settings: Settings) -> Iterator[Reads]:
        with self._store(settings) as store:
            yield store.reads

    def serve(self, settings: Settings) -> int:
        return serve(settings)

    def demo(self, settings: Settings, options: DemoOptions) -> int:
        return demo(settings, options)

    def bench(self, options: BenchOptions) -> Measured:
        return bench(options)

    def bench_profile(self, options: BenchOptions) -> Profile:
        return bench_profile(options)

    def verify(self, settings: Settings, *, topics: bool) -> Verification:
        catalogue = open_catalogue(settings)
        store = open_store(settings, catalogue)
        mailbox = open_mailbox(settings)
        sources = Sources(
            catalogue=catalogue,
            store=store,
            mailbox=mailbox,
            broker=_broker(settings) if topics else None,
        )
        try:
            return verify(observe(settings, sources))
        finally:
            mailbox.close()
            store.close()

    def accept_restart(self, settings: Settings, *, by: str, reason: str) -> int:
        store = open_store(settings, open_catalogue(settings))
        mailbox = open_mailbox(settings)
        try:
            now = store.leader.database_now()
            acceptance = Acceptance(by=by, reason=reason, at=now)
            return accept_restart(store.intake, store.gaps, mailbox, acceptance)
        finally:
            mailbox.close()
            store.close()

    def jobs(self, settings: Settings) -> Sequence[JobView]:
        with self._store(settings) as store:
            now = store.leader.database_now()
            last = {run.job: run for run in store.jobs.all()}
        return [
            JobView(name, last.get(name), _next_run(schedule, last.get(name), now))
            for name, schedule in {**schedules(settings), **request_schedules(settings)}.items()
        ]

    def written_lives(self, settings: Settings, flid: Flid) -> Sequence[PastFlight]:
        with self._store(settings) as store:
            history = open_history(settings, store)
            return [] if history is None else history.lives(flid)

    def import_states(
        self,
        settings: Settings,
        file: Path,
        *,
        publishes: bool,
        by: str,
        reason: str | None,
        told: Callable[[int, int], None],
    ) -> int:
        with file.open("rb") as lines:
            states = read_states(lines, limits_of(settings))
        with self._store(settings) as store:
            leadership = store.leader.look()
            if leadership.owner is not None:
                raise ImportRefused([f"{leadership.owner} leads: stop it first"])
            order = ImportOrder(
                by=by,
                reason=reason,
                publishes=publishes,
                timezone=settings.site.timezone.key,
                at=leadership.now,
            )
            import_states(store.imports, states, order, lambda amount: told(amount, len(states)))
        return len(states)

    def export_states(self, settings: Settings) -> Iterator[bytes]:
        timezone = settings.site.timezone.key
        with self._store(settings) as store:
            for state in store.imports.states():
                yield encode(schd_value(state, timezone))

    def upgrade(self, settings: Settings, *, backup_done: bool) -> str:
        store = connect_store(settings, open_catalogue(settings))
        try:
            if at_head(store.engine):
                return "the schema is of this version already"
            if not backup_done and store.holds_data():
                raise UpgradeRefused(
                    "the store holds data: make a backup first, then say so with --backup-done"
                )
            migrate(settings, store)
        except MigrationEdited as edited:
            raise UpgradeRefused(str(edited)) from edited
        finally:
            store.close()
        return "the schema is of this version now"

    @contextmanager
    def letters(self, settings: Settings) -> Iterator[LetterDesk]:
        with self._store(settings) as store:
            yield letter_desk(settings, store, open_catalogue(settings))

    @contextmanager
    def replays(self, settings: Settings) -> Iterator[ReplayDesk]:
        catalogue = open_catalogue(settings)
        mailbox = open_mailbox(settings)
        try:
            with self._store(settings) as store:
                yield replay_desk(settings, store, catalogue, mailbox)
        finally:
            mailbox.close()

    @contextmanager
    def audit(self, settings: Settings) -> Iterator[Audit]:
        with self._store(settings) as store:
            yield store.audit

    @contextmanager
    def redelivery(self, settings: Settings) -> Iterator[Redelivery]:
        with self._store(settings) as store:
            yield store.redelivery

    def redeliver(self, settings: Settings, event_id: EventId, *, by: str, reason: str) -> EventId:
        with self._store(settings) as store:
            return redeliver(
                store.redelivery,
                event_id,
                by=by,
                reason=reason,
                timezone=settings.site.timezone.key,
                now=store.leader.database_now(),
            )

    def ask(self, settings: Settings, wanted: Wanted, *, by: str, reason: str | None) -> Request:
        with self._store(settings) as store:
            return request_desk(settings, store, open_catalogue(settings)).ask(wanted, by, reason)

    def requests(self, settings: Settings, *, every: bool, limit: int) -> Sequence[Request]:
        with self._store(settings) as store:
            return store.requests.recent(every=every, limit=limit)

    def new_store_id(self, settings: Settings, *, by: str, reason: str | None) -> StoreInfo:
        with self._store(settings) as store:
            now = store.leader.database_now()
            return store.acts.new_id(os.urandom(8).hex(), by=by, reason=reason, now=now)

    def new_generation(
        self, settings: Settings, *, above: int, by: str, reason: str | None
    ) -> StoreInfo:
        with self._store(settings) as store:
            now = store.leader.database_now()
            return store.acts.new_generation(above=above, by=by, reason=reason, now=now)

    def simulate(self, seeds: Sequence[int], done: Callable[[], None]) -> Simulated:
        found = campaign(seeds, done)
        return Simulated(
            seeds=found.seeds,
            steps=found.steps,
            faults=dict(sorted(found.faults.items())),
            reached=dict(sorted(found.reached.items())),
            not_reached=found.not_reached,
            broken=found.broken,
        )

    @contextmanager
    def _store(self, settings: Settings) -> Iterator[SqlStore]:
        store = open_store(settings, open_catalogue(settings))
        try:
            yield store
        finally:
            store.close()


def _next_run(schedule: Daily, last: JobRun | None, now: datetime) -> datetime:
    due = schedule.newest_due(now)
    if last is None or last.finished_at is None or last.day < due:
        return schedule.due_at(due)
    return schedule.due_at(due + ONE_DAY)


def _broker(settings: Settings) -> Broker:
    """Where the topics are; the embedded broker lives in the process that serves."""
    if settings.kafka.bootstrap is not None:
        return Broker(settings.kafka.bootstrap, None)
    file = settings.data_dir / BOOTSTRAP_FILE
    if not file.is_file():
        raise Misuse(
            "the embedded broker lives only while `run.py serve` or `run.py demo` runs: "
            "start one, or leave --kafka out"
        )
    bootstrap, born_at = file.read_text().split()
    return Broker(bootstrap, datetime.fromisoformat(born_at))


def main(arguments: list[str] | None = None) -> int:
    """One command line; the exit status."""
    return run(Site(), arguments)
