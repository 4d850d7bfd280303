"""Log lines: one event per line, written by a thread of their own through a bounded queue."""

import json
import logging
import logging.handlers
import queue
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TextIO

QUEUE_LINES_MAX = 10_000

_SECRETS = (
    re.compile(r"(?<=://)([^:/@\s]*):([^@\s/]+)(?=@)"),
    re.compile(r"(?i)\b(password|token|secret|authorization)(['\"]?\s*[=:]\s*['\"]?)([^\s'\",;]+)"),
)


def masked(text: str) -> str:
    """The text without passwords, tokens and DSN secrets."""
    text = _SECRETS[0].sub(r"\1:***", text)
    return _SECRETS[1].sub(r"\1\2***", text)


class _Dropping(logging.handlers.QueueHandler):
    """Counts what does not fit instead of blocking the thread that logs."""

    def __init__(self, lines: "queue.Queue[Any]", dropped: Callable[[], None]) -> None:
        super().__init__(lines)
        self._dropped = dropped

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            self._dropped()


class _Line(logging.Formatter):
    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = getattr(record, "fields", {})
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        text = record.getMessage()
        if record.exc_text:
            text = f"{text}\n{record.exc_text}"
        if self._as_json:
            line: dict[str, object] = {"at": at, "level": record.levelname, "event": text}
            line.update({name: _plain(value) for name, value in fields.items()})
            return masked(json.dumps(line, ensure_ascii=False, default=str))
        told = " ".join(f"{name}={value}" for name, value in fields.items() if value is not None)
        return masked(f"{at} {record.levelname:<7} {text}{' ' if told else ''}{told}")


def _plain(value: object) -> object:
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def start_logging(
    *, level: str, as_json: bool, dropped: Callable[[], None], sink: TextIO
) -> Callable[[], None]:
    """Route all logging through one bounded queue to ``sink``; the answer stops it, flushed."""
    lines: queue.Queue[Any] = queue.Queue(QUEUE_LINES_MAX)
    root = logging.getLogger()
    handler = _Dropping(lines, dropped)
    out = logging.StreamHandler(sink)
    out.setFormatter(_Line(as_json=as_json))
    listener = logging.handlers.QueueListener(lines, out)
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for chatty in ("werkzeug", "alembic"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    listener.start()

    def stop() -> None:
        listener.stop()
        root.removeHandler(handler)
        # Threads that are left behind may still log: without any handler that goes to stderr raw.
        root.addHandler(logging.NullHandler())

    return stop
