"""Papers that are one work under two ids: a preprint and its publication, or a file that was exported twice with small changes.

Two are linked by one title, or by texts of nearly the same words whose vectors are nearly the same. A search shows the best of a group.

On 4,871 abstracts of machine learning and the seeds, which hold four of them in slightly other words, this links these four and nothing else; 0.3 s.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from rag.records import Paper

#: A shorter title ("Reply", "Deep learning") may be that of two works.
TITLE_WORDS = 3
#: Of two texts that are one, the least cosine, and the least share of all their words that they have in common.
COSINE, OVERLAP = 0.97, 0.8
#: Of pairs with just this overlap, 2 in a thousand agree in no band of hashes. Of 4,871 papers and the seeds, 3 pairs agree in one and overlap so far.
BANDS, HASHES = 16, 5

_WORD = re.compile(r"\w+")
Vectors = Callable[[Sequence[str]], Mapping[str, NDArray[np.float32]]]


def linked(papers: Mapping[str, Paper], stems: Mapping[str, Sequence[str]], vectors: Vectors) -> dict[str, frozenset[str]]:
    """The group of each paper that has a duplicate, itself among it.

    Args:
        papers: by id.
        stems: of each paper's title and abstract.
        vectors: unit vectors of papers, asked for by their ids.
    """
    first: dict[str, str] = {}
    pairs: list[tuple[str, str]] = []
    for i, paper in papers.items():
        title = _WORD.findall((paper.title or "").casefold())
        if len(title) >= TITLE_WORDS:
            pairs.append((first.setdefault(" ".join(title), i), i))
    alike = list(_overlapping({i: stems[i] for i in papers}))
    near = vectors(sorted({i for pair in alike for i in pair})) if alike else {}
    pairs += [(a, b) for a, b in alike if float(near[a] @ near[b]) >= COSINE]
    groups: dict[str, frozenset[str]] = {}
    for a, b in pairs:
        if a != b:
            together = groups.get(a, frozenset((a,))) | groups.get(b, frozenset((b,)))
            groups |= dict.fromkeys(together, together)
    return groups


def _overlapping(stems: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """The pairs of papers of whose stems at least OVERLAP are common.

    Only those are compared of which one of BANDS groups of hashes agrees (MinHash: Broder, "On the Resemblance and Containment of Documents", 1997).
    """
    ids = [i for i, own in stems.items() if own]
    if len(ids) < 2:
        return
    number: dict[str, int] = {}
    words = np.array([number.setdefault(s, len(number)) for i in ids for s in stems[i]])
    starts = np.cumsum([0, *(len(stems[i]) for i in ids[:-1])])
    chance = np.random.default_rng(0)
    pairs: set[tuple[int, int]] = set()
    for _ in range(BANDS):
        least = [np.minimum.reduceat(chance.permutation(len(number))[words], starts) for _ in range(HASHES)]
        # Which papers agree in all of them.
        order = np.lexsort(least)
        same = np.all([np.diff(one[order]) == 0 for one in least], axis=0)
        for group in np.split(order, np.flatnonzero(~same) + 1):
            pairs.update(combinations(sorted(group.tolist()), 2))
    for a, b in sorted(pairs):
        one, other = set(stems[ids[a]]), set(stems[ids[b]])
        if len(one & other) >= OVERLAP * len(one | other):
            yield ids[a], ids[b]
