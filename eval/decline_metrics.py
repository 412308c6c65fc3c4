"""Metrics of declining and of confidence: does it decline where it should, and does its confidence tell right answers from wrong.

A measure is None where nothing was there to measure.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby

from scipy.stats import rankdata

#: Bins of confidence, as in Naeini et al.
BINS = 10

#: Whether a question had to be declined, and whether it was.
Decision = tuple[bool, bool]


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Answering from this confidence on: the share of questions answered, and the share of those answers that are wrong."""

    confidence: float
    coverage: float
    risk: float


@dataclass(frozen=True, slots=True)
class Bin:
    """Questions with a confidence above `low` and up to `high`: how many, their mean confidence, and the share that is right."""

    low: float
    high: float
    n: int
    confidence: float
    correct: float


def refusal_precision(decisions: Collection[Decision]) -> float | None:
    """Share of the declined questions that had to be declined (as in Trust-Align, Song et al. 2024, arXiv 2409.11242)."""
    wanted = [had_to for had_to, did in decisions if did]
    return sum(wanted) / len(wanted) if wanted else None


def refusal_recall(decisions: Collection[Decision]) -> float | None:
    """Share of the questions to decline that were declined (as in Trust-Align, Song et al. 2024)."""
    done = [did for had_to, did in decisions if had_to]
    return sum(done) / len(done) if done else None


def risk_coverage(confidences: Sequence[float], correct: Sequence[bool]) -> tuple[CurvePoint, ...]:
    """The risk at every coverage that a threshold on confidence can reach, the surest first (Geifman and El-Yaniv 2017, arXiv 1705.08500).

    Equal confidences enter together, since no threshold parts them.
    """
    points, answered, wrong = [], 0, 0
    for confidence, same in groupby(_surest_first(confidences, correct), key=lambda pair: pair[0]):
        rights = [right for _, right in same]
        answered += len(rights)
        wrong += len(rights) - sum(rights)
        points.append(CurvePoint(confidence, answered / len(correct), wrong / answered))
    return tuple(points)


def aurc(confidences: Sequence[float], correct: Sequence[bool]) -> float | None:
    """Area under the risk-coverage curve: the mean, over the questions, of the risk at the threshold that just lets each in.

    From Geifman, Uziel and El-Yaniv 2019 (arXiv 1805.08206). Lower is better; a confidence that tells nothing gives the share of wrong answers.
    """
    curve = risk_coverage(confidences, correct)
    before = (0.0, *(p.coverage for p in curve))
    return sum(p.risk * (p.coverage - b) for p, b in zip(curve, before, strict=False)) if curve else None


def auroc(confidences: Sequence[float], correct: Sequence[bool]) -> float | None:
    """How often a right answer has the higher confidence of a right and a wrong one, ties half (Hanley and McNeil 1982)."""
    right = sum(correct)
    if right in (0, len(correct)):
        return None
    ranks = [rank for rank, is_right in zip(rankdata(confidences), correct, strict=True) if is_right]
    return float(sum(ranks) - right * (right + 1) / 2) / (right * (len(correct) - right))


def reliability(confidences: Sequence[float], correct: Sequence[bool], bins: int = BINS) -> tuple[Bin, ...]:
    """Bins of equal width that hold a question, from low confidence to high (Guo et al. 2017, arXiv 1706.04599); 0 is in the first."""
    edges = [n / bins for n in range(bins + 1)]
    held: dict[int, list[tuple[float, bool]]] = {}
    for pair in zip(confidences, correct, strict=True):
        held.setdefault(bisect_left(edges, pair[0], 1, bins), []).append(pair)
    return tuple(
        Bin(edges[n - 1], edges[n], len(here), sum(c for c, _ in here) / len(here), sum(right for _, right in here) / len(here))
        for n, here in sorted(held.items())
    )


def ece(confidences: Sequence[float], correct: Sequence[bool], bins: int = BINS) -> float | None:
    """Expected calibration error: how far the confidence of a bin is from its share of right answers, weighted by size (Naeini et al. 2015)."""
    filled = reliability(confidences, correct, bins)
    return sum(b.n * abs(b.confidence - b.correct) for b in filled) / len(confidences) if filled else None


def _surest_first(confidences: Sequence[float], correct: Sequence[bool]) -> list[tuple[float, bool]]:
    return sorted(zip(confidences, correct, strict=True), key=lambda pair: -pair[0])
