"""Reference bodies: records of one type by key (spec 5.2)."""

from collections.abc import Sequence

from msgexchange.codec.catalogue import ReferenceType
from msgexchange.codec.counted import declared_count
from msgexchange.codec.document import Element
from msgexchange.codec.extras import Extras, structure_map
from msgexchange.codec.reading import Reading
from msgexchange.codec.refusal import rejected, shown
from msgexchange.flight.reference import WHOLE, Record, Reference, ReferenceAct

KEY_CHARACTERS_MAX = 200


def read_reference(
    reading: Reading,
    type_: ReferenceType,
    act: ReferenceAct,
    bodies: Sequence[Element],
    message_extras: Extras,
) -> Reference:
    """Every record, or a refusal of all of them.

    None at all is a fine answer of a type that merges; a type that is replaced is not emptied so.
    """
    if len(bodies) != 1:
        raise rejected(type_.name, f"stands there {len(bodies)} times; send one type a message")
    body = bodies[0]
    replaces_all = type_.replaces_all and act in WHOLE
    found = [child for child in body.children if child.name == type_.record]
    where = f"{type_.name}, {type_.record}"
    if len(found) > reading.limits.records_max:
        raise rejected(
            where,
            f"{len(found)} records, at most {reading.limits.records_max} are taken; send fewer",
        )
    count = reading.catalogue.envelope.count
    declared_count(body, count, type_.record, len(found), plural="records")
    if not found and (replaces_all or act not in WHOLE):
        raise rejected(where, "there is no record; send at least one")
    _keep_unknown(reading, type_, body, message_extras)
    records: dict[str, Record] = {}
    for number, element in enumerate(found, 1):
        key, record = _record(reading, type_, f"{where} number {number}", element)
        if key in records:
            raise rejected(where, f"the {type_.key} {shown(key)} stands there twice; send it once")
        records[key] = record
    return Reference(type_.name, act, records, replaces_all)


def _record(
    reading: Reading, type_: ReferenceType, where: str, element: Element
) -> tuple[str, Record]:
    record = structure_map(reading, where, element)
    values = {value for name, value in element.attributes if name == type_.key}
    for child in element.children:
        if child.name == type_.key:
            if child.children or child.attributes:
                raise rejected(f"{where}, {type_.key}", "is not plain text; send it as text")
            values.add(child.text)
    if len(values) > 1:
        raise rejected(f"{where}, {type_.key}", "is there with two values; send one")
    key = values.pop() if values else ""
    if not key:
        raise rejected(where, f"has no {type_.key}; name the record it is")
    if len(key) > KEY_CHARACTERS_MAX:
        raise rejected(
            f"{where}, {type_.key}",
            f"{shown(key)} is no key: at most {KEY_CHARACTERS_MAX} characters are taken",
        )
    # Sent twice alike it would stand there as a list.
    return key, {**record, type_.key: key}


def _keep_unknown(reading: Reading, type_: ReferenceType, body: Element, extras: Extras) -> None:
    """What stands beside the records is no record's."""
    for name, value in body.attributes:
        extras.attribute(name, value, taken=reading.is_taken(name))
    if body.text:
        extras.attribute(body.name, body.text, taken=True)
    for child in body.children:
        if child.name == reading.catalogue.envelope.count:
            extras.attributes_of(child)
        elif child.name != type_.record:
            extras.element(child, taken=reading.is_taken(child.name))
