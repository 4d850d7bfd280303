"""Playing a feed against a clock that only moves when somebody waits or writes."""

from datetime import datetime

import pytest

from msgexchange.demo.feed import Feed, RollBack, Send, Step
from msgexchange.demo.writer import CHUNK_MAX, play
from msgexchange.lifecycle.states import MessageState

AT = datetime(2013, 11, 27, 8)


def sending(text: str) -> Send:
    return Send(
        at=AT, text=text, kind="FLOP/STAT", state=MessageState.SUCCEEDED, reason="", flights=1
    )


class Stage:
    """Clock, mailbox and audience of one performance."""

    def __init__(self, *, write_s: float = 0.0) -> None:
        self.now_s = 100.0
        self.write_s = write_s
        self.written: list[str] = []
        self.written_at_s: list[float] = []
        self.progress: list[int] = []

    def write(self, text: str) -> int:
        self.now_s += self.write_s
        self.written.append(text)
        self.written_at_s.append(self.now_s - 100.0)
        return len(self.written)

    def roll_back(self) -> None:
        self.written.append("rolled back")

    def wait(self, seconds: float) -> None:
        assert seconds > 0
        self.now_s += seconds

    def play(self, *steps: Step, duration_s: float) -> int:
        return play(
            Feed(steps),
            self.write,
            self.roll_back,
            self.wait,
            monotonic=lambda: self.now_s,
            duration_s=duration_s,
            progress=self.progress.append,
        )


def test_everything_is_written_once_and_in_order() -> None:
    stage = Stage()
    steps: list[Step] = [sending("plan"), RollBack(AT), sending("gate"), sending("stand")]
    assert stage.play(*steps, duration_s=1.0) == 3
    assert stage.written == ["plan", "rolled back", "gate", "stand"]


def test_the_plan_is_written_at_once_and_the_rest_evenly_over_the_time() -> None:
    stage = Stage()
    stage.play(*(sending(str(place)) for place in range(600)), duration_s=60.0)
    assert stage.written_at_s[0] == 0.0
    for place, at_s in enumerate(stage.written_at_s[1:], start=1):
        assert at_s == pytest.approx(place / 10, abs=0.2)


def test_progress_tells_the_messages_written_and_ends_with_all_of_them() -> None:
    stage = Stage()
    steps: list[Step] = []
    for place in range(200):
        steps += [sending(str(place)), RollBack(AT)]
    assert stage.play(*steps, duration_s=5.0) == 200
    assert stage.progress == sorted(stage.progress)
    assert stage.progress[-1] == 200


def test_a_slow_mailbox_makes_it_late_but_never_denser_than_a_chunk() -> None:
    stage = Stage(write_s=0.1)
    count = 4 * CHUNK_MAX
    assert stage.play(*(sending(str(place)) for place in range(count)), duration_s=2.0) == count
    assert stage.now_s - 100.0 == pytest.approx(count * 0.1)
    steps_between = [b - a for a, b in zip(stage.progress, stage.progress[1:], strict=False)]
    assert max(steps_between) == CHUNK_MAX


def test_without_duration_nothing_waits() -> None:
    stage = Stage()
    assert stage.play(*(sending(str(place)) for place in range(120)), duration_s=0.0) == 120
    assert stage.now_s == 100.0


def test_an_empty_feed_writes_nothing() -> None:
    stage = Stage()
    assert stage.play(duration_s=1.0) == 0
    assert stage.progress == []


def test_a_mailbox_that_fails_ends_the_performance() -> None:
    stage = Stage()

    def refuse(text: str) -> int:
        raise ConnectionError(text)

    with pytest.raises(ConnectionError, match="plan"):
        play(
            Feed((sending("plan"),)),
            refuse,
            stage.roll_back,
            stage.wait,
            monotonic=lambda: stage.now_s,
            duration_s=1.0,
            progress=stage.progress.append,
        )
