"""``GET /all/flights``, ``/flights/{flid}`` and its history."""

from datetime import date
from typing import Any

import pytest
from web_world import MemoryReads, at, client, flight

from msgexchange.flight.past import PastFlight
from msgexchange.flight.state import FlightStatus
from msgexchange.ids import Flid, MailboxId
from msgexchange.ports import (
    ChangeView,
    Dependency,
    HistoryFailed,
    RetryNow,
    Unavailable,
)

SCHD_VALUE = (
    b'{"flid":"900123","lastMessageId":17,"operationDay":"2026-09-03","state":{"CNCL":"",'
    b'"FLNO":"CZ3101","GTDT":[{"GATE":"A12","GTNO":"1"}]},"stateVersion":3,"status":"ACTIVE",'
    b'"timezone":"Asia/Shanghai"}'
)


def flids(page: Any) -> list[str]:
    return [one["flid"] for one in page["flights"]]


def test_a_flight_is_served_as_the_bytes_of_its_schd_value() -> None:
    answer = client(reads=MemoryReads([flight("900123")])).get("/flights/900123")
    assert answer.data == SCHD_VALUE
    assert answer.mimetype == "application/json"


def test_a_page_of_flights_has_exactly_the_shape_of_the_contract() -> None:
    answer = client(reads=MemoryReads([flight("900123")])).get("/all/flights")
    expected = b'{"asOf":"2026-09-03T10:30:00.000Z","count":1,"flights":[%s],"next":null}'
    assert answer.data == expected % SCHD_VALUE


def test_the_pages_of_a_walk_hold_every_flight_once_in_flid_order() -> None:
    web = client(reads=MemoryReads([flight(f"F{n}") for n in (3, 1, 5, 2, 4)]))
    first = web.get("/all/flights?limit=2").get_json()
    second = web.get(f"/all/flights?limit=2&after={first['next']}").get_json()
    third = web.get(f"/all/flights?limit=2&after={second['next']}").get_json()
    assert [flids(page) for page in (first, second, third)] == [["F1", "F2"], ["F3", "F4"], ["F5"]]
    assert (first["count"], third["count"], third["next"]) == (2, 1, None)


def test_a_page_that_ends_with_the_last_flight_has_no_next() -> None:
    web = client(reads=MemoryReads([flight("F1"), flight("F2")]))
    assert web.get("/all/flights?limit=2").get_json()["next"] is None


def test_only_active_flights_are_listed_unless_the_status_says_otherwise() -> None:
    web = client(reads=MemoryReads([flight("F1"), flight("F2", status=FlightStatus.DELETED)]))
    assert flids(web.get("/all/flights").get_json()) == ["F1"]
    assert flids(web.get("/all/flights?status=DELETED").get_json()) == ["F2"]
    assert flids(web.get("/all/flights?status=ALL").get_json()) == ["F1", "F2"]


def test_flights_of_one_operation_day_can_be_asked_for() -> None:
    web = client(
        reads=MemoryReads(
            [flight("F1"), flight("F2", operation_day=date(2026, 9, 4)), flight("F3")]
        )
    )
    assert flids(web.get("/all/flights?operationDay=2026-09-04").get_json()) == ["F2"]


def test_a_parameter_without_a_value_is_not_given() -> None:
    web = client(reads=MemoryReads([flight("F1")]))
    answer = web.get("/all/flights?operationDay=&status=&limit=&after=")
    assert answer.get_json()["count"] == 1


