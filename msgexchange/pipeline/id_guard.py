"""Do mailbox ids still only grow? Restored, failed over, truncated tables are told (spec 3.2)."""

from msgexchange.clock import Clock
from msgexchange.ports import GapStore, IntakeState, Mailbox

LOOK_EVERY_S = 10.0
RECENT_IDS = 1_000
"""How far below W a row that nobody knows is looked for."""


class IdGuard:
    """Looks at the first scan, then every ten seconds, and at once when the maximum fell."""

    def __init__(self, mailbox: Mailbox, gaps: GapStore, clock: Clock) -> None:
        self._mailbox = mailbox
        self._gaps = gaps
        self._clock = clock
        self._look_at_s = float("-inf")

    def suspect(self) -> None:
        """Look again at the next scan."""
        self._look_at_s = float("-inf")

    def objection(self, state: IntakeState) -> str | None:
        """Why intake must not go on, None while ids only grow."""
        now_s = self._clock.monotonic()
        if now_s < self._look_at_s:
            return None
        found = next_id_objection(self._mailbox, state.watermark) or self._strangers(state)
        if found is None:
            self._look_at_s = now_s + LOOK_EVERY_S
        return found

    def _strangers(self, state: IntakeState) -> str | None:
        lo = max(state.watermark - RECENT_IDS, state.began_after) + 1
        if lo > state.watermark:
            return None
        ids = self._mailbox.ids_between(lo, state.watermark, limit=RECENT_IDS)
        strangers = self._gaps.strangers(ids)
        if not strangers:
            return None
        return (
            f"{len(strangers)} mailbox rows below W={state.watermark} were never seen, the first "
            f"is {strangers[0]}: the mailbox was restored, failed over or truncated"
        )


def next_id_objection(mailbox: Mailbox, watermark: int) -> str | None:
    """Why new rows would get ids that were taken in already.

    Where the server tells its next id, rows that were only deleted at the top are no objection.
    """
    next_id = mailbox.next_id()
    if next_id is None:
        newest = mailbox.newest_id()
        if newest >= watermark:
            return None
        return f"the greatest mailbox id is {newest}, below W={watermark}"
    if next_id > watermark:
        return None
    return (
        f"the next mailbox id is {next_id}, not above W={watermark}: the mailbox was restored, "
        "failed over or truncated"
    )
