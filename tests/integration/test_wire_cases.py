"""Every message case, through HTTP into the embedded profile and MariaDB into the real one."""

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from sqlalchemy import URL

from servers.site import Site, running_site

CASES = sorted((Path(__file__).parents[1] / "cases").glob("*.json"))
FAST_RETRIES = {
    "MSGEXCHANGE_PIPELINE__BACKOFF": "10 ms",
    "MSGEXCHANGE_PIPELINE__MAX_COMMIT_DELAY": "1 s",
}


def load(path: Path) -> dict[str, Any]:
    case: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return case


def holds(site: Site, case: dict[str, Any], ids: list[int]) -> None:
    """What the case expects, once all its messages are terminal."""
    messages = [site.message(id_) for id_ in ids]
    expected = case["expect"]
    assert len(messages) == len(expected["messages"])
    for message, wanted in zip(messages, expected["messages"], strict=True):
        assert message["state"] == wanted["state"], message
        if "errorClass" in wanted:
            assert message["errorClass"] == wanted["errorClass"]
        assert wanted.get("error", "") in (message["error"] or "")
        assert set(wanted.get("unknown", ())) <= set(message["unknown"])
        assert message["attempts"] <= wanted.get("attempts_max", 99)
    for flid, wanted in expected.get("flights", {}).items():
        status, flight = site.get(f"/flights/{flid}")
        assert status == 200, flight
        for name in wanted.get("absent", ()):
            assert name not in flight["state"]
        for key, value in wanted.items():
            if key == "state":
                assert {name: flight["state"].get(name) for name in value} == value
            elif key != "absent":
                assert flight[key] == value
    for flid in expected.get("no_flights", ()):
        status, _ = site.get(f"/flights/{flid}")
        assert status == 404


@pytest.mark.process
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case_holds_through_http_into_the_embedded_profile(path: Path, tmp_path: Path) -> None:
    case = load(path)
    with running_site(tmp_path / "site", FAST_RETRIES) as site:
        ids = []
        for send in case["sends"]:
            status, text = site.send(base64.b64decode(send["body_base64"]), send["content_type"])
            assert status == send.get("http", 200), text
            if status == 200:
                ids.append(int(text))
        holds(site, case, ids)
        assert site.stop() == 0


@pytest.fixture
def insert(owned_mailbox: URL) -> Iterator[Callable[[str], int]]:
    """Writes one row as the airport's database does, and commits."""
    connection = pymysql.connect(
        host=owned_mailbox.host,
        port=owned_mailbox.port or 3306,
        user=owned_mailbox.username,
        database=owned_mailbox.database,
        charset="utf8mb4",
    )

    def write(text: str) -> int:
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO CMINMSGS (MSG_TEXT, RECV_TIME) VALUES (%s, NOW(3))", (text,)
            )
            id_ = cursor.lastrowid
        connection.commit()
        return int(id_)

    yield write
    connection.close()


@pytest.mark.postgres
@pytest.mark.mysql
@pytest.mark.kafka
@pytest.mark.process
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case_holds_through_mariadb_into_the_real_profile(
    path: Path,
    tmp_path: Path,
    insert: Callable[[str], int],
    production_settings: dict[str, str],
) -> None:
    case = load(path)
    accepted = [send for send in case["sends"] if send.get("http", 200) == 200]
    with running_site(tmp_path / "site", {**production_settings, **FAST_RETRIES}) as site:
        ids = [insert(_mailbox_text(send)) for send in accepted]
        holds(site, case, ids)
        assert site.stop() == 0


def _mailbox_text(send: dict[str, str]) -> str:
    """The text as the mailbox holds it: decoded, whatever bytes it came in."""
    octets = base64.b64decode(send["body_base64"])
    try:
        return octets.decode("utf-8")
    except UnicodeDecodeError:
        return octets.decode("gb18030")