@pytest.mark.parametrize(
    ("query", "parameter", "accepted"),
    [
        ("limit=0", "limit", "1 to 10000"),
        ("limit=10001", "limit", "1 to 10000"),
        ("limit=-1", "limit", "1 to 10000"),
        ("limit=many", "limit", "1 to 10000"),
        ("limit=%D9%A3", "limit", "1 to 10000"),
        ("limit=" + "9" * 5000, "limit", "1 to 10000"),
        ("status=active", "status", "ACTIVE, DELETED or ALL"),
        ("operationDay=20260903", "operationDay", "2026-09-03"),
        ("operationDay=2026-02-30", "operationDay", "2026-09-03"),
        ("after=a%00b", "after", "FLID"),
        ("day=2026-09-03", "day", "operationDay, status, limit, after"),
        ("limit=1&limit=2", "limit", "once"),
    ],
)
def test_a_bad_parameter_is_named_with_what_it_accepts(
    query: str, parameter: str, accepted: str
) -> None:
    answer = client().get(f"/all/flights?{query}")
    assert answer.status_code == 400
    problem = answer.get_json(force=True)
    assert problem["parameter"] == parameter
    assert parameter in problem["detail"]
    assert accepted in problem["detail"]


def test_the_largest_page_is_accepted() -> None:
    assert client().get("/all/flights?limit=10000").status_code == 200


@pytest.mark.parametrize(
    "path", ["/flights/900124", "/flights/%00", "/flights/" + "x" * 33, "/flights/900124/history"]
)
def test_an_unknown_flight_is_a_404_with_an_error_text(path: str) -> None:
    answer = client(reads=MemoryReads([flight("900123")])).get(path)
    assert answer.status_code == 404
    assert answer.mimetype == "application/problem+json"
    assert answer.get_json(force=True)["error"]


def test_the_history_names_the_message_behind_each_change() -> None:
    change = ChangeView(
        flid=Flid("900123"),
        version=3,
        message_id=MailboxId(17),
        at=at(3),
        changes=[("GTDT", None, ({"GATE": "A12"},)), ("STAT", "BRD", None)],
    )
    web = client(reads=MemoryReads(versions={"900123": [change]}))
    assert web.get("/flights/900123/history").get_json() == {
        "flid": "900123",
        "lives": [],
        "versions": [
            {
                "version": 3,
                "messageId": 17,
                "at": "2026-09-03T10:30:03.000Z",
                "changes": [
                    {"field": "GTDT", "old": None, "new": [{"GATE": "A12"}]},
                    {"field": "STAT", "old": "BRD", "new": None},
                ],
            }
        ],
    }


def test_a_known_flight_without_recorded_changes_has_an_empty_history() -> None:
    web = client(reads=MemoryReads([flight("900123")]))
    answer = web.get("/flights/900123/history").get_json()
    assert answer == {"flid": "900123", "lives": [], "versions": []}


def test_a_swept_flight_is_found_in_its_history() -> None:
    def lives(flid: Flid) -> list[PastFlight]:
        return [PastFlight(flight("900123"), at(3))] if flid == "900123" else []

    web = client(written_lives=lives)
    answer = web.get("/flights/900123/history").get_json()
    assert [life["flid"] for life in answer["lives"]] == ["900123"]
    assert answer["lives"][0]["writtenAt"] == "2026-09-03T10:30:03.000Z"
    assert web.get("/flights/900124/history").status_code == 404


def test_what_was_written_but_not_deleted_is_no_past_life() -> None:
    def lives(_flid: Flid) -> list[PastFlight]:
        return [PastFlight(flight("900123"), at(3))]

    web = client(reads=MemoryReads([flight("900123")]), written_lives=lives)
    assert web.get("/flights/900123/history").get_json()["lives"] == []


def test_a_history_that_cannot_be_read_is_a_503() -> None:
    def lives(_flid: Flid) -> list[PastFlight]:
        raise HistoryFailed("2026-09-03.ndjson.gz cannot be read")

    assert client(written_lives=lives).get("/flights/900123/history").status_code == 503


@pytest.mark.parametrize(
    "failure", [Unavailable(Dependency.STORE, "refused by 10.0.0.1"), RetryNow("deadlock in x")]
)
@pytest.mark.parametrize(
    "path", ["/all/flights", "/flights/900123", "/flights/900123/history", "/messages/1"]
)
def test_a_store_that_is_down_is_a_503_with_a_time_to_try_again(
    path: str, failure: Exception
) -> None:
    answer = client(reads=MemoryReads(failure=failure)).get(path)
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert str(failure) not in answer.text
