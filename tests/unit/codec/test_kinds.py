"""Each of the 29 kinds, as the default catalogue has them."""

import pytest
from codec_cases import CATALOGUE, message, told_of

from factories import operation
from msgexchange.codec.catalogue import ClearRule, Group, GroupShape
from msgexchange.flight.commands import Clear, Replace, Set
from msgexchange.flight.messages import Rejected

KINDS = {styp: CATALOGUE.groups[name] for styp, name in CATALOGUE.kinds.items()}


def kinds_of(shape: GroupShape) -> list[Group]:
    return [group for group in KINDS.values() if group.shape is shape]


def value_of(group: Group, field: str) -> str:
    return "03SEP261804" if field in group.time_fields else f"{field.lower()}-1"


def fields_of(group: Group) -> dict[str, str]:
    return {
        field: "1" if field == group.sequence else value_of(group, field) for field in group.columns
    }


def with_children(group: Group, fields: dict[str, str]) -> str:
    inner = "".join(f"<{name}>{value}</{name}>" for name, value in fields.items())
    return f"<{group.name}>{inner}</{group.name}>"


def with_attributes(group: Group, fields: dict[str, str]) -> str:
    text = fields.get("TEXT", "")
    inner = "".join(f' {name}="{value}"' for name, value in fields.items() if name != "TEXT")
    return f"<{group.name}{inner}>{text}</{group.name}>"


def test_there_are_29_kinds() -> None:
    assert len(KINDS) == 29
    shapes = {shape: len(kinds_of(shape)) for shape in GroupShape}
    assert shapes == {
        GroupShape.COLLECTION: 10,
        GroupShape.EXCEPTION: 3,
        GroupShape.TEXT: 3,
        GroupShape.SCALAR: 13,
    }


@pytest.mark.parametrize("group", kinds_of(GroupShape.SCALAR), ids=lambda group: group.name)
def test_a_scalar_is_set_and_emptied(group: Group) -> None:
    value = value_of(group, "")
    assert told_of(group.name, f"<{group.name}> {value} </{group.name}>") == (
        Set(group.name, value),
    )
    for empty in ("", " ", "<!-- x -->"):
        element = f"<{group.name}>{empty}</{group.name}>"
        assert told_of(group.name, element) == (Set(group.name, ""),)
    assert told_of(group.name, f'<{group.name} xsi:nil="true">x</{group.name}>') == (
        Set(group.name, ""),
    )


@pytest.mark.parametrize("write", [with_children, with_attributes])
@pytest.mark.parametrize("group", kinds_of(GroupShape.COLLECTION), ids=lambda group: group.name)
def test_a_collection_is_replaced_in_message_order(group: Group, write: object) -> None:
    assert callable(write)
    first = fields_of(group)
    second = dict(list(first.items())[-1:])
    command = told_of(group.name, write(group, first) + write(group, second))
    assert command == (Replace(group.name, (first, second)),)


@pytest.mark.parametrize(
    "group",
    [group for group in KINDS.values() if group.clear_rule is ClearRule.SEQUENCE_ZERO],
    ids=lambda group: group.name,
)
def test_a_group_with_a_sequence_is_cleared_by_zero(group: Group) -> None:
    zero = f'<{group.name} {group.sequence}="0"/>'
    one = f'<{group.name} {group.sequence}="1"/>'
    assert told_of(group.name, zero) == (Clear(group.name),)
    assert told_of(group.name, zero + zero) == (Clear(group.name),)
    content = message(operation("9001", zero + one, styp=group.name)).content
    assert isinstance(content, Rejected)
    assert group.name in content.reason
    assert "9001" in content.reason


@pytest.mark.parametrize("write", [with_children, with_attributes])
@pytest.mark.parametrize("group", kinds_of(GroupShape.EXCEPTION), ids=lambda group: group.name)
def test_an_exception_is_set_whole_and_cleared_when_empty(group: Group, write: object) -> None:
    assert callable(write)
    fields = fields_of(group)
    assert told_of(group.name, write(group, fields)) == (Set(group.name, fields),)
    empty = dict.fromkeys(fields, "")
    assert told_of(group.name, write(group, empty)) == (Clear(group.name),)


@pytest.mark.parametrize("group", kinds_of(GroupShape.TEXT), ids=lambda group: group.name)
def test_a_text_group_keeps_its_structure(group: Group) -> None:
    name = group.name
    assert told_of(name, f"<{name}>wheelchair</{name}>") == (Set(name, {"TEXT": "wheelchair"}),)
    assert told_of(name, f"<{name} a='1'><B>b</B><B c='2'>d</B></{name}><{name}/>") == (
        Set(name, ({"a": "1", "B": ("b", {"c": "2", "TEXT": "d"})}, {})),
    )
    assert told_of(name, f"<{name}/>") == (Clear(name),)
    assert told_of(name, f"<{name}> </{name}>") == (Clear(name),)
    assert told_of(name, f'<{name} xsi:nil="true" a="1"/>') == (Clear(name),)


@pytest.mark.parametrize("group", list(KINDS.values()), ids=lambda group: group.name)
def test_its_time_fields_are_watched(group: Group) -> None:
    for field in sorted(group.time_fields):
        inner = f"<{field}>29FEB271200</{field}>" if field else "29FEB271200"
        element = f"<{group.name}>{inner}</{group.name}>"
        decoded = message(operation("9001", element, styp=group.name))
        assert decoded.unreadable_times == (field or group.name,)
        assert "29FEB271200" in repr(decoded.content)
