"""The files by which others find a process."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgexchange.app.addresses import BOOTSTRAP_FILE, URL_FILE, AddressFiles

AT_ONCE = 8
TIMES = 50


def addresses(name: str) -> dict[str, str]:
    return {BOOTSTRAP_FILE: f"broker-{name}", URL_FILE: f"http://{name}"}


def test_two_threads_of_one_process_may_write_the_same_files_at_once(tmp_path: Path) -> None:
    """The thread that starts HTTP, and the one that has just become leader."""
    files = AddressFiles(tmp_path, "a")
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for done in [
            threads.submit(files.write, addresses("a"), as_leader=True) for _ in range(TIMES)
        ]:
            done.result()
    assert (tmp_path / URL_FILE).read_text() == "http://a\n"


def test_processes_that_write_at_once_leave_whole_files_and_no_drafts(tmp_path: Path) -> None:
    processes = [AddressFiles(tmp_path, str(number)) for number in range(AT_ONCE)]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for done in [
            threads.submit(files.write, addresses(str(number)), as_leader=True)
            for _ in range(TIMES)
            for number, files in enumerate(processes)
        ]:
            done.result()
    assert sorted(file.name for file in tmp_path.iterdir()) == [URL_FILE, BOOTSTRAP_FILE]
    assert (tmp_path / URL_FILE).read_text() in {f"http://{n}\n" for n in range(AT_ONCE)}


def test_a_standby_leaves_the_address_of_the_leader(tmp_path: Path) -> None:
    leader, standby = AddressFiles(tmp_path, "a"), AddressFiles(tmp_path, "b")
    leader.write(addresses("a"), as_leader=True)
    standby.write(addresses("b"), as_leader=False)
    assert (tmp_path / URL_FILE).read_text() == "http://a\n"
    standby.write(addresses("b"), as_leader=True)
    assert (tmp_path / URL_FILE).read_text() == "http://b\n"


def test_a_process_that_ends_removes_its_own_address_only(tmp_path: Path) -> None:
    first, second = AddressFiles(tmp_path, "a"), AddressFiles(tmp_path, "b")
    first.write(addresses("a"), as_leader=True)
    second.write(addresses("b"), as_leader=True)
    first.remove()
    assert (tmp_path / URL_FILE).read_text() == "http://b\n"
    second.remove()
    assert list(tmp_path.iterdir()) == []


def test_the_first_that_comes_is_named_until_a_leader_is_known(tmp_path: Path) -> None:
    AddressFiles(tmp_path, "a").write(addresses("a"), as_leader=False)
    assert (tmp_path / URL_FILE).read_text() == "http://a\n"
