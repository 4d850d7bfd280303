"""META: five values, judged before anything else of the message."""

from datetime import datetime

import pytest
from codec_cases import malformed, message, read

from factories import operation, xml
from msgexchange.flight.messages import Malformed, Message, Operation, Rejected

FIELDS = {
    "SNDR": "AODB",
    "SEQN": "000123",
    "DTTM": "20260903183000",
    "TYPE": "FLOP",
    "STYP": "STAT",
}
BODY = "<FLOP><FLID>9001</FLID><STAT>BRD</STAT></FLOP>"


def with_meta(fields: dict[str, str], *, extra: str = "", attributes: str = "") -> str:
    inner = "".join(f"<{name}>{value}</{name}>" for name, value in fields.items())
    return f"<MSG><META{attributes}>{inner}{extra}</META>{BODY}</MSG>"


def test_the_five_values_are_read_in_any_order() -> None:
    meta = message(with_meta(dict(reversed(FIELDS.items())))).meta
    assert (meta.sndr, meta.seqn, meta.dttm) == ("AODB", "000123", "20260903183000")
    assert (meta.type, meta.styp, meta.kind) == ("FLOP", "STAT", "FLOP/STAT")
    assert meta.sent_at == datetime(2026, 9, 3, 18, 30)
    assert meta.unknown == {}


@pytest.mark.parametrize("name", ["SNDR", "SEQN", "DTTM", "TYPE"])
@pytest.mark.parametrize("value", [None, "", " \n ", "\u3000", "<!-- x -->"])
def test_a_required_value_is_there_and_not_blank(name: str, value: str | None) -> None:
    fields = {key: text for key, text in FIELDS.items() if key != name}
    if value is not None:
        fields[name] = value
    assert f"META/{name}" in malformed(with_meta(fields))


@pytest.mark.parametrize("value", [None, "", " "])
def test_styp_may_be_missing(value: str | None) -> None:
    fields = {key: text for key, text in FIELDS.items() if key != "STYP"}
    if value is not None:
        fields["STYP"] = value
    assert message(with_meta(fields)).meta.styp == ""


@pytest.mark.parametrize("name", list(FIELDS))
def test_a_value_has_at_most_32_characters(name: str) -> None:
    assert isinstance(read(with_meta({**FIELDS, name: "A" * 32})), Message)
    assert f"META/{name}" in malformed(with_meta({**FIELDS, name: "A" * 33}))


@pytest.mark.parametrize(
    "text",
    [
        "<MSG/>",
        f"<MSG>{BODY}</MSG>",
        "<MSG><X><META/></X></MSG>",
        "<META><SNDR>A</SNDR></META>",
        with_meta(FIELDS).replace("MSG>", "Msg>"),
        with_meta(FIELDS).replace("<FLOP>", "<META/><FLOP>"),
        with_meta({**FIELDS, "SEQN": "<A/>"}),
        with_meta(FIELDS, extra="<SEQN>000124</SEQN>"),
    ],
)
def test_no_meta_or_a_bad_one_is_malformed(text: str) -> None:
    assert isinstance(read(text), Malformed)


def test_a_value_said_twice_the_same_is_one_value() -> None:
    assert message(with_meta(FIELDS, extra="<SEQN> 000123 </SEQN>")).meta.seqn == "000123"


def test_what_else_meta_holds_is_kept_and_reported() -> None:
    text = with_meta(
        {**FIELDS, "STYP": "STAT"},
        extra="<RFID>77</RFID><RFID>78</RFID><TO><A b='1'>c</A></TO>",
        attributes=' v="2" SEQN="9"',
    ).replace("<SNDR>", '<SNDR host="h">')
    decoded = message(text)
    assert decoded.meta.unknown == {
        "v": "2",
        "x:SEQN": "9",
        "x:SNDR": {"host": "h"},
        "RFID": ("77", "78"),
        "TO": {"A": {"b": "1", "TEXT": "c"}},
    }
    assert {"v", "host", "RFID", "TO"} <= set(decoded.unknown)


def test_an_unreadable_dttm_is_kept_raw_and_noticed() -> None:
    decoded = message(with_meta({**FIELDS, "DTTM": "yesterday"}))
    assert decoded.meta.dttm == "yesterday"
    assert decoded.meta.sent_at is None
    assert decoded.unreadable_times == ("DTTM",)


def test_dttm_with_a_zone_becomes_airport_local() -> None:
    decoded = message(with_meta({**FIELDS, "DTTM": "2026-09-03T10:30:00Z"}))
    assert decoded.meta.sent_at == datetime(2026, 9, 3, 18, 30)


def test_meta_may_follow_the_body() -> None:
    head, body = with_meta(FIELDS).removesuffix("</MSG>").split("</META>")
    text = f"<MSG>{body}{head.removeprefix('<MSG>')}</META></MSG>"
    assert isinstance(message(text).content, Operation)


def test_a_value_beside_the_five_is_bounded_like_any_other() -> None:
    text = with_meta(FIELDS, extra=f"<NOTE>{'n' * 4001}</NOTE>")
    assert isinstance(message(text).content, Rejected)


def test_the_meta_is_there_whatever_becomes_of_the_content() -> None:
    for text in (xml("<X/>", type_="NOPE"), xml("", type_="LDM"), operation("?", "<STAT/>")):
        assert message(text).meta.seqn in {"000001", "000002"}
