"""The count a body declares of what it repeats (spec 1.2)."""

from msgexchange.codec.blocks import single_text
from msgexchange.codec.document import Element
from msgexchange.codec.refusal import rejected, shown

_DIGITS_MAX = 9


def declared_count(body: Element, name: str, repeated: str, found: int, *, plural: str) -> None:
    """Refuse a body whose element ``name`` does not say how many ``repeated`` there are."""
    declared = single_text(body, name, body.name)
    is_number = declared.isascii() and declared.isdigit() and len(declared) <= _DIGITS_MAX
    if not is_number:
        raise rejected(
            f"{body.name}, {name}",
            f"{shown(declared)} is no count; say how many {repeated} follow",
        )
    if int(declared) != found:
        raise rejected(
            f"{body.name}, {name}",
            f"says {int(declared)} {plural}, {found} are there; send all of it again",
        )
