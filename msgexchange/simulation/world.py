"""A world of one seed: who steps next, where faults fall, and what must hold (spec 7.3)."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from zoneinfo import ZoneInfo

from sqlalchemy import Engine

from msgexchange.codec.catalogue import Catalogue
from msgexchange.codec.catalogue_file import default_catalogue
from msgexchange.codec.decode import decode
from msgexchange.codec.limits import Limits
from msgexchange.flight.events import Target
from msgexchange.flight.messages import Decoded
from msgexchange.invariants.checker import violations
from msgexchange.invariants.observation import Observation, TopicFacts
from msgexchange.lifecycle.states import TERMINAL, EventState, MessageState
from msgexchange.ports import Fenced, StoreFacts
from msgexchange.simulation.chance import Chance, Died
from msgexchange.simulation.incarnation import COMMIT_DELAY_MAX, Incarnation
from msgexchange.simulation.outside import ModelMailbox, ModelTopic
from msgexchange.simulation.workload import POISON, texts
from msgexchange.store.engine import cloned_in_memory, open_engine
from msgexchange.store.schema import upgrade
from msgexchange.store.sql_store import SqlStore

MESSAGES = 24
STEPS_MAX = 250
DRAIN_STEPS_MAX = 1_000
DRAIN_LOOK_EVERY = 20
STALE_STEPS_MAX = 12
EVENTS_SHOWN = 12
ZONE = ZoneInfo("Asia/Shanghai")


@dataclass
class Outcome:
    """What one seed showed; ``broken`` None if every promise was kept."""

    seed: int
    steps: int = 0
    trace: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    broken: str | None = None


class BrokenPromise(Exception):
    """An invariant does not hold."""


@cache
def template() -> tuple[Engine, Catalogue]:
    """A migrated store to clone and the catalogue in force."""
    engine = open_engine("sqlite://")
    upgrade(engine, store_id="0123456789abcdef", identity_rule="plain")
    return engine, default_catalogue()


class Heard:
    """Telemetry that counts what the steps tell."""

    def __init__(self) -> None:
        self.told: Counter[str] = Counter()

    def alert(self, name: str, text: str) -> None:
        self.told[f"{name}: {text}"] += 1

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        self.told[f"{name} {labels}"] += amount

    def observe(self, name: str, seconds: float) -> None:
        self.told[f"{name} {seconds}"] += 1

    def log(self, event: str, **fields: object) -> None:
        self.told[f"{event} {fields}"] += 1


class World:
    """One thread, one seed, one store; processes come and go."""

    def __init__(self, seed: int) -> None:
        engine, catalogue = template()
        self.chance = Chance(seed, paused=self._others_go_on)
        self.catalogue = catalogue
        self.store = SqlStore(cloned_in_memory(engine), catalogue, nonce=count(1).__next__)
        self.mailbox = ModelMailbox(self.chance)
        self.msg = ModelTopic(self.chance, Target.MSG)
        self.schd = ModelTopic(self.chance, Target.SCHD)
        self.steps = 0
        self._unwritten = texts(self.chance.random, amount=MESSAGES)
        self._began_s: dict[int, float] = {}
        self._watermark = 0
        self._nested = False
        self.store.intake.begin_after(0, by="simulated", now=self.chance.clock.now())
        self.process = self._start()

    def run(self) -> Outcome:
        """Steps under faults, then a drain without; what was seen."""
        outcome = Outcome(self.chance.seed, trace=self.chance.trace, faults=self.chance.faults)
        try:
            for _ in range(STEPS_MAX):
                self._turn()
            self._drain()
            outcome.reached = _reached(self.store.evidence.facts())
        except BrokenPromise as broken:
            outcome.broken = str(broken)
        finally:
            outcome.steps = self.steps
            self.store.close()
        return outcome

    def _start(self) -> Incarnation:
        self.chance.note("process starts")
        return Incarnation(
            self.chance,
            self.store,
            self.mailbox,
            (self.msg, self.schd),
            decode=self._decode,
            telemetry=Heard(),
        )

    def _decode(self, text: str) -> Decoded:
        if POISON in text:
            raise ValueError(POISON)
        return decode(text, self.catalogue, Limits(), ZONE)

    def _turn(self) -> None:
        self._writers_go_on()
        self._one_step(self.process)

    def _one_step(self, process: Incarnation) -> None:
        soonest = min(process.due_s.values())
        clock = self.chance.clock
        clock.elapsed_s = max(clock.elapsed_s, soonest)
        due = [name for name, at_s in process.due_s.items() if at_s <= clock.elapsed_s]
        name = self.chance.random.choice(due)
        self.steps += 1
        self.chance.note(f"{process.fence} {name}")
        try:
            process.step(name)
        except (Died, Fenced) as end:
            self.chance.note(f"{process.fence} ends: {type(end).__name__}")
            if process is self.process:
                self.process = self._start()
        self._check_watermark()

    def _others_go_on(self) -> None:
        """The caller sleeps through a takeover, and wakes as a stale leader."""
        if self._nested:
            return
        self._nested = True
        try:
            self.process = self._start()
            for _ in range(self.chance.random.randint(1, STALE_STEPS_MAX)):
                self._turn()
        finally:
            self._nested = False

    def _writers_go_on(self) -> None:
        random, now_s = self.chance.random, self.chance.clock.elapsed_s
        limit_s = COMMIT_DELAY_MAX.total_seconds()
        for id_, began_s in list(self._began_s.items()):
            late = now_s - began_s >= limit_s / 2
            if late or random.random() < 0.3:
                # A transaction older than the site's promise can only be rolled back.
                committed = now_s - began_s < limit_s and random.random() < 0.8
                self.mailbox.end(id_, committed=committed)
                del self._began_s[id_]
                self.chance.note(f"row {id_} {'committed' if committed else 'rolled back'}")
        if self._unwritten and random.random() < 0.4:
            self._began_s[self.mailbox.begin(self._unwritten.pop(0))] = now_s

    def _check_watermark(self) -> None:
        watermark = self.store.intake.state().watermark
        if watermark < self._watermark:
            raise BrokenPromise(f"I10: W went back from {self._watermark} to {watermark}")
        self._watermark = watermark

    def _drain(self) -> None:
        self.chance.fault_rate = 0.0
        self.chance.note("faults end")
        for turn in range(DRAIN_STEPS_MAX):
            self._turn()
            if turn % DRAIN_LOOK_EVERY == 0 and not self._unwritten and not self._began_s:
                seen = self.observe()
                if seen.drained:
                    self._judge(seen)
                    return
        raise BrokenPromise("I1: something still waits long after the last fault")

    def observe(self) -> Observation:
        """Everything the checks look at."""
        facts = self.store.evidence.facts()
        marks = self.mailbox.marks_after(0, limit=MESSAGES * 2)
        return Observation(
            store=facts,
            marks=marks,
            decoded={
                m.message_id: self._decode(self.mailbox.rows[m.message_id])
                for m in facts.messages
                if m.state is MessageState.SUCCEEDED
            },
            topics=TopicFacts(
                generation=1, msg=self.msg.records, schd=self.schd.records, complete=True
            ),
            drained=max(marks, default=0) <= facts.watermark
            and all(m.state in TERMINAL and m.mark_confirmed for m in facts.messages)
            and not any(e.state is EventState.PENDING for e in facts.events),
        )

    def _judge(self, seen: Observation) -> None:
        for found in violations(seen).values():
            if found:
                raise BrokenPromise(f"{found[0].invariant}: {found[0].text}")


def _reached(facts: StoreFacts) -> Counter[str]:
    return Counter(
        [m.state.value for m in facts.messages]
        + [m.error_class.value for m in facts.messages if m.error_class is not None]
        + [f"event-{e.state.value}" for e in facts.events]
    )


def simulate(seed: int) -> Outcome:
    """One world from its beginning to its drained end."""
    return World(seed).run()
