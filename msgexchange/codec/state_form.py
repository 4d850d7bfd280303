"""A flight's whole state as a JSON document, schd form, and back (spec 1.4, 5.9)."""

from collections.abc import Mapping
from datetime import date
from typing import Any

import orjson

from msgexchange.codec.encode import encode, parse_content
from msgexchange.flight.state import FlightState, FlightStatus
from msgexchange.ids import Flid, MailboxId


def state_document(state: FlightState) -> dict[str, Any]:
    """The names of a schd value that say what the flight is."""
    return {
        "flid": state.flid,
        "lastMessageId": state.last_message_id,
        "operationDay": state.operation_day and state.operation_day.isoformat(),
        "state": state.content,
        "stateVersion": state.version,
        "status": state.status.value,
    }


def read_state(octets: bytes | str) -> FlightState:
    """The state a document tells of; names beside those of ``state_document`` are passed over.

    ``ValueError`` with what is wrong: not JSON, a name missing, a value of the wrong kind.
    """
    document = orjson.loads(octets)
    if not isinstance(document, Mapping):
        raise ValueError("not an object of names and values")  # noqa: TRY004
    day = document.get("operationDay")
    return FlightState(
        flid=Flid(_text(document, "flid")),
        operation_day=None if day is None else date.fromisoformat(_text(document, "operationDay")),
        status=FlightStatus(_text(document, "status")),
        version=_number(document, "stateVersion"),
        last_message_id=MailboxId(_number(document, "lastMessageId")),
        content=parse_content(encode(_of_kind(document, "state", Mapping, "an object"))),
    )


def _text(document: Mapping[str, Any], name: str) -> str:
    value: str = _of_kind(document, name, str, "a text")
    if not value:
        raise ValueError(f"{name} is empty")
    return value


def _number(document: Mapping[str, Any], name: str) -> int:
    value: int = _of_kind(document, name, int, "a whole number")
    if isinstance(value, bool) or value < 0:
        raise ValueError(f"{name} is {value}, not a whole number from 0")
    return value


def _of_kind(document: Mapping[str, Any], name: str, kind: type[Any], wanted: str) -> Any:
    if name not in document:
        raise ValueError(f"{name} is missing")
    value = document[name]
    if not isinstance(value, kind):
        raise ValueError(f"{name} is {value!r}, not {wanted}")  # noqa: TRY004
    return value
