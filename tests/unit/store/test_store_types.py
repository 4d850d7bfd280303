"""Column types mean the same on every database."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import Dialect
from sqlalchemy.dialects import oracle, postgresql, sqlite

from msgexchange.store.types import AsReceived, Stamp

DIALECTS: list[Dialect] = [oracle.dialect(), postgresql.dialect(), sqlite.dialect()]  # type: ignore[no-untyped-call]
MOMENT = datetime(2026, 9, 3, 18, 30, 0, 5, tzinfo=timezone(timedelta(hours=8)))


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_a_moment_comes_back_as_the_same_moment_in_utc(dialect: Dialect) -> None:
    bound = Stamp().process_bind_param(MOMENT, dialect)
    read = Stamp().process_result_value(bound, dialect)
    assert read == MOMENT
    assert read is not None
    assert read.tzinfo is UTC


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="aware"):
        Stamp().process_bind_param(datetime(2026, 9, 3), DIALECTS[0])


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("said", ["", None, "A12"])
def test_empty_and_absent_stay_apart(dialect: Dialect, said: str | None) -> None:
    bound = AsReceived().process_bind_param(said, dialect)
    assert bound != "" or dialect.name != "oracle"
    assert AsReceived().process_result_value(bound, dialect) == said
