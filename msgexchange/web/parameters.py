"""Parameters of a call, checked; a refusal names the parameter and what it accepts."""

import re
from collections.abc import Callable, Sequence
from datetime import date
from typing import Final, TypeVar

from werkzeug.datastructures import MultiDict

from msgexchange.flight.state import FlightStatus
from msgexchange.ids import Flid, MailboxId
from msgexchange.web.problems import Problem, not_found

FLIGHTS_DEFAULT: Final = 500
FLIGHTS_MAX: Final = 10_000
ALL_STATUSES: Final = "ALL"

_FLID = re.compile(r"[A-Za-z0-9_-]{1,32}", re.ASCII)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_NUMBER = re.compile(r"\d{1,19}", re.ASCII)
_ID_MAX = (1 << 63) - 1
_SHOWN_MAX = 40

T = TypeVar("T")


class Query:
    """The query string; each parameter at most once, and none that the call does not know.

    A parameter without a value counts as not given.
    """

    def __init__(self, given: MultiDict[str, str], known: Sequence[str]) -> None:
        for name in given:
            if name not in known:
                accepted = ", ".join(known)
                raise bad_parameter(name, f"there is no such parameter; there are {accepted}")
            if len(given.getlist(name)) > 1:
                raise bad_parameter(name, "it is given more than once; give it once")
        self._given = given

    def read(self, name: str, reader: Callable[[str], T | None], default: T, accepts: str) -> T:
        """The parameter as ``reader`` understands it (None: it does not)."""
        text = self._given.get(name, "")
        if not text:
            return default
        value = reader(text)
        if value is None:
            raise bad_parameter(name, f"{text[:_SHOWN_MAX]!r} is not accepted; give {accepts}")
        return value


def bad_parameter(name: str, why: str) -> Problem:
    """400, naming the parameter."""
    shown = name[:_SHOWN_MAX]
    return Problem(
        400,
        "bad-parameter",
        "A parameter is not accepted",
        f"{shown}: {why}.",
        members={"parameter": shown},
    )


def read_day(text: str) -> date | None:
    """``yyyy-MM-dd``."""
    if not _DAY.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def read_status(text: str) -> str | None:
    """A flight status, or ``ALL``."""
    return text if text in {*FlightStatus, ALL_STATUSES} else None


def read_limit(text: str) -> int | None:
    """1 to ``FLIGHTS_MAX``."""
    is_fine = _NUMBER.fullmatch(text) and 1 <= int(text) <= FLIGHTS_MAX
    return int(text) if is_fine else None


def read_flag(text: str) -> bool | None:
    """``true`` or ``false``."""
    return {"true": True, "false": False}.get(text)


def read_flid(text: str) -> Flid | None:
    """A well-formed FLID."""
    return Flid(text) if _FLID.fullmatch(text) else None


def flid_in_path(text: str) -> Flid:
    """The FLID, or 404: there can be no flight of that name."""
    flid = read_flid(text)
    if flid is None:
        detail = "A FLID is 1 to 32 letters, digits, '-' or '_'."
        raise not_found(detail, members={"error": detail})
    return flid


def message_id_in_path(text: str) -> MailboxId:
    """The id, or 404: there can be no message of that name."""
    if not _NUMBER.fullmatch(text) or int(text) > _ID_MAX:
        raise not_found("A message id is a number; POST /cminmsgs/send answers with it.")
    return MailboxId(int(text))
