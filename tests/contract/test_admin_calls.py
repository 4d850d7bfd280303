"""``/admin`` over a real store: the token first, then the same acts as on the command line."""

from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from flask import Flask
from flask.testing import FlaskClient
from replay_world import Site
from werkzeug.test import TestResponse

from described import described, described_calls, path_of, routed_calls
from factories import T0, plan, status
from msgexchange.ids import EventId, RequestId
from msgexchange.lifecycle.request import Request, Wanted
from msgexchange.pipeline.asking import AskingRules, Order, ask
from msgexchange.pipeline.redeliver import NotRedeliverable
from msgexchange.store.sql_store import SqlStore
from msgexchange.web.admin import Admin, admin_calls
from msgexchange.web.problems import install
from msgexchange.web.requests import RequestDesk

BEARER = {"Authorization": "Bearer s3cret"}


class DescribedClient(FlaskClient):
    """Holds every answer against the document of the calls."""

    def open(self, *given: Any, **named: Any) -> TestResponse:
        answer = super().open(*given, **named)
        asked = answer.request
        rule, _ = self.application.url_map.bind("").match(
            asked.path, method=asked.method, return_rule=True
        )
        assert described(answer, path_of(rule.rule), asked.method.lower()) == []
        return answer


def client(store: SqlStore) -> FlaskClient:
    """Message 2 is dead for want of a mended decoder, 3 is applied."""
    site = Site(store, broken={"MENDME"})
    site.take(1, plan("900"))
    site.take(2, status("900", "MENDME", seqn=2))
    site.take(3, status("900", "BRD", seqn=3))
    site.broken = set()

    def refuse(event_id: EventId, _by: str, _reason: str) -> EventId:
        raise NotRedeliverable(f"event {event_id} is not dead")

    def asking(wanted: Wanted, by: str, reason: str | None) -> Request:
        order = Order(request_id=RequestId("r1"), by=by, reason=reason, at=T0)
        rules = AskingRules(sender="M", zone=ZoneInfo("Asia/Shanghai"), reference_types={"ARPT"})
        return ask(store.requests, wanted, order, rules)

    app = Flask("test", static_folder=None)
    app.test_client_class = DescribedClient
    install(app, body_bytes_max=10_000)
    admin = Admin(
        token="s3cret",
        desk=site.letters,
        replays=site.desk,
        audit=store.audit,
        redeliver=refuse,
        timezone="Asia/Shanghai",
        requests=RequestDesk(asking, lambda every, n: store.requests.recent(every=every, limit=n)),
    )
    app.register_blueprint(admin_calls(admin))
    app.extensions["site"] = site
    return app.test_client()


def ids(answer: dict[str, Sequence[dict[str, int]]]) -> list[int]:
    return [one["id"] for one in answer["letters"]]


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic s3cret"}]
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/admin/dead"),
        ("GET", "/admin/audit"),
        ("POST", "/admin/discard"),
        ("POST", "/admin/requests"),
    ],
)
def test_without_the_token_nothing_is_told_or_done(
    memory_store: SqlStore, method: str, path: str, headers: dict[str, str]
) -> None:
    answer = client(memory_store).open(path, method=method, headers=headers)
    assert answer.status_code == 401
    assert "letters" not in (answer.get_json(force=True) or {})


def test_letters_are_listed_with_filters_and_discarded(memory_store: SqlStore) -> None:
    asking = client(memory_store)
    body = asking.get("/admin/dead", headers=BEARER).get_json()
    assert ids(body) == [2]
    assert body["letters"][0]["flids"] == ["900"]
    assert body["letters"][0]["replayable"] is True
    assert "mend" in body["letters"][0]["next"]
    filtered = asking.get("/admin/dead?class=PROTOCOL", headers=BEARER).get_json()
    assert ids(filtered) == []
    act = {"ids": [2], "by": "jl", "reason": "sent again"}
    assert asking.post("/admin/discard", json=act, headers=BEARER).get_json() == {"discarded": [2]}
    again = asking.post("/admin/discard", json=act, headers=BEARER)
    assert again.status_code == 409
    assert "discarded already" in again.get_json(force=True)["detail"]
    [row] = asking.get("/admin/audit?by=jl", headers=BEARER).get_json()["acts"]
    assert row["messages"] == [{"id": 2, "outcome": "discarded"}]


