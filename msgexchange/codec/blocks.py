"""What every block about one flight has: its FLID (spec 1.2)."""

import re
from collections.abc import Iterable

from msgexchange.codec.document import Element
from msgexchange.codec.refusal import rejected, shown
from msgexchange.ids import Flid

_FLID = re.compile(r"[A-Za-z0-9_-]{1,32}", re.ASCII)


def is_flid(text: str) -> bool:
    """1 to 32 letters, digits, - or _."""
    return _FLID.fullmatch(text) is not None


def block_flid(block: Element, number: int, flid_name: str) -> Flid:
    """The flight a block is about; ``number`` counts the message's blocks from 1."""
    where = f"{block.name} number {number}"
    value = single_text(block, flid_name, where)
    if not value:
        raise rejected(where, f"has no {flid_name}; name the flight it is about")
    if not is_flid(value):
        raise rejected(
            where,
            f"the {flid_name} {shown(value)} is none: 1 to 32 letters, digits, - or _; correct it",
        )
    return Flid(value)


def single_text(block: Element, name: str, where: str) -> str:
    """The text of the block's child ``name``, "" if absent or empty; it may not say two things."""
    found = [child for child in block.children if child.name == name]
    value = found[0].text if found else ""
    for child in found:
        if child.children or child.text != value:
            raise rejected(f"{where}, {name}", "is not one plain value; send it once, as text")
    return value


def refuse_repeated(flids: Iterable[Flid]) -> None:
    """A message may say only one thing about a flight."""
    seen: set[Flid] = set()
    for flid in flids:
        if flid in seen:
            raise rejected(f"flight {flid}", "stands in the message twice; send it once")
        seen.add(flid)
