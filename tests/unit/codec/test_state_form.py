"""A flight's state as a document and back."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgexchange.codec.encode import encode
from msgexchange.codec.state_form import read_state, state_document
from msgexchange.flight.state import FlightState, FlightStatus
from msgexchange.ids import Flid, MailboxId
from strategies import Contents, contents

GOOD = {
    "flid": "900123",
    "lastMessageId": 17,
    "operationDay": "2026-09-03",
    "state": {"FLNO": "CZ3101"},
    "stateVersion": 3,
    "status": "ACTIVE",
}


@given(
    content=contents(),
    day=st.none() | st.dates(),
    status=st.sampled_from(FlightStatus),
    version=st.integers(0, 1 << 62),
)
def test_a_state_comes_back_as_it_was(
    content: Contents, day: date | None, status: FlightStatus, version: int
) -> None:
    state = FlightState(
        flid=Flid("900123"),
        operation_day=day,
        status=status,
        version=version,
        last_message_id=MailboxId(17),
        content=content,
    )
    octets = encode(state_document(state))
    assert read_state(octets) == state
    assert encode(state_document(read_state(octets))) == octets


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"flid": ""}, "flid is empty"),
        ({"flid": 1}, "flid is 1, not a text"),
        ({"stateVersion": "3"}, "stateVersion is '3', not a whole number"),
        ({"stateVersion": True}, "stateVersion is True"),
        ({"lastMessageId": -1}, "lastMessageId is -1"),
        ({"operationDay": "tomorrow"}, "tomorrow"),
        ({"status": "GONE"}, "GONE"),
        ({"state": []}, "state is [], not an object"),
        ({"state": {"PAX": 3}}, "3 is neither text"),
    ],
)
def test_a_document_that_is_no_state_is_refused_with_the_reason(
    wrong: dict[str, object], told: str
) -> None:
    with pytest.raises(ValueError, match="^.*" + told.replace("[", r"\[").replace("]", r"\]")):
        read_state(encode(GOOD | wrong))


@pytest.mark.parametrize("name", sorted(GOOD.keys() - {"operationDay"}))
def test_a_missing_name_is_told(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is missing"):
        read_state(encode({k: v for k, v in GOOD.items() if k != name}))


@pytest.mark.parametrize("text", ["", "[]", "1", "{"])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read_state(text)
