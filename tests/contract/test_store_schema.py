"""The migrated schema is the one the code believes in, on both databases."""

import shutil
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import CheckConstraint, Engine, create_engine, inspect
from sqlalchemy.dialects import oracle
from sqlalchemy.engine.reflection import Inspector
from sqlalchemy.schema import CreateIndex, CreateTable

from msgexchange.store.engine import open_engine
from msgexchange.store.schema import (
    MIGRATIONS,
    MigrationEdited,
    at_head,
    check_migrations,
    upgrade,
)
from msgexchange.store.sql_store import SqlStore
from msgexchange.store.tables import metadata


def test_a_migrated_database_equals_the_tables(store: SqlStore) -> None:
    with store.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_a_migrated_database_has_the_checks_of_the_tables(store: SqlStore) -> None:
    expected = {
        (table.name, constraint.name)
        for table in metadata.tables.values()
        for constraint in table.constraints
        if isinstance(constraint, CheckConstraint)
    }
    assert _checks(inspect(store.engine)) == expected
    assert len(expected) > 10


def test_check_texts_equal_those_of_the_tables() -> None:
    migrated, created = open_engine("sqlite://"), create_engine("sqlite://")
    upgrade(migrated, store_id="a", identity_rule="plain")
    metadata.create_all(created)
    assert _check_texts(migrated) == _check_texts(created)
    migrated.dispose()
    created.dispose()


def test_a_new_store_knows_its_id_and_counts_from_the_start(store: SqlStore) -> None:
    assert store.leader.info().generation == 1
    assert store.intake.state().watermark == 0
    assert at_head(store.engine)


def test_upgrading_twice_changes_nothing(store: SqlStore) -> None:
    before = store.leader.info()
    upgrade(store.engine, store_id="another", identity_rule="day")
    assert store.leader.info() == before


def test_an_empty_database_is_not_at_head_and_holds_no_data() -> None:
    engine = open_engine("sqlite://")
    assert not at_head(engine)
    engine.dispose()


def test_every_name_fits_oracle() -> None:
    names = [table.name for table in metadata.tables.values()]
    for table in metadata.tables.values():
        names += [column.name for column in table.columns]
        names += [str(index.name) for index in table.indexes]
        names += [str(constraint.name) for constraint in table.constraints]
    assert [name for name in names if len(name) > 30 or name != name.lower()] == []


def test_all_ddl_compiles_for_oracle() -> None:
    dialect = oracle.dialect()  # type: ignore[no-untyped-call]
    for table in metadata.tables.values():
        assert "IDENTITY" not in str(CreateTable(table).compile(dialect=dialect))
        for index in table.indexes:
            assert str(CreateIndex(index).compile(dialect=dialect))


def test_the_view_for_people_can_be_read(store: SqlStore) -> None:
    assert "flight_schd_display" in inspect(store.engine).get_view_names()


def _checks(inspector: Inspector) -> set[tuple[str, str | None]]:
    return {
        (table, check["name"])
        for table in metadata.tables
        for check in inspector.get_check_constraints(table)
    }


def _check_texts(engine: Engine) -> dict[tuple[str, str | None], str]:
    inspector = inspect(engine)
    return {
        (table, check["name"]): check["sqltext"]
        for table in metadata.tables
        for check in inspector.get_check_constraints(table)
    }


def test_a_published_migration_is_never_edited(tmp_path: Path) -> None:
    check_migrations()
    copy = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, copy)
    edited = copy / "versions" / "r0002_flights.py"
    edited.write_text(edited.read_text().replace("nullable=False", "nullable=True", 1))
    with pytest.raises(MigrationEdited, match="r0002_flights"):
        check_migrations(copy)


def test_a_migration_that_is_not_published_yet_is_told(tmp_path: Path) -> None:
    copy = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, copy)
    (copy / "versions" / "r9999_new.py").write_text("revision = '9999'\n")
    with pytest.raises(MigrationEdited, match="r9999_new"):
        check_migrations(copy)
