"""States as rows and back: exact, also when the catalogue has changed in between."""

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import orjson
from hypothesis import given

from msgexchange.codec.catalogue import Catalogue
from msgexchange.codec.catalogue_file import default_catalogue
from msgexchange.flight.state import Content, FlightState, FlightStatus, Json
from msgexchange.ids import Flid, MailboxId
from msgexchange.store.flight_columns import Place
from msgexchange.store.flight_rows import DetailValues, FlightRows, StoredFlight
from strategies import contents

NOW = datetime(2026, 9, 3, tzinfo=UTC)
FULL = default_catalogue()
GATES = Place("flight_gate", None)


def without(catalogue: Catalogue, *names: str) -> Catalogue:
    groups = {name: group for name, group in catalogue.groups.items() if name not in names}
    return replace(catalogue, groups=groups)


def without_field(catalogue: Catalogue, name: str, field: str) -> Catalogue:
    group = catalogue.groups[name]
    columns = {known: column for known, column in group.columns.items() if known != field}
    return replace(catalogue, groups={**catalogue.groups, name: replace(group, columns=columns)})


def state_of(content: Content) -> FlightState:
    return FlightState(
        flid=Flid("900"),
        operation_day=date(2026, 9, 3),
        status=FlightStatus.ACTIVE,
        version=4,
        last_message_id=MailboxId(17),
        content=content,
    )


def written(rows: FlightRows, state: FlightState) -> tuple[dict[str, Any], list[DetailValues]]:
    row = dict(rows.flight_row(state, created_at=NOW, now=NOW))
    details = []
    for name, value in state.content.items():
        place = rows.place(name, value)
        if place and value:
            details += [
                DetailValues(place, values["ordinal"], values, values["extra"])
                for values in rows.detail_rows(name, state)
            ]
    return row, details[::-1]


def through(writer: Catalogue, reader: Catalogue, content: Content) -> StoredFlight:
    row, details = written(FlightRows(writer), state_of(content))
    return FlightRows(reader).flight(row, details)


@given(content=contents())
def test_any_content_comes_back_equal(content: dict[str, Json]) -> None:
    stored = through(FULL, FULL, content)
    assert stored.state == state_of(content)
    assert stored.strays == {}


@given(content=contents())
def test_a_content_outlives_names_the_catalogue_loses_or_learns(content: dict[str, Json]) -> None:
    poor = without_field(without(FULL, "GTDT", "ERUT", "RMRK", "FDIV", "SRVT"), "CKDT", "CCLS")
    assert through(FULL, poor, content).state.content == content
    assert through(poor, FULL, content).state.content == content


def test_scalars_and_items_lie_in_their_columns() -> None:
    content: Content = {
        "RMRK": "",
        "GTDT": ({"GTNO": "07", "GATE": "A1", "ODD": "x"},),
        "FDIV": {"DEST": "HKG", "WHOM": "y"},
        "DELY": (),
        "MAFL": {"A": "b"},
    }
    row, [gate] = written(FlightRows(FULL), state_of(content))
    assert (row["rmrk"], row["stat"]) == ("", None)
    assert (row["fdiv_dest"], row["fdiv_rson"]) == ("HKG", None)
    assert row["mafl_text"] == '{"A":"b"}'
    assert row["empty_groups"] == '["DELY"]'
    assert orjson.loads(row["extra"]) == {"fields": {"FDIV": {"WHOM": "y"}}}
    assert (gate.place, gate.ordinal) == (GATES, 1)
    assert (gate.columns["source_seq"], gate.columns["gate"], gate.columns["gotm"]) == (
        "07",
        "A1",
        None,
    )
    assert gate.extra == '{"ODD":"x"}'


def test_a_name_without_a_column_lies_in_extra_by_its_name() -> None:
    row, details = written(FlightRows(FULL), state_of({"NEWC": ({"A": "1"},), "NEWS": ""}))
    assert orjson.loads(row["extra"]) == {"names": {"NEWC": [{"A": "1"}], "NEWS": ""}}
    assert details == []


def test_a_collection_the_catalogue_has_learnt_is_a_stray_of_extra() -> None:
    stored = through(without(FULL, "GTDT"), FULL, {"GTDT": ({"GATE": "A1"},)})
    assert stored.strays == {"GTDT": None}


def test_a_collection_the_catalogue_has_lost_is_a_stray_of_its_table() -> None:
    stored = through(FULL, without(FULL, "GTDT"), {"GTDT": ({"GATE": "A1"},)})
    assert stored.strays == {"GTDT": GATES}


def test_a_column_that_got_another_name_is_read_under_it() -> None:
    renamed = replace(FULL.groups["RMRK"], name="NOTE")
    groups = {**without(FULL, "RMRK").groups, "NOTE": renamed}
    stored = through(FULL, replace(FULL, groups=groups), {"RMRK": "x"})
    assert stored.state.content == {"NOTE": "x"}
