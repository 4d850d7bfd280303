"""``store upgrade`` on PostgreSQL: data is touched only once a backup is said to exist."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import text

from msgexchange.app.main import main
from msgexchange.store import schema
from msgexchange.store.engine import open_engine
from servers.production import Environment

pytestmark = [pytest.mark.postgres, pytest.mark.mysql, pytest.mark.kafka]

OLDER = "0003"


@pytest.fixture
def older(
    production_settings: Environment,
    empty_postgres_database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[str]:
    """A site whose own database has an older schema and a message in it."""
    for name, value in production_settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MSGEXCHANGE_STORE__URL", empty_postgres_database)
    engine = open_engine(empty_postgres_database)
    with engine.begin() as connection:
        config = schema._config()
        config.attributes.update(connection=connection, store_id="old", identity_rule="plain")
        command.upgrade(config, OLDER)
        connection.execute(
            text(
                "INSERT INTO proc_state (msg_id, state, attempts, backfill_attempts,"
                " received_at) VALUES (1, 'PENDING', 0, 0, now())"
            )
        )
    yield empty_postgres_database
    engine.dispose()


def at_head(url: str) -> bool:
    engine = open_engine(url)
    try:
        return schema.at_head(engine)
    finally:
        engine.dispose()


def test_a_store_with_data_is_upgraded_only_once_a_backup_is_said_to_exist(
    older: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--data-dir", str(tmp_path), "store", "upgrade"]) == 2
    assert "--backup-done" in capsys.readouterr().err
    assert not at_head(older)
    assert main(["--data-dir", str(tmp_path), "store", "upgrade", "--backup-done"]) == 0
    assert at_head(older)
    assert main(["--data-dir", str(tmp_path), "store", "upgrade"]) == 0
    assert "already" in capsys.readouterr().out
