"""One element of a collection or an exception as a map of its fields (spec 1.1)."""

from msgexchange.codec.catalogue import Group
from msgexchange.codec.document import Element
from msgexchange.codec.extras import Extras
from msgexchange.codec.reading import Reading
from msgexchange.codec.refusal import inexpressible, rejected, shown
from msgexchange.flight.state import Json
from msgexchange.ids import Flid


def read_item(reading: Reading, flid: Flid, group: Group, element: Element) -> dict[str, Json]:
    """The fields that are there, as attribute, child element or own text; what is absent is
    absent, what is unknown stands beside the fields.
    """
    fields: dict[str, Json] = {}
    extras: Extras | None = None
    for attribute in element.attributes:
        if attribute[0] in group.columns:
            _put(reading, flid, group, fields, attribute)
        else:
            extras = extras or _extras(reading, flid, group)
            extras.attribute(*attribute)
    for child in element.children:
        known = child.name in group.columns
        if known:
            _put(reading, flid, group, fields, (child.name, _leaf_text(flid, group, child)))
        if not known or child.attributes:
            extras = extras or _extras(reading, flid, group)
            (extras.attributes_of if known else extras.element)(child)
    if element.text:
        text_field = reading.catalogue.envelope.text_field
        if text_field in group.columns:
            _put(reading, flid, group, fields, (text_field, element.text))
        else:
            extras = extras or _extras(reading, flid, group)
            extras.attribute(text_field, element.text)
    if extras is not None:
        fields.update(extras.items())
    return fields


def _extras(reading: Reading, flid: Flid, group: Group) -> Extras:
    return Extras(reading, f"flight {flid}, {group.name}")


def _leaf_text(flid: Flid, group: Group, child: Element) -> str:
    if child.children:
        raise inexpressible(
            f"flight {flid}, {group.name}/{child.name}",
            f"holds the element {shown(child.children[0].name)} where plain text is known; "
            "send text, or take the field out of the catalogue to keep it as it comes",
        )
    return child.text


def _put(
    reading: Reading, flid: Flid, group: Group, fields: dict[str, Json], found: tuple[str, str]
) -> None:
    name, value = found
    if len(value) > reading.limits.value_characters_max:
        reading.check_value(f"flight {flid}, {group.name}", name, value)
    if name in group.time_fields:
        reading.check_time(name, value)
    earlier = fields.setdefault(name, value)
    if earlier != value:
        raise rejected(
            f"flight {flid}, {group.name}/{name}",
            f"stands there with {shown(str(earlier))} and with {shown(value)}; send it once",
        )
