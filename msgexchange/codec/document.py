"""A message text as a small tree of elements, or why it is no XML we accept (spec 1.1)."""

import re

import pyexpat
from defusedxml.common import (
    DefusedXmlException,
    DTDForbidden,
    EntitiesForbidden,
    ExternalReferenceForbidden,
)

from msgexchange.codec.limits import Limits
from msgexchange.codec.refusal import bounded
from msgexchange.flight.messages import Malformed

BLANKS = " \t\r\n"
"""White space as XML defines it; what values are trimmed of."""

_XSI = "http://www.w3.org/2001/XMLSchema-instance"
_BEFORE_DECLARATION = "\ufeff" + BLANKS
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


class Element:
    """One element by local name; not to be changed once ``parse`` has returned it.

    ``text`` is its own text, trimmed, without its children's; ``attributes`` are pairs of local
    name and trimmed value, without ``xmlns`` and ``xsi``. ``nil`` says ``xsi:nil="true"``: such
    an element has neither text nor children. A plan has half a million of these, so each field
    costs megabytes.
    """

    __slots__ = ("attributes", "children", "name", "nil", "text")

    def __init__(self, name: str) -> None:
        self.name = name
        self.attributes: tuple[tuple[str, str], ...] = ()
        self.children: tuple[Element, ...] = ()
        self.text = ""
        self.nil = False

    @property
    def is_empty(self) -> bool:
        """Carries nothing at all."""
        return not (self.text or self.children or self.attributes)


def parse(text: str, limits: Limits) -> Element | Malformed:
    """The root element. A declared encoding is ignored: the text is text already."""
    too_large = Malformed(
        f"the text is over {limits.text_bytes_max} bytes; send the message in smaller parts"
    )
    if len(text) > limits.text_bytes_max:
        return too_large
    trimmed = text.lstrip(_BEFORE_DECLARATION)
    place = _Place(text[: len(text) - len(trimmed)])
    try:
        octets = trimmed.encode()
    except UnicodeEncodeError as exc:
        return Malformed(_lone_surrogate(trimmed, exc.start, place))
    if len(octets) > limits.text_bytes_max:
        return too_large
    return _parse_octets(octets, limits, place)


class _Place:
    """Where something stands in the text as received, blanks before the declaration included."""

    def __init__(self, skipped: str) -> None:
        self._lines = skipped.count("\n")
        self._columns = len(skipped) - skipped.rfind("\n") - 1

    def of(self, line: int, column: int) -> str:
        """``line`` counts from 1 and ``column`` from 0, as expat counts them."""
        shift = self._columns if line == 1 else 0
        return f"line {line + self._lines}, column {column + shift + 1}"


class _OverLimit(Exception):
    pass


def _parse_octets(octets: bytes, limits: Limits, place: _Place) -> Element | Malformed:
    # Namespaces stay unresolved: names count by their local part, and a sender that forgets to
    # declare xsi is understood.
    parser = pyexpat.ParserCreate("utf-8")
    tree = _Tree(limits)
    tree.listen_to(parser)
    try:
        parser.Parse(octets, True)
    except pyexpat.ExpatError as exc:
        reason = _syntax(exc, octets, parser.ErrorByteIndex)
        return Malformed(bounded(f"{place.of(exc.lineno, exc.offset)}: {reason}"))
    except (DefusedXmlException, _OverLimit) as exc:
        here = place.of(parser.CurrentLineNumber, parser.CurrentColumnNumber)
        return Malformed(bounded(f"{here}: {_refused(exc)}"))
    return tree.root


def _syntax(exc: pyexpat.ExpatError, octets: bytes, index: int) -> str:
    there = octets[index : index + 4].decode(errors="ignore")[:1]
    if _FORBIDDEN.match(there):
        return (
            f"the character U+{ord(there):04X} is forbidden in XML; remove it where it is written"
        )
    return f"not well-formed XML: {pyexpat.ErrorString(exc.code)}; send the whole message again"


