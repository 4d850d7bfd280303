"""FLOP: blocks, and the rules of fields, items and groups."""

import dataclasses

import pytest
from codec_cases import CATALOGUE, message, rejection, told, told_of

from factories import operation, xml
from msgexchange.codec.catalogue import ClearRule
from msgexchange.codec.limits import Limits
from msgexchange.flight.commands import Clear, Replace, Set
from msgexchange.flight.messages import Block, Inexpressible, Operation, Rejected, Unsupported
from msgexchange.ids import Flid


def flop(*blocks: str, styp: str = "STAT") -> str:
    return xml("".join(f"<FLOP>{block}</FLOP>" for block in blocks), styp=styp)


def test_several_blocks_each_tell_their_flight() -> None:
    content = message(
        flop("<FLID>9001</FLID><STAT>A</STAT>", "<STAT>B</STAT><FLID> a-B_2 </FLID>")
    ).content
    assert content == Operation(
        (
            Block(Flid("9001"), (Set("STAT", "A"),)),
            Block(Flid("a-B_2"), (Set("STAT", "B"),)),
        )
    )


@pytest.mark.parametrize(
    ("block", "what"),
    [
        ("<STAT>A</STAT>", "has no FLID"),
        ("<FLID/><STAT>A</STAT>", "has no FLID"),
        ("<FLID>9 1</FLID><STAT>A</STAT>", '"9 1"'),
        ("<FLID>航班</FLID><STAT>A</STAT>", "letters, digits"),
        (f"<FLID>{'9' * 33}</FLID><STAT>A</STAT>", "1 to 32"),
        ("<FLID>1</FLID><FLID>2</FLID><STAT>A</STAT>", "not one plain value"),
        ("<FLID><A>1</A></FLID><STAT>A</STAT>", "not one plain value"),
        ("<FLID>1</FLID>", "lacks the element STAT"),
        ("<FLID>1</FLID><CKDT CKNO='1'/>", "lacks the element STAT"),
        ("<FLID>1</FLID><STAT>A</STAT><STAT>B</STAT>", '"A" and with "B"'),
    ],
)
def test_a_block_that_breaks_the_contract_refuses_the_message(block: str, what: str) -> None:
    reason = rejection(flop("<FLID>9001</FLID><STAT>A</STAT>", block))
    assert what in reason
    assert "FLOP number 2" in reason or "flight 1" in reason


def test_one_flight_twice_is_refused() -> None:
    block = "<FLID>9001</FLID><STAT>A</STAT>"
    assert "flight 9001: stands in the message twice" in rejection(flop(block, block))


@pytest.mark.parametrize("body", ["", "<SCHD/>", "<GTDT/>", "<META2/>"])
def test_a_missing_body_is_refused(body: str) -> None:
    assert "the element FLOP that TYPE names is missing" in rejection(xml(body))


@pytest.mark.parametrize("other", ["SCHD", "FDEL", "ARPT", "LDM"])
def test_a_body_of_another_type_beside_is_refused(other: str) -> None:
    text = operation("1", "<STAT/>").replace("</MSG>", f"<{other}/></MSG>")
    assert f"holds {other} beside FLOP" in rejection(text)


@pytest.mark.parametrize("styp", ["", "NOPE", "SCTM", "gtdt"])
def test_an_unknown_subtype_is_unsupported(styp: str) -> None:
    content = message(operation("1", "<STAT/>", styp=styp)).content
    assert isinstance(content, Unsupported)
    assert "kind" in content.reason


def test_a_kind_that_is_switched_off_says_so() -> None:
    kinds = {styp: group for styp, group in CATALOGUE.kinds.items() if styp != "STAT"}
    catalogue = dataclasses.replace(CATALOGUE, kinds=kinds, disabled_kinds={"STAT": "STAT"})
    content = message(operation("1", "<STAT/>"), catalogue=catalogue).content
    assert isinstance(content, Unsupported)
    assert "switched off" in content.reason


def test_a_kind_may_change_a_group_of_another_name() -> None:
    catalogue = dataclasses.replace(CATALOGUE, kinds={"GATE": "GTDT"})
    text = operation("1", '<GTDT GTNO="1"/>', styp="GATE")
    assert told(text, catalogue=catalogue) == (Replace("GTDT", ({"GTNO": "1"},)),)