@pytest.mark.parametrize(
    "body", [[], {"ids": [1]}, {"ids": ["1"], "by": "a", "reason": "b"}, {"id": 1}, {"ids": [True]}]
)
def test_a_body_that_is_not_understood_is_refused(memory_store: SqlStore, body: object) -> None:
    answer = client(memory_store).post("/admin/discard", json=body, headers=BEARER)
    assert answer.status_code == 400


@pytest.mark.parametrize("query", ["class=NONE", "since=x", "skipped=yes", "limit=0", "what=1"])
def test_a_filter_that_is_not_understood_is_refused(memory_store: SqlStore, query: str) -> None:
    answer = client(memory_store).get(f"/admin/dead?{query}", headers=BEARER)
    assert answer.status_code == 400


def test_what_cannot_be_redelivered_is_refused_with_its_reason(memory_store: SqlStore) -> None:
    act = {"eventId": 7, "by": "jl", "reason": "x"}
    answer = client(memory_store).post("/admin/redeliver", json=act, headers=BEARER)
    assert (answer.status_code, answer.get_json(force=True)["detail"]) == (
        409,
        "event 7 is not dead",
    )


def test_a_replay_is_planned_ordered_and_told_of(memory_store: SqlStore) -> None:
    asking = client(memory_store)
    seen = asking.post("/admin/replay/plan", json={"ids": [2]}, headers=BEARER).get_json()
    [one] = seen["messages"]
    assert (one["outcome"], one["backwards"]) == ("SUCCEEDED", True)
    [change] = one["changes"]
    assert (change["old"], change["new"], change["backwards"]["message"]) == ("BRD", "MENDME", 3)
    act = {"token": seen["token"], "by": "jl", "reason": "mended"}
    refused = asking.post("/admin/replay/run", json=act, headers=BEARER)
    assert refused.status_code == 409
    act["allowRegression"] = True
    answer = asking.post("/admin/replay/run", json=act, headers=BEARER)
    assert answer.status_code == 202
    path = f"/admin/replay/orders/{answer.get_json()['order']}"
    assert asking.get(path, headers=BEARER).get_json()["outcome"] is None
    asking.application.extensions["site"].orders.carry_out_next()
    told = asking.get(path, headers=BEARER).get_json()
    assert (told["done"], told["messages"]) == (True, [2])
    assert asking.get("/admin/replay/orders/none", headers=BEARER).status_code == 404


def test_a_request_is_made_and_listed(memory_store: SqlStore) -> None:
    asking = client(memory_store)
    given = {"day": "2026-09-03", "to": "2026-09-04", "by": "jl", "reason": "lost"}
    answer = asking.post("/admin/requests", json=given, headers=BEARER)
    assert answer.status_code == 202
    body = answer.get_json()
    assert (body["state"], body["days"]) == ("REGISTERED", ["2026-09-03", "2026-09-04"])
    listed = asking.get("/admin/requests?all=true", headers=BEARER).get_json()
    assert listed == {"count": 1, "requests": [body]}


@pytest.mark.parametrize(
    ("given", "status_code", "told"),
    [
        ({"by": "jl"}, 400, "give a day for a plan"),
        ({"by": "jl", "day": "2026-09-03", "type": "ARPT"}, 400, "give a day for a plan"),
        ({"by": "jl", "day": "3.9."}, 400, "yyyy-MM-dd"),
        ({"by": "jl", "day": "2026-09-03", "to": "2026-09-02"}, 400, "before the first"),
        ({"day": "2026-09-03"}, 400, "by"),
        ({"by": "jl", "type": "NOPE"}, 409, "no reference type"),
    ],
)
def test_a_request_that_cannot_be_made_says_why(
    memory_store: SqlStore, given: dict[str, str], status_code: int, told: str
) -> None:
    asking = client(memory_store)
    answer = asking.post("/admin/requests", json=given, headers=BEARER)
    assert answer.status_code == status_code
    assert told in answer.get_json()["detail"]
    assert memory_store.requests.recent(every=True, limit=9) == []


def test_every_call_is_described(memory_store: SqlStore) -> None:
    calls = {call for call in described_calls() if call[0].startswith("/admin/")}
    assert calls == routed_calls(client(memory_store).application)
