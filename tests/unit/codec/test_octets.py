"""HTTP bodies to text: which charset counts, and what is refused."""

import pytest

from msgexchange.codec.octets import Undecodable, decode_octets

TEXT = "<A>前段航班晚到</A>"


def declared(encoding: str, text: str = TEXT) -> str:
    return f'<?xml version="1.0" encoding="{encoding}"?>{text}'


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (TEXT.encode(), None),
        (TEXT.encode(), "application/xml"),
        (TEXT.encode(), "application/xml; charset=utf-8"),
        (TEXT.encode(), 'text/xml;charset="UTF-8"; x=y'),
        (TEXT.encode("gbk"), "application/xml; Charset=GBK"),
        (TEXT.encode("gbk"), "application/xml; charset=gb2312"),
        (TEXT.encode("gb18030"), "text/xml; charset=GB18030"),
        (TEXT.encode("big5", "replace").replace(b"?", b""), "text/xml; charset=big5"),
        (TEXT.encode("utf-16-le"), None),
        (TEXT.encode("utf-16-be"), "text/xml; charset=utf-16"),
        (TEXT.encode("utf-32-le"), None),
    ],
)
def test_a_body_is_read_by_its_charset(body: bytes, content_type: str | None) -> None:
    text = decode_octets(body, content_type)
    assert isinstance(text, str)
    assert text.startswith("<A>")
    assert text.endswith("</A>")


@pytest.mark.parametrize("encoding", ["GBK", "gb2312", "GB18030", "UTF-8"])
def test_without_a_charset_the_declaration_counts(encoding: str) -> None:
    body = declared(encoding).encode("gb18030" if encoding.lower().startswith("gb") else encoding)
    assert decode_octets(body, "application/xml") == declared(encoding)


def test_gbk_reads_what_only_gb18030_has() -> None:
    text = declared("GBK", "<A>\U00020bb7</A>")
    assert decode_octets(text.encode("gb18030"), None) == text


def test_the_media_type_counts_before_the_declaration() -> None:
    text = declared("GBK")
    assert decode_octets(text.encode(), "application/xml; charset=utf-8") == text


@pytest.mark.parametrize("charset", ["utf-8-sig", "utf-16", "utf-32", "gb18030"])
def test_a_byte_order_mark_counts_before_everything(charset: str) -> None:
    body = ("\ufeff" + TEXT).encode(charset) if charset == "gb18030" else TEXT.encode(charset)
    assert decode_octets(body, "application/xml; charset=big5") == TEXT


@pytest.mark.parametrize(
    ("body", "content_type", "what"),
    [
        (declared("UTF-8").encode("gbk"), None, "not utf-8"),
        (b"<A>\xff</A>", None, "at byte 3 (ff 3c 2f 41)"),
        (b"<A>\xed\xa0\x80</A>", None, "not utf-8"),
        (TEXT.encode(), "application/xml; charset=us-ascii", "not ascii"),
        (TEXT.encode(), "application/xml; charset=klingon", '"klingon"'),
        (TEXT.encode(), "application/xml; charset=", 'names ""'),
        (b"abc", "text/xml; charset=unicode_escape", '"unicode_escape"'),
        (b"abc", "text/xml; charset=rot13", '"rot13"'),
        (b"abc", "text/xml; charset=" + "z" * 500, "(500 characters)"),
        (declared("UTF-16").encode(), None, "does not begin so"),
        (declared("utf-16-le").encode("utf-16-be"), "text/xml; charset=utf-16-le", "begin so"),
        (declared("punycode").encode(), None, '"punycode"'),
        ("<A/>".encode("utf-16") + b"\0", None, "truncated data"),
    ],
)
def test_bytes_that_do_not_fit_are_told_apart(
    body: bytes, content_type: str | None, what: str
) -> None:
    answer = decode_octets(body, content_type)
    assert isinstance(answer, Undecodable)
    assert what in answer.reason
    assert "\0" not in answer.reason
    assert len(answer.reason) < 500
