"""The mailbox of a shadow run: it can be read, and nothing else (spec 5.5)."""

from collections.abc import Sequence
from typing import NoReturn

from msgexchange.ids import MailboxId
from msgexchange.ports import Mailbox, MessageFault


class ReadOnlyMailbox:
    """Port ``Mailbox`` over another one, without a way to write to it."""

    def __init__(self, mailbox: Mailbox) -> None:
        self.list_after = mailbox.list_after
        self.ids_between = mailbox.ids_between
        self.next_id = mailbox.next_id
        self.texts = mailbox.texts
        self.marks_after = mailbox.marks_after
        self.newest_id = mailbox.newest_id
        self.oldest_id = mailbox.oldest_id
        self.check = mailbox.check
        self.close = mailbox.close

    def insert(self, text: str) -> NoReturn:  # noqa: ARG002 - the port names it
        raise MessageFault("mailbox: a shadow run writes no row")

    def mark(
        self,
        ids: Sequence[MailboxId],  # noqa: ARG002 - the port names it
        *,
        overwrite: bool = False,  # noqa: ARG002 - the port names it
    ) -> NoReturn:
        raise MessageFault("mailbox: a shadow run marks no row")
