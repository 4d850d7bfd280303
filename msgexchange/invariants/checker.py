"""All checks that one observation allows, in the order of the invariants."""

from collections.abc import Callable, Iterator

from msgexchange.invariants import inbox_checks, state_checks, topic_checks
from msgexchange.invariants.observation import Observation, Violation

CHECKS: dict[str, Callable[[Observation], Iterator[Violation]]] = {
    "I1": inbox_checks.every_row_is_accounted_for,
    "I2": inbox_checks.terminal_in_id_order,
    "I3": state_checks.all_or_none,
    "I4": inbox_checks.one_success_per_identity,
    "I5": topic_checks.records_in_event_order,
    "I6": topic_checks.sent_is_on_the_broker,
    "I7": inbox_checks.marks_follow_terminal_states,
    "I10": inbox_checks.watermark_passes_only_the_explained,
    "I11": state_checks.state_is_the_fold,
    "I12": topic_checks.schd_shows_the_current_state,
}
"""I8 (fencing) and I9 (spacing of attempts) concern what happened over time; tests show them."""

TOPIC_CHECKS = frozenset({"I5", "I12"})
"""Judged only where the topics were read."""


def violations(seen: Observation) -> dict[str, list[Violation]]:
    """What each check found; an empty list is a promise kept."""
    return {
        name: list(check(seen))
        for name, check in CHECKS.items()
        if seen.topics is not None or name not in TOPIC_CHECKS
    }
