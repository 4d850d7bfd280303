"""Figures as ratios to floors of the same run: medians, spread, and what they must reach (7.5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What a figure must reach and aims at; ``at_least`` says which way is better."""

    must: float
    aim: float
    at_least: bool

    def met_by(self, reached: float) -> bool:
        """True when the must holds."""
        return reached >= self.must if self.at_least else reached <= self.must

    def aim_met_by(self, reached: float) -> bool:
        return reached >= self.aim if self.at_least else reached <= self.aim


@dataclass(frozen=True, slots=True)
class Pair:
    """What one round measured, and its floor measured beside it."""

    value: float
    floor: float

    @property
    def ratio(self) -> float:
        return self.value / self.floor


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table.

    ``value`` and ``floor`` are medians in ``unit``; ``ratio`` is the median of the rounds' own
    ratios, so that a machine that was busy for one round counts on both sides. A figure without
    a floor is judged by its value.
    """

    name: str
    unit: str
    value: float
    floor: float | None
    ratio: float | None
    spread: tuple[float, float]
    """Smallest and greatest of the rounds' ratios, or of their values where there is no floor."""
    rounds: int
    bar: Bar
    conditions: Mapping[str, str]

    @property
    def must_met(self) -> bool:
        return self.bar.met_by(self.reached)

    @property
    def aim_met(self) -> bool:
        return self.bar.aim_met_by(self.reached)

    @property
    def reached(self) -> float:
        """What is compared with must and aim."""
        return self.value if self.ratio is None else self.ratio


def figure_of_pairs(
    name: str, unit: str, pairs: Sequence[Pair], bar: Bar, conditions: Mapping[str, str]
) -> Figure:
    """The medians of at least one round."""
    ratios = [pair.ratio for pair in pairs]
    return Figure(
        name=name,
        unit=unit,
        value=median(pair.value for pair in pairs),
        floor=median(pair.floor for pair in pairs),
        ratio=median(ratios),
        spread=(min(ratios), max(ratios)),
        rounds=len(pairs),
        bar=bar,
        conditions=conditions,
    )


def figure_of_values(
    name: str, unit: str, values: Sequence[float], bar: Bar, conditions: Mapping[str, str]
) -> Figure:
    """The same for what has no floor."""
    return Figure(
        name=name,
        unit=unit,
        value=median(values),
        floor=None,
        ratio=None,
        spread=(min(values), max(values)),
        rounds=len(values),
        bar=bar,
        conditions=conditions,
    )


def document(figures: Sequence[Figure]) -> dict[str, Any]:
    """For programs (spec 7.5)."""
    return {"figures": [_entry(figure) for figure in figures]}


def _entry(figure: Figure) -> dict[str, Any]:
    return {
        "figure": figure.name,
        "value": _rounded(figure.value),
        "unit": figure.unit,
        "floor": _rounded(figure.floor),
        "ratio": _rounded(figure.ratio),
        "must": figure.bar.must,
        "aim": figure.bar.aim,
        "must_met": figure.must_met,
        "conditions": {
            **figure.conditions,
            "better": "more" if figure.bar.at_least else "less",
            "rounds": figure.rounds,
            "spread": [_rounded(end) for end in figure.spread],
        },
    }


def _rounded(number: float | None) -> float | None:
    """Four significant digits: more would pretend."""
    return None if number is None else float(f"{number:.4g}")