def test_a_message_changes_one_kind_and_reports_the_others() -> None:
    decoded = message(
        operation(
            "1",
            "<FLNO>CZ1</FLNO><FFID>x</FFID><FDAY>20260903</FDAY>"
            "<STAT>A</STAT><ESTM>soon</ESTM><GTDT GTNO='1'/><SCTM/><FDEL/>",
        )
    )
    assert decoded.content == Operation((Block(Flid("1"), (Set("STAT", "A"),)),))
    assert decoded.unknown == ("ESTM", "GTDT", "SCTM", "FDEL")
    assert decoded.unreadable_times == ()


@pytest.mark.parametrize(
    ("element", "item"),
    [
        ("<GTDT/>", {}),
        ("<GTDT><GATE/></GTDT>", {"GATE": ""}),
        ('<GTDT GATE=""/>', {"GATE": ""}),
        ('<GTDT><GATE xsi:nil="1">A</GATE></GTDT>', {"GATE": ""}),
        ('<GTDT GATE="A1"><GATE> A1 </GATE></GTDT>', {"GATE": "A1"}),
        ("<GTDT><GATE>A1</GATE><GATE>A1</GATE></GTDT>", {"GATE": "A1"}),
        ("<GTDT><GTNO>x7</GTNO></GTDT>", {"GTNO": "x7"}),
        ("<GTDT><GOTM>03SEP261804</GOTM></GTDT>", {"GOTM": "03SEP261804"}),
    ],
)
def test_an_item_has_the_fields_that_are_there(element: str, item: dict[str, str]) -> None:
    assert told_of("GTDT", element) == (Replace("GTDT", (item,)),)


@pytest.mark.parametrize(
    "element",
    ['<GTDT GATE="A1"><GATE>A2</GATE></GTDT>', "<GTDT><GATE>A1</GATE><GATE/></GTDT>"],
)
def test_a_field_that_says_two_things_is_refused(element: str) -> None:
    reason = rejection(operation("9001", element, styp="GTDT"))
    assert "flight 9001, GTDT/GATE" in reason


@pytest.mark.parametrize(
    ("sequences", "cleared"),
    [
        ((), None),
        (("0",), True),
        (("00", "0"), True),
        (("0", "1"), None),
        (("1", "0"), None),
        (("0", None), None),
        (("1", "1"), False),
        (("3", "1"), False),
        ((None, None), False),
        (("", ""), False),
        (("-0",), False),
        (("A",), False),
    ],
)
def test_zero_clears_only_when_every_item_has_it(
    sequences: tuple[str | None, ...], cleared: bool | None
) -> None:
    items = "".join("<GTDT/>" if s is None else f'<GTDT GTNO="{s}"/>' for s in sequences)
    content = message(operation("1", items, styp="GTDT")).content
    if cleared is None:
        assert isinstance(content, Rejected)
    else:
        assert isinstance(content, Operation)
        assert isinstance(content.blocks[0].commands[0], Clear if cleared else Replace)


@pytest.mark.parametrize(
    ("elements", "items"),
    [
        ("<DELY/>", ()),
        ("<DELY> <!-- none --> </DELY>", ()),
        ('<DELY xsi:nil="true"/>', ()),
        ('<DELY CODE=""/>', ({"CODE": ""},)),
        ('<DELY CODE="93" DURA="20">late</DELY>', ({"CODE": "93", "DURA": "20", "TEXT": "late"},)),
        ("<DELY>late<TEXT>late</TEXT></DELY>", ({"TEXT": "late"},)),
        ('<DELY CODE="1"/><DELY CODE="2"/>', ({"CODE": "1"}, {"CODE": "2"})),
    ],
)
def test_one_empty_delay_is_the_empty_list(elements: str, items: tuple[object, ...]) -> None:
    assert told_of("DELY", elements) == (Replace("DELY", items),)  # type: ignore[arg-type]


def test_item_text_and_its_field_may_not_differ() -> None:
    assert "DELY/TEXT" in rejection(
        operation("1", "<DELY>late<TEXT>early</TEXT></DELY>", styp="DELY")
    )


