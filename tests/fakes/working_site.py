"""The five working actors on real threads over SQLite files, with a fault before each port."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

from sqlalchemy import update

from factories import plan, status
from fakes.faults import Faults, FaultyPort
from fakes.steps import Told
from msgexchange.app.adapters import Adapters, open_mailbox
from msgexchange.app.observing import Sources, observe
from msgexchange.app.runtime import Runtime
from msgexchange.app.steps import Steps
from msgexchange.clock import SystemClock
from msgexchange.codec.catalogue_file import default_catalogue
from msgexchange.config import Settings
from msgexchange.ids import Fence, MailboxId
from msgexchange.invariants.checker import violations
from msgexchange.lifecycle.states import TERMINAL, EventState
from msgexchange.pipeline.backfill import BackfillSweep
from msgexchange.pipeline.first_start import begin_intake
from msgexchange.pipeline.leadership import Right
from msgexchange.ports import Acknowledged, Delivery, Record, RecordProducer
from msgexchange.store.sql_store import SqlStore
from msgexchange.store.tables import proc_state
from servers.waiting import sleep

CLOCK = SystemClock()
PORTS = ("intake", "pump", "backfill", "outbox", "schd", "mailbox", "producer")


class Broker:
    """Remembers what each topic was sent."""

    def __init__(self) -> None:
        self.topics: dict[str, list[Record]] = {}
        self._lock = threading.Lock()

    def producer(self, topic: str) -> RecordProducer:
        return _Producer(self, topic)

    def append(self, topic: str, records: Sequence[Record]) -> list[Delivery]:
        with self._lock:
            held = self.topics.setdefault(topic, [])
            held.extend(records)
            return [Acknowledged(0, len(held) - 1) for _ in records]

    def is_in_order(self) -> bool:
        """Per key the first copies come in event order; a repeat has an event id seen before."""
        for records in self.topics.values():
            newest: dict[bytes, int] = {}
            seen: set[int] = set()
            for record in records:
                id_ = int(dict(record.headers)["event-id"].split(b"-")[1])
                if id_ not in seen and id_ < newest.get(record.key, 0):
                    return False
                seen.add(id_)
                newest[record.key] = max(id_, newest.get(record.key, 0))
        return True


class _Producer:
    def __init__(self, broker: Broker, topic: str) -> None:
        self._broker = broker
        self._topic = topic

    def send(self, records: Sequence[Record]) -> Sequence[Delivery]:
        return self._broker.append(self._topic, records)

    def probe(self) -> None:
        return

    def close(self) -> None:
        return


class _FaultyAdapters(Adapters):
    """Producers of a ``Broker`` instead of Kafka's."""

    producers: Callable[[str], RecordProducer]

    def open_producer(self, topic: str) -> RecordProducer:
        return self.producers(topic)


class _EagerSteps(Steps):
    """The sweep is due every 30 s; here nobody waits for that."""

    def _backfill_sweep(self) -> BackfillSweep:
        sweep = super()._backfill_sweep()
        sweep._rules = replace(sweep._rules, sweep_interval=timedelta(milliseconds=20))
        return sweep


class WorkingSite:
    """Started; ``faults`` by port name; closed by ``stop``."""

    def __init__(self, settings: Settings, store: SqlStore, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.settings = settings
        self.store = store
        self.told = Told()
        self.broker = Broker()
        self.gave_up: list[int] = []
        self.green_at_s: Callable[[], float] = lambda: float("-inf")
        self.faults = {name: Faults() for name in PORTS}
        self._owner = open_mailbox(settings)
        self._sound = open_mailbox(settings)
        self._seqn = count(1)
        self._sent = 0
        begin_intake(store.intake, self._sound, start_after="oldest", clock=CLOCK)
        taken = store.leader.take_lease("a", settings.supervisor.lease)
        assert taken is not None
        self.fence: Fence = taken
        self._mailbox_port: Any = self._faulty("mailbox", self._sound)
        self.runtime = self._runtime()
        self.runtime.start()

    def _runtime(self) -> Runtime:
        adapters = _FaultyAdapters(
            self.settings,
            catalogue=default_catalogue(),
            store=self._faulty_store(),
            mailbox=self._mailbox_port,
            embedded=None,
        )
        adapters.producers = lambda topic: self._faulty("producer", self.broker.producer(topic))
        right = Right(CLOCK)
        right.extend(float("inf"))
        steps = _EagerSteps(
            self.settings,
            adapters,
            clock=CLOCK,
            telemetry=self.told,
            fence=self.fence,
            right=right,
            info=self.store.leader.info(),
            ring=self._ring,
            green_at_s=lambda _dependency: self.green_at_s(),
        )
        return Runtime(
            self.settings,
            clock=CLOCK,
            telemetry=self.told,
            steps=steps,
            right=right,
            give_up=self.gave_up.append,
        )

    def _ring(self, *names: str) -> None:
        self.runtime.ring(*names)

    def _faulty(self, name: str, port: Any) -> Any:
        return FaultyPort(port, self.faults[name])

    def _faulty_store(self) -> Any:
        store = FaultyPort(self.store, Faults())
        for name in ("intake", "pump", "backfill", "outbox", "schd"):
            setattr(store, name, self._faulty(name, getattr(self.store, name)))
        return store

    def write(self, changes: int) -> None:
        """A plan of two flights at first, then changes that all differ."""
        for _ in range(changes):
            seqn = next(self._seqn)
            flid = str(1 + seqn % 2)
            text = plan("1", "2", seqn=1) if seqn == 1 else status(flid, f"S{seqn}", seqn=seqn)
            self._owner.insert(text)
            self._sent += 1
        self.runtime.ring("inbox", "jobs")

    def wait(self, condition: Callable[[], bool], what: str, timeout_s: float = 20) -> None:
        deadline_s = CLOCK.monotonic() + timeout_s
        while not condition():
            assert CLOCK.monotonic() < deadline_s, (what, self.told, self._states())
            sleep(0.005)

    def is_through(self) -> bool:
        """Everything written is terminal, marked and delivered."""
        # Marks that could not be written are retried after 30 s; here after a moment.
        self._sweep_at_once()
        counts = self.store.reads.counts()
        ended = sum(n for state, n in counts.messages.items() if state in TERMINAL)
        waiting = sum(n for (_, state), n in counts.events.items() if state is EventState.PENDING)
        return ended == self._sent and not waiting and not counts.unmarked

    def _sweep_at_once(self) -> None:
        postponed = update(proc_state).where(proc_state.c.backfill_next_at.is_not(None))
        with self.store.engine.begin() as connection:
            connection.execute(postponed.values(backfill_next_at=CLOCK.now()))

    def attempts(self) -> int:
        """Charged, over all messages."""
        views = (self.store.reads.message(MailboxId(id_)) for id_ in range(1, self._sent + 1))
        return sum(view.attempts for view in views if view is not None)

    def starts(self) -> dict[str, int]:
        return {name: m.pulse.sign().starts for name, m in self.runtime.members.items()}

    def problems(self) -> list[str]:
        """What breaks an invariant, or the order on a topic."""
        sources = Sources(
            catalogue=default_catalogue(), store=self.store, mailbox=self._sound, broker=None
        )
        found = violations(observe(self.settings, sources))
        texts = [one.text for several in found.values() for one in several]
        return texts if self.broker.is_in_order() else [*texts, "the topics are out of order"]

    def stop(self) -> None:
        self.runtime.halt()
        self.wait(self.runtime.ended, "the actors end")
        self._owner.close()
        self._sound.close()

    def _states(self) -> object:
        return self.starts(), self.runtime.breakers(), self.store.reads.head()
