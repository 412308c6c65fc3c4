"""BM25 over titles and abstracts, held in memory and built from the papers of the store when a collection is opened."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rag.records import Paper
from rag.text import content_stems

#: Values of Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009; others changed nDCG@10 on
#: SciTLDR and SciFact by less than 0.01.
K1, B = 1.2, 0.75


class LexicalIndex:
    """BM25 scores of every paper for a question, and how rare a stem is among the papers.

    Args:
        papers: by id; the order of the scores is the order of this mapping.
        known: the stems of each paper's title and abstract where they are known already.
    """

    def __init__(self, papers: Mapping[str, Paper], known: Mapping[str, Sequence[str]] | None = None) -> None:
        import bm25s

        self.ids = tuple(papers)
        stems = [known[i] if known else content_stems(f"{p.title or ''} {p.text}") for i, p in papers.items()]
        self._documents = Counter(s for one in stems for s in set(one))
        self._bm25 = bm25s.BM25(k1=K1, b=B, method="lucene")
        # bm25s refuses a corpus without a single token, as an empty collection is.
        self._empty = not self._documents
        if not self._empty:
            self._bm25.index(stems, show_progress=False)

    def scores(self, question: str) -> NDArray[np.float64]:
        """BM25 of every paper (papers,), at least 0; words of no paper count nothing."""
        known = [s for s in content_stems(question) if s in self._documents]
        if not known:
            return np.zeros(len(self.ids))
        return np.asarray(self._bm25.get_scores(known), dtype=np.float64)

    def rarity(self, stem: str) -> float:
        """Inverse document frequency from just above 0 (in every paper) to 1 (in none), after Sparck Jones, 1972."""
        n = len(self.ids) + 2  # never 0, so that the words of a collection of one paper count too
        return math.log(n / (self._documents[stem] + 1)) / math.log(n)

    def coverage(self, wanted: Iterable[str], present: Iterable[str]) -> float:
        """The share of wanted stems that are present, each weighted by its rarity; 0 where nothing is wanted."""
        want, have = sorted(set(wanted)), set(present)
        total = sum(self.rarity(s) for s in want)
        return sum(self.rarity(s) for s in want if s in have) / total if total else 0.0
