"""Texts to trees: what counts as XML here, and what is refused where."""

import pytest

from msgexchange.codec.document import Element, parse
from msgexchange.codec.limits import Limits
from msgexchange.flight.messages import Malformed

XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'


def root(text: str, limits: Limits | None = None) -> Element:
    parsed = parse(text, limits or Limits())
    assert isinstance(parsed, Element), parsed
    return parsed


def refusal(text: str, limits: Limits | None = None) -> str:
    parsed = parse(text, limits or Limits())
    assert isinstance(parsed, Malformed), parsed
    return parsed.reason


@pytest.mark.parametrize(
    ("inner", "text"),
    [
        ("plain", "plain"),
        (" \r\n\t in  between \t", "in  between"),
        ("<![CDATA[a & <b>]]>", "a & <b>"),
        ("a&amp;b&#x20;&#8217;c", "a&b \u2019c"),
        ("A1<!-- x -->2", "A12"),
        ("A1<?pi x?>2", "A12"),
        ("x<![CDATA[y]]>z", "xyz"),
        ("\u3000\xa0", "\u3000\xa0"),
        ("\U00020bb7\u91ce", "\U00020bb7\u91ce"),
    ],
)
def test_text_is_plain_and_trimmed_of_xml_blanks(inner: str, text: str) -> None:
    assert root(f"<A>{inner}</A>").text == text


def test_own_text_leaves_the_childrens_out() -> None:
    element = root("<A> one <B>two</B> three <B/> </A>")
    assert element.text == "one  three"
    assert [(child.name, child.text) for child in element.children] == [("B", "two"), ("B", "")]


def test_a_long_text_in_many_pieces_stays_whole() -> None:
    text = "".join(f"{number}&amp;\n" for number in range(20_000))
    assert root(f"<A>{text}</A>").text == text.replace("&amp;", "&").strip()


@pytest.mark.parametrize("before", ["\ufeff", " \r\n", "\ufeff\n ", "\n\ufeff"])
def test_a_mark_or_blanks_before_the_declaration_are_accepted(before: str) -> None:
    assert root(f'{before}<?xml version="1.0" encoding="UTF-8"?><A/>').name == "A"


@pytest.mark.parametrize("encoding", ["GBK", "UTF-16", "ISO-8859-1", "no-such-encoding"])
def test_a_declared_encoding_is_ignored(encoding: str) -> None:
    assert root(f'<?xml version="1.0" encoding="{encoding}"?><A>晚到</A>').text == "晚到"


def test_names_count_by_their_local_part() -> None:
    element = root('<s:A xmlns:s="urn:s" xmlns="urn:d" s:b=" 1 " c="2"><s:D/><E/></s:A>')
    assert element.name == "A"
    assert element.attributes == (("b", "1"), ("c", "2"))
    assert [child.name for child in element.children] == ["D", "E"]


@pytest.mark.parametrize(
    "attributes",
    [
        f'{XSI} xsi:nil="true"',
        f'xsi:nil="1" {XSI}',
        'i:nil=" true " xmlns:i="http://www.w3.org/2001/XMLSchema-instance"',
        'xsi:nil="true"',
    ],
)
def test_nil_means_empty(attributes: str) -> None:
    element = root(f"<A {attributes}>text<B/></A>")
    assert element.nil
    assert element.is_empty


@pytest.mark.parametrize("attributes", [f'{XSI} xsi:nil="false"', 'nil="true"', 'xsi:type="T"'])
def test_other_attributes_do_not_mean_empty(attributes: str) -> None:
    element = root(f"<A {attributes}>text</A>")
    assert not element.nil
    assert element.text == "text"


def test_xsi_attributes_are_no_fields() -> None:
    assert root(f'<A {XSI} xsi:type="T" xsi:schemaLocation="a b"/>').attributes == ()


@pytest.mark.parametrize(
    "text",
    [
        "<!DOCTYPE A><A/>",
        '<!DOCTYPE A SYSTEM "http://localhost/a.dtd"><A/>',
        '<!DOCTYPE A [<!ENTITY e "x">]><A>&e;</A>',
        '<!DOCTYPE A [<!ENTITY % p SYSTEM "file:///etc/passwd">%p;]><A/>',
        '<?xml version="1.0" standalone="no"?><!DOCTYPE A PUBLIC "p" "s"><A/>',
    ],
)
def test_any_doctype_is_refused(text: str) -> None:
    reason = refusal(text)
    assert "DOCTYPE" in reason
    assert reason.startswith("line 1, column ")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no element found"),
        ("   \n", "no element found"),
        ("hello", "syntax error"),
        ("<A><B></A>", "mismatched tag"),
        ("<A>", "no element found"),
        ("<A/><B/>", "junk after document element"),
        ("<A>&nbsp;</A>", "undefined entity"),
        ("<A>&#0;</A>", "reference to invalid character number"),
        ("<A b='1' b='2'/>", "duplicate attribute"),
    ],
)
def test_what_is_no_xml_says_why(text: str, what: str) -> None:
    assert what in refusal(text)


@pytest.mark.parametrize("forbidden", ["\0", "\x0b", "\x1f", "\ufffe", "\uffff"])
@pytest.mark.parametrize("template", ["<A>ab{}</A>", '<A b="{}"/>', "<A/>{}", "{}<A/>"])
def test_a_forbidden_character_is_named(forbidden: str, template: str) -> None:
    reason = refusal(template.format(forbidden))
    assert f"U+{ord(forbidden):04X}" in reason
    assert "\0" not in reason


@pytest.mark.parametrize("charset", ["utf-16-le", "utf-16-be"])
def test_wide_characters_read_as_narrow_ones_are_refused(charset: str) -> None:
    text = "<A><B/></A>".encode(charset).decode("latin-1")
    assert "U+0000" in refusal(text)


def test_half_a_character_is_refused_where_it_stands() -> None:
    assert refusal("<A>\n ab\ud800</A>").startswith("line 2, column 4: the character U+D800")


def test_the_place_counts_what_stood_before_the_declaration() -> None:
    assert refusal("\n\n  <A>\0</A>").startswith("line 3, column 6:")
    assert refusal("<A>\n<B>\0</B></A>").startswith("line 2, column 4:")


def test_depth_is_bounded_the_root_being_the_first() -> None:
    limits = Limits(depth_max=3)
    assert root("<A><B><C>x</C></B></A>", limits).name == "A"
    assert "more than 3 deep" in refusal("<A><B><C><D/></C></B></A>", limits)


def test_a_deep_bomb_costs_no_memory_before_it_is_refused() -> None:
    assert "more than 32 deep" in refusal("<A>" * 1_000_000)


@pytest.mark.parametrize(("filling", "fits"), [("a" * 13, True), ("a" * 14, False)])
def test_the_size_limit_is_exact(filling: str, fits: bool) -> None:
    parsed = parse(f"<A>{filling}</A>", Limits(text_bytes_max=20))
    assert isinstance(parsed, Element) is fits


def test_size_is_counted_as_utf8() -> None:
    assert root("<A>晚</A>", Limits(text_bytes_max=10)).text == "晚"
    assert "over 9 bytes" in refusal("<A>晚</A>", Limits(text_bytes_max=9))


def test_elements_and_attributes_together_are_bounded() -> None:
    limits = Limits(nodes_max=4)
    assert root('<A b="1"><C/><C/></A>', limits).name == "A"
    assert "too many elements" in refusal('<A b="1"><C/><C/><C/></A>', limits)


def test_a_limit_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="items_max"):
        Limits(items_max=0)
    with pytest.raises(ValueError, match="depth_max"):
        Limits(depth_max=201)
