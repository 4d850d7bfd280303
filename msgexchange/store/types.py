"""Column types whose values mean the same on every database."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime, Dialect, String, Text, TypeDecorator
from sqlalchemy.dialects import postgresql
from sqlalchemy.types import TIMESTAMP, TypeEngine

EMPTY_MARKER = "\x01"
"""Stands for present-and-empty where the database reads '' as NULL; XML cannot say it."""


class Stamp(TypeDecorator[datetime]):
    """A durable moment: aware UTC in, aware UTC out, whatever the session's time zone."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(postgresql.TIMESTAMP(timezone=True))
        if dialect.name == "oracle":
            return dialect.type_descriptor(TIMESTAMP())
        return dialect.type_descriptor(DateTime())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone: durable stamps are aware")
        utc = value.astimezone(UTC)
        return utc if dialect.name == "postgresql" else utc.replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class AsReceived(TypeDecorator[str]):
    """Text as a message said it; '' and NULL stay apart everywhere (spec 2.2).

    Without a length it takes any text: a value may have 4,000 characters, which is more bytes
    than Oracle's VARCHAR2 holds.
    """

    impl = Text
    cache_ok = True

    def __init__(self, length: int | None = None) -> None:
        super().__init__()
        self.length = length

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:  # noqa: ARG002
        return Text() if self.length is None else String(self.length)

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return EMPTY_MARKER if value == "" and dialect.name == "oracle" else value

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        return "" if value == EMPTY_MARKER and dialect.name == "oracle" else value

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        """A flight has fifty such columns: where nothing is to be done, nothing is called."""
        return super().result_processor(dialect, coltype) if dialect.name == "oracle" else None
