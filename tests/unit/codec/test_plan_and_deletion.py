"""SCHD and FDEL bodies, ignored and unsupported types."""

from datetime import date

import pytest
from codec_cases import CATALOGUE, malformed, message, plan_xml, planned, rejection

from factories import plan, xml
from msgexchange.codec.limits import Limits
from msgexchange.flight.commands import Clear, Replace, Set
from msgexchange.flight.messages import (
    Deletion,
    Ignored,
    Inexpressible,
    Plan,
    PlanKind,
    PlannedFlight,
    Rejected,
    Unsupported,
)
from msgexchange.ids import Flid

FLIGHT = "<FLGT><FLID>{}</FLID><FDAY>20260903</FDAY></FLGT>"


def test_a_plan_has_each_flight_with_its_day_and_content() -> None:
    text = plan_xml(
        "<FLGT><FLID>9001</FLID><FLNO>CZ3101</FLNO><SCTM>03SEP261900</SCTM>"
        '<ROUT RONO="1"><STOP>PEK</STOP></ROUT><FDIV/><GTDT GTNO="0"/></FLGT>'
        "<FLGT><FLID>9002</FLID><FDAY>20260904</FDAY><SCTM>03SEP262350</SCTM></FLGT>",
        count="<RCNT>2</RCNT>",
    )
    assert planned(text) == Plan(
        PlanKind.DNLD,
        (
            PlannedFlight(
                Flid("9001"),
                date(2026, 9, 3),
                (
                    Set("FLNO", "CZ3101"),
                    Set("SCTM", "03SEP261900"),
                    Replace("ROUT", ({"RONO": "1", "STOP": "PEK"},)),
                    Clear("FDIV"),
                    Clear("GTDT"),
                ),
            ),
            PlannedFlight(Flid("9002"), date(2026, 9, 4), (Set("SCTM", "03SEP262350"),)),
        ),
    )


@pytest.mark.parametrize("kind", list(PlanKind))
def test_each_plan_subtype_is_known(kind: PlanKind) -> None:
    assert planned(plan("1", styp=kind)).kind is kind


@pytest.mark.parametrize("styp", ["", "dnld", "UPD"])
def test_another_plan_subtype_is_unsupported(styp: str) -> None:
    content = message(plan("1", styp=styp)).content
    assert isinstance(content, Unsupported)
    assert "DNLD, RESP, ADFT" in content.reason


@pytest.mark.parametrize(
    ("count", "what"),
    [
        ("", "no count"),
        ("<RCNT/>", "no count"),
        ("<RCNT>two</RCNT>", '"two" is no count'),
        ("<RCNT>-2</RCNT>", "no count"),
        ("<RCNT>2.0</RCNT>", "no count"),
        ("<RCNT>\N{ARABIC-INDIC DIGIT TWO}</RCNT>", "no count"),
        (f"<RCNT>{'2' * 5000}</RCNT>", "no count"),
        ("<RCNT>3</RCNT>", "says 3 flights, 2 are there"),
        ("<RCNT>1</RCNT>", "says 1 flights, 2 are there"),
        ("<RCNT>2</RCNT><RCNT>3</RCNT>", "not one plain value"),
    ],
)
def test_the_declared_count_must_be_right(count: str, what: str) -> None:
    flights = FLIGHT.format(1) + FLIGHT.format(2)
    assert what in rejection(plan_xml(flights, count=count))


@pytest.mark.parametrize("count", ["<RCNT>002</RCNT>", "<RCNT> 2 </RCNT>"])
def test_a_count_may_have_leading_zeros_and_blanks(count: str) -> None:
    flights = FLIGHT.format(1) + FLIGHT.format(2)
    assert len(planned(plan_xml(flights, count=count)).flights) == 2


def test_an_empty_plan_is_refused() -> None:
    assert "no flight" in rejection(plan_xml("", count="<RCNT>0</RCNT>"))


def test_a_plan_has_a_limit_of_flights() -> None:
    limits = Limits(flights_max=2)
    assert "3 flights, at most 2" in rejection(plan("1", "2", "3"), limits=limits)


def test_an_ad_hoc_message_has_exactly_one_flight() -> None:
    assert "2 flights, at most 1" in rejection(plan("1", "2", styp="ADFT"))


def test_a_plan_stands_once() -> None:
    body = f"<SCHD><RCNT>1</RCNT>{FLIGHT.format(1)}</SCHD>"
    assert "2 times" in rejection(xml(body + body, type_="SCHD", styp="DNLD"))


@pytest.mark.parametrize(
    ("flight", "what"),
    [
        ("<FLGT><FDAY>20260903</FDAY></FLGT>", "FLGT number 2: has no FLID"),
        (FLIGHT.format("a b"), "FLGT number 2"),
        (FLIGHT.format("1"), "flight 1: stands in the message twice"),
        ("<FLGT><FLID>2</FLID></FLGT>", "flight 2: no operation day"),
        ("<FLGT><FLID>2</FLID><SCTM/></FLGT>", "flight 2: no operation day"),
        ("<FLGT><FLID>2</FLID><SCTM>29FEB271200</SCTM></FLGT>", '"29FEB271200" is no time'),
        (
            "<FLGT><FLID>2</FLID><FDAY>03SEP26</FDAY><SCTM>03SEP261900</SCTM></FLGT>",
            'flight 2, FDAY: "03SEP26" is no day',
        ),
        (
            "<FLGT><FLID>2</FLID><FDAY>20260903</FDAY><FDAY>20260904</FDAY></FLGT>",
            "flight 2, FDAY",
        ),
        (
            "<FLGT><FLID>2</FLID><FDAY>20260903</FDAY><STAT>A</STAT><STAT>B</STAT></FLGT>",
            "flight 2, STAT",
        ),
    ],
)
def test_one_bad_flight_refuses_the_whole_plan(flight: str, what: str) -> None:
    text = plan_xml(FLIGHT.format("1") + flight, count="<RCNT>2</RCNT>")
    assert what in rejection(text)


