"""The field in which an answer, or an error, names the request it is about (spec 5.1)."""

from collections.abc import Iterator

from msgexchange.codec.catalogue import Catalogue
from msgexchange.codec.document import Element
from msgexchange.codec.meta import META
from msgexchange.flight.messages import Meta
from msgexchange.flight.reference import ReferenceAct


def echo_name(catalogue: Catalogue, meta: Meta) -> str | None:
    """The element or attribute to look for; None where none is named, or none is to be expected."""
    if meta.type in catalogue.ignored:
        return catalogue.envelope.error_echo
    return catalogue.envelope.answer_echo if meta.styp == ReferenceAct.RESP.value else None


def read_echo(root: Element, name: str) -> str | None:
    """The first value of that name in META, then in or beside the body; None without one."""
    in_order = sorted(root.children, key=lambda child: child.name != META)
    return next((said for part in in_order for said in _said(part, name) if said), None)


def _said(part: Element, name: str) -> Iterator[str]:
    if part.name == name:
        yield part.text
    yield from (value for attribute, value in part.attributes if attribute == name)
    yield from (child.text for child in part.children if child.name == name)
