"""What is wrong with a configuration."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing to set right: which key, where it came from, what is wrong, what to set."""

    key: str
    origin: str
    what: str
    fix: str

    def __str__(self) -> str:
        return f"{self.key} ({self.origin}): {self.what}; {self.fix}"


class ConfigError(Exception):
    """The configuration cannot be used; ``problems`` are all of them."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        lines = "".join(f"\n  - {problem}" for problem in self.problems)
        super().__init__(f"{len(self.problems)} problem(s) in the configuration:{lines}")
