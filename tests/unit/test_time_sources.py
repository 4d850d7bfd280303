"""Jumps of the host's clock and its time zone or locale do nothing: nobody asks for them."""

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "msgexchange"
STOPWATCHES = ("bench/", "app/benching.py")
"""What measures speed on throw-away stores of its own."""
WALL_CLOCK = {
    ("datetime", "now"),
    ("datetime", "today"),
    ("datetime", "utcnow"),
    ("date", "today"),
    ("time", "time"),
    ("time", "time_ns"),
    ("time", "localtime"),
    ("time", "strftime"),
    ("time", "tzset"),
    ("locale", "setlocale"),
}


def reads() -> Iterator[tuple[str, str]]:
    """(file, what) for every place that reads the host's clock, zone or locale."""
    for file in sorted(PACKAGE.rglob("*.py")):
        where = file.relative_to(PACKAGE).as_posix()
        if where.startswith(STOPWATCHES):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Attribute(value=ast.Name(id=owner), attr=attribute):
                    if (owner, attribute) in WALL_CLOCK:
                        yield where, f"{owner}.{attribute}"
                case ast.Name(id="SystemClock") if where != "clock.py":
                    yield where, "SystemClock"
                case _:
                    pass


def test_the_hosts_wall_clock_is_read_in_one_place_and_used_for_nothing_durable() -> None:
    found = set(reads())
    assert found == {
        ("clock.py", "datetime.now"),
        # For waits by its monotonic side alone: the producer is handed a clock, not a time.
        ("app/adapters.py", "SystemClock"),
        # For health and log until the own database is there; nothing durable is written before.
        ("app/serving.py", "SystemClock"),
    }


def test_the_producer_asks_its_clock_for_waits_only() -> None:
    source = (PACKAGE / "broker" / "producer.py").read_text(encoding="utf-8")
    assert "_clock.monotonic()" in source
    assert "_clock.now(" not in source
