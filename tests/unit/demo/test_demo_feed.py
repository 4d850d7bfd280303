"""The feed as a whole: same bytes, right order, counts that add up."""

import re
from collections import Counter
from hashlib import sha256
from itertools import pairwise

import pytest

from msgexchange.demo.departures import Departure, published_day
from msgexchange.demo.feed import Feed, RollBack, Send, build_feed, expected
from msgexchange.lifecycle.states import ErrorClass, MessageState


@pytest.fixture(scope="module")
def day() -> tuple[Departure, ...]:
    return published_day()


@pytest.fixture(scope="module")
def feed(day: tuple[Departure, ...]) -> Feed:
    return build_feed(day)


def identity(text: str) -> str:
    found = re.search(r"<SEQN>(\d{6})</SEQN>.*<TYPE>(\w+)</TYPE><STYP>(\w*)</STYP>", text)
    assert found, text[:300]
    return "|".join(found.groups())


def digest(feed: Feed) -> str:
    return sha256("\n".join(repr(step) for step in feed.steps).encode()).hexdigest()


def test_the_same_day_gives_the_same_bytes(feed: Feed, day: tuple[Departure, ...]) -> None:
    assert digest(build_feed(day)) == digest(feed)


def test_a_day_is_about_ten_thousand_messages(feed: Feed) -> None:
    assert 9_500 <= len(feed.messages) <= 10_500


def test_the_plan_comes_first_and_time_never_goes_back(feed: Feed) -> None:
    first = feed.steps[0]
    assert isinstance(first, Send)
    assert first.kind == "SCHD/DNLD"
    assert all(earlier.at <= later.at for earlier, later in pairwise(feed.steps))


def test_every_flight_is_planned_or_ad_hoc_once(feed: Feed, day: tuple[Departure, ...]) -> None:
    planned = re.findall(r"<FLID>([^<]+)</FLID>", feed.messages[0].text)
    ad_hoc = [
        flid
        for sent in feed.messages
        if sent.kind == "SCHD/ADFT"
        for flid in re.findall(r"<FLID>([^<]+)</FLID>", sent.text)
    ]
    assert ad_hoc
    assert sorted(planned + ad_hoc) == [departure.flid for departure in day]
    assert f"<RCNT>{len(planned)}</RCNT>" in feed.messages[0].text


def test_dttm_is_the_time_of_sending_but_for_duplicates_and_the_stale_plan(feed: Feed) -> None:
    dated_otherwise = [
        sent.reason
        for sent in feed.messages
        if f"<DTTM>{sent.at:%Y%m%d%H%M%S}</DTTM>" not in sent.text
    ]
    assert set(dated_otherwise) <= {"stale-plan", "duplicate-of"}
    assert "stale-plan" in dated_otherwise


def test_sequence_numbers_count_without_a_hole(feed: Feed) -> None:
    originals = [sent for sent in feed.messages if sent.reason != "duplicate-of"]
    numbers = [re.search(r"<SEQN>(\d{6})</SEQN>", sent.text) for sent in originals]
    counted = [int(found[1]) if found else None for found in numbers]
    assert counted.count(None) == 1, "one message lost its number on the way"
    assert all(number in {None, place} for place, number in enumerate(counted, start=1))


def test_an_identity_comes_twice_only_where_a_duplicate_was_planned(feed: Feed) -> None:
    seen: dict[str, tuple[int, Send]] = {}
    distances = []
    for place, sent in enumerate(feed.messages):
        if sent.reason == ErrorClass.MALFORMED:
            continue
        key = identity(sent.text)
        if sent.reason == "duplicate-of":
            original_place, original = seen[key]
            assert original.text == sent.text
            assert original.state is MessageState.SUCCEEDED
            distances.append(place - original_place)
        else:
            assert key not in seen
            seen[key] = (place, sent)
    assert 40 <= len(distances) <= 60
    assert all(1 < distance < 12 for distance in distances)


def test_a_roll_back_is_always_followed_by_a_message(feed: Feed) -> None:
    assert isinstance(feed.steps[-1], Send)
    assert 20 <= sum(isinstance(step, RollBack) for step in feed.steps) <= 40


def test_only_one_unknown_kind_and_at_most_three_of_it(feed: Feed) -> None:
    unknown = [sent.kind for sent in feed.messages if sent.reason == ErrorClass.EXHAUSTED]
    assert unknown == ["WTHR/OBS"] * 3


