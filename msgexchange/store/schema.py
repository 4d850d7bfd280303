"""The schema's version: migrate a store, ask whether it is current (spec 2.3, 5.9)."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine

from msgexchange.store.engine import writing
from msgexchange.store.errors import translated


def upgrade(engine: Engine, *, store_id: str, identity_rule: str) -> None:
    """Bring the schema to head in one transaction; a new store gets this id and identity rule."""
    with translated(), writing(engine).begin() as connection:
        config = _config()
        config.attributes.update(
            connection=connection, store_id=store_id, identity_rule=identity_rule
        )
        command.upgrade(config, "head")


def at_head(engine: Engine) -> bool:
    """True if every migration of this software, and none it does not know, has been applied."""
    with translated(), engine.connect() as connection:
        return _heads(connection) == set(ScriptDirectory.from_config(_config()).get_heads())


def _heads(connection: Connection) -> set[str]:
    return set(MigrationContext.configure(connection).get_current_heads())


def _config() -> Config:
    config = Config()
    folder = str(Path(__file__).parent / "migrations")
    config.set_main_option("script_location", folder.replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
