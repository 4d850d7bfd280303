"""A shadow run reads the production mailbox and leaves no trace in it."""

from pathlib import Path

import pymysql
import pytest
from sqlalchemy import URL

from factories import plan, status
from servers.production import Environment
from servers.site import running_site

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.mysql,
    pytest.mark.kafka,
    pytest.mark.process,
]


def test_a_shadow_run_processes_everything_and_writes_nothing_to_the_mailbox(
    tmp_path: Path, owned_mailbox: URL, production_settings: Environment
) -> None:
    connection = pymysql.connect(
        host=owned_mailbox.host,
        port=owned_mailbox.port or 3306,
        user=owned_mailbox.username,
        database=owned_mailbox.database,
        autocommit=True,
    )
    with connection, connection.cursor() as cursor:
        for text in (plan("9001"), status("9001", "BRD")):
            cursor.execute("INSERT INTO CMINMSGS (MSG_TEXT) VALUES (%s)", (text,))
        before = rows(cursor)
        settings = {**production_settings, "MSGEXCHANGE_PROFILE": "shadow"}
        with running_site(tmp_path / "site", settings) as site:
            assert site.message(2)["state"] == "SUCCEEDED"
            refused, text = site.send(plan("9002").encode())
            assert refused == 403, text
            site.wait_until(
                lambda: '"clean": true' in site.run("verify", "--kafka", "--json").stdout,
                "the shadow verifies clean",
            )
            assert site.stop() == 0
        assert rows(cursor) == before


def rows(cursor: pymysql.cursors.Cursor) -> object:
    cursor.execute("SELECT * FROM CMINMSGS ORDER BY CMINMSGS_ID")
    return cursor.fetchall()
