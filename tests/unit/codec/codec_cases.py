"""What the codec's tests share: one dialect, one zone, short ways to an answer."""

from zoneinfo import ZoneInfo

from factories import operation, xml
from msgexchange.codec.catalogue import Catalogue
from msgexchange.codec.catalogue_file import default_catalogue
from msgexchange.codec.decode import decode
from msgexchange.codec.limits import Limits
from msgexchange.flight.commands import Command
from msgexchange.flight.messages import Malformed, Message, Operation, Plan, Rejected

CATALOGUE = default_catalogue()
ZONE = ZoneInfo("Asia/Shanghai")


def read(
    text: str, *, catalogue: Catalogue = CATALOGUE, limits: Limits | None = None
) -> Message | Malformed:
    return decode(text, catalogue, limits or Limits(), ZONE)


def message(
    text: str, *, catalogue: Catalogue = CATALOGUE, limits: Limits | None = None
) -> Message:
    decoded = read(text, catalogue=catalogue, limits=limits)
    assert isinstance(decoded, Message), decoded
    return decoded


def malformed(text: str, *, limits: Limits | None = None) -> str:
    decoded = read(text, limits=limits)
    assert isinstance(decoded, Malformed), decoded
    return decoded.reason


def rejection(text: str, *, limits: Limits | None = None) -> str:
    content = message(text, limits=limits).content
    assert isinstance(content, Rejected), content
    return content.reason


def told(text: str, *, catalogue: Catalogue = CATALOGUE) -> tuple[Command, ...]:
    """The commands of an operation's only block."""
    content = message(text, catalogue=catalogue).content
    assert isinstance(content, Operation), content
    (block,) = content.blocks
    return block.commands


def told_of(styp: str, element: str) -> tuple[Command, ...]:
    """The commands of one FLOP about flight 9001."""
    return told(operation("9001", element, styp=styp))


def planned(text: str) -> Plan:
    content = message(text).content
    assert isinstance(content, Plan), content
    return content


def plan_xml(flights: str, *, count: str = "<RCNT>1</RCNT>", styp: str = "DNLD") -> str:
    return xml(f"<SCHD>{count}{flights}</SCHD>", type_="SCHD", styp=styp)
