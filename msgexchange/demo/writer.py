"""Playing a feed into a mailbox at an even pace."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import assert_never

from msgexchange.demo.feed import Feed, RollBack, Send, Step

CHUNK_MAX = 50
"""Steps between two looks at the clock, also when the writer is behind."""

_TICK_S = 0.05


def play(
    feed: Feed,
    write: Callable[[str], int],
    roll_back: Callable[[], None],
    wait: Callable[[float], None],
    *,
    monotonic: Callable[[], float],
    duration_s: float,
    progress: Callable[[int], None],
) -> int:
    """Write the whole feed in about ``duration_s`` seconds; the number of messages written.

    The plan goes first and at once, then the steps follow evenly by their count. A slow mailbox
    makes it late, never denser than one chunk at a time. ``progress`` is told the messages
    written so far after each chunk. What ``write`` and ``roll_back`` raise ends it.
    """
    started_at = monotonic()
    steps = iter(feed.steps)
    total = len(feed.steps)
    done = written = 0
    while done < total:
        elapsed = monotonic() - started_at
        due = total if elapsed >= duration_s else max(1, int(total * elapsed / duration_s))
        if due <= done:
            next_due_s = (done + 1) * duration_s / total - elapsed
            wait(max(_TICK_S, next_due_s))
            continue
        count = min(due - done, CHUNK_MAX)
        written += _write(islice(steps, count), write, roll_back)
        done += count
        progress(written)
    return written


def _write(
    steps: Iterable[Step], write: Callable[[str], int], roll_back: Callable[[], None]
) -> int:
    """The number of messages among the steps, all done."""
    written = 0
    for step in steps:
        match step:
            case Send():
                write(step.text)
                written += 1
            case RollBack():
                roll_back()
            case _:
                assert_never(step)
    return written
