"""``demo``: a real day of flights through the whole pipeline, then a summary and a verification."""

import shutil
import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TextIO
from zoneinfo import ZoneInfo

import click
from pydantic import SecretStr
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from msgexchange.app.adapters import mailbox_file, make_data_dir
from msgexchange.app.observing import Broker, Sources, observe, verify
from msgexchange.app.process import announce, stop_signal, tune_interpreter, wait
from msgexchange.app.serving import Serving
from msgexchange.cli import show
from msgexchange.cli.context import WRONG, DemoOptions
from msgexchange.cli.running import show_verification
from msgexchange.config import Settings
from msgexchange.demo.departures import TIMEZONE, published_day
from msgexchange.demo.feed import Expected, Feed, build_feed, expected
from msgexchange.demo.writer import play
from msgexchange.flight.events import Target
from msgexchange.ids import MailboxId
from msgexchange.invariants.observation import Observation
from msgexchange.lifecycle.states import EventState, MessageState
from msgexchange.mailbox.columns import ColumnMap
from msgexchange.mailbox.sqlite import open_sqlite_mailbox
from msgexchange.ports import StoreCounts, StoreFacts
from msgexchange.web.server import CannotListen

DRAIN_TIMEOUT_S = 120
DRAIN_POLL_S = 0.2
LOOK_EVERY_S = 2.0
"""Counting everything costs more the more there is; the bar need not cost the pump its time."""


def demo(settings: Settings, options: DemoOptions) -> int:
    """Play the feed; 0 when every outcome is the expected one and every invariant holds."""
    tune_interpreter()
    settings = _demo_settings(settings)
    shutil.rmtree(settings.data_dir, ignore_errors=True)
    make_data_dir(settings)
    feed = build_feed(published_day(), messages_max=options.messages_max)
    log_file = settings.data_dir / "demo.log"
    with stop_signal() as stopped, log_file.open("w", encoding="utf-8") as log:
        serving = _started(settings, log)
        click.echo(f"log     {log_file}")
        announce(serving)
        try:
            written = _play(serving, feed, options, stopped)
            status = _conclude(serving, feed, written)
            if not options.ends and not stopped.is_set():
                click.echo("serving on; Ctrl-C ends it")
                status = wait(serving, stopped) or status
        except _Stopped:
            click.echo("stopped before the day was over")
            status = 0
        finally:
            ended = serving.stop()
    return status if ended else status or 1


def _demo_settings(settings: Settings) -> Settings:
    """Empty stores of its own; gaps and retries as compressed as the day itself."""
    data_dir = settings.data_dir / "demo"
    fresh = {
        "data_dir": data_dir,
        "site": settings.site.model_copy(update={"timezone": ZoneInfo(TIMEZONE)}),
        "store": settings.store.model_copy(update={"url": _file(data_dir, "store")}),
        "mailbox": settings.mailbox.model_copy(update={"url": _file(data_dir, "mailbox")}),
        "pipeline": settings.pipeline.model_copy(
            update={
                "autostart": True,
                "max_commit_delay": timedelta(seconds=1),
                "backoff": timedelta(milliseconds=100),
            }
        ),
    }
    return settings.model_copy(update=fresh)


def _started(settings: Settings, log: TextIO) -> Serving:
    """Serving on the configured port, or on a free one where that is taken."""
    serving = Serving(settings, log=log)
    serving.start_pipeline()
    try:
        serving.start_http()
    except CannotListen as taken:
        click.echo(f"{taken}; taking a free port")
        serving.settings = settings.model_copy(
            update={"http": settings.http.model_copy(update={"port": 0})}
        )
        serving.start_http()
    return serving


def _play(
    serving: Serving, feed: Feed, options: DemoOptions, stopped: threading.Event
) -> dict[MailboxId, datetime]:
    """Write the feed and wait until all of it is through; when each message was written."""
    written: dict[MailboxId, datetime] = {}
    reads = serving.adapters.store.reads

    owner = open_sqlite_mailbox(mailbox_file(serving.settings), ColumnMap())

    def write(text: str) -> int:
        if stopped.is_set():
            raise _Stopped
        at = serving.clock.now()
        id_ = owner.insert(text)
        written[id_] = at
        return id_

    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description:<10}"),
        BarColumn(40),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )
    total = len(feed.messages)
    with bar:
        sent = bar.add_task("written", total=total)
        through = bar.add_task("through", total=total)

        looked_at_s = 0.0

        def progress(count: int) -> None:
            nonlocal looked_at_s
            bar.update(sent, completed=count)
            now_s = serving.clock.monotonic()
            if now_s - looked_at_s >= LOOK_EVERY_S:
                looked_at_s = now_s
                bar.update(through, completed=_terminal(reads.counts()))

        play(
            feed,
            write,
            lambda: _ignore(owner.burn_id()),
            lambda seconds: _pause(stopped, seconds),
            monotonic=serving.clock.monotonic,
            duration_s=options.duration_s,
            progress=progress,
        )
        deadline_s = serving.clock.monotonic() + DRAIN_TIMEOUT_S
        while serving.clock.monotonic() < deadline_s:
            counts = reads.counts()
            bar.update(through, completed=_terminal(counts))
            if _is_drained(counts, total):
                break
            _pause(stopped, DRAIN_POLL_S)
    owner.close()
    return written


