"""The elements of one name become one command (spec 1.1, 2.2)."""

from collections.abc import Sequence
from typing import assert_never

from msgexchange.codec.catalogue import ClearRule, Group, GroupShape
from msgexchange.codec.document import Element
from msgexchange.codec.extras import Extras, structure_map
from msgexchange.codec.items import read_item
from msgexchange.codec.reading import Reading
from msgexchange.codec.refusal import inexpressible, rejected, shown
from msgexchange.flight.commands import Clear, Command, Replace, Set
from msgexchange.flight.state import Item, Json
from msgexchange.ids import Flid


def group_command(
    reading: Reading, flid: Flid, group: Group, elements: Sequence[Element], extras: Extras
) -> Command:
    """What ``elements``, all the flight's elements named after ``group``, ask for.

    Attributes nobody expected on a scalar go to ``extras``, those of an item into the item.
    """
    if group.shape is GroupShape.SCALAR:
        return _scalar(reading, flid, group, elements, extras)
    if len(elements) > reading.limits.items_max:
        raise rejected(
            f"flight {flid}, {group.name}",
            f"{len(elements)} items, at most {reading.limits.items_max} are taken; send fewer",
        )
    match group.shape:
        case GroupShape.COLLECTION:
            return _collection(reading, flid, group, elements)
        case GroupShape.EXCEPTION:
            return _exception(reading, flid, group, elements)
        case GroupShape.TEXT:
            return _text_group(reading, flid, group, elements)
        case _:
            assert_never(group.shape)


def _scalar(
    reading: Reading, flid: Flid, group: Group, elements: Sequence[Element], extras: Extras
) -> Command:
    value = elements[0].text
    for element in elements:
        if element.children:
            raise inexpressible(
                f"flight {flid}, {group.name}",
                f"holds the element {shown(element.children[0].name)} where plain text is known; "
                "send text, or give the name another shape in the catalogue",
            )
        if element.text != value:
            raise rejected(
                f"flight {flid}, {group.name}",
                f"stands there with {shown(value)} and with {shown(element.text)}; send it once",
            )
        if element.attributes:
            extras.attributes_of(element)
    if len(value) > reading.limits.value_characters_max:
        reading.check_value(f"flight {flid}", group.name, value)
    if group.time_fields:
        reading.check_time(group.name, value)
    return Set(group.name, value)


def _collection(reading: Reading, flid: Flid, group: Group, elements: Sequence[Element]) -> Command:
    if len(elements) == 1 and (elements[0].is_empty or elements[0].nil):
        if group.clear_rule is ClearRule.EMPTY_ELEMENT_IS_EMPTY_LIST:
            return Replace(group.name, ())
        if group.clear_rule is ClearRule.EMPTY_ELEMENT_CLEARS:
            return Clear(group.name)
    items = tuple(read_item(reading, flid, group, element) for element in elements)
    if group.clear_rule is ClearRule.SEQUENCE_ZERO and _clears_by_zero(flid, group, items):
        return Clear(group.name)
    return Replace(group.name, items)


def _clears_by_zero(flid: Flid, group: Group, items: Sequence[Item]) -> bool:
    sequence = group.sequence or ""
    zeros = sum(_is_zero(item.get(sequence)) for item in items)
    if 0 < zeros < len(items):
        raise rejected(
            f"flight {flid}, {group.name}",
            f"{sequence} is 0 on {zeros} of {len(items)} items; send one item with "
            f'{sequence}="0" to clear the group, or number every item from 1',
        )
    return zeros > 0


def _is_zero(sequence: Json | None) -> bool:
    return isinstance(sequence, str) and sequence != "" and not sequence.strip("0")


def _exception(reading: Reading, flid: Flid, group: Group, elements: Sequence[Element]) -> Command:
    if len(elements) > 1:
        raise rejected(
            f"flight {flid}, {group.name}", f"stands there {len(elements)} times; send it once"
        )
    value = read_item(reading, flid, group, elements[0])
    if elements[0].nil or not _has_content(value):
        return Clear(group.name)
    return Set(group.name, value)


def _has_content(value: Json) -> bool:
    if isinstance(value, str):
        return value != ""
    return any(map(_has_content, value if isinstance(value, tuple) else value.values()))


def _text_group(reading: Reading, flid: Flid, group: Group, elements: Sequence[Element]) -> Command:
    if len(elements) == 1 and (elements[0].is_empty or elements[0].nil):
        return Clear(group.name)
    where = f"flight {flid}, {group.name}"
    maps = tuple(structure_map(reading, where, element) for element in elements)
    return Set(group.name, maps[0] if len(maps) == 1 else maps)
