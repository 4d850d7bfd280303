from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgexchange.ids import MailboxId
from msgexchange.lifecycle.identity import (
    DuplicateOf,
    Holder,
    IdentityPolicy,
    Own,
    TakesOver,
    bind,
    identity_of,
)
from msgexchange.lifecycle.states import ErrorClass, MessageState

T0 = datetime(2026, 9, 3, 10)
PLAIN = IdentityPolicy()
part = st.text(alphabet="a|\\", max_size=4)


def holder(
    state: MessageState = MessageState.SUCCEEDED,
    error_class: ErrorClass | None = None,
    *,
    discarded: bool = False,
) -> Holder:
    return Holder(
        message_id=MailboxId(3),
        state=state,
        error_class=error_class,
        sent_at=T0,
        discarded=discarded,
    )


def identity(*parts: str, policy: IdentityPolicy = PLAIN) -> str:
    sndr, type_, styp, seqn = parts
    return identity_of(sndr=sndr, type_=type_, styp=styp, seqn=seqn, sent_at=T0, policy=policy)


@given(st.tuples(part, part, part, part), st.tuples(part, part, part, part))
def test_different_parts_never_share_an_identity(
    one: tuple[str, str, str, str], other: tuple[str, str, str, str]
) -> None:
    assert (identity(*one) == identity(*other)) == (one == other)


def test_the_day_boundary_adds_the_local_date_of_dttm() -> None:
    with_day = identity("A", "T", "S", "1", policy=IdentityPolicy(include_day_boundary=True))
    assert with_day == "A|T|S|1|2026-09-03"


def test_a_retry_of_the_holder_is_its_own() -> None:
    assert bind(MailboxId(3), T0, holder(), PLAIN) == Own()


@pytest.mark.parametrize("state", list(MessageState))
def test_whatever_state_the_holder_is_in_another_row_is_a_duplicate(state: MessageState) -> None:
    assert bind(MailboxId(4), T0, holder(state), PLAIN) == DuplicateOf(MailboxId(3))


def test_a_corrected_resend_of_a_rejected_message_supersedes_it() -> None:
    rejected = holder(MessageState.DEAD, ErrorClass.PROTOCOL)
    assert bind(MailboxId(4), T0, rejected, PLAIN) == TakesOver(MailboxId(3), "supersedes:3")
    discarded = holder(MessageState.DEAD, ErrorClass.EXHAUSTED, discarded=True)
    assert bind(MailboxId(4), T0, discarded, PLAIN) == TakesOver(MailboxId(3), "supersedes:3")


def test_a_wrapped_sequence_number_is_reused_only_after_more_than_seven_days() -> None:
    week = timedelta(days=7)
    assert bind(MailboxId(4), T0 + week, holder(), PLAIN) == DuplicateOf(MailboxId(3))
    later = T0 + week + timedelta(seconds=1)
    assert bind(MailboxId(4), later, holder(), PLAIN) == TakesOver(MailboxId(3), "reuses:3")
    assert bind(MailboxId(4), None, holder(), PLAIN) == DuplicateOf(MailboxId(3))
