"""A model mailbox and a model broker: the smallest things that keep their ports' promises."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgexchange.flight.events import Target
from msgexchange.ids import MailboxId
from msgexchange.invariants.observation import RecordFact
from msgexchange.lifecycle.watermark import MailboxRow
from msgexchange.ports import (
    Acknowledged,
    Delivery,
    Listing,
    MarkOutcome,
    NotDelivered,
    Record,
    RecordRefused,
    Text,
    TextMissing,
)
from msgexchange.simulation.chance import RARE, Chance

REFUSED_FOR_GOOD = 0.5
MODEL_REFUSAL = "refused by the model broker"


@dataclass
class ModelMailbox:
    """Port ``Mailbox``; ids are given out before their transaction commits."""

    chance: Chance
    rows: dict[int, str] = field(default_factory=dict)
    marked: set[int] = field(default_factory=set)
    open: dict[int, str] = field(default_factory=dict)
    last_id: int = 0

    def begin(self, text: str) -> int:
        """A writer's transaction has its id, and nobody sees the row yet."""
        self.last_id += 1
        self.open[self.last_id] = text
        return self.last_id

    def end(self, id_: int, *, committed: bool) -> None:
        text = self.open.pop(id_)
        if committed:
            self.rows[id_] = text

    def list_after(self, watermark: int, *, limit: int, id_max: int | None) -> Listing:
        ids = sorted(i for i in self.rows if i > watermark and (id_max is None or i <= id_max))
        listed = [MailboxRow(MailboxId(i), len(self.rows[i].encode())) for i in ids[:limit]]
        return Listing(listed, self.chance.clock.now(), self.newest_id())

    def ids_between(self, lo: int, hi: int, *, limit: int) -> Sequence[int]:
        return sorted(i for i in self.rows if lo <= i <= hi)[:limit]

    def next_id(self) -> int | None:
        return self.last_id + 1

    def texts(self, ids: Sequence[MailboxId], *, bytes_max: int) -> Mapping[MailboxId, Text]:
        def text(id_: MailboxId) -> Text:
            found = self.rows.get(id_)
            if found is None:
                return TextMissing.ROW_GONE
            return found if len(found.encode()) <= bytes_max else TextMissing.TOO_LARGE

        return {id_: text(id_) for id_ in ids}

    def insert(self, text: str) -> MailboxId:
        id_ = self.begin(text)
        self.end(id_, committed=True)
        return MailboxId(id_)

    def mark(
        self,
        ids: Sequence[MailboxId],
        *,
        overwrite: bool = False,  # noqa: ARG002 - nobody else marks here
    ) -> Mapping[MailboxId, MarkOutcome]:
        self.marked.update(ids)
        return dict.fromkeys(ids, MarkOutcome.MARKED)

    def marks_after(self, after: int, *, limit: int) -> Mapping[MailboxId, bool]:
        ids = sorted(i for i in self.rows if i > after)[:limit]
        return {MailboxId(i): i in self.marked for i in ids}

    def newest_id(self) -> int:
        return max(self.rows, default=0)

    def oldest_id(self) -> int:
        return min(self.rows, default=0)

    def check(self) -> Sequence[str]:
        return ()

    def close(self) -> None:
        return


@dataclass
class ModelTopic:
    """A ``RecordProducer`` onto one partition: order kept, acknowledgements lost, refusals."""

    chance: Chance
    target: Target
    records: list[RecordFact] = field(default_factory=list)
    refused: set[bytes] = field(default_factory=set)
    """Ids of events this broker takes under no circumstances."""

    def send(self, records: Sequence[Record]) -> Sequence[Delivery]:
        answers: list[Delivery] = []
        for record in records:
            if any(not isinstance(answer, Acknowledged) for answer in answers):
                answers.append(NotDelivered("held back"))
            else:
                answers.append(self._take(record))
        return answers

    def _take(self, record: Record) -> Delivery:
        event_id = dict(record.headers)["event-id"]
        if event_id in self.refused:
            return RecordRefused(MODEL_REFUSAL)
        if not self.chance.falls(RARE):
            return self._put(record)
        kind = self.chance.random.choice(("refused", "outage", "acknowledgement-lost"))
        self.chance.fail(kind, self.target.value)
        match kind:
            case "refused":
                if self.chance.random.random() < REFUSED_FOR_GOOD:
                    self.refused.add(event_id)
                return RecordRefused(MODEL_REFUSAL)
            case "outage":
                return NotDelivered("no leader")
            case _:
                self._put(record)
                return NotDelivered("no answer")

    def _put(self, record: Record) -> Acknowledged:
        offset = len(self.records)
        fact = RecordFact(
            partition=0,
            offset=offset,
            key=record.key.decode(),
            event_id=dict(record.headers)["event-id"].decode(),
            value=record.value,
        )
        self.records.append(fact)
        return Acknowledged(0, offset)

    def close(self) -> None:
        return