def test_an_empty_day_field_leaves_the_day_to_the_scheduled_time() -> None:
    text = plan_xml("<FLGT><FLID>1</FLID><FDAY/><SCTM>2026-09-02T17:00:00Z</SCTM></FLGT>")
    (flight,) = planned(text).flights
    assert flight.operation_day == date(2026, 9, 3)


def test_a_stated_day_saves_a_flight_with_an_unreadable_time() -> None:
    text = plan_xml("<FLGT><FLID>1</FLID><FDAY>20260903</FDAY><SCTM>soon</SCTM></FLGT>")
    decoded = message(text)
    assert isinstance(decoded.content, Plan)
    assert decoded.content.flights[0].commands == (Set("SCTM", "soon"),)
    assert decoded.unreadable_times == ("SCTM",)


def test_structure_in_a_planned_scalar_waits_for_a_better_codec() -> None:
    text = plan_xml("<FLGT><FLID>1</FLID><FDAY>20260903</FDAY><SHAR><A/></SHAR></FLGT>")
    assert isinstance(message(text).content, Inexpressible)


@pytest.mark.parametrize("styp", ["", "FDEL", "ANY"])
def test_a_deletion_takes_any_subtype_and_several_flights(styp: str) -> None:
    body = "<FDEL><FLID>1</FLID></FDEL><FDEL><FLNO>CZ1</FLNO><FLID>2</FLID></FDEL>"
    content = message(xml(body, type_="FDEL", styp=styp)).content
    assert content == Deletion((Flid("1"), Flid("2")))


def test_an_operation_of_kind_deletion_deletes() -> None:
    body = "<FLOP><FLID>1</FLID><FDEL/></FLOP><FLOP><FDEL/><FLID>2</FLID><WHY>x</WHY></FLOP>"
    decoded = message(xml(body, styp="FDEL"))
    assert decoded.content == Deletion((Flid("1"), Flid("2")))
    assert decoded.unknown == ("WHY",)


@pytest.mark.parametrize(
    ("type_", "styp", "body"),
    [
        ("FDEL", "", ""),
        ("FDEL", "", "<FDEL/>"),
        ("FDEL", "", "<FDEL>1</FDEL>"),
        ("FDEL", "", "<FLOP><FLID>1</FLID><FDEL/></FLOP>"),
        ("FDEL", "", "<FDEL><FLID>1</FLID></FDEL><FDEL><FLID>1</FLID></FDEL>"),
        ("FLOP", "FDEL", "<FLOP><FLID>1</FLID></FLOP>"),
        ("FLOP", "FDEL", "<FLOP><FDEL><FLID>1</FLID></FDEL></FLOP>"),
        ("FLOP", "FDEL", "<FDEL><FLID>1</FLID></FDEL>"),
    ],
)
def test_a_deletion_that_breaks_the_contract_is_refused(type_: str, styp: str, body: str) -> None:
    assert isinstance(message(xml(body, type_=type_, styp=styp)).content, Rejected)


@pytest.mark.parametrize("type_", sorted(CATALOGUE.ignored))
@pytest.mark.parametrize("body", ["", "<LDM/>", "<X>anything</X>"])
def test_an_ignored_type_is_ignored_whatever_it_holds(type_: str, body: str) -> None:
    assert message(xml(body, type_=type_, styp="X")).content == Ignored(type_)


def test_a_reference_type_with_another_subtype_is_unsupported_too() -> None:
    content = message(xml("<ARPT/>", type_="ARPT", styp="X")).content
    assert isinstance(content, Unsupported)
    assert "RESP, DNLD, ADD, UPD, DEL" in content.reason


def test_any_other_type_is_unsupported_before_its_body_is_judged() -> None:
    content = message(xml("", type_="flop")).content
    assert content == Unsupported(
        'TYPE "flop" is not in the catalogue; add it, or put it on the ignore list'
    )


def test_a_plan_cut_in_the_middle_of_a_flight_is_malformed() -> None:
    text = plan("9001", "9002")
    for end in (text.index("9002"), text.index("</FLGT></SCHD>"), len(text) - 1):
        assert "not well-formed XML" in malformed(text[:end])


def test_ten_thousand_flights_are_one_plan() -> None:
    items = "".join(
        f'<GTDT GTNO="{number}"><GATE>A{number}</GATE><GOTM>03SEP261804</GOTM></GTDT>'
        for number in (1, 2)
    )
    flids = [str(900_000 + number) for number in range(10_000)]
    decoded = message(plan(*flids, extra=items))
    assert isinstance(decoded.content, Plan)
    assert [flight.flid for flight in decoded.content.flights] == flids
    assert decoded.content.operation_days == (date(2026, 9, 3),)
    assert decoded.unknown == decoded.unreadable_times == ()
    assert "10001 flights" in rejection(plan(*flids, "1"))
