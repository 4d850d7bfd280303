"""Own stores of every kind, empty and at head; the contract suites run on each."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import Engine

from msgexchange.codec.catalogue_file import default_catalogue
from msgexchange.store.bulk import PortableBulk
from msgexchange.store.engine import cloned_in_memory, open_engine
from msgexchange.store.schema import upgrade
from msgexchange.store.sql_store import SqlStore
from servers.oracle_forms import written_for_oracle

STORE_ID = "0123456789abcdef"


@pytest.fixture(scope="session")
def memory_template() -> Iterator[Engine]:
    """An in-memory store at head that others are cloned from."""
    engine = open_engine("sqlite://")
    upgrade(engine, store_id=STORE_ID, identity_rule="plain")
    yield engine
    engine.dispose()


@pytest.fixture
def memory_store(memory_template: Engine) -> Iterator[SqlStore]:
    store = SqlStore(
        cloned_in_memory(memory_template), default_catalogue(), nonce=count(1).__next__
    )
    yield store
    store.close()


@pytest.fixture
def sqlite_file_store(tmp_path: Path) -> Iterator[SqlStore]:
    """Runs the portable statements, and has each of them compiled for Oracle as well."""
    engine = open_engine(f"sqlite:///{tmp_path / 'store.sqlite'}")
    upgrade(engine, store_id=STORE_ID, identity_rule="plain")
    store = SqlStore(engine, default_catalogue(), nonce=count(1).__next__)
    with written_for_oracle(engine):
        yield store
    store.close()


@pytest.fixture
def postgres_store(postgres_database: str) -> Iterator[SqlStore]:
    """PostgreSQL with the statements it runs fastest."""
    store = SqlStore(open_engine(postgres_database), default_catalogue(), nonce=count(1).__next__)
    yield store
    store.close()


@pytest.fixture
def portable_postgres_store(postgres_database: str) -> Iterator[SqlStore]:
    """PostgreSQL with the statements any database takes."""
    store = SqlStore(
        open_engine(postgres_database),
        default_catalogue(),
        nonce=count(1).__next__,
        bulk=PortableBulk(),
    )
    yield store
    store.close()


STORES = [
    "memory_store",
    "sqlite_file_store",
    pytest.param("postgres_store", marks=pytest.mark.postgres),
    pytest.param("portable_postgres_store", marks=pytest.mark.postgres),
]


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> SqlStore:
    """Each kind of own store in turn."""
    made: SqlStore = request.getfixturevalue(request.param)
    return made
