"""The META block: who sent what, when (spec 1.1)."""

from collections.abc import Sequence

from msgexchange.codec.document import Element
from msgexchange.codec.extras import Extras
from msgexchange.codec.reading import Reading
from msgexchange.codec.refusal import bounded, shown
from msgexchange.codec.times import read_time
from msgexchange.flight.messages import Malformed, Meta

ROOT = "MSG"
META = "META"
VALUE_CHARACTERS_MAX = 32

_FIELDS = ("SNDR", "SEQN", "DTTM", "TYPE", "STYP")
_MAY_BE_BLANK = "STYP"


class _BadMeta(Exception):
    pass


def read_meta(root: Element, reading: Reading) -> Meta | Malformed:
    """Its five values; ``keep_unknown`` has the rest."""
    try:
        element = _meta_element(root)
        said = _said(element)
        values = {name: _value(said[name], name) for name in _FIELDS}
    except _BadMeta as exc:
        return Malformed(bounded(str(exc)))
    reading.check_time("DTTM", values["DTTM"])
    return Meta(
        sndr=values["SNDR"],
        type=values["TYPE"],
        styp=values["STYP"],
        seqn=values["SEQN"],
        dttm=values["DTTM"],
        sent_at=read_time(values["DTTM"], reading.zone),
    )


def keep_unknown(root: Element, extras: Extras) -> None:
    """Everything of META that is not one of the five values, and the root's attributes."""
    for name, value in root.attributes:
        extras.attribute(name, value)
    meta = _meta_element(root)
    for name, value in meta.attributes:
        extras.attribute(name, value, taken=name in _FIELDS)
    if meta.text:
        extras.attribute(META, meta.text)
    for child in meta.children:
        if child.name in _FIELDS:
            extras.attributes_of(child)
        else:
            extras.element(child)


def _meta_element(root: Element) -> Element:
    if root.name != ROOT:
        raise _BadMeta(f"the root element is {shown(root.name)}; a message begins with <{ROOT}>")
    found = [child for child in root.children if child.name == META]
    if len(found) != 1:
        raise _BadMeta(
            f"{ROOT} has {len(found)} {META} elements directly under it; it needs exactly one"
        )
    return found[0]


def _said(meta: Element) -> dict[str, list[Element]]:
    said: dict[str, list[Element]] = {name: [] for name in _FIELDS}
    for child in meta.children:
        if child.name in said:
            said[child.name].append(child)
    return said


def _value(found: Sequence[Element], name: str) -> str:
    value = found[0].text if found else ""
    if any(child.children or child.text != value for child in found):
        raise _BadMeta(f"{META}/{name} is not one plain value; send it once, as text")
    if not value.strip() and name != _MAY_BE_BLANK:
        raise _BadMeta(f"{META}/{name} is missing or blank; fill it in")
    if len(value) > VALUE_CHARACTERS_MAX:
        raise _BadMeta(
            f"{META}/{name} is {shown(value)}; at most {VALUE_CHARACTERS_MAX} characters are taken"
        )
    return value
