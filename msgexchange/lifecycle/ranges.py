"""Ranges of ids, both ends included; every sequence of them is sorted and disjoint."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import TypeAlias

Range: TypeAlias = tuple[int, int]


def missing(after: int, ids: Iterable[int]) -> list[Range]:
    """The ids above ``after`` that are not among ``ids``, up to the last of them."""
    ranges = []
    expected = after + 1
    for id_ in ids:
        if id_ > expected:
            ranges.append((expected, id_ - 1))
        expected = id_ + 1
    return ranges


def common(one: Range, ranges: Sequence[Range]) -> list[Range]:
    """What of ``one`` lies in ``ranges``."""
    lo, hi = one
    first = bisect_left(ranges, lo, key=lambda other: other[1])
    found = []
    for other_lo, other_hi in ranges[first:]:
        if other_lo > hi:
            break
        found.append((max(lo, other_lo), min(hi, other_hi)))
    return found


def subtract(ranges: Sequence[Range], holes: Sequence[Range]) -> list[Range]:
    """What is in ``ranges`` and not in ``holes``."""
    left = []
    hole = 0
    for lo, hi in ranges:
        start = lo
        while hole < len(holes) and holes[hole][1] < start:
            hole += 1
        at = hole
        while at < len(holes) and holes[at][0] <= hi:
            hole_lo, hole_hi = holes[at]
            if hole_lo > start:
                left.append((start, hole_lo - 1))
            start = hole_hi + 1
            at += 1
        if start <= hi:
            left.append((start, hi))
    return left


def joined(ranges: Iterable[Range], *, distance_max: int) -> list[Range]:
    """Neighbours at most ``distance_max`` ids apart made one; given in order."""
    wide: list[Range] = []
    for lo, hi in ranges:
        if wide and lo - wide[-1][1] <= distance_max:
            wide[-1] = (wide[-1][0], max(wide[-1][1], hi))
        else:
            wide.append((lo, hi))
    return wide
