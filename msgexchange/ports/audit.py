"""What people, and rules in their place, did: OPERATION_AUDIT."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from msgexchange.ids import MailboxId


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What a person did: one row. ``outcomes`` says per message what came of it."""

    at: datetime
    by: str
    act: str
    subject: str | None
    reason: str | None
    outcome: str | None
    outcomes: Mapping[MailboxId, str]