def test_a_duplicate_flood_never_reaches_the_alarm(feed: Feed) -> None:
    runs = "".join("d" if sent.reason == "duplicate-of" else " " for sent in feed.messages)
    assert "ddd" not in runs


def test_most_kinds_of_the_catalogue_that_concern_departures_occur(feed: Feed) -> None:
    kinds = {sent.kind for sent in feed.messages}
    styps = {kind.removeprefix("FLOP/") for kind in kinds if kind.startswith("FLOP/")}
    assert styps == {
        *("GTDT", "CKDT", "STDT", "CHDT", "DELY", "BRDT", "CHOK", "ROUT", "FDIV"),
        *("SRVT", "VIPF", "MAFL", "ESTM", "ACTM", "CNCL", "BRDO", "LSTC", "BRDC"),
        *("STND", "ACRG", "ACTP", "TERM", "STAT", "RMRK", "FDEL"),
    }
    assert {"SCHD/DNLD", "SCHD/ADFT", "FDEL", "LDM", "REGN", "RSTA"} <= kinds


def test_actual_times_cancellations_and_registrations_are_those_of_the_day(
    feed: Feed, day: tuple[Departure, ...]
) -> None:
    def told(styp: str) -> dict[str, str]:
        form = re.compile(f"<FLOP><FLID>([^<]+)</FLID><{styp}>([^<]*)</{styp}></FLOP>")
        texts = [sent.text for sent in feed.messages if sent.kind == f"FLOP/{styp}"]
        return {found[1]: found[2] for text in texts if (found := form.search(text))}

    actual, estimated = told("ACTM"), told("ESTM")
    for departure in day:
        if departure.left is not None:
            left = f"{departure.left:%d}NOV13{departure.left:%H%M}"
            assert actual[departure.flid] == left
            assert estimated[departure.flid] == left, "the last estimate is the truth"
    assert set(told("CNCL")) == {d.flid for d in day if d.left is None}
    registrations = told("ACRG")
    assert all(
        registrations.get(departure.flid) == departure.tail
        for departure in day
        if departure.left is not None
    )


def test_the_expected_counts_add_up(feed: Feed, day: tuple[Departure, ...]) -> None:
    outcome = expected(feed)
    assert outcome.messages == len(feed.messages)
    assert outcome.messages == (
        outcome.succeeded + sum(outcome.skipped.values()) + sum(outcome.dead.values())
    )
    assert outcome.messages + outcome.rolled_back == len(feed.steps)
    assert outcome.flights_active + outcome.flights_deleted == len(day)
    assert set(outcome.skipped) == {
        *("duplicate-of", "no-match", "deleted", "ignored", "stale-plan"),
    }
    assert outcome.dead == {
        ErrorClass.MALFORMED: 6,
        ErrorClass.EXHAUSTED: 3,
        ErrorClass.PROTOCOL: 2,
    }


@pytest.mark.parametrize("messages_max", [1, 2, 50, 400, 3_000])
def test_a_shorter_feed_keeps_to_its_limit_and_its_counts(
    day: tuple[Departure, ...], messages_max: int
) -> None:
    feed = build_feed(day, messages_max=messages_max)
    assert messages_max // 2 < len(feed.messages) <= messages_max
    assert isinstance(feed.steps[-1], Send)
    assert expected(feed).messages == len(feed.messages)


def test_a_short_feed_still_reaches_the_evening(day: tuple[Departure, ...]) -> None:
    feed = build_feed(day, messages_max=400)
    assert feed.messages[-1].at >= day[-1].scheduled.replace(hour=17, minute=0)
    assert Counter(sent.state for sent in feed.messages).keys() == {
        MessageState.SUCCEEDED,
        MessageState.SKIPPED,
        MessageState.DEAD,
    }


def test_a_limit_above_the_day_changes_nothing(feed: Feed, day: tuple[Departure, ...]) -> None:
    assert build_feed(day, messages_max=100_000) == feed


def test_one_cancelled_flight_alone_is_a_feed(day: tuple[Departure, ...]) -> None:
    cancelled = next(departure for departure in day if departure.left is None)
    outcome = expected(build_feed([cancelled]))
    assert outcome.flights_active + outcome.flights_deleted == 1
    assert not outcome.dead


def test_nothing_to_build_from_is_refused(day: tuple[Departure, ...]) -> None:
    with pytest.raises(ValueError, match="at least one departure"):
        build_feed([])
    with pytest.raises(ValueError, match="messages_max is 0"):
        build_feed(day, messages_max=0)
