"""What we send, by the catalogue's names; which request an answer or an error names."""

from dataclasses import replace
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from msgexchange.codec.catalogue import Catalogue, Envelope
from msgexchange.codec.catalogue_file import default_catalogue
from msgexchange.codec.decode import decode
from msgexchange.codec.limits import Limits
from msgexchange.codec.request import RequestMeta, encode_request
from msgexchange.codec.times import unit_of
from msgexchange.flight.messages import Message
from msgexchange.lifecycle.request import PlanWanted, ReferenceWanted

META = RequestMeta(sndr="MSGX", seqn="000042", sent_at=datetime(2026, 9, 3, 18, 30, 5, 999))
HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?><MSG><META><SNDR>MSGX</SNDR><SEQN>000042</SEQN>'
    "<DTTM>20260903183005</DTTM>"
)


def test_a_plan_request_names_its_first_and_last_day() -> None:
    wanted = PlanWanted(date(2026, 9, 3), date(2026, 9, 5))
    assert encode_request(wanted, META, Envelope()) == (
        f"{HEAD}<TYPE>RQFD</TYPE></META>"
        "<RQFD><BGDY>20260903</BGDY><EDDY>20260905</EDDY></RQFD></MSG>"
    )


def test_a_reference_request_names_its_type() -> None:
    assert encode_request(ReferenceWanted("ARPT"), META, Envelope()) == (
        f"{HEAD}<TYPE>RQRD</TYPE></META><RQRD><RFTP>ARPT</RFTP></RQRD></MSG>"
    )


def test_a_site_may_call_everything_otherwise() -> None:
    envelope = Envelope(plan_request="PLRQ", first_day="VON", last_day="BIS")
    text = encode_request(PlanWanted(date(2026, 9, 3), date(2026, 9, 3)), META, envelope)
    assert "<TYPE>PLRQ</TYPE></META><PLRQ><VON>20260903</VON><BIS>20260903</BIS></PLRQ>" in text


def test_a_sender_with_special_characters_stays_well_formed() -> None:
    meta = replace(META, sndr="A&B<C")
    text = encode_request(ReferenceWanted("ARPT"), meta, Envelope())
    assert "<SNDR>A&amp;B&lt;C</SNDR>" in text


def echoing() -> Catalogue:
    shipped = default_catalogue()
    envelope = replace(shipped.envelope, answer_echo="RQSN", error_echo="ERSN")
    return replace(shipped, envelope=envelope)


def read(text: str, catalogue: Catalogue) -> Message:
    message = decode(text, catalogue, Limits(), ZoneInfo("Asia/Shanghai"))
    assert isinstance(message, Message)
    return message


def answer(in_meta: str = "", in_body: str = "", beside: str = "", attribute: str = "") -> str:
    return (
        "<MSG><META><SNDR>AODB</SNDR><SEQN>1</SEQN><DTTM>20260903183000</DTTM><TYPE>SCHD</TYPE>"
        f"<STYP>RESP</STYP>{in_meta}</META>{beside}<SCHD{attribute}>{in_body}<RCNT>0</RCNT></SCHD>"
        "</MSG>"
    )


@pytest.mark.parametrize(
    "text",
    [
        answer(in_meta="<RQSN>000042</RQSN>"),
        answer(in_body="<RQSN>000042</RQSN>"),
        answer(beside="<RQSN>000042</RQSN>"),
        answer(attribute=' RQSN="000042"'),
    ],
    ids=["meta", "body", "beside", "attribute"],
)
def test_an_answer_names_its_request_wherever_the_field_stands(text: str) -> None:
    message = read(text, echoing())
    assert message.echo == "000042"
    assert message.unknown == ()
    assert read(text, default_catalogue()).echo is None


def test_only_answers_are_asked_for_an_echo() -> None:
    unasked = answer(in_meta="<RQSN>000042</RQSN>").replace("RESP", "DNLD")
    assert read(unasked, echoing()).echo is None


def test_an_error_names_its_request_in_a_field_of_its_own() -> None:
    text = answer(in_meta="<ERSN>000042</ERSN>").replace("SCHD", "EROR").replace("RESP", "")
    assert read(text, echoing()).echo == "000042"


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("20260903183000", timedelta(seconds=1)),
        ("202609031830", timedelta(minutes=1)),
        ("03SEP261830", timedelta(minutes=1)),
        ("2026-09-03T18:30:00+08:00", timedelta(seconds=1)),
        ("2026-09-03T18:30+08:00", timedelta(minutes=1)),
        ("20260903T183000", timedelta(seconds=1)),
        ("20260903T1830", timedelta(minutes=1)),
    ],
)
def test_a_time_form_says_how_exact_it_is(text: str, unit: timedelta) -> None:
    assert unit_of(text) == unit