def _refused(exc: Exception) -> str:
    if isinstance(exc, _OverLimit):
        return str(exc)
    return (
        "a DOCTYPE, an entity declaration or an external reference is forbidden; "
        "send the message without it"
    )


def _lone_surrogate(text: str, index: int, place: _Place) -> str:
    line = text.count("\n", 0, index) + 1
    here = place.of(line, index - text.rfind("\n", 0, index) - 1)
    return (
        f"{here}: U+{ord(text[index]):04X} is half a character and forbidden in XML; "
        "write the character whole"
    )


class _Tree:
    """Builds the elements while expat reads; the open element's parts lie on top of the stack."""

    __slots__ = (
        "_children",
        "_depth_max",
        "_element",
        "_nodes_left",
        "_pieces",
        "_stack",
        "_xsi_prefixes",
    )

    def __init__(self, limits: Limits) -> None:
        self._depth_max = limits.depth_max
        self._nodes_left = limits.nodes_max
        self._stack: list[tuple[Element, list[str], list[Element]]] = []
        self._element = Element("")
        self._pieces: list[str] = []
        self._children: list[Element] = []
        self._xsi_prefixes = {"xsi"}

    @property
    def root(self) -> Element:
        return self._children[0]

    def listen_to(self, parser: pyexpat.XMLParserType) -> None:
        parser.buffer_text = True
        parser.ordered_attributes = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = _refuse_doctype
        parser.EntityDeclHandler = _refuse_entity
        parser.UnparsedEntityDeclHandler = _refuse_unparsed_entity
        parser.ExternalEntityRefHandler = _refuse_reference

    def _start(self, name: str, attributes: list[str]) -> None:
        stack = self._stack
        stack.append((self._element, self._pieces, self._children))
        if len(stack) > self._depth_max:
            raise _OverLimit(
                f"elements are nested more than {self._depth_max} deep; flatten the message"
            )
        self._nodes_left -= 1 + (len(attributes) >> 1)
        if self._nodes_left < 0:
            raise _OverLimit(
                "too many elements and attributes; send the message in smaller parts"
            )
        self._element = Element(name.rpartition(":")[2] if ":" in name else name)
        self._pieces = []
        self._children = []
        if attributes:
            self._take_attributes(attributes)

    def _end(self, _name: str) -> None:
        element = self._element
        if not element.nil:
            if self._pieces:
                element.text = "".join(self._pieces).strip(BLANKS)
            if self._children:
                element.children = tuple(self._children)
        self._element, self._pieces, self._children = self._stack.pop()
        self._children.append(element)

    def _text(self, data: str) -> None:
        self._pieces.append(data)

    def _take_attributes(self, flat: list[str]) -> None:
        pairs = list(zip(flat[::2], flat[1::2], strict=True))
        for name, value in pairs:
            if name.startswith("xmlns:") and value == _XSI:
                self._xsi_prefixes.add(name[6:])
        kept = []
        for name, value in pairs:
            prefix, _, local = name.rpartition(":")
            if prefix in self._xsi_prefixes:
                self._element.nil |= local == "nil" and value.strip(BLANKS) in {"true", "1"}
            elif prefix != "xmlns" and name != "xmlns":
                kept.append((local, value.strip(BLANKS)))
        self._element.attributes = tuple(kept)


def _refuse_doctype(name: str, sysid: str | None, pubid: str | None, _internal: bool) -> None:  # noqa: FBT001
    raise DTDForbidden(name, sysid, pubid)


def _refuse_entity(
    name: str,
    _is_parameter: bool,  # noqa: FBT001
    value: str | None,
    base: str | None,
    sysid: str,
    pubid: str | None,
    notation: str | None,
) -> None:
    raise EntitiesForbidden(name, value, base, sysid, pubid, notation)


def _refuse_unparsed_entity(
    name: str, base: str | None, sysid: str, pubid: str | None, notation: str
) -> None:
    raise EntitiesForbidden(name, None, base, sysid, pubid, notation)


def _refuse_reference(
    context: str, base: str | None, sysid: str | None, pubid: str | None
) -> int:
    raise ExternalReferenceForbidden(context, base, sysid, pubid)
