"""A server process of the bench's own: started, waited for, ended by its pid."""

import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgexchange.clock import SystemClock

START_S_MAX = 60.0
STOP_S_MAX = 20.0
POLL_S = 0.05


class ServerMissing(Exception):
    """A server that is to be measured cannot be had; the text says how to get it."""


def free_port() -> int:
    """A port of 127.0.0.1 where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(
    command: Sequence[str],
    *,
    name: str,
    log: Path,
    answers: Callable[[], bool],
    stop: signal.Signals = signal.SIGTERM,
) -> Iterator[None]:
    """The process while the block runs.

    ``ServerMissing`` with its last words if it never answers.
    """
    with log.open("ab") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=sink)  # noqa: S603 - our own words
    try:
        _wait_for(process, name, log, answers)
        yield
    finally:
        process.send_signal(stop)
        try:
            process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(
    process: "subprocess.Popen[bytes]", name: str, log: Path, answers: Callable[[], bool]
) -> None:
    clock = SystemClock()
    deadline_s = clock.monotonic() + START_S_MAX
    pause = threading.Event()
    while not answers():
        if process.poll() is not None or clock.monotonic() > deadline_s:
            tail = log.read_text(errors="replace")[-2000:]
            raise ServerMissing(f"{name} did not start:\n{tail}")
        pause.wait(POLL_S)
