"""Builders with defaults, so that a test shows only what matters."""

from collections.abc import Sequence
from datetime import UTC, datetime

from msgexchange.ids import MailboxId
from msgexchange.lifecycle.states import InboxEntry, MessageState

T0 = datetime(2026, 9, 3, 10, tzinfo=UTC)


def xml(
    body: str,
    *,
    type_: str = "FLOP",
    styp: str = "STAT",
    seqn: int = 1,
    dttm: str = "20260903183000",
    sndr: str = "AODB",
) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        f"<MSG><META><SNDR>{sndr}</SNDR><SEQN>{seqn:06d}</SEQN><DTTM>{dttm}</DTTM>"
        f"<TYPE>{type_}</TYPE><STYP>{styp}</STYP></META>{body}</MSG>"
    )


def plan(
    *flids: str,
    seqn: int = 1,
    styp: str = "DNLD",
    dttm: str = "20260903180000",
    day: str = "03SEP26",
    extra: str = "",
) -> str:
    flights = "".join(
        f"<FLGT><FLID>{flid}</FLID><FLNO>CZ{flid}</FLNO><MVTP>D</MVTP>"
        f"<SCTM>{day}1900</SCTM>{extra}</FLGT>"
        for flid in flids
    )
    body = f"<SCHD><RCNT>{len(flids)}</RCNT>{flights}</SCHD>"
    return xml(body, type_="SCHD", styp=styp, seqn=seqn, dttm=dttm)


def operation(
    flid: str, element: str, *, styp: str = "STAT", seqn: int = 2, dttm: str = "20260903183000"
) -> str:
    return xml(f"<FLOP><FLID>{flid}</FLID>{element}</FLOP>", styp=styp, seqn=seqn, dttm=dttm)


def status(flid: str, value: str, *, seqn: int = 2, dttm: str = "20260903183000") -> str:
    return operation(flid, f"<STAT>{value}</STAT>", seqn=seqn, dttm=dttm)


def deletion(*flids: str, seqn: int = 3) -> str:
    body = "".join(f"<FDEL><FLID>{flid}</FLID></FDEL>" for flid in flids)
    return xml(body, type_="FDEL", styp="", seqn=seqn)


def entry(id_: int = 1, *, attempts: int = 0, text: str = "") -> InboxEntry:
    return InboxEntry(
        message_id=MailboxId(id_),
        state=MessageState.FAILED if attempts else MessageState.PENDING,
        identity=None,
        attempts=attempts,
        next_attempt_at=None,
        processing_started_at=T0 if attempts else None,
        received_at=T0,
        text_bytes=len(text.encode()),
        traceparent=None,
    )


def entries(texts: Sequence[str]) -> list[InboxEntry]:
    return [entry(id_, text=text) for id_, text in enumerate(texts, start=1)]
