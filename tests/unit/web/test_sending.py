"""``POST /cminmsgs/send``: what is stored, what is refused, and what the refusal says."""

import logging

import pytest
from web_world import BODY_MAX, TOKEN, TRACEPARENT, MemoryEntry, client

from msgexchange.ports import Dependency, InsertUnknown, Unavailable

XML = "<MSG><META/></MSG>"


def test_a_message_is_answered_with_its_mailbox_id_in_plain_text() -> None:
    entry = MemoryEntry()
    answer = client(entry=entry).post("/cminmsgs/send", data=XML)
    assert (answer.status_code, answer.text, answer.mimetype) == (200, "1", "text/plain")
    assert entry.received == [(XML, None)]


def test_a_body_that_is_no_message_is_stored_all_the_same() -> None:
    entry = MemoryEntry()
    assert client(entry=entry).post("/cminmsgs/send", data=b"not xml\x00").status_code == 200
    assert entry.received == [("not xml\x00", None)]


def test_the_charset_of_the_media_type_or_the_declaration_is_followed() -> None:
    entry = MemoryEntry()
    text = "<?xml version='1.0' encoding='GBK'?><A>前段</A>"
    web = client(entry=entry)
    assert web.post("/cminmsgs/send", data=text.encode("gb18030")).status_code == 200
    posted = web.post(
        "/cminmsgs/send", data="<A>前段</A>".encode(), content_type="text/xml; charset=utf-8"
    )
    assert posted.status_code == 200
    assert entry.received == [(text, None), ("<A>前段</A>", None)]


@pytest.mark.parametrize("body", [b"", b"\xef\xbb\xbf"])
def test_an_empty_body_is_refused(body: bytes) -> None:
    entry = MemoryEntry()
    answer = client(entry=entry).post("/cminmsgs/send", data=body)
    assert answer.status_code == 400
    assert answer.mimetype == "application/problem+json"
    assert set(answer.get_json(force=True)) == {"type", "title", "status", "detail"}
    assert entry.received == []


def test_bytes_that_are_no_text_are_refused_and_nothing_is_stored() -> None:
    entry = MemoryEntry()
    answer = client(entry=entry).post("/cminmsgs/send", data=b"<A>\xff\xfe\xfd</A>")
    assert answer.status_code == 400
    assert "Nothing was stored" in answer.get_json(force=True)["detail"]
    assert entry.received == []


def test_a_body_at_the_limit_is_taken_and_one_byte_more_is_not() -> None:
    entry = MemoryEntry()
    web = client(entry=entry)
    assert web.post("/cminmsgs/send", data=b"x" * BODY_MAX).status_code == 200
    refused = web.post("/cminmsgs/send", data=b"x" * (BODY_MAX + 1))
    assert refused.status_code == 413
    assert str(BODY_MAX) in refused.get_json(force=True)["detail"]
    assert len(entry.received) == 1


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, "Bearer ü"]
)
def test_without_the_right_token_nothing_is_received(header: str | None) -> None:
    entry = MemoryEntry()
    headers = {} if header is None else {"Authorization": header}
    answer = client(entry=entry, send_token=TOKEN).post("/cminmsgs/send", data=XML, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert TOKEN not in answer.text
    assert entry.received == []


@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_the_right_token_opens_the_entry(scheme: str) -> None:
    answer = client(send_token=TOKEN).post(
        "/cminmsgs/send", data=XML, headers={"Authorization": f"{scheme} {TOKEN}"}
    )
    assert answer.status_code == 200


def test_a_shadow_run_receives_nothing() -> None:
    entry = MemoryEntry()
    answer = client(entry=entry, is_shadow=True).post("/cminmsgs/send", data=XML)
    assert answer.status_code == 403
    assert entry.received == []


def test_a_mailbox_that_is_down_is_told_with_a_time_to_try_again() -> None:
    entry = MemoryEntry(failure=Unavailable(Dependency.MAILBOX, "refused by 10.0.0.1"))
    answer = client(entry=entry).post("/cminmsgs/send", data=XML)
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert "nothing was stored" in answer.get_json(force=True)["detail"]
    assert "10.0.0.1" not in answer.text


def test_a_doubtful_insert_says_what_a_retry_may_do() -> None:
    answer = client(entry=MemoryEntry(failure=InsertUnknown("lost"))).post(
        "/cminmsgs/send", data=XML
    )
    assert answer.status_code == 503
    detail = answer.get_json(force=True)["detail"]
    assert "a retry may create a second row, which identity will skip" in detail


@pytest.mark.parametrize(
    ("header", "taken"),
    [
        (TRACEPARENT, TRACEPARENT),
        ("ff" + TRACEPARENT[2:], None),
        ("00-" + "0" * 32 + "-b7ad6b7169203331-01", None),
        ("nonsense", None),
    ],
)
def test_the_callers_trace_goes_on_where_it_is_one(header: str, taken: str | None) -> None:
    entry = MemoryEntry()
    client(entry=entry).post("/cminmsgs/send", data=XML, headers={"traceparent": header})
    assert entry.received == [(XML, taken)]


def test_a_fault_of_ours_is_logged_and_shows_nothing_of_the_inside(
    caplog: pytest.LogCaptureFixture,
) -> None:
    entry = MemoryEntry(failure=ValueError("secret inside"))
    with caplog.at_level(logging.ERROR):
        answer = client(entry=entry).post("/cminmsgs/send", data=XML)
    assert answer.status_code == 500
    assert answer.mimetype == "application/problem+json"
    assert "secret inside" not in answer.text
    assert "secret inside" in caplog.text


def test_another_method_is_told_which_one_is_accepted() -> None:
    answer = client().get("/cminmsgs/send")
    assert answer.status_code == 405
    assert "POST" in answer.headers["Allow"]
    assert answer.mimetype == "application/problem+json"
