"""``verify``: what mailbox, own store and topics show, against the invariants."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from msgexchange.app.adapters import read_topic
from msgexchange.app.steps import limits_of
from msgexchange.broker.reader import StoredRecord
from msgexchange.cli.context import Verification
from msgexchange.codec.catalogue import Catalogue
from msgexchange.codec.decode import decode
from msgexchange.config import Profile, Settings
from msgexchange.config.adapters import Delivery
from msgexchange.flight.events import Target
from msgexchange.flight.messages import Decoded
from msgexchange.ids import MailboxId
from msgexchange.invariants.checker import violations
from msgexchange.invariants.observation import Observation, RecordFact, TopicFacts
from msgexchange.invariants.state_checks import unreadable_past
from msgexchange.lifecycle.states import TERMINAL, EventState, MessageState
from msgexchange.ports import Mailbox, StoreFacts, TextMissing
from msgexchange.store.sql_store import SqlStore

ROWS_AT_ONCE = 1_000
FLIGHTS_NAMED_MAX = 5


@dataclass(frozen=True, slots=True)
class Broker:
    """Where the topics are; ``born_at`` when the embedded one began, empty as it always does."""

    bootstrap: str
    born_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where verification looks; ``broker`` None leaves the topics alone."""

    catalogue: Catalogue
    store: SqlStore
    mailbox: Mailbox
    broker: Broker | None


def observe(settings: Settings, sources: Sources) -> Observation:
    """Everything the checks need.

    The mailbox is read before the store: whatever is marked there was terminal already.
    """
    began_after = sources.store.evidence.began_after()
    marks = _marks(sources.mailbox, began_after)
    facts = sources.store.evidence.facts()
    shadow = settings.profile is Profile.SHADOW
    return Observation(
        store=facts,
        marks=marks,
        decoded=_decoded(settings, sources, facts),
        topics=None
        if sources.broker is None
        else _topics(settings, sources, sources.broker, facts),
        drained=_drained(facts, marks, shadow=shadow),
        shadow=shadow,
    )


def verify(seen: Observation) -> Verification:
    """What each check found, and what could not be judged."""
    return Verification(violations(seen), _left_out(seen))


def _left_out(seen: Observation) -> Sequence[str]:
    reasons = ["I8 and I9 concern what happens over time; the crash tests show them"]
    if seen.topics is None:
        reasons.append("I5, I12 and the topics' side of I6: give --kafka to read the topics")
    elif not seen.topics.complete:
        reasons.append(
            "I12, and I6 below where the topics begin: the broker no longer has the oldest records"
        )
    unread = unreadable_past(seen)
    if unread:
        named = ", ".join(sorted(unread)[:FLIGHTS_NAMED_MAX])
        reasons.append(
            f"I11 of {len(unread)} flights ({named}, ...): messages that changed them are gone "
            "from the mailbox, or say something else under the catalogue in force"
        )
    if not seen.drained:
        reasons.append("what must hold in the end: messages, events or marks still wait")
    return reasons


def _drained(facts: StoreFacts, marks: Mapping[MailboxId, bool], *, shadow: bool) -> bool:
    return (
        max(marks, default=0) <= facts.watermark
        and all(message.state in TERMINAL for message in facts.messages)
        and all(shadow or m.mark_confirmed for m in facts.messages)
        and not any(event.state is EventState.PENDING for event in facts.events)
    )


def _marks(mailbox: Mailbox, began_after: int) -> dict[MailboxId, bool]:
    marks: dict[MailboxId, bool] = {}
    after = began_after
    while page := mailbox.marks_after(after, limit=ROWS_AT_ONCE):
        marks.update(page)
        after = max(page)
    return marks


def _decoded(settings: Settings, sources: Sources, facts: StoreFacts) -> dict[MailboxId, Decoded]:
    limits = limits_of(settings)
    applied = [m.message_id for m in facts.messages if m.state is MessageState.SUCCEEDED]
    decoded: dict[MailboxId, Decoded] = {}
    for start in range(0, len(applied), ROWS_AT_ONCE):
        ids = applied[start : start + ROWS_AT_ONCE]
        texts = sources.mailbox.texts(ids, bytes_max=limits.text_bytes_max)
        decoded.update(
            (id_, decode(text, sources.catalogue, limits, settings.site.timezone))
            for id_, text in texts.items()
            if not isinstance(text, TextMissing)
        )
    return decoded


def _topics(settings: Settings, sources: Sources, broker: Broker, facts: StoreFacts) -> TopicFacts:
    kafka = settings.kafka
    msg = read_topic(broker.bootstrap, kafka.msg_topic, kafka.client)
    schd = read_topic(broker.bootstrap, kafka.schd_topic, kafka.client)
    older = broker.born_at is not None and any(
        event.sent_at is not None and event.sent_at < broker.born_at for event in facts.events
    )
    return TopicFacts(
        generation=sources.store.leader.info().generation,
        msg=[_fact(record) for record in msg.records],
        schd=[_fact(record) for record in schd.records],
        complete=msg.complete and schd.complete and not older,
        starts={Target.MSG: msg.starts, Target.SCHD: schd.starts},
        exactly_once=kafka.delivery is Delivery.EXACTLY_ONCE,
        born_at=broker.born_at,
    )


def _fact(record: StoredRecord) -> RecordFact:
    return RecordFact(
        partition=record.partition,
        offset=record.offset,
        key=(record.key or b"").decode(errors="replace"),
        event_id=record.header("event-id") or "",
        value=record.value,
    )
