"""Ranking metrics for one question: small pure functions over a ranked list of ids and the set of right ones."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def recall(ranked: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Share of the right papers among the first k (Manning, Raghavan and Schütze 2008, 8.3); at most k of them can be."""
    return len(set(ranked[:k]) & set(relevant)) / min(k, len(set(relevant)))


def reciprocal_rank(ranked: Sequence[str], relevant: Collection[str]) -> float:
    """One over the rank of the first right paper (Voorhees, TREC-8, 1999); 0 if there is none."""
    return next((1 / n for n, i in enumerate(ranked, start=1) if i in relevant), 0.0)
