"""``/admin`` over a real store: the token first, then the same acts as on the command line."""

from collections.abc import Sequence

import pytest
from flask import Flask
from flask.testing import FlaskClient
from store_builders import T0, commit, lead, receive, result

from factories import status
from fakes.line import decode_or_die
from msgexchange.ids import EventId
from msgexchange.lifecycle.states import ErrorClass, MessageState
from msgexchange.pipeline.letters import LetterDesk
from msgexchange.pipeline.redeliver import NotRedeliverable
from msgexchange.ports import Batch
from msgexchange.store.sql_store import SqlStore
from msgexchange.web.admin import Admin, admin_calls
from msgexchange.web.problems import install

BEARER = {"Authorization": "Bearer s3cret"}


def client(store: SqlStore) -> FlaskClient:
    fence = lead(store)
    receive(store, 1, 2)
    dead = result(
        1,
        MessageState.DEAD,
        error_class=ErrorClass.EXHAUSTED,
        last_cause=ErrorClass.UNSUPPORTED,
        error="no such kind",
        dead_text=status("900", "BRD"),
    )
    commit(store, fence, Batch(messages=[dead, result(2)]))

    def refuse(event_id: EventId, _by: str, _reason: str) -> EventId:
        raise NotRedeliverable(f"event {event_id} is not dead")

    app = Flask("test")
    install(app, body_bytes_max=10_000)
    desk = LetterDesk(store.letters, decode=decode_or_die, now=lambda: T0)
    admin = Admin(
        token="s3cret",
        desk=desk,
        audit=store.audit,
        redeliver=refuse,
        timezone="Asia/Shanghai",
    )
    app.register_blueprint(admin_calls(admin))
    return app.test_client()


def ids(answer: dict[str, Sequence[dict[str, int]]]) -> list[int]:
    return [one["id"] for one in answer["letters"]]


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic s3cret"}]
)
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/admin/dead"), ("GET", "/admin/audit"), ("POST", "/admin/discard")],
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
    assert ids(body) == [1]
    assert body["letters"][0]["flids"] == ["900"]
    assert body["letters"][0]["replayable"] is True
    assert "catalogue" in body["letters"][0]["next"]
    filtered = asking.get("/admin/dead?class=PROTOCOL", headers=BEARER).get_json()
    assert ids(filtered) == []
    act = {"ids": [1], "by": "jl", "reason": "sent again"}
    assert asking.post("/admin/discard", json=act, headers=BEARER).get_json() == {"discarded": [1]}
    again = asking.post("/admin/discard", json=act, headers=BEARER)
    assert again.status_code == 409
    assert "discarded already" in again.get_json(force=True)["detail"]
    [row] = asking.get("/admin/audit?by=jl", headers=BEARER).get_json()["acts"]
    assert row["messages"] == [{"id": 1, "outcome": "discarded"}]


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
