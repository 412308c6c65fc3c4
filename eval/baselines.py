"""What the support check has to beat: the overlap of words, and embeddings alone."""

from __future__ import annotations

from collections.abc import Iterable

from rag.assistant import plain
from rag.embeddings import LocalEmbedding
from rag.evidence import cut
from rag.lexical import LexicalIndex
from rag.records import Origin, Paper
from rag.text import content_stems


class Baselines:
    """Two scores of a claim beside a text, each from 0 to 1 (a cosine may be below). Words are as rare as they are in all the texts given."""

    def __init__(self, texts: Iterable[str]) -> None:
        distinct = sorted(set(texts))
        self._lexical = LexicalIndex({str(n): Paper(str(n), t, (Origin("claims", n),)) for n, t in enumerate(distinct, start=1)})
        self._embedder = LocalEmbedding()
        self._vectors = {t: next(self._embedder.embed_papers([[plain(p.text) for p in cut(t, "")]])).sentences for t in distinct}

    def words(self, claim: str, text: str) -> float:
        """The share of the claim's words that are in the text, by rarity."""
        return self._lexical.coverage(content_stems(claim), content_stems(text))

    def embeddings(self, claim: str, text: str) -> float:
        """The cosine of the claim to the nearest sentence of the text."""
        return float((self._vectors[text] @ self._embedder.query(plain(claim))).max())
