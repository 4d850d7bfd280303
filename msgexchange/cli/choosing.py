"""Options that choose letters: by id, or by class, kind, sender, flight and time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from msgexchange.cli.context import Misuse, Session
from msgexchange.ids import Flid, MailboxId
from msgexchange.lifecycle.letters import REPLAYABLE_SKIPS
from msgexchange.lifecycle.states import ErrorClass
from msgexchange.pipeline.letters import LetterDesk
from msgexchange.ports import LetterQuery

ID_MAX = (1 << 63) - 1
ID = click.IntRange(1, ID_MAX)
BY = click.option("--by", required=True, help="Who does it; goes to the audit.")
REASON = click.option("--reason", required=True, help="Why; goes to the audit.")
F = TypeVar("F", bound=Callable[..., Any])


class Moment(click.ParamType[datetime]):
    """ISO 8601; without a zone it is airport time."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is no time; give one like 2026-09-03T18:00", param, ctx)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the options said; ``moments`` are airport time unless they name a zone."""

    ids: Sequence[int]
    skipped: bool
    discarded: bool
    error_class: str | None
    kind: str | None
    sender: str | None
    flid: str | None
    since: datetime | None
    before: datetime | None
    limit: int

    def is_filtered(self) -> bool:
        given = (self.error_class, self.kind, self.sender, self.flid, self.since, self.before)
        return any(value is not None for value in given)

    def query(self, session: Session) -> LetterQuery:
        zone = session.settings().site.timezone
        code = self.error_class if self.error_class in REPLAYABLE_SKIPS else None
        known = None if code or self.error_class is None else ErrorClass(self.error_class)

        def utc(moment: datetime | None) -> datetime | None:
            if moment is None:
                return None
            return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)

        return LetterQuery(
            ids=[MailboxId(id_) for id_ in self.ids] or None,
            skipped=self.skipped or code is not None,
            discarded=self.discarded,
            error_class=known,
            skip_code=code,
            kind=self.kind,
            sender=self.sender,
            since=utc(self.since),
            before=utc(self.before),
            limit=self.limit,
        )

    def chosen(self, session: Session, desk: LetterDesk) -> Sequence[MailboxId]:
        """The ids an act is to concern; ``Misuse`` if nothing, or two things, choose them."""
        if bool(self.ids) == (self.is_filtered() or self.skipped):
            raise Misuse("name message ids, or choose by --class, --kind, ...: one of the two")
        if self.ids:
            return [MailboxId(id_) for id_ in self.ids]
        flid = None if self.flid is None else Flid(self.flid)
        found = desk.find(self.query(session), flid=flid)
        return [one.letter.message_id for one in found]


_OPTIONS = (
    click.option(
        "--class",
        "error_class",
        type=click.Choice([*ErrorClass, *REPLAYABLE_SKIPS]),
        help="Class or last cause of a dead letter, or the reason of a skipped message.",
    ),
    click.option("--kind", help="TYPE or TYPE/STYP, such as FLOP/GTDT."),
    click.option("--sender", help="SNDR."),
    click.option("--flight", "flid", help="FLID that its kept text or its reason names."),
    click.option("--since", type=Moment(), help="Taken in at this time or later."),
    click.option("--before", type=Moment(), help="Taken in before this time."),
    click.option(
        "--skipped", is_flag=True, help="Skipped messages that may be replayed, not dead letters."
    ),
    click.option(
        "--limit",
        type=click.IntRange(1, 10_000),
        default=200,
        show_default=True,
        help="Look at so many, the newest.",
    ),
)


def filters(command: F) -> F:
    """Add the options that choose letters."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def choice(options: dict[str, Any], *, ids: Sequence[int] = (), discarded: bool = False) -> Choice:
    """What ``filters`` gave a command; takes its options out."""
    names = ("skipped", "error_class", "kind", "sender", "flid", "since", "before", "limit")
    return Choice(ids=ids, discarded=discarded, **{name: options.pop(name) for name in names})
