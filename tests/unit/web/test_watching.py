"""Health, metrics, headers, and the document that describes the calls."""

import pytest
from web_world import (
    HEALTHY,
    T0,
    TOKEN,
    MemoryReads,
    at,
    client,
    deps,
    event,
    flight,
    message,
    pending,
)

from described import DOCUMENT, departures, described, described_calls, routed_calls
from msgexchange.ids import Flid, MailboxId
from msgexchange.ports import ChangeView, ReferenceView
from msgexchange.web import create_app
from msgexchange.web.health import (
    ActorHealth,
    BreakerHealth,
    DependencyHealth,
    Health,
    Leadership,
)

ILL = Health(
    live=True,
    ready=False,
    dependencies={
        "store": DependencyHealth(ok=True),
        "mailbox": DependencyHealth(ok=False, reason="refused", since=T0),
    },
    actors={"pump": ActorHealth(state="paused", restarts=1, step_s=0.5)},
    breakers={"pump": BreakerHealth(dependency="mailbox", since=T0, failures=3, reason="refused")},
    leadership=Leadership(role="standby", owner="b"),
    kafka_bootstrap="127.0.0.1:9092",
)


def test_liveness_and_readiness_are_told_apart() -> None:
    web = client(health=ILL)
    assert web.get("/health/live").status_code == 200
    ready = web.get("/health/ready")
    assert ready.status_code == 503
    assert ready.get_json() == {
        "live": True,
        "ready": False,
        "dependencies": {
            "store": {"ok": True, "reason": None, "since": None},
            "mailbox": {"ok": False, "reason": "refused", "since": "2026-09-03T10:30:00.000Z"},
        },
        "actors": {"pump": {"state": "paused", "restarts": 1, "stepSeconds": 0.5}},
        "breakers": {
            "pump": {
                "dependency": "mailbox",
                "since": "2026-09-03T10:30:00.000Z",
                "failures": 3,
                "reason": "refused",
            }
        },
        "leadership": {"role": "standby", "fence": None, "owner": "b"},
        "kafka": {"bootstrap": "127.0.0.1:9092"},
    }
    assert client(health=HEALTHY).get("/health/ready").status_code == 200
    stuck = Health(live=False, ready=False, leadership=Leadership(role="none"))
    assert client(health=stuck).get("/health/live").status_code == 503


def test_the_metrics_handed_in_are_served_as_prometheus_text() -> None:
    answer = client().get("/metrics")
    assert answer.mimetype == "text/plain"
    assert "msgexchange_messages_total 7.0" in answer.text


@pytest.mark.parametrize("path", ["/health/live", "/nowhere", "/metrics", "/all/flights?limit=0"])
def test_every_answer_carries_the_security_headers(path: str) -> None:
    headers = client().get(path).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", ["/", "/nowhere", "/admin/replay", "/static/x", "/flights/a/b/c"])
def test_an_address_without_a_call_is_a_404_problem(path: str) -> None:
    answer = client().get(path)
    assert answer.status_code == 404
    assert answer.mimetype == "application/problem+json"


def test_the_token_is_not_shown_where_the_dependencies_are() -> None:
    assert TOKEN not in repr(deps(send_token=TOKEN))


def test_the_document_describes_exactly_the_calls_there_are() -> None:
    calls = {call for call in described_calls() if not call[0].startswith("/admin/")}
    assert calls == routed_calls(create_app(deps()))
    assert client().get("/openapi.json").get_json() == DOCUMENT
    assert DOCUMENT["openapi"].startswith("3.1")


def test_real_answers_are_what_the_document_says() -> None:
    change = ChangeView(
        flid=Flid("1"), version=1, message_id=MailboxId(1), at=at(1), changes=[("A", None, "b")]
    )
    record = ReferenceView(
        type="ARPT",
        key="PEK",
        record={"CODE": "PEK"},
        last_message_id=MailboxId(3),
        updated_at=at(1),
    )
    reads = MemoryReads(
        [flight("F1"), flight("F2")],
        {"F1": [change]},
        [message(), pending()],
        stored_records=[record],
    )
    web = client(reads=reads, health=ILL)
    asked = [
        ("/all/flights?limit=1", "/all/flights"),
        ("/all/flights?limit=0", "/all/flights"),
        ("/flights/F1", "/flights/{flid}"),
        ("/flights/F9", "/flights/{flid}"),
        ("/flights/F1/history", "/flights/{flid}/history"),
        ("/flights/F9/history", "/flights/{flid}/history"),
        ("/messages/17", "/messages/{message_id}"),
        ("/messages/18", "/messages/{message_id}"),
        ("/messages/19", "/messages/{message_id}"),
        ("/reference/ARPT", "/reference/{type_}"),
        ("/reference/NONE", "/reference/{type_}"),
        ("/reference/ARPT?limit=0", "/reference/{type_}"),
        ("/health/live", "/health/live"),
        ("/health/ready", "/health/ready"),
        ("/metrics", "/metrics"),
        ("/openapi.json", "/openapi.json"),
    ]
    assert {path: described(web.get(url), path) for url, path in asked} == {
        path: [] for _, path in asked
    }
    path = "/cminmsgs/send"
    bodies = [b"<A/>", b"", b"x" * 30_000]
    assert [described(web.post(path, data=body), path, "post") for body in bodies] == [[], [], []]


def test_the_check_of_answers_sees_what_is_wrong() -> None:
    value = message(events=(event(1),))
    answer = client(reads=MemoryReads(views=[value])).get("/messages/17").get_json()
    del answer["marked"]
    answer["events"][0]["offset"] = "4"
    answer["more"] = 1
    found = departures(answer, {"$ref": "#/components/schemas/Message"})
    assert len(found) == 3
