"""Every history store keeps whole flights, once each, and gives them back."""

import gzip
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from store_builders import DAY, RICH, T0, flight, later

from msgexchange.flight.past import PastFlight
from msgexchange.history.files import HistoryFiles
from msgexchange.ids import Flid
from msgexchange.ports import HistoryFailed, HistoryStore
from msgexchange.store.sql_store import SqlStore
from servers.stores import STORES
from strategies import Contents, contents

A_B = Flid("A/B é")


@pytest.fixture
def files(tmp_path: Path) -> HistoryFiles:
    return HistoryFiles(tmp_path / "history")


@pytest.fixture(params=["files", *STORES])
def history(request: pytest.FixtureRequest) -> HistoryStore:
    made: Any = request.getfixturevalue(request.param)
    return made.history if isinstance(made, SqlStore) else made


def past(flid: str, version: int = 3, **given: Any) -> PastFlight:
    return PastFlight(flight(flid, version, RICH, **given), T0)


def tidied(history: HistoryStore) -> HistoryStore:
    while history.tidy():
        pass
    return history


def test_a_flight_comes_back_whole(history: HistoryStore) -> None:
    history.write([past("1"), past(A_B), past("3", operation_day=None)])
    for _ in range(2):
        assert history.lives(Flid("1")) == [past("1")]
        assert history.lives(A_B) == [past(A_B)]
        assert history.lives(Flid("3")) == [past("3", operation_day=None)]
        assert history.lives(Flid("2")) == []
        tidied(history)


def test_written_twice_is_the_same_as_once(history: HistoryStore) -> None:
    history.write([past("1"), past("2")])
    history.write([past("1"), past("2")])
    history.write([past("2"), past("4")])
    for _ in range(2):
        assert history.lives(Flid("1")) == [past("1")]
        assert history.lives(Flid("2")) == [past("2")]
        assert history.lives(Flid("4")) == [past("4")]
        tidied(history)


def test_each_life_of_a_flight_is_kept_oldest_first(history: HistoryStore) -> None:
    second = past("1", 9, operation_day=date(2027, 9, 3))
    history.write([second])
    history.write([past("1")])
    assert tidied(history).lives(Flid("1")) == [past("1"), second]


def test_nothing_is_in_the_history_before_something_was_written(history: HistoryStore) -> None:
    assert history.lives(Flid("1")) == []
    assert not history.tidy()


@given(said=contents(), day=st.none() | st.dates(date(2026, 1, 1), date(2026, 1, 9)))
@settings(max_examples=30, deadline=None)
def test_any_state_survives_in_files(
    tmp_path_factory: pytest.TempPathFactory, said: Contents, day: date | None
) -> None:
    files = HistoryFiles(tmp_path_factory.mktemp("history"))
    kept = PastFlight(flight("1", 2, said, operation_day=day), T0)
    files.write([kept, past("2")])
    files.write([past("3", operation_day=day)])
    assert files.lives(Flid("1")) == [kept]
    assert tidied(files).lives(Flid("1")) == [kept]


def test_the_parts_of_a_day_become_one_file(files: HistoryFiles, tmp_path: Path) -> None:
    for number in range(5):
        files.write([past(f"{number}"), past(f"x{number}", operation_day=None)])
    tidied(files)
    names = sorted(file.name for file in (tmp_path / "history").iterdir())
    assert names == ["2026-09-03.ndjson.gz", "without-day.ndjson.gz"]
    assert DAY.isoformat() == "2026-09-03"
    with gzip.open(tmp_path / "history" / names[0], "rt") as lines:
        assert len(list(lines)) == 5


def test_a_process_that_dies_between_join_and_removal_doubles_nothing(
    files: HistoryFiles, tmp_path: Path
) -> None:
    files.write([past("1")])
    files.write([past("2")])
    folder = tmp_path / "history"
    parts = {file: file.read_bytes() for file in folder.iterdir()}
    tidied(files)
    for file, octets in parts.items():
        file.write_bytes(octets)
    assert files.lives(Flid("1")) == [past("1")]
    tidied(files)
    assert files.lives(Flid("1")) == [past("1")]
    assert len(list(folder.iterdir())) == 1


def test_a_draft_that_a_dead_process_left_is_no_history(
    files: HistoryFiles, tmp_path: Path
) -> None:
    files.write([past("1")])
    [part] = (tmp_path / "history").iterdir()
    (part.parent / f"{part.name}.new").write_bytes(part.read_bytes()[:20])
    assert files.lives(Flid("1")) == [past("1")]
    assert not files.tidy()


def test_a_file_is_synced_before_it_has_its_name_and_its_folder_after(tmp_path: Path) -> None:
    folder = tmp_path / "history"
    seen: list[Sequence[str]] = []

    def sync(_descriptor: int) -> None:
        seen.append(sorted(file.suffix for file in folder.iterdir()))

    HistoryFiles(folder, sync=sync).write([past("1")])
    assert seen == [[".new"], [".gz"]]


def test_a_disk_that_fails_is_told_and_leaves_what_was_there(tmp_path: Path) -> None:
    folder = tmp_path / "history"
    HistoryFiles(folder).write([past("1")])

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(HistoryFailed, match="No space left"):
        HistoryFiles(folder, sync=full).write([past("2")])
    assert HistoryFiles(folder).lives(Flid("1")) == [past("1")]
    assert HistoryFiles(folder).lives(Flid("2")) == []


@pytest.mark.parametrize("octets", [b"", b"no gzip", gzip.compress(b'{"flid":"1"}\n')])
def test_a_damaged_file_is_told_by_name(files: HistoryFiles, tmp_path: Path, octets: bytes) -> None:
    files.write([past("1")])
    [part] = (tmp_path / "history").iterdir()
    whole = part.read_bytes()
    part.write_bytes(octets or whole[:-9])
    with pytest.raises(HistoryFailed, match=part.name):
        files.lives(Flid("1"))


def test_a_table_that_is_missing_is_told(store: SqlStore) -> None:
    with store.engine.begin() as connection:
        connection.execute(text("DROP TABLE flight_hst"))
    with pytest.raises(HistoryFailed, match="FLIGHT_HST"):
        store.history.write([past("1")])
    with pytest.raises(HistoryFailed, match="FLIGHT_HST"):
        store.history.lives(Flid("1"))


def test_the_time_of_writing_is_kept(history: HistoryStore) -> None:
    history.write([PastFlight(past("1").state, later(5))])
    [life] = history.lives(Flid("1"))
    assert life.written_at == later(5)
