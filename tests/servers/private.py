"""What the private servers of the tests have in common: a free port, a process known by its pid."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from msgexchange.clock import SystemClock

START_S_MAX = 30.0
STOP_S_MAX = 20.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def closed_port() -> int:
    """A port where nobody listens."""
    return free_port()


def missing_server(reason: str) -> None:
    """A server that cannot be had fails the run under CI and skips the test elsewhere."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


class PrivateProcess:
    """A server of the tests' own, started and stopped any number of times on one port."""

    def __init__(
        self, command: Sequence[str], *, log: Path, answers: Callable[[], bool], name: str
    ) -> None:
        self._command = list(command)
        self._log = log
        self._answers = answers
        self._name = name
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert self._process is None
        clock = SystemClock()
        deadline = clock.monotonic() + START_S_MAX
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        while not self._answers():
            if self._process.poll() is not None or clock.monotonic() > deadline:
                self.kill()
                tail = self._log.read_text(errors="replace")[-2000:]
                raise RuntimeError(f"{self._name} did not start:\n{tail}")
            time.sleep(0.02)

    def stop(self) -> None:
        """In order; killed if it does not end in time."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGCONT)
        self._process.terminate()
        try:
            self._process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        """At once, as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Freeze it: connections stay open and nothing answers."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)
