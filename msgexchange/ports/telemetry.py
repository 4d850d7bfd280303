"""What steps tell of their work (spec 6.3)."""

from typing import Protocol


class Telemetry(Protocol):
    """What steps tell of their work; never fails and never blocks them."""

    def alert(self, name: str, text: str) -> None:
        """Something a person must know, by a fixed name; logged and counted."""
        ...

    def count(self, name: str, amount: int = 1, **labels: str) -> None: ...

    def observe(self, name: str, seconds: float) -> None: ...

    def log(self, event: str, **fields: object) -> None: ...
