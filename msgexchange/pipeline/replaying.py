"""How a person has messages replayed: sees what it would do, then orders it (spec 5.3)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson

from msgexchange.codec.encode import encode
from msgexchange.ids import MailboxId
from msgexchange.pipeline.incoming import Decode
from msgexchange.pipeline.letters import LETTERS_MAX, NotDone, check_act
from msgexchange.pipeline.prediction import Prediction
from msgexchange.pipeline.rehearsal import rehearse
from msgexchange.pipeline.replay_token import promises_in, token_of
from msgexchange.pipeline.rules import PumpRules
from msgexchange.ports import Letter, Mailbox, ReplayOrder, Replays, Text

TEXT_BYTES_MAX = 32 << 20
"""One order is one transaction: so much text at most, one message alone may exceed it."""


@dataclass(frozen=True, slots=True)
class Preflight:
    """What was seen; ``token`` None where nothing can be replayed."""

    predictions: Sequence[Prediction]
    token: str | None


class ReplayDesk:
    """Pre-flight and orders; works in any process, and applies no message."""

    def __init__(
        self,
        store: Replays,
        mailbox: Mailbox,
        *,
        decode: Decode,
        rules: PumpRules,
        text_bytes_max: int,
        now: Callable[[], datetime],
        new_order_id: Callable[[], str],
    ) -> None:
        """``now`` gives database time."""
        self._store = store
        self._mailbox = mailbox
        self._decode = decode
        self._rules = rules
        self._text_bytes_max = text_bytes_max
        self._now = now
        self._new_order_id = new_order_id

    def plan(self, ids: Sequence[MailboxId]) -> Preflight:
        """The exact prediction for each; nothing is locked or written. ``NotDone``."""
        wanted = sorted(set(ids))
        if not wanted:
            raise NotDone("no message was named or matches: see `run.py dead`")
        if len(wanted) > LETTERS_MAX:
            raise NotDone(f"{len(wanted)} messages are more than {LETTERS_MAX}: do it in parts")
        with self._store.reading() as reads:
            letters = reads.letters(wanted)
        texts = texts_of(letters, self._store, self._mailbox, text_bytes_max=self._text_bytes_max)
        with self._store.reading() as reads:
            found = rehearse(
                reads, wanted, texts, decode=self._decode, rules=self._rules, now=self._now()
            )
        return Preflight(found.predictions, token_of(found.predictions))

    def order(self, token: str, *, by: str, reason: str, allow_regression: bool) -> ReplayOrder:
        """Write the order for the leader's pump; ``NotDone`` if it would be refused as it is."""
        promises = promises_in(token)
        check_act([promise["id"] for promise in promises], by=by, reason=reason)
        back = [promise["id"] for promise in promises if promise["backwards"]]
        if back and not allow_regression:
            raise NotDone(
                f"messages {_listed(back)} would take fields back behind newer messages; look at "
                "the plan, then say --allow-regression, or leave them out"
            )
        order = ReplayOrder(
            order_id=self._new_order_id(),
            by=by,
            reason=reason,
            allow_regression=allow_regression,
            plan=encode(promises).decode(),
            created_at=self._now(),
        )
        self._store.write_order(order)
        return order

    def look(self, order_id: str) -> ReplayOrder | None:
        return self._store.order(order_id)

    def orders(self, *, limit: int) -> Sequence[ReplayOrder]:
        """The newest first."""
        return self._store.orders(limit=limit)


def texts_of(
    letters: Sequence[Letter], store: Replays, mailbox: Mailbox, *, text_bytes_max: int
) -> Mapping[MailboxId, Text]:
    """Raw texts: what the own store has kept, then what the mailbox still has.

    ``NotDone`` if they are too many for one transaction.
    """
    size = sum(letter.text_bytes or 0 for letter in letters)
    if len(letters) > 1 and size > TEXT_BYTES_MAX:
        raise NotDone(
            f"these messages hold {size >> 20} MiB of text, more than {TEXT_BYTES_MAX >> 20} MiB: "
            "do it in parts"
        )
    kept: dict[MailboxId, Text] = {
        **store.texts([letter.message_id for letter in letters if letter.text_kept])
    }
    missing = [letter.message_id for letter in letters if letter.message_id not in kept]
    if missing:
        kept |= mailbox.texts(missing, bytes_max=text_bytes_max)
    return kept


def ids_of(order: ReplayOrder) -> Sequence[MailboxId]:
    """The messages it concerns."""
    return [MailboxId(promise["id"]) for promise in orjson.loads(order.plan)]


def _listed(ids: Sequence[int]) -> str:
    more = len(ids) - 10
    return ", ".join(map(str, ids[:10])) + (f" and {more} more" if more > 0 else "")
