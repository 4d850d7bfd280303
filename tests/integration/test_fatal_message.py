"""A message that ends, or hangs, the process that decodes it (spec 3.3, 6.1)."""

from pathlib import Path

import pytest

from factories import plan, status
from servers.site import Site

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]
FATAL_RUN = Path(__file__).parents[1] / "servers" / "fatal_run.py"
FATAL_EXIT = 139
HUNG_EXIT = 70
ENDS = 6
"""The first end is not charged: no mark is paid for while all goes well."""
SETTINGS = {
    "MSGEXCHANGE_PIPELINE__BACKOFF": "10 ms",
    "MSGEXCHANGE_PIPELINE__MAX_ATTEMPTS": "9",
}


def test_a_message_that_kills_the_process_six_times_is_dead_and_the_next_one_runs(
    tmp_path: Path,
) -> None:
    site = Site(tmp_path, SETTINGS, script=FATAL_RUN)
    try:
        site.start()
        first = int(site.send(plan("1").encode())[1])
        assert site.message(first)["state"] == "SUCCEEDED"
        fatal = int(site.send(status("1", "FATAL-TO-DECODE", seqn=2).encode())[1])
        ends = 0
        while ends < ENDS:
            assert site.exit_status() == FATAL_EXIT
            ends += 1
            site.start()
        dead = site.message(fatal)
        assert (dead["state"], dead["errorClass"]) == ("DEAD", "EXHAUSTED")
        assert "ended while it worked on this message; that happened 5 times" in dead["error"]
        assert dead["attempts"] == 5
        after = int(site.send(status("1", "ON", seqn=3).encode())[1])
        assert site.message(after)["state"] == "SUCCEEDED"
        assert site.stop() == 0
    finally:
        site.kill()


def test_a_pump_that_hangs_gives_leadership_away_and_the_process_exits_70(tmp_path: Path) -> None:
    hasty = {
        **SETTINGS,
        "MSGEXCHANGE_SUPERVISOR__WATCHDOG": "1 s",
        "MSGEXCHANGE_SUPERVISOR__SHUTDOWN_TIMEOUT": "2 s",
    }
    site = Site(tmp_path, hasty, script=FATAL_RUN)
    try:
        site.start()
        site.send(plan("1").encode())
        site.send(status("1", "HANGS-THE-DECODER", seqn=2).encode())
        assert site.exit_status(20) == HUNG_EXIT
        assert "most recent call first" in site.log
        assert site.log.count("leadership.given-back") == 0
    finally:
        site.kill()
