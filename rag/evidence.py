"""The sentences of an abstract that bear best on a question or a claim.

A sentence is scored by its vector (made in the context of its whole abstract) and by how much of the question's rare words it
holds; a question for a number prefers sentences with one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rag.embeddings import LocalEmbedding
from rag.lexical import LexicalIndex
from rag.records import Evidence, Passage, Quote
from rag.store import Store
from rag.text import content_stems, numbers, plain, sentence_spans

#: Share of the cosine in a sentence's score; the rest is coverage of the question's words.
DENSE_SHARE = 0.6
#: Added to a sentence with a number where the question asks for one.
NUMBER_BONUS = 0.12
_ASKS_NUMBER = re.compile(
    r"\bhow (?:many|much|large|big|long|fast|often|accurate)\b|\bby (?:what|how much|which) (?:factor|margin|percentage)\b"
    r"|\bwhat (?:\w+[\s-]){0,3}(?:percentage|percent|number|accuracy|score|speed-?up|factor|perplexity|bit-?width|rate|ratio|size|gain|improvement)\b",
    re.IGNORECASE,
)
#: A sentence that opens so leans on the one before it.
_LEANS = re.compile(
    r"(?:it|its|this|these|those|they|their|that|such|he|she|both|here|there|hence|thus|therefore|however|moreover|furthermore|"
    r"additionally|consequently|the (?:former|latter|result|results|method|approach|key|idea)|doing so|to (?:this|that) end|as (?:a|such))\b",
    re.IGNORECASE,
)


class EvidenceFinder:
    """Finds the best sentences of papers of one collection, or of any text."""

    def __init__(self, store: Store, lexical: LexicalIndex, embedder: LocalEmbedding) -> None:
        self._store, self._lexical, self._embedder = store, lexical, embedder

    def in_papers(self, question: str, paper_ids: Sequence[str]) -> dict[str, list[Evidence]]:
        """For each paper its sentences, best first, ties by place. Scores are from 0 to 1."""
        vector = self._embedder.query(plain(question))
        found = self._store.passages(paper_ids)
        return {i: self._rank(question, vector, passages, vectors) for i, (passages, vectors) in found.items()}

    def in_text(self, question: str, text: str) -> list[Evidence]:
        """The sentences of any text, best first, as `in_papers` ranks them."""
        passages = cut(text, "")
        if not passages:
            return []
        [vectors] = self._embedder.embed_papers([[plain(p.text) for p in passages]])
        return self._rank(question, self._embedder.query(plain(question)), passages, vectors.sentences)

    def passages(self, paper_id: str) -> dict[int, Passage]:
        """The sentences of a paper by ordinal."""
        passages, _ = self._store.passages([paper_id])[paper_id]
        return {p.ordinal: p for p in passages}

    def coverage(self, wanted: Sequence[str], present: Sequence[str]) -> float:
        """The share of wanted stems that are present, weighted by rarity in this collection."""
        return self._lexical.coverage(wanted, present)

    def _rank(self, question: str, vector: NDArray[np.float32], passages: Sequence[Passage], vectors: NDArray[np.float32]) -> list[Evidence]:
        wanted = content_stems(question)
        wants_number = _ASKS_NUMBER.search(question) is not None
        scored = []
        for passage, cosine in zip(passages, (vectors @ vector).tolist(), strict=True):
            words = plain(passage.text)
            score = DENSE_SHARE * max(cosine, 0.0) + (1 - DENSE_SHARE) * self._lexical.coverage(wanted, content_stems(words))
            if wants_number and numbers(words):
                score += NUMBER_BONUS
            scored.append(Evidence(passage, min(score, 1.0)))
        return sorted(scored, key=lambda e: (-e.score, e.passage.ordinal))


def cut(text: str, paper_id: str) -> tuple[Passage, ...]:
    """The sentences of a text as passages."""
    return tuple(Passage(paper_id, n, start, end, text[start:end]) for n, (start, end) in enumerate(sentence_spans(text)))


def quote(passage: Passage, passages: Mapping[int, Passage], text: str) -> Quote:
    """The verbatim words of a passage, with the sentence before it where it leans on that one and could not be read alone.

    Args:
        passage: the sentence to quote.
        passages: the paper's sentences by ordinal.
        text: the paper's text.
    """
    before = passages.get(passage.ordinal - 1)
    start = before.start if before is not None and _LEANS.match(plain(passage.text)) else passage.start
    return Quote(text[start : passage.end], start, passage.end)
