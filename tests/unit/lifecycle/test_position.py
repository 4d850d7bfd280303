"""A committed position: what it says to the store that reads it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgexchange.ids import EventId
from msgexchange.lifecycle.position import (
    GoOn,
    Known,
    Mark,
    Position,
    Published,
    Stop,
    Verdict,
    judge,
)

HERE = "ab12"


def position(
    event_id: int = 7,
    nonce: int = 70,
    generation: int = 2,
    store_id: str = HERE,
    flush_id: str | None = None,
) -> Position:
    return Position(
        store_id=store_id,
        generation=generation,
        event_id=EventId(event_id),
        nonce=nonce,
        flush_id=flush_id,
    )


def verdict(
    found: Position | None, *, mark: tuple[int, int] | None = None, here: Known | None = None
) -> Verdict:
    return judge(
        found,
        store_id=HERE,
        generation=2,
        mark=None if mark is None else Mark(EventId(mark[0]), mark[1]),
        here=here,
    )


@given(
    st.from_regex(r"[0-9a-f]{1,36}", fullmatch=True),
    st.integers(1, 10_000),
    st.integers(0, 2**62),
    st.integers(0, 2**62),
    st.none() | st.from_regex(r"[0-9]{1,9}-[0-9]{1,9}", fullmatch=True),
)
def test_a_position_comes_back_as_it_was_written(
    store_id: str, generation: int, event_id: int, nonce: int, flush_id: str | None
) -> None:
    written = Position(
        store_id=store_id,
        generation=generation,
        event_id=EventId(event_id),
        nonce=nonce,
        flush_id=flush_id,
    )
    assert Position.decode(written.encode()) == written


@pytest.mark.parametrize("text", ["", "1/a/b", "2/ab12/1/1/1/", "1/ab12/x/1/1/"])
def test_anything_else_is_no_position(text: str) -> None:
    with pytest.raises(ValueError):
        Position.decode(text)


def test_a_new_store_on_a_new_cluster_goes_on() -> None:
    assert verdict(None) == GoOn()


def test_a_lost_position_is_told_and_the_stores_record_counts() -> None:
    answer = verdict(None, mark=(7, 70))
    assert isinstance(answer, GoOn)
    assert "event 7" in (answer.doubt or "")


def test_the_position_the_store_has_marked_needs_nothing() -> None:
    assert verdict(position(), mark=(7, 70), here=Known(70)) == GoOn()
    # Its event may be gone from the store by then.
    assert verdict(position(), mark=(7, 70), here=None) == GoOn()


def test_a_window_that_went_out_unmarked_is_published() -> None:
    assert verdict(position(), mark=(3, 30), here=Known(70)) == Published(position())
    assert verdict(position(), mark=None, here=Known(70)) == Published(position())


@pytest.mark.parametrize("here", [None, Known(71)])
def test_an_event_that_is_not_here_means_a_restored_store(here: Known | None) -> None:
    answer = verdict(position(), mark=(3, 30), here=here)
    assert isinstance(answer, Stop)
    assert "store new-generation" in answer.reason


def test_after_a_new_generation_the_older_position_is_behind_us() -> None:
    answer = verdict(position(generation=1), mark=(3, 30), here=None)
    assert isinstance(answer, GoOn)
    assert "generation 1" in (answer.doubt or "")
    # The very event, whatever the generation: it is out.
    known = position(generation=1)
    assert verdict(known, mark=(3, 30), here=Known(70)) == Published(known)


def test_a_position_of_a_later_generation_says_how_far_to_raise_ours() -> None:
    answer = verdict(position(generation=5), mark=(7, 70), here=Known(70))
    assert isinstance(answer, Stop)
    assert "--above 5" in answer.reason


def test_a_position_of_another_store_stops() -> None:
    answer = verdict(position(store_id="cd34"), mark=(7, 70), here=Known(70))
    assert isinstance(answer, Stop)
    assert "cd34" in answer.reason
    assert "new-id" in answer.reason


FLUSHED = position(flush_id="f1")


@pytest.mark.parametrize("here", [Known(70, flush_id="f1"), Known(70, waits=False, flush_id="f2")])
def test_a_flush_that_the_store_knows_of_is_published(here: Known) -> None:
    assert verdict(FLUSHED, mark=(3, 30), here=here) == Published(FLUSHED)


@pytest.mark.parametrize("flush_id", [None, "f0"])
def test_an_event_that_waits_though_a_flush_took_it_means_a_restored_store(
    flush_id: str | None,
) -> None:
    here = Known(70, flush_id=flush_id)
    answer = verdict(FLUSHED, mark=(3, 30), here=here)
    assert isinstance(answer, Stop)
    assert "store new-generation" in answer.reason
    behind_us = position(generation=1, flush_id="f1")
    assert isinstance(verdict(behind_us, mark=(3, 30), here=here), GoOn)
