"""What this host's clock, time zone and locale do: nothing (spec 6.1, Time)."""

import re
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from factories import plan, status, xml
from servers.airport import Airport, Store, everything_is_through
from servers.pair import leadership
from servers.production import Environment
from servers.site import Site, running_site
from servers.wall_clock import WallClock

QUARTER_HOUR_S = 900
ATTEMPTS = 3
BACKOFFS = (timedelta(seconds=1), timedelta(seconds=2))
ROUNDING = timedelta(milliseconds=5)


@pytest.mark.postgres
@pytest.mark.mysql
@pytest.mark.kafka
@pytest.mark.process
def test_a_jump_of_the_hosts_clock_kills_no_head_and_moves_no_lease(
    tmp_path: Path, real_settings: Environment, airport: Airport, store_access: Store
) -> None:
    """A quarter of an hour ahead, back to half an hour before that, and home again."""
    clock = WallClock(tmp_path)
    settings = {**real_settings, "MSGEXCHANGE_PIPELINE__MAX_ATTEMPTS": str(ATTEMPTS)}
    elsewhere = Site(tmp_path, settings)
    with running_site(tmp_path, {**settings, **clock.environment}) as site:
        everything_is_through(elsewhere, airport)
        for turn, offset_s in enumerate((QUARTER_HOUR_S, -QUARTER_HOUR_S, 0)):
            airport.write(xml("<FLOP><FLID>1</FLID></FLOP>", styp=f"NEW{turn}", seqn=50 + turn))
            failing = airport.last_id
            site.wait_until(lambda id_=failing: attempts(site, id_) > 0, "the head fails")  # type: ignore[misc]
            clock.jump_to(offset_s)
            airport.change(3)
            dead = site.message(failing)
            assert (dead["state"], dead["errorClass"]) == ("DEAD", "EXHAUSTED")
            assert dead["attempts"] == ATTEMPTS
            assert_spaced(failed_at(store_access, failing))
            everything_is_through(elsewhere, airport)
        assert leadership(site) == {**leadership(site), "role": "leader", "fence": 1}
        for surprise in ("leadership-lost", "database-clock-jump", "mailbox-clock"):
            assert surprise not in site.log
        # Else nothing of all this was shown.
        assert logged_span(site) > timedelta(seconds=1.5 * QUARTER_HOUR_S)
        assert strange_stamps(store_access) == 0
        assert site.stop() == 0


def attempts(site: Site, id_: int) -> int:
    code, message = site.get(f"/messages/{id_}")
    return int(message["attempts"]) if code == 200 else 0


def logged_span(site: Site) -> timedelta:
    """Log lines carry the host's time: how far apart the earliest and the latest are."""
    moments = [datetime.fromisoformat(at) for at in re.findall(r'"at": "([^"]+)"', site.log)]
    return max(moments) - min(moments)


def failed_at(store: Store, id_: int) -> list[datetime]:
    rows = store.execute(
        "SELECT at FROM attempt_log WHERE msg_id = %s ORDER BY attempt", (id_,)
    ).fetchall()
    return [at for (at,) in rows if isinstance(at, datetime)]


def assert_spaced(failures: list[datetime]) -> None:
    for (earlier, later), backoff in zip(pairwise(failures), BACKOFFS, strict=True):
        pause = later - earlier
        assert pause >= backoff - ROUNDING
        assert pause < timedelta(minutes=1)


def strange_stamps(store: Store) -> int:
    """Durable stamps that are not of the last minutes by the database's own clock."""
    row = store.execute(
        "SELECT count(*) FROM proc_state WHERE greatest(received_at, finished_at) > now() "
        "OR least(received_at, finished_at) < now() - interval '5 minutes'"
    ).fetchone()
    assert row is not None
    return int(str(row[0]))


@pytest.mark.process
def test_the_hosts_time_zone_and_locale_change_nothing(tmp_path: Path) -> None:
    hosts = {
        "east": {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "LANG": "tr_TR.UTF-8"},
        "west": {"TZ": "America/Adak", "LC_ALL": "POSIX", "PYTHONUTF8": "0"},
    }
    seen = {name: published(tmp_path / name, host) for name, host in hosts.items()}
    assert seen["east"] == seen["west"]
    assert len(seen["east"]) == 2


def published(folder: Path, host: dict[str, str]) -> Any:
    """All flights of a site on such a host, after a plan and a change with letters of the world."""
    with running_site(folder, host) as site:
        for text in (plan("1", "2", extra="<REMK>İstanbul 上海 €</REMK>"), status("1", "İ-ON")):
            code, id_ = site.send(text.encode())
            assert code == 200
            assert site.message(int(id_))["state"] == "SUCCEEDED"
        shown = site.run("flights", "--day", "2026-09-03", "--json").stdout
        assert "İ-ON" in shown
        code, flights = site.get("/all/flights")
        assert code == 200
        assert site.stop() == 0, site.log[-4000:]
        return flights["flights"]
