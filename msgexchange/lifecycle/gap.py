"""One row of the gap ledger, and what may be held of it (spec 3.2)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from msgexchange.ids import MailboxId


class GapDecision(StrEnum):
    """What is held of a range of missing ids.

    OPEN ages, FILLED came in time, PERMANENT is passed and watched, LATE came after it was passed.
    """

    OPEN = "OPEN"
    FILLED = "FILLED"
    PERMANENT = "PERMANENT"
    LATE = "LATE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Missing ids ``lo`` to ``hi``, both included.

    With ``step`` 1 it holds every id, and is disjoint from every other such row. With a larger one
    it is a declared row: it holds the ids off the step, ``lo - 1`` being one on it.
    """

    lo: int
    hi: int
    first_seen: datetime
    looks: int = 1
    decision: GapDecision = GapDecision.OPEN
    decided_at: datetime | None = None
    why: str | None = None
    step: int = 1
    next_look_at: datetime | None = None
    """When the late watch reads it again, None where it does not."""

    def holds(self, id_: int) -> bool:
        """True if this row speaks of the id."""
        return self.lo <= id_ <= self.hi and (
            self.step == 1 or (id_ - self.lo + 1) % self.step != 0
        )


@dataclass(frozen=True, slots=True)
class MailboxRow:
    """A visible row: its id and the length of its text in bytes (None where it holds no text)."""

    message_id: MailboxId
    text_bytes: int | None


@dataclass(frozen=True, slots=True)
class StepRule:
    """The declared ``mailbox.inbound.id-step`` and ``id-offset``: which ids may exist at all."""

    step: int
    offset: int

    def is_off(self, id_: int) -> bool:
        """True for an id that this server never hands out."""
        return (id_ - self.offset) % self.step != 0

    def floor(self, id_: int) -> int:
        """The largest id on the step that is not above."""
        return id_ - (id_ - self.offset) % self.step

    def ceil(self, id_: int) -> int:
        """The smallest id on the step that is not below."""
        return id_ + (self.offset - id_) % self.step


class EvidenceUse(StrEnum):
    """``pipeline.gap-evidence``: what a lock probe may decide."""

    OFF = "off"
    EXTEND = "extend"
    EARLY = "early"


@dataclass(frozen=True, slots=True)
class Probe:
    """The last look for locks on a gap: held by a living writer, or empty since when."""

    held: bool
    empty_for: timedelta = timedelta()
    """Between the first and the last of unbroken empty probes; zero for a single one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPolicy:
    """``pipeline.max-commit-delay``, ``.max-commit-delay-proven``, ``.gap-evidence``, the declared
    id step, and when the late watch looks first.
    """

    commit_delay_max: timedelta = timedelta(seconds=60)
    commit_delay_proven_max: timedelta = timedelta(minutes=10)
    evidence: EvidenceUse = EvidenceUse.OFF
    empty_probes_apart: timedelta = timedelta(seconds=3)
    filled_kept_from: timedelta = timedelta(seconds=1)
    first_look_after: timedelta = timedelta(minutes=1)
    step_rule: StepRule | None = None


WAITED_FOR = "a living writer holds it: waited for"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a look says of a gap that is still missing; ``passed`` makes it PERMANENT."""

    passed: bool
    why: str | None


def judge(gap: Gap, age: timedelta, probe: Probe | None, policy: ScanPolicy) -> Verdict:
    """May W pass this gap, whose ids the scan still misses, and why (spec 3.2)?

    With evidence in use a gap is passed only upon a probe made before that scan: a writer that
    commits between the two is seen by the scan.
    """
    since = f"still missing {age.total_seconds():.1f} s after first sight"
    due = age > policy.commit_delay_max
    if policy.evidence is EvidenceUse.OFF:
        return Verdict(due, since if due else gap.why)
    if probe is None:
        return Verdict(passed=False, why=gap.why)
    if probe.held:
        proven = age > policy.commit_delay_proven_max
        return Verdict(proven, f"{since}, though a writer holds it" if proven else WAITED_FOR)
    if due:
        return Verdict(passed=True, why=f"{since}, and no writer holds it")
    early = policy.evidence is EvidenceUse.EARLY and probe.empty_for >= policy.empty_probes_apart
    apart = f"no writer holds it in probes {probe.empty_for.total_seconds():.1f} s apart"
    return Verdict(early, apart if early else gap.why)
