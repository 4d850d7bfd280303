"""How a call to the outside can fail, split by what the caller can do."""

from enum import StrEnum


class Dependency(StrEnum):
    """What msgexchange cannot work without."""

    STORE = "store"
    MAILBOX = "mailbox"
    BROKER = "broker"


class PortError(Exception):
    """A call to the outside failed; the subclass says what the caller can do."""


class Unavailable(PortError):
    """Refused, timed out, dropped, read-only, disk full: try later, charge nobody."""

    def __init__(self, dependency: Dependency, reason: str) -> None:
        super().__init__(f"{dependency.value}: {reason}")
        self.dependency = dependency
        self.reason = reason


class Refused(Unavailable):
    """It answered and lets us not in: log-in, database or file are not as the settings say.

    While we run that may be a change under way, and is waited for like any outage; at a start
    it is a wrong setting.
    """


class RetryNow(PortError):
    """Deadlock or serialization failure: the same call may work at once."""


class MessageFault(PortError):
    """The database objects to what it was given: somebody's data is at fault."""


class Fenced(PortError):
    """Another process leads now: nothing of this transaction may commit."""


class HeadsMoved(PortError):
    """The heads are not what they were when the batch was read: drop it, uncharged."""
