"""The Telemetry port: metrics and log lines of what steps tell."""

import logging
from collections import deque
from dataclasses import dataclass
from datetime import datetime

from msgexchange.clock import Clock
from msgexchange.telemetry.instruments import Instruments

ALERTS_KEPT = 100

_WARNINGS = frozenset(
    {
        "message.failed",
        "event.failed",
        "request.failed",
        "actor.failed",
        "mark.failed",
        "entry.enqueue-failed",
    }
)


@dataclass(frozen=True, slots=True)
class Alert:
    """Something a person must know."""

    at: datetime
    name: str
    text: str


class Journal:
    """Counts, observes and logs; keeps the last alerts for status and console."""

    def __init__(self, instruments: Instruments, clock: Clock) -> None:
        self._instruments = instruments
        self._clock = clock
        self._log = logging.getLogger("msgexchange")
        self._alerts: deque[Alert] = deque(maxlen=ALERTS_KEPT)

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """The last alerts, oldest first."""
        return tuple(self._alerts)

    def alert(self, name: str, text: str) -> None:
        self._alerts.append(Alert(self._clock.now(), name, text))
        self._instruments.count("alerts", 1, {"name": name})
        self._log.warning("alert", extra={"fields": {"name": name, "text": text}})

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        self._instruments.count(name, amount, labels)

    def observe(self, name: str, seconds: float) -> None:
        self._instruments.observe(name, seconds)

    def log(self, event: str, **fields: object) -> None:
        level = logging.WARNING if event in _WARNINGS else logging.INFO
        self._log.log(level, event, extra={"fields": fields})
