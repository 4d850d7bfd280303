"""Messages that need a person: which may be replayed, which discarded, what to do next (spec 5.3).

A letter is a DEAD message, or one that was SKIPPED for a reason a person can remove.
"""

from collections.abc import Mapping

from msgexchange.lifecycle.states import REPLAYABLE, ErrorClass, MessageState

REPLAYABLE_SKIPS = ("no-match", "deleted", "no-open-request", "stale-plan")
"""Codes of skips that are replayed; a duplicate or an ignored type never is."""

_ADVICE: Mapping[ErrorClass, str] = {
    ErrorClass.MALFORMED: "ask the sender for a correct message, then discard",
    ErrorClass.PROTOCOL: "ask the sender for a correct message, then discard",
    ErrorClass.CODEC_ERROR: "update msgexchange or the catalogue, then replay",
    ErrorClass.UNSUPPORTED: "teach the catalogue this kind, then replay",
    ErrorClass.INFRA: "look at the error, mend its cause, then replay",
    ErrorClass.CRASH: "update msgexchange, then replay",
    ErrorClass.EXHAUSTED: "look at the cause, then replay",
    ErrorClass.LATE: "see what it would change (replay plan), then replay or discard",
}
_SKIP_ADVICE = {
    "no-match": "replay once the flight is known",
    "deleted": "replay once the flight is back, or leave it",
    "no-open-request": "see what it would change (replay plan), or request it again",
    "stale-plan": "see what it would change (replay plan), or leave it",
}


def skip_code(error: str | None) -> str | None:
    """The code of a skip's reason if it is one that may be replayed."""
    code = (error or "").partition(":")[0]
    return code if code in REPLAYABLE_SKIPS else None


def why_not_replayed(
    state: MessageState, error_class: ErrorClass | None, error: str | None, *, discarded: bool
) -> str | None:
    """Why a message is not replayed whatever its text says; None if it may be."""
    fault: str | None
    match state:
        case MessageState.DEAD if discarded:
            fault = "discarded: it is closed for good"
        case MessageState.DEAD:
            hopeless = f"DEAD({error_class}): no replay makes it valid, the sender must correct it"
            fault = None if error_class in REPLAYABLE else hopeless
        case MessageState.SKIPPED:
            hopeless = f"SKIPPED({error}): not a reason that replay can remove"
            fault = hopeless if skip_code(error) is None else None
        case MessageState.SUCCEEDED:
            fault = "SUCCEEDED: it is applied already"
        case _:
            fault = f"{state.value}: the pump still works on it"
    return fault


def why_not_discarded(state: MessageState, *, discarded: bool) -> str | None:
    """Why a message cannot be discarded; None if it can."""
    if state is not MessageState.DEAD:
        return f"{state.value}: only dead letters are discarded"
    return "discarded already" if discarded else None


def advice(
    state: MessageState,
    error_class: ErrorClass | None,
    last_cause: ErrorClass | None,
    error: str | None,
    *,
    discarded: bool,
) -> str:
    """What a person does next with a letter."""
    if discarded:
        return "nothing: it is discarded"
    if state is MessageState.SKIPPED:
        return _SKIP_ADVICE.get(skip_code(error) or "", "nothing")
    cause = last_cause if error_class is ErrorClass.EXHAUSTED and last_cause else error_class
    return _ADVICE[cause] if cause is not None else "nothing"
