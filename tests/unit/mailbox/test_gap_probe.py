"""How a server is asked for locks without waiting, by its version."""

import pytest

from msgexchange.mailbox.probe import lock_clause
from msgexchange.ports import ProbeUnfit


@pytest.mark.parametrize(
    ("version", "clause"),
    [
        ("10.11.6-MariaDB-0+deb12u1", "LOCK IN SHARE MODE NOWAIT"),
        ("11.4.2-MariaDB", "LOCK IN SHARE MODE NOWAIT"),
        ("8.0.36", "FOR SHARE NOWAIT"),
        ("8.4.0-commercial", "FOR SHARE NOWAIT"),
    ],
)
def test_each_server_is_asked_in_its_own_words(version: str, clause: str) -> None:
    assert lock_clause(version) == clause


@pytest.mark.parametrize("version", ["5.7.44-log", "10.2.44-MariaDB", "8.0.0-dmr"])
def test_a_server_without_nowait_is_not_asked(version: str) -> None:
    with pytest.raises(ProbeUnfit, match="no NOWAIT"):
        lock_clause(version)
