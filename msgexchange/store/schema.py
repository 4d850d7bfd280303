"""The schema's version: migrate a store, ask whether it is current (spec 2.3, 5.9)."""

from hashlib import sha256
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine

from msgexchange.store.engine import writing
from msgexchange.store.errors import translated

MIGRATIONS = Path(__file__).parent / "migrations"
PUBLISHED = MIGRATIONS / "published.sha256"
"""Digest and name of each migration, as ``sha256sum`` writes and checks them."""


class MigrationEdited(Exception):
    """A migration is not the one that was published: stores would come to differ."""


def check_migrations(folder: Path = MIGRATIONS) -> None:
    """``MigrationEdited`` unless every migration is as it was published (spec 5.9)."""
    lines = (folder / PUBLISHED.name).read_text(encoding="ascii").splitlines()
    published = {name: digest for digest, name in (line.split() for line in lines)}
    found = {
        f"versions/{file.name}": sha256(file.read_bytes()).hexdigest()
        for file in sorted((folder / "versions").glob("r*.py"))
    }
    wrong = sorted(name for name in published | found if published.get(name) != found.get(name))
    if wrong:
        raise MigrationEdited(
            f"not as published: {', '.join(wrong)}; install msgexchange anew. A change of the "
            f"schema is a new migration, with its line in {PUBLISHED.name}"
        )


def upgrade(engine: Engine, *, store_id: str, identity_rule: str) -> None:
    """Bring the schema to head in one transaction; a new store gets this id and identity rule.

    ``MigrationEdited`` before anything is done.
    """
    check_migrations()
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
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
