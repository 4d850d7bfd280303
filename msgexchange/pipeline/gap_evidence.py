"""Lock probes on gaps that are due: opt-in, made before the scan that judges by them (spec 3.2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgexchange.clock import Clock
from msgexchange.lifecycle.gap import EvidenceUse, Gap, GapDecision, Probe, ScanPolicy
from msgexchange.ports import GapProbe, MessageFault, Probed, ProbeUnfit, Telemetry

PROBES_MAX = 20
"""Gaps one scan probes, those nearest to W first."""
PROBE_EVERY_S = 1.0
"""A gap that is held is not asked about at every scan."""


@dataclass(slots=True)
class _Asked:
    """What is remembered of one gap; a restart forgets it, which only makes us wait longer."""

    at_s: float
    empty_since_s: float | None = None
    told: bool = False


class GapEvidence:
    """Probes while that can be trusted; where it cannot be, gaps age by time alone."""

    def __init__(
        self,
        probe: GapProbe | None,
        *,
        policy: ScanPolicy,
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._probe = probe
        self._policy = policy
        self._clock = clock
        self._telemetry = telemetry
        self._asked: dict[int, _Asked] = {}

    @property
    def use(self) -> EvidenceUse:
        """What a probe may decide now."""
        return EvidenceUse.OFF if self._probe is None else self._policy.evidence

    def look(self, ledger: Sequence[Gap], *, now: datetime | None) -> Mapping[int, Probe]:
        """A probe of each gap that is due for one, by ``lo``; ``now`` is database time."""
        if self.use is EvidenceUse.OFF or now is None:
            return {}
        open_gaps = [gap for gap in ledger if gap.decision is GapDecision.OPEN]
        known = {gap.lo for gap in open_gaps}
        self._asked = {lo: asked for lo, asked in self._asked.items() if lo in known}
        found: dict[int, Probe] = {}
        for gap in open_gaps:
            if len(found) >= PROBES_MAX or self._probe is None:
                break
            if self._is_due(gap, now - gap.first_seen):
                self._ask(self._probe, gap, found)
        return found

    def _is_due(self, gap: Gap, age: timedelta) -> bool:
        if self.use is EvidenceUse.EXTEND and age <= self._policy.commit_delay_max:
            return False
        asked = self._asked.get(gap.lo)
        return asked is None or self._clock.monotonic() - asked.at_s >= PROBE_EVERY_S

    def _ask(self, probe: GapProbe, gap: Gap, found: dict[int, Probe]) -> None:
        now_s = self._clock.monotonic()
        try:
            held = probe.probe(gap.lo, gap.hi) is Probed.HELD
        except (ProbeUnfit, MessageFault) as unfit:
            self._probe = None
            text = f"gaps age by time alone from now on: {unfit}"
            self._telemetry.alert("gap-evidence-off", text)
            found.clear()
            return
        asked = self._asked.setdefault(gap.lo, _Asked(now_s))
        asked.at_s = now_s
        if held:
            asked.empty_since_s = None
            self._tell_once(asked, gap)
        elif asked.empty_since_s is None:
            asked.empty_since_s = now_s
        since_s = now_s if asked.empty_since_s is None else asked.empty_since_s
        found[gap.lo] = Probe(held, timedelta(seconds=now_s - since_s))

    def _tell_once(self, asked: _Asked, gap: Gap) -> None:
        if not asked.told:
            asked.told = True
            text = f"a living writer holds ids {gap.lo}-{gap.hi}, first missed at {gap.first_seen}"
            self._telemetry.alert("gap-held", text)
