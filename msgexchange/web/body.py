"""The JSON body of a call, checked; a refusal names the member and what it accepts."""

from collections.abc import Mapping, Sequence
from typing import Any

from flask import request

from msgexchange.ids import MailboxId
from msgexchange.web.parameters import bad_parameter


class Body:
    """A JSON object with these members and no other."""

    def __init__(self, *names: str) -> None:
        given: Any = request.get_json(silent=True, force=True)
        if not isinstance(given, Mapping):
            raise bad_parameter("body", "send a JSON object")
        for name in given:
            if name not in names:
                raise bad_parameter(name, f"there is no such member; there are {', '.join(names)}")
        self._given = given

    def text(self, name: str) -> str:
        value = self._given.get(name)
        if not isinstance(value, str) or not value.strip():
            raise bad_parameter(name, "give a text that is not empty")
        return value

    def text_or_none(self, name: str) -> str | None:
        """None where the member is not there."""
        return None if self._given.get(name) is None else self.text(name)

    def flag(self, name: str) -> bool:
        value = self._given.get(name, False)
        if not isinstance(value, bool):
            raise bad_parameter(name, "give true or false")
        return value

    def number(self, name: str) -> int:
        value = self._given.get(name)
        if not _is_id(value):
            raise bad_parameter(name, "give a number above 0")
        assert isinstance(value, int)
        return value

    def ids(self) -> Sequence[MailboxId]:
        value = self._given.get("ids")
        if not isinstance(value, list) or not all(map(_is_id, value)):
            raise bad_parameter("ids", "give an array of message ids")
        return [MailboxId(id_) for id_ in value]


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 63
