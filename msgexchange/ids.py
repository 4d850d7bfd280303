"""The identifiers of the field, so that one kind of number cannot pass for another."""

from typing import NewType

MailboxId = NewType("MailboxId", int)
"""CMINMSGS_ID of a message: its place in the strict order."""

EventId = NewType("EventId", int)
"""Number of an outbox event; its order is commit order."""

Flid = NewType("Flid", str)
"""Flight id: 1 to 32 letters, digits, ``-`` or ``_`` (spec 1.2)."""

Identity = NewType("Identity", str)
"""Business identity: SNDR, TYPE, STYP, SEQN joined by ``|`` (spec 3.4)."""

Fence = NewType("Fence", int)
"""Grows each time leadership changes hands; every leader transaction proves it (spec 6.1)."""

RequestId = NewType("RequestId", str)
"""Name of a request to the AODB: 16 hex digits."""
