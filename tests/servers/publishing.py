"""A store with events to publish, a cluster to publish them on, and what a consumer sees of it."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from msgexchange.broker.reader import StoredRecord, TopicReader
from msgexchange.broker.topics import TopicNeed, Topics
from msgexchange.clock import SystemClock
from msgexchange.flight.events import EventType, Target
from msgexchange.ids import EventId, Fence, Flid, MailboxId
from msgexchange.lifecycle.states import EventState
from msgexchange.pipeline.step import Step
from msgexchange.ports import Batch, EventFact, NewEvent, Unavailable
from msgexchange.store.engine import open_engine
from msgexchange.store.schema import upgrade
from msgexchange.store.sql_store import SqlStore
from servers.broker import BrokerServer
from servers.publisher import POSITIONS, Line, open_store, take_lead

TESTS = Path(__file__).parents[1]
CHILD_S_MAX = 120


@dataclass
class World:
    """One store file and its two topics on a cluster."""

    folder: Path
    bootstrap: str
    store: SqlStore
    topics: str = field(default_factory=lambda: f"t{uuid.uuid4().hex[:10]}")
    written: int = 0

    def create_topics(self) -> None:
        Topics(self.bootstrap).create(
            [
                TopicNeed(name=self.topic(Target.MSG), compacted=False, partitions=3),
                TopicNeed(name=self.topic(Target.SCHD), compacted=True, partitions=3),
                TopicNeed(name=POSITIONS, compacted=True, partitions=1),
            ]
        )

    def topic(self, target: Target) -> str:
        return f"{self.topics}-{target.value.partition(':')[2]}"

    def limit_records(self, bytes_max: int) -> None:
        """What both topics take from now on."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        entry = ConfigEntry(
            "max.message.bytes",
            str(bytes_max),
            incremental_operation=AlterConfigOpType.SET,
        )
        wanted = [
            ConfigResource(
                ConfigResource.Type.TOPIC, self.topic(target), incremental_configs=[entry]
            )
            for target in (Target.MSG, Target.SCHD)
        ]
        for future in admin.incremental_alter_configs(wanted).values():
            future.result(10)

    def line(self, store: SqlStore | None = None) -> Line:
        """This process as the leader."""
        store = store or self.store
        return Line(store, self.bootstrap, self.topics, take_lead(store))

    def append(
        self,
        changes: int,
        *,
        flights: int = 5,
        payload: bytes | None = None,
        fence: Fence | None = None,
    ) -> None:
        """So many changes, each one event per topic, as the leader with ``fence`` or the next."""
        fence = fence or take_lead(self.store)
        events = [
            event(target, number, flights, payload)
            for number in range(self.written, self.written + changes)
            for target in (Target.MSG, Target.SCHD)
        ]
        self.written += changes
        with self.store.pump.transaction(fence) as transaction:
            transaction.commit_batch(
                Batch(messages=(), events=events), now=SystemClock().now(), codec_version="1"
            )

    def child(
        self, point: str = "-", nth: int = 1, *, signal_: signal.Signals = signal.SIGKILL
    ) -> subprocess.Popen[str]:
        """A publisher of its own process."""
        paths = [str(TESTS.parent), str(TESTS)]
        return subprocess.Popen(
            [
                *(sys.executable, str(TESTS / "servers" / "publisher.py")),
                *(str(self.folder / "store.sqlite"), self.bootstrap, self.topics),
                *(signal_.name, point, str(nth)),
            ],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdout=subprocess.PIPE,
            text=True,
        )

    def drain(self) -> None:
        """Publish everything in a process of its own."""
        with self.child() as child:
            assert child.wait(CHILD_S_MAX) == 0

    def records(self, target: Target) -> list[StoredRecord]:
        """What a read_committed consumer sees, in log order."""
        reader = TopicReader(self.bootstrap, self.topic(target))
        try:
            found = list(reader.records())
        finally:
            reader.close()
        return sorted(found, key=lambda record: (record.partition, record.offset))

    def ids(self, target: Target) -> list[int]:
        """Event ids as seen, in log order."""
        return [id_of(record) for record in self.records(target)]

    def events(self, target: Target) -> list[EventFact]:
        return [fact for fact in self.store.evidence.facts().events if fact.target is target]

    def states(self, target: Target) -> dict[EventState, int]:
        counted: dict[EventState, int] = defaultdict(int)
        for fact in self.events(target):
            counted[fact.state] += 1
        return dict(counted)

    def assert_each_event_once(self) -> None:
        """On msg every event, on schd every winner; once, in order per key, nothing missing."""
        for target in (Target.MSG, Target.SCHD):
            per_key = defaultdict(list)
            for record in self.records(target):
                per_key[record.key].append(id_of(record))
            sent = defaultdict(list)
            for fact in self.events(target):
                assert fact.state in (EventState.SENT, EventState.SUPERSEDED), fact
                if fact.state is EventState.SENT:
                    sent[str(fact.flid).encode()].append(fact.event_id)
            assert per_key == sent, target
            assert all(ids == sorted(set(ids)) for ids in per_key.values())
        msg = self.events(Target.MSG)
        assert all(fact.state is EventState.SENT for fact in msg)
        newest = {fact.flid: fact for fact in self.events(Target.SCHD)}
        assert all(fact.state is EventState.SENT for fact in newest.values())

    def errors(self) -> list[str]:
        """What events were charged with, or wait for."""
        return [fact.error for fact in self.store.evidence.facts().events if fact.error]

    def close(self) -> None:
        self.store.close()


def drain(line: Line, *, give_up_after_s: float = 60) -> None:
    """Both targets in this process, through whatever outage there is."""
    clock = SystemClock()
    deadline = clock.monotonic() + give_up_after_s
    dispatch, flush = line.dispatch(), line.flush()
    while line.store.reads.counts().oldest_pending_event_at is not None:
        assert clock.monotonic() < deadline
        for step in (dispatch, flush):
            try:
                step.step()
            except Unavailable:
                time.sleep(0.1)
    line.close()


def wait_until_stopped(pid: int) -> None:
    """A child that sends itself SIGSTOP."""
    _, status = os.waitpid(pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)


def turn(step: Step) -> None:
    """One turn that works; a node that has just started may still load its coordinators."""
    for _ in range(50):
        try:
            step.step()
        except Unavailable:
            time.sleep(0.2)
        else:
            return
    step.step()


def id_of(record: StoredRecord) -> EventId:
    header = record.header("event-id")
    assert header is not None
    return EventId(int(header.partition("-")[2]))


def event(target: Target, number: int, flights: int, payload: bytes | None = None) -> NewEvent:
    flid = f"F{number % flights}"
    return NewEvent(
        target=target,
        type=EventType.NOTICE if target is Target.MSG else EventType.UPSERT,
        partition_key=flid,
        flid=Flid(flid),
        message_id=MailboxId(number + 1),
        state_version=number + 1,
        operation_day=date(2026, 9, 3),
        payload=payload or b'{"number":%d}' % number,
        traceparent=None,
    )


def new_world(folder: Path, bootstrap: str, store_id: str | None = None) -> World:
    file = folder / "store.sqlite"
    engine = open_engine(f"sqlite:///{file}")
    upgrade(engine, store_id=store_id or uuid.uuid4().hex[:16], identity_rule="plain")
    engine.dispose()
    return World(folder, bootstrap, open_store(str(file)))


@pytest.fixture
def world(tmp_path: Path, apache_kafka: BrokerServer) -> Iterator[World]:
    """On Apache Kafka, with topics and an empty store."""
    made = new_world(tmp_path, apache_kafka.bootstrap)
    made.create_topics()
    yield made
    made.close()
