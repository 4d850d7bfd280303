"""What holds for every text, well-formed or not."""

import re
from xml.sax.saxutils import escape, quoteattr

import defusedxml.ElementTree
import pytest
from codec_cases import CATALOGUE, ZONE, malformed, plan_xml, rejection
from hypothesis import given, settings
from hypothesis import strategies as st

from factories import deletion, operation, plan, xml
from msgexchange.codec.decode import decode
from msgexchange.codec.document import BLANKS, Element, parse
from msgexchange.codec.limits import Limits
from msgexchange.codec.octets import decode_octets
from msgexchange.codec.times import read_time
from msgexchange.flight.messages import Malformed, Message

VALID = (
    operation("9001", '<GTDT GTNO="1"><GATE>A12</GATE></GTDT><FOO a="1"/>', styp="GTDT"),
    operation("9001", "<DELY CODE='93'>late</DELY>", styp="DELY"),
    operation("9001", "<FDIV DEST='TSN'>storm</FDIV>", styp="FDIV"),
    operation("9001", "<SRVT><A>x</A></SRVT>", styp="SRVT"),
    plan("9001", "9002", extra='<ROUT RONO="1"><STOP>PEK</STOP></ROUT>'),
    deletion("9001", "9002"),
    xml("", type_="LDM"),
)
PIECES = st.sampled_from(
    [
        *(
            "<",
            ">",
            "/>",
            "</",
            "&",
            "&amp;",
            "]]>",
            "<![CDATA[",
            "<!--",
            "-->",
            '"',
            "\0",
            "\ud800",
        ),
        *("<FLID>1</FLID>", "<GTDT/>", "<META/>", "0", "<!DOCTYPE a>", 'xsi:nil="true"', "\ufeff"),
        *("FLOP", "SCHD", "FDEL", "STAT", "DNLD", "ADFT", "29FEB271200", "<A><B>c</B></A>", "\n"),
    ]
)
NAMES = st.sampled_from(["A", "B", "GTDT", "x_1", "航班"])
SAFE_TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")
    | st.sampled_from("\n\t "),
    max_size=12,
)


def check(decoded: Message | Malformed) -> None:
    """A reason is there, and can be stored."""
    reason = decoded.reason if isinstance(decoded, Malformed) else None
    if isinstance(decoded, Message):
        reason = getattr(decoded.content, "reason", None)
    if reason is not None:
        assert 0 < len(reason) <= 2000
        assert "\0" not in reason


@given(st.text(max_size=60) | st.lists(PIECES, max_size=12).map("".join))
def test_any_text_gets_an_answer(text: str) -> None:
    check(decode(text, CATALOGUE, Limits(), ZONE))


@settings(max_examples=300)
@given(st.data())
def test_a_damaged_message_gets_an_answer(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(VALID))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 20)))
        text = text[:start] + data.draw(st.just("") | PIECES) + text[end:]
    check(decode(text, CATALOGUE, Limits(), ZONE))


@settings(max_examples=300)
@given(st.data())
def test_a_message_with_moved_elements_gets_an_answer(data: st.DataObject) -> None:
    parts = re.findall(r"<[^>]*>|[^<]+", data.draw(st.sampled_from(VALID)))
    index = data.draw(st.integers(0, len(parts) - 1))
    other = re.findall(r"<[^>]*>|[^<]+", data.draw(st.sampled_from(VALID)))
    parts[index] = data.draw(st.sampled_from(other))
    check(decode("".join(parts), CATALOGUE, Limits(), ZONE))


@given(st.binary(max_size=60), st.none() | st.text(max_size=30))
def test_any_body_is_text_or_undecodable(body: bytes, content_type: str | None) -> None:
    decode_octets(body, content_type)


@given(st.binary(max_size=12), st.text(st.characters(codec="ascii"), max_size=20))
def test_any_charset_name_gets_an_answer(body: bytes, charset: str) -> None:
    decode_octets(body, f"text/xml; charset={charset}")
    decode_octets(b"<?xml version='1.0' encoding='" + charset.encode() + b"'?>" + body, None)


@given(st.text(max_size=20) | st.from_regex(r"[0-9T:+Z W-]{8,25}", fullmatch=True))
def test_any_text_is_a_local_time_or_none(text: str) -> None:
    moment = read_time(text, ZONE)
    assert moment is None or moment.tzinfo is None


@st.composite
def documents(draw: st.DrawFn, depth: int = 3) -> str:
    name = draw(NAMES)
    names = draw(st.lists(NAMES, unique=True, max_size=2))
    attributes = "".join(f" {each}={quoteattr(draw(SAFE_TEXT))}" for each in names)
    pieces = []
    for _ in range(draw(st.integers(0, 3))):
        if depth and draw(st.booleans()):
            pieces.append(draw(documents(depth=depth - 1)))
        else:
            pieces.append(draw(_TEXT_FORMS))
    return f"<{name}{attributes}>{''.join(pieces)}</{name}>"


_TEXT_FORMS = st.one_of(
    SAFE_TEXT.map(escape),
    SAFE_TEXT.map(lambda text: f"<![CDATA[{text.replace(']]>', '')}]]>"),
    st.just("<!-- a comment --><?a pi?>"),
)


def as_tuple(element: Element) -> tuple[object, ...]:
    children = [as_tuple(child) for child in element.children]
    return element.name, sorted(element.attributes), element.text, children


def reference(element: object) -> tuple[object, ...]:
    assert hasattr(element, "tag")
    children = list(element)  # type: ignore[call-overload]
    own = (element.text or "") + "".join(child.tail or "" for child in children)  # type: ignore[attr-defined]
    attributes = [(name, value.strip(BLANKS)) for name, value in element.attrib.items()]  # type: ignore[attr-defined]
    trimmed = own.strip(BLANKS)
    return element.tag, sorted(attributes), trimmed, [reference(child) for child in children]


@given(documents())
def test_the_tree_is_the_one_another_parser_builds(text: str) -> None:
    parsed = parse(text, Limits())
    assert isinstance(parsed, Element), parsed
    assert as_tuple(parsed) == reference(defusedxml.ElementTree.fromstring(text))


@pytest.mark.parametrize("value", ["v" * 3_000_000, "\ud7ff" * 5000, "'\"" * 5000])
def test_no_reason_repeats_more_than_the_beginning_of_a_value(value: str) -> None:
    reasons = [
        rejection(operation(value, "<STAT/>")),
        rejection(operation("1", f"<STAT>{value}</STAT><STAT/>")),
        rejection(plan_xml("<FLGT/>", count=f"<RCNT>{value}</RCNT>")),
        malformed(operation("1", "", styp=value)),
    ]
    for reason in reasons:
        assert len(reason) < 400
        assert value[:100] not in reason


def test_a_reason_is_bounded_however_many_bodies_there_are() -> None:
    bodies = "".join(f"<{'N' * 3000}{number}/>" for number in range(50))
    assert len(rejection(xml(bodies))) <= 2000
