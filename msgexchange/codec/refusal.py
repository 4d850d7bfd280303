"""Why a message is not applied, told in words a person can act on."""

from typing import TypeAlias

from msgexchange.flight.messages import Inexpressible, Rejected

REASON_CHARACTERS_MAX = 2_000
SHOWN_CHARACTERS_MAX = 80

Verdict: TypeAlias = Rejected | Inexpressible


class Refusal(Exception):
    """Ends the reading of a message; ``decode`` turns it into its verdict, a value."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.reason)
        self.verdict = verdict


def rejected(where: str, what: str) -> Refusal:
    """PROTOCOL: the message breaks the contract. ``where`` names flight and element."""
    return Refusal(Rejected(bounded(f"{where}: {what}")))


def inexpressible(where: str, what: str) -> Refusal:
    """CODEC_ERROR: the message may be right, but this codec has no form for it."""
    return Refusal(Inexpressible(bounded(f"{where}: {what}")))


def shown(value: str) -> str:
    """A value from outside as a reason may quote it: its beginning is enough."""
    if len(value) <= SHOWN_CHARACTERS_MAX:
        return f'"{value}"'
    return f'"{value[:SHOWN_CHARACTERS_MAX]}" ... ({len(value)} characters)'


def bounded(reason: str) -> str:
    """As a stored error text may be: no NUL, at most 2,000 characters (spec 1.1)."""
    clean = reason.replace("\0", "\N{SYMBOL FOR NULL}")
    if len(clean) <= REASON_CHARACTERS_MAX:
        return clean
    return f"{clean[: REASON_CHARACTERS_MAX - 4]} ..."
