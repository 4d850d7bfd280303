import re
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from factories import xml
from msgexchange.codec.catalogue_file import (
    default_catalogue,
    default_catalogue_text,
    load,
    problems,
)
from msgexchange.codec.decode import decode
from msgexchange.codec.limits import Limits
from msgexchange.codec.names import codes_of
from msgexchange.flight.messages import Message, Rejected
from msgexchange.flight.reference import Record, RecordKey, Reference, ReferenceAct
from msgexchange.flight.state import Content

CATALOGUE = default_catalogue()
PAGE = Path(__file__).parents[3] / "docs" / "reference-data.md"
SAMPLES = re.findall(r"```xml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def content(body: str, *, styp: str = "RESP", replaces: bool = False) -> Reference | Rejected:
    text = default_catalogue_text()
    if replaces:
        text = text.replace("replaces_all = false", "replaces_all = true")
    message = xml(body, type_="ARPT", styp=styp)
    decoded = decode(message, load(text), Limits(records_max=3), ZoneInfo("Asia/Shanghai"))
    assert isinstance(decoded, Message)
    assert isinstance(decoded.content, Reference | Rejected)
    return decoded.content


def test_every_type_of_the_catalogue_has_a_sample_that_is_understood() -> None:
    decoded = [decode(text, CATALOGUE, Limits(), ZoneInfo("Asia/Shanghai")) for text in SAMPLES]
    told = [one.content for one in decoded if isinstance(one, Message)]
    types = [one.type for one in told if isinstance(one, Reference) and len(one.records) == 1]
    assert sorted(types) == sorted(CATALOGUE.references)
    assert [one.unknown for one in decoded if isinstance(one, Message)] == [()] * 21


def test_a_record_is_kept_whole_under_its_key() -> None:
    body = '<ARPT><RCNT>2</RCNT><RECD CODE="PEK"><NAME>北京</NAME><X><Y>1</Y></X></RECD>'
    body += "<RECD><CODE>CAN</CODE></RECD></ARPT>"
    found = content(body, styp="UPD")
    assert isinstance(found, Reference)
    assert found.act is ReferenceAct.UPD
    assert found.records == {
        "PEK": {"CODE": "PEK", "NAME": "北京", "X": {"Y": "1"}},
        "CAN": {"CODE": "CAN"},
    }


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("<ARPT/>", "is no count"),
        ("<ARPT><RCNT>2</RCNT><RECD><CODE>A</CODE></RECD></ARPT>", "says 2 records, 1 are there"),
        ("<ARPT><RCNT>1</RCNT><RECD><NAME>A</NAME></RECD></ARPT>", "has no CODE"),
        ('<ARPT><RCNT>1</RCNT><RECD CODE="A"><CODE>B</CODE></RECD></ARPT>', "two values"),
        (
            "<ARPT><RCNT>1</RCNT><RECD><CODE><A/></CODE></RECD></ARPT>",
            "no plain text".replace("no", "not"),
        ),
        ("<ARPT><RCNT>1</RCNT><RECD CODE='" + "x" * 201 + "'/></ARPT>", "at most 200"),
        ("<ARPT><RCNT>2</RCNT><RECD CODE='A'/><RECD CODE='A'/></ARPT>", "stands there twice"),
        ("<ARPT><RCNT>4</RCNT>" + "<RECD/>" * 4 + "</ARPT>", "at most 3 are taken"),
        ("<ARPT><RCNT>0</RCNT></ARPT><ARPT><RCNT>0</RCNT></ARPT>", "stands there 2 times"),
    ],
)
def test_reference_data_that_breaks_the_contract_is_refused_whole(body: str, reason: str) -> None:
    found = content(body)
    assert isinstance(found, Rejected)
    assert reason in found.reason


@pytest.mark.parametrize(
    ("styp", "replaces", "fine"),
    [("RESP", False, True), ("DNLD", False, True), ("RESP", True, False), ("DEL", False, False)],
)
def test_no_record_at_all_never_empties_a_type(styp: str, *, replaces: bool, fine: bool) -> None:
    found = content("<ARPT><RCNT>0</RCNT></ARPT>", styp=styp, replaces=replaces)
    assert isinstance(found, Reference) is fine


def test_only_whole_types_are_replaced() -> None:
    body = "<ARPT><RCNT>1</RCNT><RECD CODE='A'/></ARPT>"
    found = {styp: content(body, styp=styp, replaces=True) for styp in ReferenceAct}
    assert {
        styp for styp, one in found.items() if isinstance(one, Reference) and one.replaces_all
    } == {
        "RESP",
        "DNLD",
    }


def test_codes_of_a_flight_are_found_in_scalars_items_and_exceptions() -> None:
    flight: Content = {
        "ALCD": "CZ",
        "ROUT": ({"STOP": "PEK"}, {"STOP": ""}, {}),
        "ERUT": ({"STOP": "PEK"},),
        "FDIV": {"DEST": "HKG"},
        "SRVT": {"STOP": "X"},
        "STAT": "",
    }
    codes = codes_of(CATALOGUE, flight)
    assert [(code.place, code.record) for code in codes] == [
        ("ROUT/STOP", ("ARPT", "PEK")),
        ("ERUT/STOP", ("ARPT", "PEK")),
        ("FDIV/DEST", ("ARPT", "HKG")),
        ("ALCD", ("ARLN", "CZ")),
    ]
    records: dict[RecordKey, Record] = {
        ("ARPT", "PEK"): {"NAME": "Beijing"},
        ("ARLN", "CZ"): {"NAME": ("a", "b")},
    }
    assert [code.name(records) for code in codes] == ["Beijing", "Beijing", None, None]


@pytest.mark.parametrize(
    ("codes", "problem"),
    [
        ('["NONE"]', "there is no group NONE"),
        ('["ALCD/X"]', "is no place"),
        ('["GTDT"]', "is no place"),
        ('["SRVT"]', "is no place"),
        ('["GTDT/GTAE"]', "did you mean GATE?"),
    ],
)
def test_a_place_of_codes_that_is_not_there_is_named(codes: str, problem: str) -> None:
    text = default_catalogue_text().replace('codes = ["ALCD"]', f"codes = {codes}")
    [found] = problems(text)
    assert "references.ARLN.codes" in found
    assert problem in found