@pytest.mark.parametrize(
    ("rule", "expected"),
    [(ClearRule.EMPTY_ELEMENT_CLEARS, Clear("DELY")), (ClearRule.NEVER, Replace("DELY", ({},)))],
)
def test_the_catalogue_decides_what_an_empty_element_does(
    rule: ClearRule, expected: Clear | Replace
) -> None:
    delay = dataclasses.replace(CATALOGUE.groups["DELY"], clear_rule=rule)
    catalogue = dataclasses.replace(CATALOGUE, groups={**CATALOGUE.groups, "DELY": delay})
    assert told(operation("1", "<DELY/>", styp="DELY"), catalogue=catalogue) == (expected,)


@pytest.mark.parametrize(
    "element",
    [
        "<FDIV/>",
        "<FDIV>  </FDIV>",
        '<FDIV xsi:nil="true" DEST="TSN"/>',
        '<FDIV DEST=""><RSON> </RSON></FDIV>',
        '<FDIV DEST="" FOO=""/>',
    ],
)
def test_an_exception_without_content_is_cleared(element: str) -> None:
    assert told_of("FDIV", element) == (Clear("FDIV"),)


def test_an_exception_keeps_empty_fields_beside_full_ones() -> None:
    assert told_of("FDIV", '<FDIV DEST="TSN" RSON="">storm</FDIV>') == (
        Set("FDIV", {"DEST": "TSN", "RSON": "", "TEXT": "storm"}),
    )


def test_an_unknown_field_is_content_of_an_exception() -> None:
    assert told_of("FRET", "<FRET><FOO><BAR>x</BAR></FOO></FRET>") == (
        Set("FRET", {"FOO": {"BAR": "x"}}),
    )


def test_an_exception_stands_once() -> None:
    assert "stands there 2 times" in rejection(
        operation("1", "<FDIV DEST='TSN'/><FDIV DEST='TSN'/>", styp="FDIV")
    )


@pytest.mark.parametrize(
    ("styp", "element"),
    [
        ("STAT", "<STAT><CODE>A</CODE></STAT>"),
        ("GTDT", "<GTDT><GATE><NAME>A12</NAME></GATE></GTDT>"),
        ("FDIV", "<FDIV><DEST><A/></DEST></FDIV>"),
    ],
)
def test_structure_where_text_is_known_waits_for_a_better_codec(styp: str, element: str) -> None:
    content = message(operation("9001", element, styp=styp)).content
    assert isinstance(content, Inexpressible)
    assert "flight 9001" in content.reason


@pytest.mark.parametrize("styp", ["GTDT", "DELY", "SRVT"])
@pytest.mark.parametrize(("count", "fits"), [(99, True), (100, False)])
def test_a_group_has_at_most_99_items(styp: str, count: int, fits: bool) -> None:
    content = message(operation("1", f"<{styp} a='1'/>" * count, styp=styp)).content
    assert isinstance(content, Operation) is fits
    assert isinstance(content, Rejected) is not fits


@pytest.mark.parametrize(
    ("styp", "template"),
    [
        ("RMRK", "<RMRK>{}</RMRK>"),
        ("GTDT", '<GTDT GATE="{}"/>'),
        ("GTDT", "<GTDT><GATE>{}</GATE></GTDT>"),
        ("GTDT", "<GTDT>{}</GTDT>"),
        ("GTDT", "<GTDT><FOO><BAR>{}</BAR></FOO></GTDT>"),
        ("GTDT", "<GTDT {}='1'/>"),
        ("DELY", "<DELY>{}</DELY>"),
        ("SRVT", "<SRVT><A b='{}'/></SRVT>"),
        ("SRVT", "<SRVT>{}</SRVT>"),
        ("STAT", "<STAT/><FOO>{}</FOO>"),
        ("STAT", "<STAT foo='{}'/>"),
    ],
)
def test_every_value_is_bounded(styp: str, template: str) -> None:
    fits = message(operation("1", template.format("v" * 4000), styp=styp)).content
    assert isinstance(fits, Operation), fits
    reason = rejection(operation("1", template.format("v" * 4001), styp=styp))
    assert "4001 characters" in reason
    assert "flight 1" in reason
    assert len(reason) < 400


def test_limits_are_configurable() -> None:
    limits = Limits(items_max=1, value_characters_max=3)
    assert "at most 1" in rejection(operation("1", "<GTDT/><GTDT/>", styp="GTDT"), limits=limits)
    assert "at most 3" in rejection(operation("1", "<STAT>ABCD</STAT>"), limits=limits)
