"""The open-attempt mark: which message a pump was working on when it ended (spec 3.3)."""

from datetime import datetime

from sqlalchemy import Connection, and_, bindparam, func, select, update

from msgexchange.ids import Fence, MailboxId
from msgexchange.lifecycle.states import ErrorClass
from msgexchange.ports import OpenAttempt
from msgexchange.store.tables import PUMP_ROW, attempt_log, open_attempt, proc_state

_BEGIN = (
    update(open_attempt)
    .where(open_attempt.c.name == PUMP_ROW)
    .values(
        msg_id=bindparam("message"), fence=bindparam("of_fence"), opened_at=bindparam("begun_at")
    )
)
_CLOSE = (
    update(open_attempt)
    .where(open_attempt.c.name == PUMP_ROW)
    .values(msg_id=None, fence=None, opened_at=None)
)
_rounds = attempt_log.alias("rounds")
_CRASHES = (
    select(func.count())
    .select_from(attempt_log)
    .where(
        attempt_log.c.msg_id == open_attempt.c.msg_id,
        attempt_log.c.error_class == ErrorClass.CRASH.value,
        # A message that was replayed begins to count anew.
        attempt_log.c.attempt <= proc_state.c.attempts,
        attempt_log.c.round
        == select(func.max(_rounds.c.round))
        .where(_rounds.c.msg_id == attempt_log.c.msg_id)
        .correlate(attempt_log)
        .scalar_subquery(),
    )
    .correlate(open_attempt, proc_state)
    .scalar_subquery()
)
_FOUND = select(open_attempt.c.msg_id, open_attempt.c.fence, _CRASHES.label("crashes")).join(
    proc_state,
    and_(proc_state.c.msg_id == open_attempt.c.msg_id, open_attempt.c.name == PUMP_ROW),
)


def begin(connection: Connection, fence: Fence, message_id: MailboxId, *, now: datetime) -> None:
    connection.execute(_BEGIN, {"message": message_id, "of_fence": fence, "begun_at": now})


def close(connection: Connection) -> None:
    connection.execute(_CLOSE)


def found(connection: Connection) -> OpenAttempt | None:
    row = connection.execute(_FOUND).one_or_none()
    if row is None:
        return None
    return OpenAttempt(MailboxId(row.msg_id), Fence(row.fence), row.crashes)
