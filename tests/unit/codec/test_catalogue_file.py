"""The catalogue as a file: the default, and everything that can be wrong with another."""

import tomllib

import pytest
from codec_cases import CATALOGUE, told

from factories import operation
from msgexchange.codec.catalogue import ClearRule, Envelope, GroupShape
from msgexchange.codec.catalogue_file import (
    CatalogueError,
    default_catalogue,
    default_catalogue_text,
    load,
    problems,
)
from msgexchange.codec.catalogue_table import rows, unconfirmed
from msgexchange.codec.columns import (
    DETAIL_COLUMNS,
    EXCEPTION_COLUMNS,
    SCALAR_COLUMNS,
    SEQUENCE_COLUMN,
    TEXT_COLUMNS,
)
from msgexchange.flight.commands import Replace, Set

DEFAULT = default_catalogue_text()
SMALL = """
[groups]
SCTM = { shape = "scalar", column = "sctm", time = true }
"""


def changed(old: str, new: str) -> str:
    assert DEFAULT.count(old) >= 1, old
    return DEFAULT.replace(old, new, 1)


def test_the_default_has_no_problem_and_the_default_envelope() -> None:
    assert problems(DEFAULT) == []
    assert CATALOGUE.envelope == Envelope()
    assert CATALOGUE.ignored == {"LDM", "REGN", "RSTA", "EROR"}
    assert len(CATALOGUE.references) == 21
    assert CATALOGUE.disabled_kinds == {}


def test_the_default_uses_every_column_there_is() -> None:
    used: dict[str | None, set[str]] = {}
    for group in CATALOGUE.groups.values():
        columns = {column for column in group.columns.values() if column}
        used.setdefault(group.table, set()).update(columns - {SEQUENCE_COLUMN})
    assert used.pop(None) == {*SCALAR_COLUMNS, *EXCEPTION_COLUMNS, *TEXT_COLUMNS}
    assert used == {table: set(columns) for table, columns in DETAIL_COLUMNS.items()}


def test_the_default_maps_each_shape_as_the_store_expects_it() -> None:
    gate = CATALOGUE.groups["GTDT"]
    assert gate.shape is GroupShape.COLLECTION
    assert gate.clear_rule is ClearRule.SEQUENCE_ZERO
    assert gate.columns == {"GTNO": "source_seq", "GATE": "gate", "GOTM": "gotm", "GCTM": "gctm"}
    assert gate.time_fields == {"GOTM", "GCTM"}
    delay = CATALOGUE.groups["DELY"]
    assert (delay.sequence, delay.columns["TEXT"]) == (None, "text_")
    assert delay.clear_rule is ClearRule.EMPTY_ELEMENT_IS_EMPTY_LIST
    assert CATALOGUE.groups["ROUT"].table == CATALOGUE.groups["ERUT"].table
    assert CATALOGUE.groups["ERUT"].route_kind == "ERUT"
    assert CATALOGUE.groups["FDIV"].columns["TEXT"] == "fdiv_text"
    assert CATALOGUE.groups["SRVT"].columns == {"": "srvt_text"}
    assert CATALOGUE.groups["SCTM"].columns == {"": "sctm"}
    assert CATALOGUE.groups["SCTM"].time_fields == {""}


def test_the_marks_say_name_by_name_what_is_assumed() -> None:
    confirmed = {name for name, group in CATALOGUE.groups.items() if group.confirmed}
    assert confirmed == set("GTDT DELY FDIV FRET FLAB ROUT ERUT SRVT VIPF MAFL".split())  # noqa: SIM905
    assert CATALOGUE.groups["GTDT"].unconfirmed_fields == frozenset()
    assert CATALOGUE.groups["DELY"].unconfirmed_fields == {"CODE", "DURA", "TEXT"}
    assert CATALOGUE.unconfirmed_kinds == set(CATALOGUE.kinds) - {"GTDT"}
    assumed = unconfirmed(CATALOGUE)
    assert {"element CKDT", "field DELY/CODE", "STYP DELY", "envelope FDAY"} <= set(assumed)
    assert not {"element GTDT", "field GTDT/GATE", "STYP GTDT", "envelope FLOP"} & set(assumed)
    assert len([line for line in assumed if line.startswith("reference type")]) == 21


def test_the_table_has_a_row_for_every_name() -> None:
    by_name = {row.name: row for row in rows(CATALOGUE)}
    assert len(by_name) == len(CATALOGUE.groups) + 21 + 4
    assert by_name["GTDT"].fields == "GTNO=sequence, GATE, GOTM, GCTM"
    assert by_name["DELY"].fields == "CODE?, DURA?, TEXT?->text_"
    assert by_name["DELY"].use == "STYP DELY?"
    assert by_name["ERUT"].target == "flight_route_point ERUT"
    assert by_name["FLNO"].use == "plan only"
    assert by_name["ESTM"].target == "flight_schd.estm"
    assert by_name["ARPT"].clear_rule == "merges"
    assert by_name["LDM"].shape == "ignored"


