"""What an error of the client or the broker means to the caller, by its code (spec 3.3, 4.2)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from confluent_kafka import KafkaError, KafkaException

from msgexchange.ports import Dependency, Unavailable

RECORD_REFUSED: Final = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        KafkaError._BAD_MSG,  # noqa: SLF001 - the client's own codes are named so
    }
)
"""Codes with which a record is refused for good. Everything else is nobody's fault: the broker is
away, electing, out of disk, or does not let us in, and every record would fare alike."""

PURGED: Final = frozenset(
    {
        KafkaError._PURGE_QUEUE,  # noqa: SLF001
        KafkaError._PURGE_INFLIGHT,  # noqa: SLF001
    }
)
"""We took the record back ourselves; the reason lies elsewhere."""

NOT_KNOWN_HERE: Final = frozenset(
    {
        KafkaError.UNSUPPORTED_VERSION,
        KafkaError._UNSUPPORTED_FEATURE,  # noqa: SLF001
        KafkaError.INVALID_REQUEST,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)
"""The broker does not tell, or not us."""

SHUT_OUT: Final = frozenset(
    {
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError._FENCED,  # noqa: SLF001
    }
)
"""A newer producer has our name, or the broker has ended a transaction that took too long."""


def error_of(exception: KafkaException) -> KafkaError:
    """The error a client exception carries."""
    error = exception.args[0]
    if isinstance(error, KafkaError):
        return error
    return KafkaError(KafkaError._FAIL, str(exception))  # noqa: SLF001


def reason_of(error: KafkaError) -> str:
    """Name and text of an error, for people."""
    return f"{error.name()}: {error.str()}"


@contextmanager
def translated() -> Iterator[None]:
    """Turns what the client raises into ``Unavailable``: a round trip failed."""
    try:
        yield
    except KafkaException as exception:
        raise Unavailable(Dependency.BROKER, reason_of(error_of(exception))) from exception