def _ignore(_answer: object) -> None:
    return


class _Stopped(Exception):
    """A signal came while the feed was being played."""


def _pause(stopped: threading.Event, seconds: float) -> None:
    if stopped.wait(seconds):
        raise _Stopped


def _terminal(counts: StoreCounts) -> int:
    ended = (MessageState.SUCCEEDED, MessageState.SKIPPED, MessageState.DEAD)
    return sum(counts.messages.get(state, 0) for state in ended)


def _is_drained(counts: StoreCounts, total: int) -> bool:
    waiting = sum(n for (_, state), n in counts.events.items() if state is EventState.PENDING)
    return _terminal(counts) >= total and not waiting and not counts.unmarked


def _conclude(serving: Serving, feed: Feed, written: dict[MailboxId, datetime]) -> int:
    adapters = serving.adapters
    seen = observe(
        serving.settings,
        Sources(
            catalogue=adapters.catalogue,
            store=adapters.store,
            mailbox=adapters.mailbox,
            broker=Broker(adapters.bootstrap, None),
        ),
    )
    as_expected = _show_outcomes(seen.store, expected(feed))
    _show_events(seen.store)
    _show_speed(seen, written)
    verification = verify(seen)
    show_verification(verification)
    return 0 if as_expected and verification.clean else WRONG


def _show_outcomes(facts: StoreFacts, wanted: Expected) -> bool:
    """The table of outcomes beside what the feed promised; True if they agree."""
    got: dict[str, int] = {}
    for message in facts.messages:
        reason = message.error_class or (message.error or "").partition(":")[0]
        name = f"{message.state.value} {reason}".strip()
        got[name] = got.get(name, 0) + 1
    promised = {MessageState.SUCCEEDED.value: wanted.succeeded}
    promised.update({f"SKIPPED {reason}": n for reason, n in wanted.skipped.items()})
    promised.update({f"DEAD {error_class}": n for error_class, n in wanted.dead.items()})
    names = sorted(got.keys() | promised.keys(), key=lambda name: (name != "SUCCEEDED", name))
    show.table(
        "messages by outcome",
        ("outcome", "messages", "expected"),
        ((name, got.get(name, 0), promised.get(name, 0)) for name in names),
    )
    return got == {name: n for name, n in promised.items() if n}


def _show_events(facts: StoreFacts) -> None:
    counts: dict[tuple[str, str], int] = {}
    for event in facts.events:
        key = (event.target.value, event.state.value)
        counts[key] = counts.get(key, 0) + 1
    rows = ((target, state, n) for (target, state), n in sorted(counts.items()))
    show.table("events", ("target", "state", "count"), rows)


def _show_speed(seen: Observation, written: dict[MailboxId, datetime]) -> None:
    """Delay from a message's insert to the acknowledgement of its change on the msg topic."""
    delays_s = sorted(
        (event.sent_at - written[event.message_id]).total_seconds()
        for event in seen.store.events
        if event.target is Target.MSG and event.sent_at and event.message_id in written
    )
    ended = [m.finished_at for m in seen.store.messages if m.finished_at is not None]
    if not delays_s or not written:
        return
    span_s = (max(ended) - min(written.values())).total_seconds()
    show.pairs(
        "speed",
        {
            "delay, row inserted to msg record acknowledged, p50": _seconds(delays_s, 0.50),
            "the same, p99 (a rolled-back id holds the line for 1 s here)": _seconds(
                delays_s, 0.99
            ),
            "throughput": f"{len(ended) / span_s:.0f} messages/s over {span_s:.0f} s, as fed",
        },
    )


def _seconds(ordered: Sequence[float], share: float) -> str:
    return f"{ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1000:.0f} ms"


def _file(folder: Path, name: str) -> SecretStr:
    return SecretStr(f"sqlite:///{folder / name}.sqlite")
