"""What is really exported: one connected trace per message, as a collector decodes it."""

import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count

import pytest

from factories import plan, status
from fakes.line import POISON, Line, ManualClock, decode_or_die
from fakes.steps import Told
from fakes.topic import OneByOne, Topic
from msgexchange.clock import SystemClock
from msgexchange.flight.events import Target
from msgexchange.ids import MailboxId
from msgexchange.lifecycle.backoff import Backoff
from msgexchange.lifecycle.states import MessageState
from msgexchange.pipeline.delivery import DeliveryRules
from msgexchange.pipeline.dispatch import Dispatch
from msgexchange.pipeline.entry import Entry
from msgexchange.pipeline.publish_flights import SchdFlush
from msgexchange.pipeline.replay import ReplayOrders
from msgexchange.pipeline.replaying import ReplayDesk
from msgexchange.store.sql_store import SqlStore
from msgexchange.telemetry.spans import SpanExport
from msgexchange.telemetry.tracing import Tracer, TraceRules
from servers.collector import Collector, Span, running_collector

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0"
MAILBOX_TREE = {
    "mailbox.receive": "",
    "inbox.enqueue": "mailbox.receive",
    "pump.process": "inbox.enqueue",
    "decode": "pump.process",
    "decide": "pump.process",
    "commit": "pump.process",
}


@pytest.fixture
def collector() -> Iterator[Collector]:
    with running_collector() as collector:
        yield collector


@dataclass
class Traced:
    """One process: pump, dispatcher and flush on a store, telling a collector."""

    store: SqlStore
    collector: Collector
    per_second: float = 1_000_000
    clock: ManualClock = field(default_factory=ManualClock)
    msg: Topic = field(default_factory=Topic)
    schd: Topic = field(default_factory=Topic)

    def __post_init__(self) -> None:
        self.export = SpanExport(endpoint=self.collector.endpoint, instance="test")
        rules = TraceRules(per_second=self.per_second)
        self.tracer = Tracer(self.export.tell, rules, self.clock)
        self.line = Line(self.store, clock=self.clock, tracing=self.tracer)
        fence = self.line.fence
        delivery = DeliveryRules(
            window_max=5_000,
            attempts_max=5,
            backoff=Backoff(timedelta(seconds=1), timedelta(seconds=60)),
        )
        self.dispatch = Dispatch(
            target=Target.MSG,
            store=self.store.outbox,
            producer=OneByOne(self.msg),
            clock=self.clock,
            fence=fence,
            generation=1,
            rules=delivery,
            idle_poll=timedelta(seconds=1),
            telemetry=Told(),
            tracing=self.tracer,
        )
        flushes = count(1)
        self.flush = SchdFlush(
            store=self.store.schd,
            producer=OneByOne(self.schd),
            clock=self.clock,
            fence=fence,
            generation=1,
            rules=delivery,
            flush_period=timedelta(seconds=3),
            new_flush_id=lambda: f"f{next(flushes)}",
            telemetry=Told(),
            tracing=self.tracer,
        )

        self.entry = Entry(
            mailbox=self.line.mailbox,
            store=self.store.intake,
            clock=self.clock,
            telemetry=Told(),
            wake_inbox=lambda: None,
            tracing=self.tracer,
        )

    def replay(self, id_: int) -> None:
        """As a person has it replayed, and the leader carries it out."""
        text_bytes_max = 1 << 20
        desk = ReplayDesk(
            self.store.replays,
            self.line.mailbox,
            decode=decode_or_die,
            rules=self.line.rules,
            text_bytes_max=text_bytes_max,
            now=self.clock.now,
            new_order_id=lambda: "o1",
        )
        orders = ReplayOrders(
            store=self.store.replays,
            mailbox=self.line.mailbox,
            clock=self.clock,
            decode=decode_or_die,
            fence=self.line.fence,
            rules=self.line.rules,
            telemetry=Told(),
            text_bytes_max=text_bytes_max,
            wake_delivery=lambda: None,
            log_snapshot=self.store.pump.log_snapshot,
            tracing=self.tracer,
        )
        token = desk.plan([MailboxId(id_)]).token
        assert token is not None
        desk.order(token, by="jl", reason="the flight is known now", allow_regression=False)
        assert orders.carry_out_next()

    def publish(self) -> None:
        while self.dispatch.step() == 0:
            continue
        while self.flush.step() == 0:
            continue

    def told(self) -> Collector:
        """Everything, as the collector has it; the process ends."""
        self.export.close()
        return self.collector


def one(spans: list[Span]) -> Span:
    assert len(spans) == 1, [span.name for span in spans]
    return spans[0]


def process_of(seen: Collector, message_id: int) -> list[Span]:
    return [span for span in seen.of_message(message_id) if span.name == "pump.process"]


def header(topic: Topic, index: int = 0) -> str:
    return dict(topic.records[index].headers)["traceparent"].decode()


