"""How much arrives: over so long a time as the load has been what it is."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from lakestream_operator.autoscaler.state import BatchModel, Sample

_WINDOWS = (180.0, 300.0, 600.0, 900.0, 1500.0)
"""Seconds of arrival time; the longest whose mean agrees with the last counts, and with those of all shorter ones."""
_LATEST, _RECENT = 30.0, 90.0
_ESTABLISHED = 300.0
_AGREES = 2.5
"""Standard deviations that mean and last may be apart."""
_BLOCK = 60.0
_LEAST_NOISE, _ASSUMED_NOISE, _MOST_NOISE = 0.01, 0.05, 0.3
_BLOCKS = 5
"""Pairs of blocks from which on noise is measured."""
_LEAP, _LEAP_NOISE = 0.15, 5.0
"""A batch leaps that is by more than this above the rate, and by so many standard deviations."""
_LEAPS = 2
"""Batches in a row."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Records per second."""

    mean: float
    """To count with in steady times."""
    leap: float | None
    """Since the load leapt up; None: it did not."""
    noise: float
    """Relative standard deviation of a minute's mean."""
    recent: float = 0.0
    """Of the last minute and a half."""
    latest: float = 0.0
    """Of the last half minute."""
    established: bool = True
    """Whether the load has been what it is for some minutes; or else it may be noise."""

    @property
    def now(self) -> float:
        """What arrives now."""
        return self.mean if self.leap is None else self.leap


def rate_of(samples: Sequence[Sample], model: BatchModel) -> Rate | None:
    """The rate of samples in their order, the newest last, in records of the size that comes now.

    None without any whose span is known.
    """
    # Once every five seconds for each writer: copies of samples would take up a third of the operator's time.
    known = [
        _Arrival(model.alike(sample.records, sample.bytes), sample.span, sample.batches)
        for sample in samples
        if sample.span > 0
    ]
    if not known:
        return None
    noise = _noise(known)
    latest, recent, *means = _means(known, (_LATEST, _RECENT, *_WINDOWS))
    mean, window = _settled(recent, means, noise)
    leap = _leap(known, noise)
    long = window >= _ESTABLISHED and sum(sample.span for sample in known) >= _ESTABLISHED
    return Rate(mean, leap, noise, recent, latest, established=leap is None and long)


def _settled(recent: float, means: Sequence[float], noise: float) -> tuple[float, float]:
    """The mean over as long as the load has been what it is, and how long that is."""
    mean, window = recent, _RECENT
    for longer, seconds in zip(means, _WINDOWS, strict=True):
        # Of more minutes noise leaves less: a mean that moves by more has another load in it.
        apart = _AGREES * noise * longer * math.sqrt(_BLOCK / window)
        if abs(longer - recent) > _AGREES * noise * longer or (window > _RECENT and abs(longer - mean) > apart):
            break
        mean, window = longer, seconds
    return mean, window


class _Arrival(NamedTuple):
    """What a sample says of it."""

    records: float
    """Of the size that comes now."""
    span: float
    batches: int


def _means(samples: Sequence[_Arrival], windows: Sequence[float]) -> list[float]:
    """Over each of so many seconds up to now, in ascending order, or over all that is known."""
    found: list[float] = []
    records = span = 0.0
    for sample in reversed(samples):
        records, span = records + sample.records, span + sample.span
        while len(found) < len(windows) and span >= windows[len(found)]:
            found.append(records / span)
        if len(found) == len(windows):
            return found
    return found + [records / span] * (len(windows) - len(found))


def _noise(samples: Sequence[_Arrival]) -> float:
    """By the differences between minutes that follow each other: neither a trend nor a single step is noise."""
    blocks: list[float] = []
    records = span = 0.0
    for sample in samples:
        records, span = records + sample.records, span + sample.span
        if span >= _BLOCK:
            blocks.append(records / span)
            records = span = 0.0
    apart = [2 * abs(one - other) / (one + other) for one, other in pairwise(blocks) if one + other > 0]
    if len(apart) < _BLOCKS:
        return _ASSUMED_NOISE
    return min(max(1.4826 * statistics.median(apart), _LEAST_NOISE), _MOST_NOISE)


def _leap(samples: Sequence[_Arrival], noise: float) -> float | None:
    """The mean since the load leapt up, if the last batches are far above what came before."""
    span, start = 0.0, len(samples)
    while start > 0 and span < _RECENT:
        start -= 1
        span += samples[start].span
    before = samples[:start]
    if not before:
        before, start = samples[:1], 1
    (usual,) = _means(before, (300.0,))
    high = (1 + max(_LEAP, _LEAP_NOISE * noise)) * usual
    records = span = count = since = 0.0
    for sample in reversed(samples[start:]):
        above = (sample.records / sample.span - usual) / max(high - usual, 1e-9)
        if above <= 1:
            break
        # One that is twice as far above counts as two.
        count += max(1, sample.batches) * min(above, _LEAPS)
        # The first of several may have begun before.
        since = records / span if span else sample.records / sample.span
        records, span = records + sample.records, span + sample.span
    return max(since, records / span) if count >= _LEAPS else None
