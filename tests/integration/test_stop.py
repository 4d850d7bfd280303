"""How a process ends: by SIGTERM, by Ctrl-C, when something hangs, by a second signal (6.1).

MSGEXCHANGE_SOAK=60 starts and stops so often.
"""

import logging
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from factories import plan, status
from msgexchange.clock import SystemClock
from servers.site import Site
from servers.waiting import sleep

pytestmark = [pytest.mark.process, pytest.mark.timeout(3_600)]
TIMES = int(os.environ.get("MSGEXCHANGE_SOAK", "4"))
HANGING_RUN = Path(__file__).parents[1] / "servers" / "fatal_run.py"
SHUTDOWN_S_MAX = 20.0
"""``supervisor.shutdown-timeout``: what a stop may take at most."""
BY_SECOND_SIGTERM = 128 + 15
CLOCK = SystemClock()
LOG = logging.getLogger(__name__)


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[Callable[[dict[str, str]], Site]]:
    """A process whose pump hangs in a step."""
    sites: list[Site] = []

    def begin(settings: dict[str, str]) -> Site:
        site = Site(tmp_path, settings, script=HANGING_RUN)
        sites.append(site)
        site.start()
        first = int(site.send(plan("1").encode())[1])
        assert site.message(first)["state"] == "SUCCEEDED"
        site.send(status("1", "HANGS-THE-DECODER", seqn=2).encode())
        site.wait_until(lambda: pump_is_busy(site), "the pump hangs")
        return site

    yield begin
    for site in sites:
        site.kill()


def pump_is_busy(site: Site) -> bool:
    _, health = site.get("/health/ready")
    busy_s = None if health is None else health["actors"]["pump"]["stepSeconds"]
    return busy_s is not None and busy_s > 0.5


def test_a_stop_at_any_moment_after_the_start_is_clean_and_gives_the_lease_back(
    tmp_path: Path,
) -> None:
    """From the first moment it has an address; in turns by SIGTERM and by Ctrl-C."""
    site = Site(tmp_path, {})
    took_s = []
    try:
        for turn in range(TIMES):
            if turn % 4 < 2:
                site.begin()
                site.wait_for_url()
            else:
                site.start()
            sleep(turn // 4 * 0.02)
            began_s = CLOCK.monotonic()
            site.terminate() if turn % 2 else site.interrupt()
            assert site.exit_status() == 0, site.log[-8_000:]
            took_s.append(CLOCK.monotonic() - began_s)
            taken, back = (site.log.count(f"leadership.{what}") for what in ("taken", "given-back"))
            assert taken == back, site.log[-8_000:]
        site.start()
        code, id_ = site.send(plan("1").encode())
        assert code == 200
        assert site.message(int(id_))["state"] == "SUCCEEDED"
        assert site.stop() == 0, site.log[-8_000:]
    finally:
        site.kill()
    LOG.info("%d stops: longest %.2f s", TIMES, max(took_s))
    assert max(took_s) <= SHUTDOWN_S_MAX


def test_a_collector_that_never_answers_holds_up_no_stop(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        site = Site(tmp_path, {"MSGEXCHANGE_TELEMETRY__OTLP_ENDPOINT": endpoint})
        site.start()
        try:
            id_ = int(site.send(plan("1").encode())[1])
            assert site.message(id_)["state"] == "SUCCEEDED"
            assert site.message(id_)["traceId"]
            silent.settimeout(30)
            connection, _ = silent.accept()
            with connection:
                began_s = CLOCK.monotonic()
                site.terminate()
                assert site.exit_status() == 0, site.log[-8_000:]
                assert CLOCK.monotonic() - began_s < SHUTDOWN_S_MAX / 2
                assert site.log.count("leadership.given-back") == 1
        finally:
            site.kill()


def test_a_stop_that_takes_too_long_ends_with_1_and_leaves_the_lease_to_expire(
    hanging: Callable[[dict[str, str]], Site],
) -> None:
    site = hanging({"MSGEXCHANGE_SUPERVISOR__SHUTDOWN_TIMEOUT": "2 s"})
    site.terminate()
    assert site.exit_status() == 1, site.log[-8_000:]
    assert site.log.count("leadership.given-back") == 0


def test_a_second_signal_ends_a_stop_that_hangs_at_once(
    hanging: Callable[[dict[str, str]], Site],
) -> None:
    site = hanging({})
    site.interrupt()
    site.wait_until(lambda: "leadership.ending" in site.log, "it is stopping")
    began_s = CLOCK.monotonic()
    site.terminate()
    assert site.exit_status() == BY_SECOND_SIGTERM
    assert CLOCK.monotonic() - began_s < SHUTDOWN_S_MAX / 4
    site.start()
    assert site.log.count("leadership.given-back") == 0
