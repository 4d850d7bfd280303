"""A site that asks an AODB of our own: requests made, looked at, and waited for."""

import json
import urllib.request
from typing import Any

import pymysql
from sqlalchemy import URL

from servers.production import Environment
from servers.site import Site

TOKEN = "s3cret"
ASKING: Environment = {
    "MSGEXCHANGE_HTTP__ADMIN_TOKEN": TOKEN,
    "MSGEXCHANGE_PIPELINE__POLL_INTERVAL": "50 ms",
}


def ask_for(site: Site, **wanted: str) -> str:
    """The id of a request made over HTTP: a day and perhaps to, or a type."""
    call = urllib.request.Request(
        site.url.rstrip("/") + "/admin/requests",
        data=json.dumps({"by": "test", **wanted}).encode(),
        headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(call, timeout=30) as answer:
        return str(json.loads(answer.read())["requestId"])


def requests(site: Site) -> dict[str, dict[str, Any]]:
    """All of them, by id; also while the process is down."""
    listed = site.run("requests", "--all", "--limit", "10000", "--json")
    assert listed.returncode == 0, listed.stderr
    return {one["requestId"]: one for one in json.loads(listed.stdout)}


class OutTable:
    """COUTMSGS and CMINMSGS as their owner sees them."""

    def __init__(self, url: URL) -> None:
        self._connection = pymysql.connect(
            host=url.host,
            port=url.port or 3306,
            user=url.username,
            database=url.database,
            autocommit=True,
        )

    def execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement, values)
            return list(cursor.fetchall())

    def rows_of(self, seqn: str) -> list[int]:
        """Rows that carry this SEQN."""
        like = f"%<SEQN>{seqn}</SEQN>%"
        found = self.execute("SELECT COUTMSGS_ID FROM COUTMSGS WHERE MSG_TEXT LIKE %s", like)
        return [int(id_) for (id_,) in found]

    def answers(self) -> list[tuple[int, str]]:
        """Ids and texts of what came in."""
        found = self.execute("SELECT CMINMSGS_ID, MSG_TEXT FROM CMINMSGS ORDER BY CMINMSGS_ID")
        return [(int(id_), str(text)) for id_, text in found]

    def close(self) -> None:
        self._connection.close()
