"""A msgexchange process of its own, started, asked and killed by tests."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
READY_TIMEOUT_S = 60
ANSWER_TIMEOUT_S = 30


class Site:
    """One ``run.py serve`` with its own data folder and a free port."""

    def __init__(
        self,
        data_dir: Path,
        settings: Mapping[str, str],
        name: str = "serve",
        script: Path = ROOT / "run.py",
    ) -> None:
        self.data_dir = data_dir
        self._script = script
        self.name = name
        self._environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("MSGEXCHANGE_")},
            "MSGEXCHANGE_HTTP__PORT": "0",
            **settings,
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._log_from = 0

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        return (self.data_dir / f"{self.name}.log").read_text(errors="replace")

    def start(self) -> None:
        """Begin, and wait until it is ready."""
        self.begin()
        self._wait(self._is_ready, "it is not ready", READY_TIMEOUT_S)

    def begin(self) -> None:
        """Begin, and go on at once."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self._log_from = len(self.log) if (self.data_dir / f"{self.name}.log").exists() else 0
        with (self.data_dir / f"{self.name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(self._script), "--data-dir", str(self.data_dir), "serve"],
                env=self._environment,
                stdout=log,
                stderr=log,
                cwd=self.data_dir,
            )

    def wait_for_url(self) -> None:
        """Until it answers over HTTP, ready or not."""
        self._wait(self._has_url, "it has no address", READY_TIMEOUT_S)

    def _has_url(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(f"it ended with {self._process.returncode}:\n{self.log}")
        return self._announced() is not None

    def _is_ready(self) -> bool:
        if not self._has_url():
            return False
        status, _ = self.get("/health/ready")
        return status == 200

    def terminate(self) -> None:
        """SIGTERM, and go on at once."""
        os.kill(self.pid, signal.SIGTERM)

    def stop(self) -> int:
        """SIGTERM and the exit status; one that is not 0 shows the log of the failing test."""
        self.terminate()
        status = self.exit_status()
        if status != 0:
            sys.stderr.write(f"{self.name} ended with {status}:\n{self.log[-8_000:]}\n")
        return status

    def interrupt(self) -> None:
        """SIGINT, as Ctrl-C sends it, and go on at once."""
        os.kill(self.pid, signal.SIGINT)

    def kill(self) -> None:
        """SIGKILL: nothing of it runs on."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=30)
            self._process = None

    def freeze(self) -> None:
        """SIGSTOP: it holds what it holds, and does nothing."""
        os.kill(self.pid, signal.SIGSTOP)

    def wake(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def exit_status(self, timeout_s: float = 30) -> int:
        """Wait for a process that ends by itself."""
        assert self._process is not None
        status = self._process.wait(timeout=timeout_s)
        self._process = None
        return status

    def run(self, *arguments: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        """Another command of run.py on the same data folder and settings."""
        return subprocess.run(
            [sys.executable, str(ROOT / "run.py"), "--data-dir", str(self.data_dir), *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            cwd=self.data_dir,
            check=False,
        )

    @property
    def url(self) -> str:
        url = self._announced()
        assert url is not None, self.log
        return url

    def _announced(self) -> str | None:
        """The address in the log of this start; ``http.url`` may be another process's."""
        said = re.search(r"^http    (\S+)$", self.log[self._log_from :], re.MULTILINE)
        return said[1] if said else None

    def get(self, path: str) -> tuple[int, Any]:
        """Status and decoded JSON body."""
        request = urllib.request.Request(self.url.rstrip("/") + path)
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_TIMEOUT_S) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as refusal:
            return refusal.code, json.loads(refusal.read())
        except OSError:
            return 0, None

    def metric(self, name: str) -> float | None:
        """The value of a metric, labels written as they are told; None where there is none."""
        found = [line.rpartition(" ") for line in self.text("/metrics").splitlines()]
        return next((float(value) for told, _, value in found if told == name), None)

    def text(self, path: str) -> str:
        """The body as it is."""
        url = self.url.rstrip("/") + path
        with urllib.request.urlopen(url, timeout=ANSWER_TIMEOUT_S) as answer:
            return str(answer.read().decode())

    def send(
        self,
        body: bytes,
        content_type: str = "application/xml",
        *,
        traceparent: str | None = None,
    ) -> tuple[int, str]:
        """POST /cminmsgs/send; status and text."""
        traced = {} if traceparent is None else {"traceparent": traceparent}
        request = urllib.request.Request(
            self.url.rstrip("/") + "/cminmsgs/send",
            data=body,
            headers={"Content-Type": content_type, **traced},
        )
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_TIMEOUT_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode()

    def message(self, message_id: int) -> Any:
        """GET /messages/{id} once the message is terminal."""
        found: list[Any] = []

        def terminal() -> bool:
            status, document = self.get(f"/messages/{message_id}")
            if status == 200 and document["state"] in ("SUCCEEDED", "SKIPPED", "DEAD"):
                found.append(document)
            return bool(found)

        self._wait(terminal, f"message {message_id} is not terminal", ANSWER_TIMEOUT_S)
        return found[0]

    def wait_until(self, condition: Callable[[], bool], what: str, seconds: float = 30) -> None:
        self._wait(condition, what, seconds)

    def _wait(self, condition: Callable[[], bool], what: str, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"{what} after {seconds} s:\n{self.log[-4000:]}")
            time.sleep(0.02)


@contextmanager
def running_site(data_dir: Path, settings: Mapping[str, str]) -> Iterator[Site]:
    """A started site that is gone afterwards, whatever happened."""
    site = Site(data_dir, settings)
    try:
        site.start()
        yield site
    finally:
        site.kill()
