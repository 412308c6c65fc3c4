"""The words of a question beside the words of a text: how near each pair is, and in which sentence it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag.embeddings import TokenVectors


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """Small-letter words of a question (`asked`) and of a text (`said`), each pair's cosine, and the sentence of each word said (`owner`)."""

    asked: tuple[str, ...]
    said: tuple[str, ...]
    owner: NDArray[np.intp]
    sentences: tuple[str, ...]
    cosines: NDArray[np.float32]

    def by_sentence(self) -> NDArray[np.float32]:
        """How near the nearest word of each sentence is (words asked, sentences); 0 for a sentence without words."""
        near = np.zeros((len(self.asked), len(self.sentences)), dtype=np.float32)
        for sentence in np.unique(self.owner):
            near[:, sentence] = self.cosines[:, self.owner == sentence].max(axis=1).clip(min=0.0)
        return near

    def rows(self, words: Sequence[str]) -> list[int]:
        """Where these words stand in the question."""
        return [n for n, word in enumerate(self.asked) if word in words]


def align(asked: TokenVectors, said: TokenVectors, sentences: Sequence[str]) -> Alignment:
    """Joins word pieces to words. A word asked is as near to a word said as its pieces are on the mean, each to the nearest piece."""
    words, starts, kept = _words(asked.tokens)
    told, told_starts, told_kept = _words(said.tokens)
    if not words or not told:
        return Alignment((), (), np.zeros(0, dtype=np.intp), tuple(sentences), np.zeros((0, 0), dtype=np.float32))
    pieces = np.maximum.reduceat(asked.vectors[kept] @ said.vectors[told_kept].T, told_starts, axis=1)
    sizes = np.diff([*starts, len(kept)])[:, None]
    return Alignment(words, told, said.owner[told_kept][told_starts], tuple(sentences), np.add.reduceat(pieces, starts, axis=0) / sizes)


def _words(tokens: Sequence[str]) -> tuple[tuple[str, ...], list[int], list[int]]:
    """The words, where each starts among the kept tokens, and the kept tokens: those with a letter or digit."""
    words: list[str] = []
    starts: list[int] = []
    kept: list[int] = []
    for n, token in enumerate(tokens):
        if not any(c.isalnum() for c in token):
            continue
        if token.startswith("##") and words:
            words[-1] += token[2:]
        else:
            words.append(token)
            starts.append(len(kept))
        kept.append(n)
    return tuple(words), starts, kept