def test_a_message_is_one_trace_from_its_mailbox_row_to_the_record(
    memory_store: SqlStore, collector: Collector
) -> None:
    site = Traced(memory_store, collector)
    site.line.receive([plan("9001")])
    site.line.run()
    site.publish()
    seen = site.told()
    process = one(process_of(seen, 1))
    assert seen.tree(process.trace) == {**MAILBOX_TREE, "outbox.publish": "pump.process"}
    assert process.attributes["msgexchange.outcome"] == "SUCCEEDED"
    assert process.attributes["msgexchange.kind"] == "SCHD/DNLD"
    assert process.attributes["msgexchange.flid"] == ["9001"]
    assert not process.failed
    publishes = {span.id: span for span in seen.named("outbox.publish")}
    for topic, target in ((site.msg, "KAFKA:msg"), (site.schd, "KAFKA:schd")):
        _, trace, span, flags = header(topic).split("-")
        assert (trace, flags) == (process.trace, "01")
        assert publishes[span].attributes["msgexchange.target"] == target
        assert publishes[span].attributes["msgexchange.event.id"]
    stored = site.line.message(1)
    assert stored.traceparent is not None
    assert stored.traceparent.split("-")[1] == process.trace


def test_batch_window_and_flush_are_linked_to_each_message_and_back(
    memory_store: SqlStore, collector: Collector
) -> None:
    site = Traced(memory_store, collector)
    site.line.receive([plan("9001"), status("9001", "A", seqn=2), status("9001", "B", seqn=3)])
    site.line.run()
    site.publish()
    seen = site.told()
    assert len({one(process_of(seen, id_)).trace for id_ in (1, 2, 3)}) == 3
    for whole, parts in (("pump.batch", "pump.process"), ("outbox.window", "outbox.publish")):
        batch = one(seen.named(whole))
        own = [span for span in seen.named(parts) if batch.id in span.links]
        assert len(own) == 3
        assert set(batch.links) == {span.id for span in own}
        assert batch.trace not in {span.trace for span in own}


def test_a_retry_stays_in_its_trace_and_each_error_is_recorded(
    memory_store: SqlStore, collector: Collector
) -> None:
    site = Traced(memory_store, collector, per_second=0)
    site.line.receive([plan("9001"), POISON])
    site.line.run(seconds=20)
    seen = site.told()
    attempts = process_of(seen, 2)
    assert [span.attributes["msgexchange.attempt"] for span in attempts] == [1, 2, 3, 4, 5]
    assert len({span.trace for span in attempts}) == 1
    assert all(span.failed for span in attempts)
    assert [span.errors for span in attempts] == [("INFRA",)] * 4 + [("EXHAUSTED",)]
    assert "msgexchange.next_attempt_at" in attempts[0].attributes
    assert attempts[-1].attributes["msgexchange.outcome"] == "DEAD"
    assert len([s for s in seen.of_message(2) if s.name == "mailbox.receive"]) == 1
    assert seen.tree(attempts[0].trace) == MAILBOX_TREE
    assert process_of(seen, 1) == []


def test_a_dead_letter_at_once_is_traced_with_its_class(
    memory_store: SqlStore, collector: Collector
) -> None:
    site = Traced(memory_store, collector, per_second=0)
    site.line.receive(["<MSG>"])
    site.line.run()
    process = one(process_of(site.told(), 1))
    assert (process.errors, process.attributes["error.type"]) == (("MALFORMED",), "MALFORMED")


def test_a_duplicate_is_traced_without_error_and_names_the_first(
    memory_store: SqlStore, collector: Collector
) -> None:
    site = Traced(memory_store, collector)
    site.line.receive([plan("9001"), plan("9001")])
    site.line.run()
    process = one(process_of(site.told(), 2))
    assert process.attributes["msgexchange.outcome"] == "SKIPPED"
    assert process.attributes["msgexchange.reason"] == "duplicate-of:1"
    assert not process.failed


def test_a_plan_of_a_thousand_flights_is_ten_spans_and_every_record_is_in_its_trace(
    memory_store: SqlStore, collector: Collector
) -> None:
    site = Traced(memory_store, collector)
    site.line.receive([plan(*(str(9_000 + n) for n in range(1_000)))])
    site.line.run()
    site.publish()
    seen = site.told()
    process = one(process_of(seen, 1))
    assert process.attributes["msgexchange.flights"] == 1_000
    assert len(process.attributes["msgexchange.flid"]) == 10
    flush = one(seen.named("schd.flush"))
    assert flush.attributes["messaging.batch.message_count"] == 1_000
    of_message = [span for span in seen.spans if span.trace == process.trace]
    assert len(of_message) == 8
    assert len(site.schd.records) == 1_000
    assert {header(site.schd, n).split("-")[1] for n in range(1_000)} == {process.trace}


