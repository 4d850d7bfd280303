"""Several msgexchange processes on one site: who of them leads, and how fast that changes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgexchange.clock import SystemClock
from servers.site import Site
from servers.waiting import sleep

LOOK_S = 0.02
LEAD_S_MAX = 20.0


class Pair:
    """Running processes of one site; a frozen one is never asked."""

    def __init__(self, sites: list[Site]) -> None:
        self.sites = sites
        self.clock = SystemClock()

    def leader(self) -> Site:
        """The one that leads, once there is one."""
        return self.leader_among(self.sites)

    def leader_among(self, sites: list[Site]) -> Site:
        deadline_s = self.clock.monotonic() + LEAD_S_MAX
        while self.clock.monotonic() < deadline_s:
            for site in sites:
                if site.runs and leadership(site).get("role") == "leader":
                    return site
            sleep(LOOK_S)
        raise AssertionError("nobody leads:\n" + "\n".join(site.log[-2000:] for site in sites))

    def others(self, site: Site) -> list[Site]:
        return [other for other in self.sites if other is not site]

    def seconds_until_another_leads(self, before: Site) -> float:
        """Measured from now."""
        began_s = self.clock.monotonic()
        self.leader_among(self.others(before))
        return self.clock.monotonic() - began_s

    def wait_for_standby(self, site: Site) -> None:
        site.wait_until(lambda: leadership(site).get("role") == "standby", "it stands by")


def leadership(site: Site) -> Mapping[str, Any]:
    """What its health says; empty while it does not answer."""
    _, health = site.get("/health/ready")
    return {} if health is None else dict(health["leadership"])


@contextmanager
def running_pair(folder: Path, settings: Mapping[str, str], names: str = "ab") -> Iterator[Pair]:
    """Started one after the other, each with a folder of its own; gone afterwards."""
    sites = [Site(folder / name, settings, name) for name in names]
    try:
        for site in sites:
            site.start()
        yield Pair(sites)
    finally:
        for site in sites:
            site.kill()
