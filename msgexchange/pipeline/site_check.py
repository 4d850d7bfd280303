"""What can be doubted of a site's topics and mailbox, told once each of them is there."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgexchange.pipeline.step import PauseS
from msgexchange.ports import RetryNow, Telemetry, Unavailable

LOOK_AGAIN_S = 1.0
ALL_LOOKED_AT_S = 3_600.0

Check: TypeAlias = Callable[[], Sequence[str]]
"""Doubts in words; raises ``Unavailable`` while what it asks is down."""


class SiteCheck:
    """Runs each check until it has been answered once; what is down is looked at later."""

    def __init__(self, checks: Sequence[Check], telemetry: Telemetry) -> None:
        self._left = list(checks)
        self._telemetry = telemetry
        self._told: set[Check] = set()

    def step(self) -> PauseS:
        for check in tuple(self._left):
            try:
                doubts = check()
            except (Unavailable, RetryNow) as outage:
                doubts = [] if check in self._told else [str(outage)]
                self._told.add(check)
            else:
                self._left.remove(check)
            for doubt in doubts:
                self._telemetry.alert("site-check", doubt)
        return LOOK_AGAIN_S if self._left else ALL_LOOKED_AT_S
