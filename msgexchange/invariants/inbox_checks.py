"""I1, I2, I4, I7, I10: rows, order, identity, marks, watermark."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgexchange.invariants.observation import Observation, Violation
from msgexchange.lifecycle.gap import Gap, GapDecision
from msgexchange.lifecycle.states import TERMINAL, ErrorClass, MessageState
from msgexchange.ports import Kept, MessageFact


def every_row_is_accounted_for(seen: Observation) -> Iterator[Violation]:
    """I1: every committed row is in the inbox once, or in the gap ledger, or still above W."""
    inbox = [fact.message_id for fact in seen.store.messages]
    for earlier, later in pairwise(sorted(inbox)):
        if earlier == later:
            yield Violation("I1", f"message {earlier} is in the inbox twice")
    known = set(inbox)
    passed = [gap for gap in seen.store.gaps if gap.decision is GapDecision.PERMANENT]
    for id_ in seen.marks:
        if id_ in known or (id_ > seen.store.watermark and not seen.drained):
            continue
        if not any(gap.holds(id_) for gap in passed):
            yield Violation("I1", f"mailbox row {id_} is neither in the inbox nor in the ledger")


def terminal_in_id_order(seen: Observation) -> Iterator[Violation]:
    """I2: late arrivals and replays excepted, a smaller id never ends after a larger one."""
    late = {gap.lo for gap in seen.store.gaps if gap.decision is GapDecision.LATE}
    in_line = [
        fact
        for fact in sorted(seen.store.messages, key=lambda fact: fact.message_id)
        if fact.error_class is not ErrorClass.LATE
        and fact.message_id not in late
        and not fact.replayed
    ]
    line = [fact for fact in in_line if fact.finished_at is not None]
    for earlier, later in pairwise(line):
        if earlier.finished_at and later.finished_at and earlier.finished_at > later.finished_at:
            text = f"message {earlier.message_id} ended after {later.message_id}"
            yield Violation("I2", text)
    waiting = [fact.message_id for fact in in_line if fact.state not in TERMINAL]
    if waiting:
        head = min(waiting)
        yield from (
            Violation("I2", f"message {fact.message_id} ended while {head} still waits")
            for fact in line
            if fact.message_id > head
        )


def one_success_per_identity(seen: Observation) -> Iterator[Violation]:
    """I4: recorded take-overs (``reuses:``, ``supersedes:``) excepted."""
    first: dict[tuple[str, str, str, str], MessageFact] = {}
    for fact in sorted(seen.store.messages, key=lambda fact: fact.message_id):
        if fact.state is not MessageState.SUCCEEDED or fact.business_key is None:
            continue
        earlier = first.get(fact.business_key)
        if earlier is not None and not (fact.note or "").startswith(("reuses:", "supersedes:")):
            text = f"messages {earlier.message_id} and {fact.message_id} share {fact.business_key}"
            yield Violation("I4", text)
        first[fact.business_key] = fact


def marks_follow_terminal_states(seen: Observation) -> Iterator[Violation]:
    """I7: no mark without a terminal state; in the end every terminal message is marked."""
    states = {fact.message_id: fact for fact in seen.store.messages}
    for id_, marked in seen.marks.items():
        fact = states.get(id_)
        if marked and (fact is None or fact.state not in TERMINAL):
            state = fact.state.value if fact else "not in the inbox"
            yield Violation("I7", f"mailbox row {id_} is marked, but its message is {state}")
        if fact is None or seen.shadow or not seen.drained:
            continue
        if fact.state in TERMINAL and not marked:
            yield Violation("I7", f"message {id_} is {fact.state.value} and not marked")


def watermark_passes_only_the_explained(seen: Observation) -> Iterator[Violation]:
    """I10: every id up to W is in the inbox, in a permanent gap, or lies before the start."""
    plain = [g for g in seen.store.gaps if g.decision is GapDecision.PERMANENT and g.step == 1]
    declared = [g for g in seen.store.gaps if g.step > 1]
    covered = sorted(
        [(fact.message_id, fact.message_id) for fact in seen.store.messages]
        + [(gap.lo, gap.hi) for gap in plain]
    )
    reached = _past_declared(max(seen.store.began_after, _ledgered_from(seen)), declared)
    for lo, hi in covered:
        if lo > reached + 1:
            break
        reached = _past_declared(max(reached, hi), declared)
    if reached < seen.store.watermark:
        text = f"W is {seen.store.watermark}, but id {reached + 1} is unexplained"
        yield Violation("I10", text)


def _ledgered_from(seen: Observation) -> int:
    """Below the newest id that was taken in before it, retention may have emptied the ledger."""
    since = seen.store.kept_since.get(Kept.GAPS)
    if since is None:
        return 0
    old = (fact.message_id for fact in seen.store.messages if fact.received_at < since)
    return max(old, default=0)


def _past_declared(id_: int, declared: Sequence[Gap]) -> int:
    while any(gap.holds(id_ + 1) for gap in declared):
        id_ += 1
    return id_