def test_the_fingerprint_follows_the_data_and_not_the_comments() -> None:
    assert load(DEFAULT + "\n# a remark\n").fingerprint == default_catalogue().fingerprint
    other = load(changed("RMRK = { enabled = true", "RMRK = { enabled = false"))
    assert other.fingerprint != CATALOGUE.fingerprint


def test_a_kind_that_is_switched_off_is_shown_and_not_known() -> None:
    catalogue = load(changed("RMRK = { enabled = true", "RMRK = { enabled = false"))
    assert "RMRK" not in catalogue.kinds
    assert catalogue.disabled_kinds == {"RMRK": "RMRK"}
    use = next(row.use for row in rows(catalogue) if row.name == "RMRK")
    assert use == "STYP RMRK? (off)"


def test_a_site_adds_names_without_tables_or_columns() -> None:
    catalogue = load(
        DEFAULT.replace("[kinds]\n", "[kinds]\nWTHR = {}\nLITE = { group = 'LIGHT' }\n").replace(
            "[groups]\n",
            "[groups]\nLIGHT = { shape = 'scalar' }\n"
            "WTHR = { shape = 'collection', clear = 'empty-element-clears', "
            "fields = [{ name = 'TEMP' }, { name = 'TEXT' }] }\n",
        )
    )
    assert catalogue.groups["WTHR"].table is None
    assert catalogue.groups["WTHR"].columns == {"TEMP": None, "TEXT": None}
    assert catalogue.groups["LIGHT"].columns == {"": None}
    weather = operation("1", "<WTHR TEMP='3'>fog</WTHR>", styp="WTHR")
    assert told(weather, catalogue=catalogue) == (Replace("WTHR", ({"TEMP": "3", "TEXT": "fog"},)),)
    light = operation("1", "<LIGHT>on</LIGHT>", styp="LITE")
    assert told(light, catalogue=catalogue) == (Set("LIGHT", "on"),)
    targets = {row.name: row.target for row in rows(catalogue)}
    assert (targets["WTHR"], targets["LIGHT"]) == ("extra", "extra")


