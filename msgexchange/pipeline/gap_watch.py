"""The late watch: gaps that W has passed are read again, and what came is taken in (spec 3.2)."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from msgexchange.clock import Clock
from msgexchange.ids import Fence, MailboxId
from msgexchange.lifecycle.gap import Gap, GapDecision
from msgexchange.lifecycle.late_watch import WatchPolicy, after_look
from msgexchange.lifecycle.ranges import joined
from msgexchange.pipeline.step import NOW, PauseS
from msgexchange.ports import GapStore, LateRow, Mailbox, Telemetry, Text, TextMissing

JOINED_WITHIN = 200
"""Ranges so many ids apart are read together."""
IDS_AT_ONCE = 10_000
IDS_TOLD_MAX = 20
DECLARED_IDS_MAX = 100_000
"""Width of the declared rows of one slice: all their rows on the step are visible."""
LATE_BYTES_MAX = 64 << 20
"""Text of the late rows of one slice; one row may exceed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRules:
    """``pipeline.late-watch``, ``.late-policy``; looks every 60 s, a bounded slice at a time."""

    interval: timedelta = timedelta(seconds=60)
    ranges_max: int = 200
    dies: bool = True
    marks: bool = True
    """False in a shadow run: nothing is ever marked."""
    text_bytes_max: int = 64 << 20
    watch: WatchPolicy = field(default_factory=WatchPolicy)


class GapWatch:
    """Reads passed ranges again; a row found there is recorded and never applied on its own."""

    def __init__(
        self,
        *,
        store: GapStore,
        mailbox: Mailbox,
        clock: Clock,
        fence: Fence,
        rules: WatchRules,
        telemetry: Telemetry,
    ) -> None:
        self._store = store
        self._mailbox = mailbox
        self._clock = clock
        self._fence = fence
        self._rules = rules
        self._telemetry = telemetry

    def step(self) -> PauseS:
        limit = self._rules.ranges_max
        due = self._store.due_for_look(now=self._clock.now(), limit=limit)
        some = _bounded(due)
        if not some:
            return self._rules.interval.total_seconds()
        whole = self._look(some)
        if not whole or len(some) < len(due) or len(due) >= limit:
            return NOW
        return self._rules.interval.total_seconds()

    def _look(self, due: Sequence[Gap]) -> bool:
        """False when there are more late rows than one slice takes."""
        visible = self._visible(due)
        came = {id_ for gap in due for id_ in _held(gap, visible)}
        late = self._store.unknown(sorted(came))
        rows = self._read(late, due)
        taken = [row.message_id for row in rows]
        self._disprove_step(taken, due)
        now = self._clock.now()
        written: list[Gap] = []
        for gap in due:
            of_it = _held(gap, taken)
            after = after_look(gap, of_it, looked_at=now, policy=self._rules.watch)
            complete = len(of_it) == len(_held(gap, late))
            written += after if complete else [_due_as_before(one, gap) for one in after]
        self._store.record_looks(
            self._fence,
            looked=due,
            written=written,
            late=rows,
            dies=self._rules.dies,
            marks=self._rules.marks,
            now=now,
        )
        self._tell(rows)
        return len(taken) == len(late)

    def _visible(self, due: Sequence[Gap]) -> list[int]:
        found: list[int] = []
        for lo, hi in joined([(gap.lo, gap.hi) for gap in due], distance_max=JOINED_WITHIN):
            after = lo - 1
            while page := self._mailbox.ids_between(after + 1, hi, limit=IDS_AT_ONCE):
                found += page
                after = page[-1]
        return sorted(set(found))

    def _read(self, late: Sequence[int], due: Sequence[Gap]) -> list[LateRow]:
        """Late rows with their texts, up to the size one slice may hold."""
        rows: list[LateRow] = []
        octets = 0
        for id_ in map(MailboxId, late):
            if octets > LATE_BYTES_MAX:
                break
            text = self._mailbox.texts([id_], bytes_max=self._rules.text_bytes_max)[id_]
            if text is TextMissing.ROW_GONE:
                continue
            size = _size(text, self._rules.text_bytes_max)
            octets += size or 0
            gap = next(gap for gap in due if gap.holds(id_))
            why = f"came after W had passed ids {gap.lo}-{gap.hi}: {gap.why}"
            kept = None if isinstance(text, TextMissing) else text
            rows.append(LateRow(message_id=id_, text_bytes=size, text=kept, error=why))
        return rows

    def _disprove_step(self, taken: Sequence[int], due: Sequence[Gap]) -> None:
        off = [id_ for gap in due if gap.step > 1 for id_ in _held(gap, taken)]
        if off:
            why = f"mailbox row {off[0]} is off the declared id step: the rule is off from now on"
            self._store.turn_step_rule_off(self._fence, why, now=self._clock.now())
            self._telemetry.alert("id-step-disproved", why)

    def _tell(self, rows: Sequence[LateRow]) -> None:
        if not rows:
            return
        self._telemetry.count("late_arrivals", len(rows))
        ids = ", ".join(str(row.message_id) for row in rows[:IDS_TOLD_MAX])
        became = "dead letters (LATE)" if self._rules.dies else "taken in out of order"
        self._telemetry.alert("late-arrival", f"{len(rows)} rows came below W, {became}: {ids}")


def _bounded(due: Sequence[Gap]) -> Sequence[Gap]:
    width = 0
    for at, gap in enumerate(due):
        width += gap.hi - gap.lo if gap.step > 1 else 0
        if width > DECLARED_IDS_MAX and at > 0:
            return due[:at]
    return due


def _held(gap: Gap, ids: Sequence[int]) -> list[int]:
    """Those of the sorted ids that this row speaks of."""
    first, end = bisect_left(ids, gap.lo), bisect_right(ids, gap.hi)
    return [id_ for id_ in ids[first:end] if gap.holds(id_)]


def _due_as_before(after: Gap, before: Gap) -> Gap:
    """More of its rows came than were taken: what is left of it keeps its turn."""
    if after.decision is GapDecision.LATE:
        return after
    return replace(after, next_look_at=before.next_look_at)


def _size(text: Text, bytes_max: int) -> int | None:
    if text is TextMissing.TOO_LARGE:
        return bytes_max + 1
    return None if isinstance(text, TextMissing) else len(text.encode(errors="surrogatepass"))
