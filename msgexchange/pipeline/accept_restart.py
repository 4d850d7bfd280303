"""An operator lets halted intake go on (spec 3.2, ids that go back)."""

from msgexchange.lifecycle.ranges import Range
from msgexchange.pipeline.id_guard import next_id_objection
from msgexchange.ports import Acceptance, GapStore, IntakeStore, Mailbox

IDS_AT_ONCE = 10_000


class RestartRefused(Exception):
    """Intake cannot go on like this; the text says why and what to do."""


def accept_restart(
    intake: IntakeStore, gaps: GapStore, mailbox: Mailbox, acceptance: Acceptance
) -> int:
    """Ledger every row below W that nobody knows, for the late watch to quarantine, and let
    intake go on; how many rows that were.

    Refused while new rows would still get ids that were taken in already: such rows could not be
    told from those that were there before.
    """
    state = intake.state()
    if state.halted is None:
        raise RestartRefused("intake is not halted: there is nothing to accept")
    objection = next_id_objection(mailbox, state.watermark)
    if objection is not None:
        raise RestartRefused(
            f"{objection}. New rows would pass for old ones: first have the mailbox's owner set "
            f"AUTO_INCREMENT to {state.watermark + 1} or more, or begin with a new store"
        )
    strangers: list[Range] = []
    after = state.began_after
    while page := mailbox.ids_between(after + 1, state.watermark, limit=IDS_AT_ONCE):
        for id_ in gaps.strangers(page):
            if strangers and strangers[-1][1] == id_ - 1:
                strangers[-1] = (strangers[-1][0], id_)
            else:
                strangers.append((id_, id_))
        after = page[-1]
    gaps.accept(acceptance, strangers)
    return sum(hi - lo + 1 for lo, hi in strangers)
