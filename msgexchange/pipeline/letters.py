"""Dead letters seen and closed by a person (spec 5.3)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from msgexchange.flight.messages import Decoded, Message
from msgexchange.ids import Flid, MailboxId
from msgexchange.lifecycle.letters import why_not_discarded
from msgexchange.pipeline.incoming import flids_of
from msgexchange.ports import Letter, LetterQuery, Letters

LETTERS_MAX = 1_000
"""One act concerns at most so many messages."""


class NotDone(Exception):
    """An act that is refused whole; the text says for which message, why and what to do."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A letter, and the flights its kept text or its reason names."""

    letter: Letter
    flids: Sequence[Flid]


class LetterDesk:
    """Lists letters and discards them; works in any process."""

    def __init__(
        self,
        store: Letters,
        *,
        decode: Callable[[str], Decoded],
        now: Callable[[], datetime],
    ) -> None:
        """``now`` gives database time."""
        self._store = store
        self._decode = decode
        self.now = now

    def find(self, query: LetterQuery, *, flid: Flid | None = None) -> Sequence[Listed]:
        """The newest first; with ``flid`` those of one flight among the newest ``query.limit``."""
        letters = self._store.find(query)
        texts = self._store.texts([one.message_id for one in letters if one.text_kept])
        found = [Listed(one, self._flids(one, texts)) for one in letters]
        return [one for one in found if flid is None or flid in one.flids]

    def discard(self, ids: Sequence[MailboxId], *, by: str, reason: str) -> Sequence[MailboxId]:
        """All of them, or ``NotDone``; the ids that are closed now."""
        wanted = sorted(set(ids))
        check_act(wanted, by=by, reason=reason)
        with self._store.transaction() as transaction:
            found = {one.message_id: one for one in transaction.letters(wanted)}
            faults = [
                f"message {id_}: {fault}"
                for id_ in wanted
                if (fault := _fault(found.get(id_))) is not None
            ]
            if faults:
                raise NotDone(f"nothing was discarded; {'; '.join(faults)}")
            transaction.discard(wanted, by=by, reason=reason, now=self.now())
        return wanted

    def _flids(self, letter: Letter, texts: Mapping[MailboxId, str]) -> Sequence[Flid]:
        text = texts.get(letter.message_id)
        if text is None:
            return flids_in_reason(letter.error)
        try:
            decoded = self._decode(text)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - what killed the decoder may be why it is dead
            return ()
        return flids_of(decoded) if isinstance(decoded, Message) else ()


def check_act(ids: Sequence[MailboxId], *, by: str, reason: str) -> None:
    """``NotDone`` for an act that names nobody, no reason, nothing, or too much."""
    if not by.strip() or not reason.strip():
        raise NotDone("who does it (by) and why (reason) must be said: both go to the audit")
    if not ids:
        raise NotDone("no message was named or matches: see `run.py dead`")
    if len(ids) > LETTERS_MAX:
        raise NotDone(f"{len(ids)} messages are more than {LETTERS_MAX}: do it in parts")


def flids_in_reason(reason: str | None) -> Sequence[Flid]:
    """Flights a skip's reason names: ``no-match:900123,900124; deleted:900125``."""
    named = [part.strip().partition(":") for part in (reason or "").split(";")]
    return [
        Flid(flid.strip())
        for code, _, flids in named
        if code in ("no-match", "deleted")
        for flid in flids.split(",")
    ]


def _fault(letter: Letter | None) -> str | None:
    if letter is None:
        return "not known here"
    return why_not_discarded(letter.state, discarded=letter.discarded_at is not None)