def test_a_small_catalogue_is_enough() -> None:
    catalogue = load(SMALL)
    assert set(catalogue.groups) == {"SCTM"}
    assert catalogue.kinds == {}
    assert catalogue.envelope == Envelope()


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("[envelope]", "[enveloppe]", "enveloppe: unknown section; did you mean envelope?"),
        ('plan = "SCHD"', 'plann = "SCHD"', "envelope.plann: unknown key; did you mean plan?"),
        ('plan = "SCHD"', 'plan = "S D"', "envelope.plan: is no element name"),
        ('plan = "SCHD"', "plan = 7", "envelope.plan: input should be a valid string, not 7"),
        (
            'plan = "SCHD"',
            'plan = "FLOP"',
            "envelope: operation, plan are all FLOP; give each its own name",
        ),
        ('plan = "SCHD"', 'plan = "GTDT"', "groups.GTDT: the envelope's plan has this name too"),
        (
            'scheduled_time = "SCTM"',
            'scheduled_time = "STAT"',
            "envelope.scheduled_time: STAT must be a scalar group with time = true",
        ),
        ('"FLID",\n', '"FLIDD",\n', "envelope.confirmed: FLIDD is no envelope name"),
        ('"LDM", ', '"LDM", "LDM", ', "ignored: LDM stands there twice"),
        ('"LDM", ', '"FLOP", ', "ignored.FLOP: FLOP is a message type of the envelope"),
        ('"LDM", ', '"ARPT", ', "references.ARPT: the type is ignored as well"),
        ('"LDM", ', "7, ", "ignored[0]: input should be a valid string"),
        ('shape = "collection"', 'shape = "colection"', "did you mean collection?"),
        (
            '"GTNO"\nclear = "sequence-zero"',
            '"GTNO"\nclear = "sequence-nil"',
            "groups.GTDT.clear: unknown value",
        ),
        (
            '"GTNO"\nclear = "sequence-zero"',
            '"GTNO"\nclear = "never"',
            "groups.GTDT.sequence: the clear rule",
        ),
        (
            '"GTNO"\nclear = "sequence-zero"\n',
            '"GTNO"\n',
            "groups.GTDT.sequence: the clear rule needs none",
        ),
        ('sequence = "GTNO"\n', "", "groups.GTDT.clear: sequence-zero needs a sequence"),
        (
            'sequence = "GTNO"',
            'sequence = "GTN"',
            "groups.GTDT.sequence: GTN is no field; did you mean GTNO?",
        ),
        ('"flight_gate"', '"flight_gates"', "groups.GTDT.table: unknown table 'flight_gates'"),
        ('"flight_gate"', '"flight_belt"', "groups.CLDT.table: another group goes to flight_belt"),
        ('route_kind = "ROUT"', 'route_kind = "ERUT"', "groups.ROUT.table: another group goes to"),
        ('route_kind = "ROUT"\n', "", "groups.ROUT.route_kind: needs one of ROUT, ERUT"),
        (
            'table = "flight_gate"',
            'table = "flight_gate"\nroute_kind = "ROUT"',
            "groups.GTDT.route_kind: only the table flight_route_point has one",
        ),
        ('column = "gate"', 'column = "gat"', "fields[1].column: unknown column 'gat'; did you me"),
        ('column = "gate"', 'column = "gotm"', "two fields go to the column gotm"),
        ('column = "gate"', 'column = "source_seq"', "groups.GTDT.fields[1].column: source_seq is"),
        ('column = "source_seq"', 'column = "gate"', "groups.GTDT.fields[0].column: source_seq is"),
        ('name = "GOTM"', 'name = "GATE"', "groups.GTDT.fields: GATE stands there twice"),
        ('name = "GOTM"', 'nam = "GOTM"', "groups.GTDT.fields[2].name: is missing; fill it in"),
        ('name = "GOTM"', 'nam = "GOTM"', "groups.GTDT.fields[2].nam: unknown key; did you mean"),
        ('"GOTM", column', '"GOTM", colum', "fields[2].colum: unknown key; did you mean column?"),
        (
            'shape = "exception"',
            'shape = "exception"\ntable = "flight_gate"',
            "FDIV.table: the shape exception",
        ),
        ('column = "fdiv_dest"', 'column = "fret_rson"', "groups.FRET: another group goes to"),
        ('column = "estm"', 'column = "actm"', "groups.ESTM: another group goes to the column"),
        ('column = "estm"', 'column = "gate"', "groups.ESTM.column: unknown column 'gate'"),
        ('column = "estm"', "fields = []", "groups.ESTM.fields: the shape scalar has none"),
        ('column = "srvt_text"', "time = true", "groups.SRVT.time: the shape text has none"),
        ("ESTM = { shape", '"E M" = { shape', "groups.E M: is no element name"),
        ("GTDT = { enabled", "GTD = { enabled", "kinds.GTD: there is no group GTD; did you mean"),
        ("GTDT = { enabled", "FDEL = { enabled", "kinds.FDEL: FDEL is the deletion"),
        ("GTDT = { enabled", 'GTDT = { group = "X", enabled', "kinds.GTDT: there is no group X"),
        ("GTDT = { enabled = true", 'GTDT = { enabled = "yes"', "kinds.GTDT.enabled: input should"),
        ('record = "RECD"', 'record = "RCNT"', "references.ARPT: RCNT is the count"),
        ('key = "CODE", ', "", "references.ARPT.key: is missing"),
        ("ARPT = {", "SCHD = {", "references.SCHD: SCHD is a message type of the envelope"),
        ("[kinds]\n", "[kinds]\nX = 7\n", "kinds.X: input should be"),
        ("[kinds]\n", "[kinds]\nSTAT = {}\n", "not TOML:"),
    ],
)
def test_a_fault_is_told_with_its_place_and_what_to_do(old: str, new: str, problem: str) -> None:
    found = problems(changed(old, new))
    assert any(problem in line for line in found), found
    assert all("; " in line for line in found), found


def test_all_faults_are_told_at_once() -> None:
    text = DEFAULT.replace('"flight_gate"', '"gates"').replace("estm", "etd").replace("RECD", "?")
    found = problems(text)
    assert len(found) == 1 + 1 + 21
    with pytest.raises(CatalogueError) as caught:
        load(text)
    assert caught.value.problems == found
    assert str(caught.value).count("\n") == 23


def test_a_group_that_cannot_be_read_is_not_told_as_missing_too() -> None:
    found = problems(changed('shape = "collection"', 'shape = "list"'))
    assert len(found) == 1


@pytest.mark.parametrize("text", ["", "[groups]", "groups = 7", "kinds = []\n" + SMALL])
def test_a_file_without_the_necessary_is_refused(text: str) -> None:
    assert problems(text)


def test_every_name_of_the_file_is_in_the_catalogue() -> None:
    document = tomllib.loads(DEFAULT)
    assert set(document["groups"]) == set(CATALOGUE.groups)
    assert set(document["kinds"]) == set(CATALOGUE.kinds)
    assert set(document["references"]) == set(CATALOGUE.references)
