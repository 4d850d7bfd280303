"""``serve``: one process from its start to its exit status, by signals (spec 6.1, Stop)."""

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

from msgexchange.app.serving import Serving
from msgexchange.config import Settings
from msgexchange.pipeline.first_start import StartAfterMissing
from msgexchange.web.server import CannotListen

GC_THRESHOLD = 50_000
"""New objects between collections: at Python's 700 a large plan spends half its time in them."""
SWITCH_INTERVAL_S = 0.0005
"""A busy sibling thread must not hold the pump up for Python's default of 5 ms at a time."""
STOP_POLL_S = 0.05
BEGIN_AGAIN_S = 1.0
"""How often a start looks for a database that is not there yet."""


def serve(settings: Settings) -> int:
    """Run until SIGTERM, Ctrl-C or until the supervisor gives up; the exit status."""
    tune_interpreter()
    with stop_signal() as stopped:
        serving = Serving(settings, log=sys.stderr)
        status = 0
        try:
            serving.start_http()
            announce(serving)
            while not serving.begin() and not stopped.wait(BEGIN_AGAIN_S):
                pass
            status = wait(serving, stopped)
        except (StartAfterMissing, CannotListen) as refusal:
            click.echo(f"error: {refusal}", err=True)
            status = 2
        finally:
            ended = serving.stop()
    return status if ended else status or 1


def tune_interpreter() -> None:
    """For one busy thread beside idle ones, and for plans of 100,000s of small objects."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.set_threshold(GC_THRESHOLD, 20, 20)


def announce(serving: Serving) -> None:
    """Say where it can be reached."""
    click.echo(f"http    {serving.url}")
    bootstrap = serving.adapters.embedded_bootstrap or serving.settings.kafka.bootstrap
    topics = f"{serving.settings.kafka.msg_topic}, {serving.settings.kafka.schd_topic}"
    click.echo(f"kafka   {bootstrap}  topics {topics}")
    if not serving.settings.pipeline.autostart:
        click.echo("the pipeline is not started (pipeline.autostart is false)")
    sys.stdout.flush()


def wait(serving: Serving, stopped: threading.Event) -> int:
    """Until a signal (0) or until the pipeline gave up (its status)."""
    candidacy = serving.candidacy
    while not stopped.wait(STOP_POLL_S):
        if candidacy.ended.is_set():
            return candidacy.exit_status
    return 0


@contextmanager
def stop_signal() -> Iterator[threading.Event]:
    """Set by SIGTERM or Ctrl-C; a second signal ends the process at once."""
    stopped = threading.Event()

    def first_then_exit(number: int, _frame: FrameType | None) -> None:
        if stopped.is_set():
            os._exit(128 + number)
        stopped.set()

    previous = {
        number: signal.signal(number, first_then_exit) for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield stopped
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