def test_a_flush_of_many_flights_links_to_the_trace_of_each(
    memory_store: SqlStore, collector: Collector
) -> None:
    site = Traced(memory_store, collector)
    flights = [str(9_000 + n) for n in range(40)]
    site.line.receive([plan(*flights)])
    site.line.run()
    site.publish()
    site.line.receive([status(flid, "A", seqn=n) for n, flid in enumerate(flights, 2)])
    site.line.run()
    site.publish()
    seen = site.told()
    flush = seen.named("schd.flush")[-1]
    linked = {span.trace for span in seen.named("outbox.publish") if span.id in flush.links}
    assert linked == {one(process_of(seen, id_)).trace for id_ in range(2, 42)}


@pytest.mark.parametrize("flag", ["1", "0"])
def test_an_http_call_goes_on_in_the_trace_of_its_sender(
    memory_store: SqlStore, collector: Collector, flag: str
) -> None:
    """A sampled sender is always traced; one that is not may be, by the allowance."""
    site = Traced(memory_store, collector, per_second=0 if flag == "1" else 1_000_000)
    site.entry.receive(plan("9001"), CALLER + flag)
    site.line.receive([])
    site.line.run()
    site.publish()
    seen = site.told()
    call = one(seen.named("POST /cminmsgs/send"))
    assert (call.trace, call.parent) == tuple(CALLER.split("-")[1:3])
    tree = {k: v for k, v in MAILBOX_TREE.items() if k != "mailbox.receive"}
    assert seen.tree(call.trace) == {
        **tree,
        "POST /cminmsgs/send": "?",
        "inbox.enqueue": "POST /cminmsgs/send",
        "outbox.publish": "pump.process",
    }
    assert header(site.msg).split("-")[1] == call.trace


def test_a_replay_is_a_new_trace_linked_to_the_one_the_message_had(
    memory_store: SqlStore, collector: Collector
) -> None:
    """And always traced, however few are."""
    site = Traced(memory_store, collector, per_second=0)
    caller = CALLER + "1"
    site.entry.receive(status("9001", "BRD", seqn=1), caller)
    site.line.receive([])
    site.line.run()
    site.line.receive([plan("9001", seqn=2)])
    site.line.run()
    site.publish()
    assert site.line.message(1).state is MessageState.SKIPPED
    site.replay(1)
    site.publish()
    assert site.line.message(1).state is MessageState.SUCCEEDED
    seen = site.told()
    first, again = process_of(seen, 1)
    assert first.trace == caller.split("-")[1]
    assert first.attributes["msgexchange.outcome"] == "SKIPPED"
    assert again.attributes["msgexchange.outcome"] == "SUCCEEDED"
    root = one(seen.named("message.replay"))
    assert root.attributes["msgexchange.replay.order"] == "o1"
    linked = one([span for span in seen.spans if span.id in root.links])
    assert (linked.name, linked.trace) == ("inbox.enqueue", first.trace)
    assert root.trace == again.trace != first.trace
    assert seen.tree(again.trace) == {
        "message.replay": "",
        "pump.process": "message.replay",
        "decide": "pump.process",
        "commit": "pump.process",
        "outbox.publish": "pump.process",
    }
    assert one(seen.named("pump.replay")).links == (again.id,)
    newest = header(site.msg, -1).split("-")
    assert (newest[1], newest[3]) == (again.trace, "01")


def test_a_second_process_that_takes_over_half_way_goes_on_in_the_same_trace(
    memory_store: SqlStore, collector: Collector
) -> None:
    first = Traced(memory_store, collector)
    first.line.receive([plan("9001")])
    first.line.run()
    first.told()
    memory_store.leader.give_back("test")
    second = Traced(memory_store, collector, clock=first.clock)
    second.publish()
    seen = second.told()
    process = one(process_of(seen, 1))
    assert seen.tree(process.trace) == {**MAILBOX_TREE, "outbox.publish": "pump.process"}


def test_what_is_not_sampled_costs_no_span_and_its_records_say_so(
    memory_store: SqlStore, collector: Collector
) -> None:
    site = Traced(memory_store, collector, per_second=0)
    site.line.receive([plan("9001")])
    site.line.run()
    site.publish()
    assert site.told().spans == []
    assert header(site.msg).endswith("-00")


def test_a_collector_that_hangs_neither_holds_up_work_nor_the_stop(
    memory_store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And once stopped, the call under way is the last: no thread goes on for batch after batch."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3")
    clock = SystemClock()
    before = set(threading.enumerate())
    with socket.create_server(("127.0.0.1", 0)) as black_hole:
        site = Traced(memory_store, Collector(port=black_hole.getsockname()[1]))
        exporting = set(threading.enumerate()) - before
        texts = [plan("9001"), *(status("9001", f"S{n}", seqn=n) for n in range(2, 1_002))]
        site.line.receive(texts)
        site.line.run()
        assert len(memory_store.pump.heads(1)) == 0
        began_s = clock.monotonic()
        site.export.close()
        assert clock.monotonic() - began_s < 5
        for thread in exporting:
            thread.join(5)
            assert not thread.is_alive()
