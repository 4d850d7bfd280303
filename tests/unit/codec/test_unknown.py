"""What the catalogue does not know is kept on the flight or item, and reported by name."""

import pytest
from codec_cases import message, plan_xml, planned, told, told_of

from factories import operation, xml
from msgexchange.codec.reading import REPORTED_NAMES_MAX
from msgexchange.flight.commands import Replace, Set
from msgexchange.flight.state import Json


@pytest.mark.parametrize(
    ("element", "value"),
    [
        ("<FOO>x</FOO>", "x"),
        ("<FOO/>", ""),
        ('<FOO xsi:nil="true">x</FOO>', ""),
        ("<FOO a='1'/>", {"a": "1"}),
        ("<FOO a='1'>x</FOO>", {"a": "1", "TEXT": "x"}),
        ("<FOO><B>1</B><C><D/></C></FOO>", {"B": "1", "C": {"D": ""}}),
        ("<FOO><B>1</B><B>2</B></FOO>", {"B": ("1", "2")}),
        ("<FOO b='0'><b>1</b></FOO>", {"b": ("0", "1")}),
        ("<FOO>1</FOO><FOO>2</FOO>", ("1", "2")),
    ],
)
def test_an_unknown_element_is_kept_whole(element: str, value: Json) -> None:
    decoded = operation("1", f"<STAT>A</STAT>{element}")
    assert told(decoded) == (Set("STAT", "A"), Set("FOO", value))
    assert message(decoded).unknown == ("FOO",)


@pytest.mark.parametrize(
    ("item", "kept"),
    [
        ("<GTDT><GATE>A1</GATE><GATEE>x</GATEE></GTDT>", {"GATE": "A1", "GATEE": "x"}),
        ("<GTDT foo='1' GATE='A1'/>", {"GATE": "A1", "foo": "1"}),
        ("<GTDT><GATE foo='1'>A1</GATE></GTDT>", {"GATE": "A1", "x:GATE": {"foo": "1"}}),
        ("<GTDT GATE='A1'>free text</GTDT>", {"GATE": "A1", "TEXT": "free text"}),
        ("<GTDT><STAT>A</STAT></GTDT>", {"STAT": "A"}),
    ],
)
def test_what_an_item_holds_beside_its_fields_stays_in_the_item(
    item: str, kept: dict[str, Json]
) -> None:
    assert told_of("GTDT", item) == (Replace("GTDT", (kept,)),)


def test_a_name_that_clashes_with_the_catalogue_is_prefixed() -> None:
    text = xml('<FLOP STAT="B" x="1"><FLID q="7">1</FLID><STAT attr="v">A</STAT></FLOP>')
    assert told(text) == (
        Set("STAT", "A"),
        Set("x:STAT", ("B", {"attr": "v"})),
        Set("x", "1"),
        Set("x:FLID", {"q": "7"}),
    )
    assert set(message(text).unknown) == {"STAT", "x", "q", "attr"}


def test_text_between_the_elements_of_a_block_is_kept() -> None:
    assert told_of("STAT", "<STAT>A</STAT>hello") == (Set("STAT", "A"), Set("TEXT", "hello"))


def test_what_stands_beside_the_body_is_kept_with_meta() -> None:
    text = operation("1", "<STAT/>").replace("<MSG>", '<MSG v="2">')
    text = text.replace("</MSG>", "<SIGN>abc</SIGN>tail</MSG>")
    decoded = message(text)
    assert decoded.meta.unknown == {"v": "2", "SIGN": "abc", "MSG": "tail"}
    assert set(decoded.unknown) == {"v", "SIGN", "MSG"}


def test_what_stands_beside_a_plans_flights_is_kept_with_meta() -> None:
    flight = "<FLGT><FLID>1</FLID><FDAY>20260903</FDAY></FLGT>"
    decoded = message(plan_xml(f"<BTCH>7</BTCH>{flight}<STAT>x</STAT>"))
    assert decoded.meta.unknown == {"BTCH": "7", "x:STAT": "x"}
    assert decoded.unknown == ("BTCH", "STAT")


def test_a_planned_flight_keeps_what_it_does_not_know() -> None:
    plan = planned(
        plan_xml(
            '<FLGT a="1"><FLID>1</FLID><FDAY w="2">20260903</FDAY><FFID>CZ1-A</FFID>'
            "<STAT b='3'>A</STAT><SCHD/></FLGT>"
        )
    )
    assert plan.flights[0].commands == (
        Set("STAT", "A"),
        Set("a", "1"),
        Set("x:FDAY", {"w": "2"}),
        Set("FFID", "CZ1-A"),
        Set("x:SCHD", ""),
        Set("x:STAT", {"b": "3"}),
    )


def test_reported_names_are_bounded_and_short() -> None:
    many = "".join(f"<U{number}/>" for number in range(500))
    decoded = message(operation("1", f"<STAT/><{'N' * 300}/>{many}"))
    assert len(decoded.unknown) == REPORTED_NAMES_MAX
    assert max(map(len, decoded.unknown)) == 80
    assert len(told(operation("1", f"<STAT/>{many}"))) == 501


def test_one_name_is_reported_once() -> None:
    decoded = message(operation("1", "<GTDT f='1'/><GTDT f='2'/>", styp="GTDT"))
    assert decoded.unknown == ("f",)
