"""Terminal messages moved from PROC_STATE to its archive (spec 5.4)."""

from datetime import datetime

from sqlalchemy import (
    BigInteger,
    and_,
    bindparam,
    case,
    delete,
    insert,
    literal_column,
    or_,
    select,
)

from msgexchange.ids import Fence, MailboxId
from msgexchange.ports import Slice
from msgexchange.store.sessions import Sessions
from msgexchange.store.tables import (
    DEAD,
    FAILED,
    PENDING,
    names_of,
    proc_state,
    proc_state_hst,
)
from msgexchange.store.transaction import HeldWriter, leader_transaction
from msgexchange.store.types import Stamp

_MESSAGE = proc_state.c
_COLUMNS = [name for name in names_of(proc_state_hst) if name != "archived_at"]
_AFTER = _MESSAGE.msg_id > bindparam("after", type_=BigInteger())
_UP_TO = _MESSAGE.msg_id <= bindparam("reached", type_=BigInteger())
_MAY_GO = and_(
    _MESSAGE.state.not_in([PENDING, FAILED]),
    _MESSAGE.finished_at < bindparam("before", type_=Stamp),
    _MESSAGE.backfill_next_at.is_(None),
    or_(_MESSAGE.backfill_at.is_not(None), bindparam("marks") == literal_column("0")),
    or_(_MESSAGE.state != DEAD, _MESSAGE.discarded_at.is_not(None)),
)
_PAGE = (
    select(
        _MESSAGE.msg_id,
        _MESSAGE.received_at,
        case((_MAY_GO, literal_column("1")), else_=literal_column("0")).label("may_go"),
    )
    .where(_AFTER)
    .order_by(_MESSAGE.msg_id)
    .limit(bindparam("limit"))
)
_COPY = insert(proc_state_hst).from_select(
    [*_COLUMNS, "archived_at"],
    select(*(_MESSAGE[name] for name in _COLUMNS), bindparam("now", type_=Stamp)).where(
        _AFTER, _UP_TO, _MAY_GO
    ),
)
# A mark that is confirmed in between makes a message one that may go: only what was copied goes.
_REMOVE = delete(proc_state).where(
    _AFTER,
    _UP_TO,
    _MESSAGE.msg_id.in_(
        select(proc_state_hst.c.msg_id).where(
            proc_state_hst.c.msg_id > bindparam("after", type_=BigInteger()),
            proc_state_hst.c.msg_id <= bindparam("reached", type_=BigInteger()),
        )
    ),
)


class Archiving:
    """The ``ArchiveStore`` of the own database."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def archive(
        self,
        fence: Fence,
        *,
        after: MailboxId,
        ended_before: datetime,
        marks: bool,
        limit: int,
        now: datetime,
    ) -> Slice:
        given = {"after": after, "before": ended_before, "marks": int(marks)}
        with leader_transaction(self._sessions, fence) as connection:
            # Whoever replays or judges messages holds the writer row as well.
            HeldWriter.lock(connection)
            page = connection.execute(_PAGE, {**given, "limit": limit}).all()
            moving = sum(row.may_go for row in page)
            if moving:
                span = {"after": after, "reached": page[-1].msg_id}
                connection.execute(_COPY, {**given, **span, "now": now})
                connection.execute(_REMOVE, span)
        older = any(row.received_at < ended_before for row in page)
        return Slice(moving, page[-1].msg_id if older and len(page) == limit else None)
