"""Mailbox, store and pump in one place, stepped by hand."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from factories import T0
from fakes.mailbox import MemoryMailbox
from fakes.steps import Told
from msgexchange.codec.catalogue_file import default_catalogue
from msgexchange.codec.decode import decode
from msgexchange.codec.limits import Limits
from msgexchange.flight.dynamic import UnknownFlight
from msgexchange.flight.messages import Decoded
from msgexchange.flight.past import SweepPolicy
from msgexchange.ids import MailboxId
from msgexchange.lifecycle.answer import AnswerPolicy
from msgexchange.lifecycle.failure import FailurePolicy
from msgexchange.lifecycle.identity import IdentityPolicy
from msgexchange.lifecycle.states import MessageState
from msgexchange.pipeline.incoming import Decode
from msgexchange.pipeline.ingest import Ingest, IngestRules
from msgexchange.pipeline.leaving import WayMaking
from msgexchange.pipeline.process import Pump, PumpBounds
from msgexchange.pipeline.rules import PumpRules
from msgexchange.ports import HistoryStore, MessageView
from msgexchange.ports.tracing import UNTRACED, Tracing
from msgexchange.store.sql_store import SqlStore

CATALOGUE = default_catalogue()
ZONE = ZoneInfo("Asia/Shanghai")
POISON = "POISON"


@dataclass
class ManualClock:
    seconds: float = 0.0

    def now(self) -> datetime:
        return T0 + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


def decode_or_die(text: str) -> Decoded:
    if POISON in text:
        raise RecursionError("too deep for me")
    return decode(text, CATALOGUE, Limits(), ZONE)


@dataclass
class Line:
    """Mailbox, store and pump, stepped by hand."""

    store: SqlStore
    mailbox: MemoryMailbox = field(default_factory=MemoryMailbox)
    clock: ManualClock = field(default_factory=ManualClock)
    told: Told = field(default_factory=Told)
    sweep: SweepPolicy | None = None
    history: HistoryStore | None = None
    tracing: Tracing = UNTRACED
    decode: Decode = decode_or_die
    answers: AnswerPolicy = field(default_factory=AnswerPolicy)
    bounds: PumpBounds = field(default_factory=PumpBounds)

    def __post_init__(self) -> None:
        fence = self.store.leader.take_lease("test", timedelta(hours=1))
        assert fence is not None
        self.fence = fence
        self.store.intake.begin_after(0, by="test", now=T0)
        self.rules = PumpRules(
            identity=IdentityPolicy(),
            failure=FailurePolicy(),
            unknown_flight=UnknownFlight.SKIP,
            timezone="Asia/Shanghai",
            sweep=self.sweep,
            answers=self.answers,
            codec_version="1",
        )
        self.ingest = Ingest(
            store=self.store.intake,
            gaps=self.store.gaps,
            mailbox=self.mailbox,
            probe=None,
            clock=self.clock,
            fence=fence,
            rules=IngestRules(),
            telemetry=self.told,
            wake_pump=lambda: None,
            tracing=self.tracing,
        )
        self.pump = Pump(
            store=self.store.pump,
            mailbox=self.mailbox,
            clock=self.clock,
            decode=self.decode,
            fence=fence,
            rules=self.rules,
            bounds=self.bounds,
            telemetry=self.told,
            marks=True,
            wake_delivery=lambda: None,
            way_making=WayMaking(self.history),
            tracing=self.tracing,
        )
        # An idle turn: from here on heads share a commit.
        self.pump.step()

    def receive(self, texts: Sequence[str]) -> None:
        for text in texts:
            self.mailbox.insert(text)
        while self.ingest.step() == 0:
            continue
        assert self.store.intake.state().watermark == len(self.mailbox.rows)

    def run(self, seconds: float = 0) -> None:
        """Step until nothing is due within ``seconds``."""
        end = self.clock.seconds + seconds
        while True:
            pause = self.pump.step()
            if self.clock.seconds + pause > end:
                return
            self.clock.seconds += pause
            if pause >= 1 and not self.store.pump.heads(1):
                return

    def message(self, id_: int) -> MessageView:
        view = self.store.reads.message(MailboxId(id_))
        assert view is not None
        return view

    def states(self) -> list[MessageState]:
        return [self.message(id_).state for id_ in sorted(self.mailbox.rows)]
