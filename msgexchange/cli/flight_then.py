"""``flight --at``: a flight as it was at a time, or just after a message."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click

from msgexchange.cli import show
from msgexchange.cli.choosing import ID_MAX
from msgexchange.cli.choosing import Moment as Time
from msgexchange.cli.context import Failure, Session
from msgexchange.flight.events import schd_value
from msgexchange.flight.versions import Moment, NotKept, state_then
from msgexchange.ids import Flid, MailboxId
from msgexchange.lifecycle.states import TERMINAL
from msgexchange.ports import ChangeView, Reads


class TimeOrMessage(click.ParamType[datetime | MailboxId]):
    """Digits alone are a message's id, all else is a time."""

    name = "time|message"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime | MailboxId:
        if isinstance(value, str) and value.isascii() and value.isdecimal():
            if int(value) > ID_MAX:
                self.fail(f"{value} is no message id", param, ctx)
            return MailboxId(int(value))
        return Time().convert(value, param, ctx)


def show_flight_then(
    session: Session, flid: Flid, given: datetime | MailboxId, *, as_json: bool
) -> None:
    """Print it; ``Failure`` where there was none, or what is kept does not reach that far."""
    settings = session.settings()
    with session.reads() as reads:
        standing = reads.flight(flid)
        versions = reads.changes(flid)
        moment = _moment(session, reads, versions, given)
    known = [life.state for life in session.backends.written_lives(settings, flid)]
    if standing is not None:
        known.append(standing)
    try:
        found = state_then(flid, versions, known, moment)
    except NotKept as gap:
        raise Failure(str(gap)) from gap
    if found is None:
        raise Failure(f"there was no flight {flid} then")
    if as_json:
        value = schd_value(found.state, settings.site.timezone.key)
        value["at"] = moment.at
        value["since"] = found.since
        value["until"] = found.next and found.next.at
        value["nextMessageId"] = found.next and found.next.message_id
        show.as_json(value)
        return
    until = (
        "it stands"
        if found.next is None
        else f"until {show.cell(found.next.at)}, message {found.next.message_id}"
    )
    show.pairs(
        f"flight {flid} at {show.cell(moment.at)}: version {found.state.version}, "
        f"{found.state.status.value}, operation day {found.state.operation_day}; "
        f"since {show.cell(found.since)}, message {found.state.last_message_id}; {until}",
        dict(found.state.content),
    )


def _moment(
    session: Session, reads: Reads, versions: Sequence[ChangeView], given: datetime | MailboxId
) -> Moment:
    """For a message: just after its commit, those after it in the same commit left out."""
    if isinstance(given, datetime):
        zone = session.settings().site.timezone
        at = given if given.tzinfo else given.replace(tzinfo=zone)
        return Moment(at=at.astimezone(UTC))
    own = [version.at for version in versions if version.message_id == given]
    if own:
        return Moment(at=own[-1], message_id=given)
    message = reads.message(given)
    if message is None:
        raise Failure(f"message {given} is not known here, nor among what is kept of this flight")
    if message.state not in TERMINAL or message.finished_at is None:
        raise Failure(f"message {given} is {message.state.value}: nothing was decided yet")
    return Moment(at=message.finished_at, message_id=given)
