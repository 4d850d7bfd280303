"""A message text as a small tree of elements, or why it is no XML we accept (spec 1.1)."""

import pyexpat
import re

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

    def __init__(
        self,
        name: str,
        attributes: tuple[tuple[str, str], ...] = (),
        children: tuple["Element", ...] = (),
        text: str = "",
        nil: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        self.name = name
        self.attributes = attributes
        self.children = children
        self.text = text
        self.nil = nil

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
    # Before expat sees it: it takes NUL beside "<" for UTF-16, whatever encoding it is told.
    nul_index = trimmed.find("\0")
    if nul_index >= 0:
        return Malformed(f"{place.of_index(trimmed, nul_index)}: {_forbidden(trimmed[nul_index])}")
    try:
        octets = trimmed.encode()
    except UnicodeEncodeError as exc:
        half = trimmed[exc.start]
        return Malformed(f"{place.of_index(trimmed, exc.start)}: {_forbidden(half)}")
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

    def of_index(self, text: str, index: int) -> str:
        line = text.count("\n", 0, index) + 1
        return self.of(line, index - text.rfind("\n", 0, index) - 1)


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
        return _forbidden(there)
    return f"not well-formed XML: {pyexpat.ErrorString(exc.code)}; send the whole message again"


def _refused(exc: Exception) -> str:
    if isinstance(exc, _OverLimit):
        return str(exc)
    return (
        "a DOCTYPE, an entity declaration or an external reference is forbidden; "
        "send the message without it"
    )


def _forbidden(character: str) -> str:
    return (
        f"the character U+{ord(character):04X} is forbidden in XML; remove it where it is written"
    )


class _Tree:
    """Builds the elements while expat reads, on three flat stacks.

    ``_open`` has each open element's name, attributes and where its children and its text begin
    on the other two.
    """

    __slots__ = ("_closed", "_depth_max", "_nodes_left", "_open", "_pieces", "_xsi_prefixes")

    def __init__(self, limits: Limits) -> None:
        self._depth_max = limits.depth_max
        self._nodes_left = limits.nodes_max
        self._open: list[tuple[str, list[str], int, int]] = []
        self._closed: list[Element] = []
        self._pieces: list[str] = []
        self._xsi_prefixes = {"xsi"}

    @property
    def root(self) -> Element:
        return self._closed[0]

    def listen_to(self, parser: pyexpat.XMLParserType) -> None:
        parser.buffer_text = True
        parser.ordered_attributes = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._pieces.append
        parser.StartDoctypeDeclHandler = _refuse_doctype
        parser.EntityDeclHandler = _refuse_entity
        parser.UnparsedEntityDeclHandler = _refuse_entity
        parser.ExternalEntityRefHandler = _refuse_reference

    def _start(self, name: str, attributes: list[str]) -> None:
        # Called for every element of a plan of megabytes: nothing here that can be left out.
        opened = self._open
        opened.append((name, attributes, len(self._closed), len(self._pieces)))
        if len(opened) > self._depth_max:
            raise _OverLimit(
                f"elements are nested more than {self._depth_max} deep; flatten the message"
            )
        self._nodes_left -= 1 + (len(attributes) >> 1)
        if self._nodes_left < 0:
            raise _OverLimit("too many elements and attributes; send the message in smaller parts")
        if attributes and _XSI in attributes:
            names = attributes[::2]
            self._xsi_prefixes.update(
                name.removeprefix("xmlns:")
                for name, value in zip(names, attributes[1::2], strict=True)
                if value == _XSI and name.startswith("xmlns:")
            )

    def _end(self, _name: str) -> None:
        name, attributes, first_child, first_piece = self._open.pop()
        closed = self._closed
        children: tuple[Element, ...] = ()
        if len(closed) > first_child:
            children = tuple(closed[first_child:])
            del closed[first_child:]
        if ":" in name:
            name = name.rpartition(":")[2]
        text = self._take_text(first_piece)
        if not attributes:
            closed.append(Element(name, (), children, text))
            return
        kept, nil = self._sort_attributes(attributes)
        closed.append(
            Element(name, kept, (), "", nil) if nil else Element(name, kept, children, text)
        )

    def _take_text(self, first_piece: int) -> str:
        pieces = self._pieces
        count = len(pieces) - first_piece
        if count == 1:
            return pieces.pop().strip(BLANKS)
        if count == 0:
            return ""
        text = "".join(pieces[first_piece:]).strip(BLANKS)
        del pieces[first_piece:]
        return text

    def _sort_attributes(self, flat: list[str]) -> tuple[tuple[tuple[str, str], ...], bool]:
        """The ones to keep, by local name, and whether ``xsi:nil`` was among them."""
        kept = []
        nil = False
        for name, value in zip(flat[::2], flat[1::2], strict=True):
            prefix, _, local = name.rpartition(":")
            if prefix in self._xsi_prefixes:
                nil |= local == "nil" and value.strip(BLANKS) in {"true", "1"}
            elif prefix != "xmlns" and name != "xmlns":
                kept.append((local, value.strip(BLANKS)))
        return tuple(kept), nil


def _refuse_doctype(name: str, sysid: str | None, pubid: str | None, _has_subset: bool) -> None:  # noqa: FBT001
    raise DTDForbidden(name, sysid, pubid)


def _refuse_entity(name: str, *_details: object) -> None:
    raise EntitiesForbidden(name, None, None, None, None, None)


def _refuse_reference(context: str, base: str | None, sysid: str | None, pubid: str | None) -> int:
    raise ExternalReferenceForbidden(context, base, sysid, pubid)
