"""Ranking metrics for one question: small pure functions over a ranked list of ids, each once and best first, and the right ones.

The right ones are a collection of ids, or a mapping of ids to grades as a BEIR qrels file gives them; a grade of 0 or less is not right.
Where nothing is right the measures are 0, as in trec_eval.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log2

Relevant = Collection[str] | Mapping[str, float]


def recall(ranked: Sequence[str], relevant: Relevant, k: int) -> float:
    """Share of the right papers among the first k (Manning, Raghavan and Schütze 2008, 8.3); at most k of them can be.

    So it is R@k times n / min(k, n), which the BEIR paper (Thakur et al. 2021, arXiv 2104.08663) calls capped recall.
    """
    gains = _gains(relevant)
    return len(set(ranked[:k]) & gains.keys()) / min(k, len(gains)) if gains else 0.0


def reciprocal_rank(ranked: Sequence[str], relevant: Relevant) -> float:
    """One over the rank of the first right paper (Voorhees, TREC-8, 1999); 0 if there is none."""
    gains = _gains(relevant)
    return next((1 / n for n, i in enumerate(ranked, start=1) if i in gains), 0.0)


def average_precision(ranked: Sequence[str], relevant: Relevant, k: int | None = None) -> float:
    """Mean over the right papers of the precision at their ranks, 0 for those not among the first k (Manning et al. 2008, 8.4)."""
    gains = _gains(relevant)
    ranks = [n for n, i in enumerate(ranked[:k], start=1) if i in gains]
    return sum(found / n for found, n in enumerate(ranks, start=1)) / len(gains) if gains else 0.0


def ndcg(ranked: Sequence[str], relevant: Relevant, k: int | None = None) -> float:
    """Discounted gain of the first k over that of the best order (Järvelin and Kekäläinen 2002).

    The gain is the grade itself and the discount log2(rank + 1), as in trec_eval and so in BEIR's tables.
    """
    gains = _gains(relevant)
    ideal = _discounted(sorted(gains.values(), reverse=True)[:k])
    return _discounted(gains.get(i, 0.0) for i in ranked[:k]) / ideal if gains else 0.0


def _gains(relevant: Relevant) -> dict[str, float]:
    """The right ids with their grades, 1 where none is given."""
    if isinstance(relevant, Mapping):
        return {i: grade for i, grade in relevant.items() if grade > 0}
    return dict.fromkeys(relevant, 1.0)


def _discounted(gains: Iterable[float]) -> float:
    return sum(gain / log2(rank + 1) for rank, gain in enumerate(gains, start=1))
