"""What an own store runs must have a form for Oracle 11g, which no test machine has (spec 2.3)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine
from sqlalchemy import event as listening
from sqlalchemy.dialects import oracle
from sqlalchemy.engine import Dialect
from sqlalchemy.sql import ClauseElement

RELEASE = (11, 2, 0)
IDENTIFIER_CHARS_MAX = 30


def oracle_11g() -> Dialect:
    """Without what later releases brought: ``FETCH FIRST`` and names of 128 characters."""
    dialect: Any = oracle.dialect()  # type: ignore[no-untyped-call]
    dialect.server_version_info = RELEASE
    dialect.max_identifier_length = IDENTIFIER_CHARS_MAX
    dialect._supports_offset_fetch = False
    return dialect  # type: ignore[no-any-return]


@contextmanager
def written_for_oracle(engine: Engine) -> Iterator[None]:
    """Whatever ``engine`` runs inside is also compiled for Oracle 11g; one that cannot be fails.

    Parameters are put in as they are run, so that lists and bounds are compiled as well.
    """
    dialect = oracle_11g()

    def compile_too(
        _connection: object, statement: ClauseElement, many: Any, given: Any, _options: object
    ) -> None:
        parameters = many[0] if many else given
        compiled = statement.compile(
            dialect=dialect, column_keys=sorted(parameters) if parameters else None
        )
        written = str(compiled)
        assert "FETCH FIRST" not in written, written
        assert " LIMIT " not in written, written

    listening.listen(engine, "before_execute", compile_too)
    try:
        yield
    finally:
        listening.remove(engine, "before_execute", compile_too)
