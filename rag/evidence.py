"""The sentences of an abstract that bear best on a question or a claim.

Each word of the question votes: its vector, in the context of the question, is compared with the vectors of all words of the
abstract, and its one vote is shared among the sentences by how near their nearest word is (a softmax over late interaction,
after ColBERT, arXiv 2004.12832). What all sentences share, such as the name of the method, so decides nothing.

Single-paper questions on the seeds, share whose answer stands in the first 1, 2, 3 sentences (dev 166 / test 192 questions,
`python -m eval.tuning evidence`):

    cosine of the sentence         0.45 0.63 0.77 / 0.41 0.60 0.69
    covered words by rarity        0.51 0.71 0.83 / 0.56 0.72 0.81
    votes                          0.59 0.79 0.88 / 0.57 0.79 0.90
    votes, numbers and the opening 0.66 0.84 0.92 / 0.63 0.83 0.91   (this module)

Tried and left out: adding rarity-weighted votes, covered words, position, length or cosines changed test by less than 0.03, mostly
for the worse.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from rag.embeddings import LocalEmbedding, TokenVectors
from rag.lexical import LexicalIndex
from rag.markup import plain
from rag.records import Evidence, Passage, Quote
from rag.sentences import sentence_spans
from rag.text import content_stems, numbers

#: How sharply a word votes for its nearest sentence; 4, 8 and 30 hold 0.82, 0.83 and 0.84 of the answers in two sentences, dev.
SHARPNESS = 20.0
#: Fit once on dev, the votes' weight set to 1 (conditional logistic regression over the sentences of an abstract), and rounded: a
#: sentence with a number where one is asked for, and the opening sentence, which tells what everybody knows.
NUMBER_BONUS = 0.30
OPENING_PENALTY = 0.25
#: Texts whose word vectors are kept, about 400 kB each: an answer that is checked looks at the same few again and again.
CACHED_TEXTS = 64
_ASKS_NUMBER = re.compile(
    r"\bhow (?:many|much|large|big|long|fast|often|accurate)\b|\bby (?:what|how much|which) (?:factor|margin|percentage)\b"
    r"|\bwhat (?:\w+[\s-]){0,3}(?:percentage|percent|number|accuracy|score|speed-?up|factor|perplexity|bit-?width|rate|ratio|size|gain|improvement)\b",
    re.IGNORECASE,
)
#: "What is BiLLM?", "Define TENG.": what is asked for is the sentence that names the thing and says what it is. Share of dev
#: (24) and test (21) definitions whose first sentence is a gold one: 0.46 and 0.52 without, 0.79 and 0.81 with it (`eval.tuning definitions`).
DEFINITION_BONUS = 0.4
_DEFINITION = re.compile(
    r"^\W*(?:what(?:'s| is| are| does| do)|define|explain|describe|tell me about|meaning of|definition of)\s+(?:an?\s+|the\s+)?"
    r"(?P<term>[^\s?.,]+(?:\s+[^\s?.,]+){0,4}?)"
    r"(?:\s+(?:mean|do|stand for))?\W*$",
    re.IGNORECASE,
)
_DEFINING = re.compile(
    r"\b(?:introduc|propos|present|develop|creat)\w*\b|\b(?:is|are) (?:an?|the)\b|\b(?:aims?|uses|refers?|called|named|termed|namely|dubbed|i\.e)\b|, an? ",
    re.IGNORECASE,
)
#: A sentence that opens so leans on the one before it.
_LEANS = re.compile(
    r"(?:it|its|this|these|those|they|their|that|such|he|she|both|here|there|hence|thus|therefore|however|moreover|furthermore|"
    r"additionally|consequently|the (?:former|latter|result|results|method|approach|key|idea)|doing so|to (?:this|that) end|as such)\b",
    re.IGNORECASE,
)


class EvidenceFinder:
    """Finds the best sentences of a text, and tells how near two texts are word by word. Safe to share between threads."""

    def __init__(self, lexical: LexicalIndex, embedder: LocalEmbedding) -> None:
        self._lexical, self._embedder = lexical, embedder
        self._cache: OrderedDict[str, tuple[tuple[Passage, ...], TokenVectors]] = OrderedDict()
        self._lock = Lock()

    def rank(self, question: str, text: str, paper_id: str = "") -> list[Evidence]:
        """The sentences of a text, best first, ties by place; scores from 0 to 1."""
        passages, words = self._read(text)
        if not len(words.tokens):
            return [Evidence(replace(p, paper_id=paper_id), 0.0) for p in passages]
        similarities = self._similarities(question, words)
        near = np.stack([similarities[:, words.owner == p.ordinal].max(axis=1, initial=-1.0) for p in passages], axis=1)
        shares = np.exp(SHARPNESS * (near - near.max(axis=1, keepdims=True)))
        votes = (shares / shares.sum(axis=1, keepdims=True)).mean(axis=0).tolist()
        wants_number = _ASKS_NUMBER.search(question) is not None
        scored = []
        for passage, vote in zip(passages, votes, strict=True):
            said = plain(passage.text)
            score = vote + NUMBER_BONUS * (wants_number and bool(numbers(said)))
            score += DEFINITION_BONUS if defines(said, question) else -OPENING_PENALTY * (passage.ordinal == 0)
            scored.append(Evidence(replace(passage, paper_id=paper_id), min(max(score, 0.0), 1.0)))
        return sorted(scored, key=lambda e: (-e.score, e.passage.ordinal))

    def closeness(self, question: str, text: str) -> tuple[float, float]:
        """How near the words of a question are to their nearest words in a text: the mean cosine of all, and of the worst quarter.

        Both are from 0 to 1, and 0 for an empty text.
        """
        _, words = self._read(text)
        if not len(words.tokens):
            return 0.0, 0.0
        nearest = np.sort(self._similarities(question, words).max(axis=1).clip(min=0.0))
        return float(nearest.mean()), float(nearest[: max(1, len(nearest) // 4)].mean())

    def passages(self, text: str) -> tuple[Passage, ...]:
        """The sentences of a text in order."""
        return self._read(text)[0]

    def coverage(self, wanted: Sequence[str], present: Sequence[str]) -> float:
        """The share of wanted stems that are present, weighted by rarity in this collection."""
        return self._lexical.coverage(wanted, present)

    def _similarities(self, question: str, words: TokenVectors) -> NDArray[np.float32]:
        """Cosines (words of the question, words of the text); punctuation of the question does not count, where it has words."""
        _, asked = self._read(question)
        kept = [n for n, token in enumerate(asked.tokens) if any(c.isalnum() for c in token)] or list(range(len(asked.tokens)))
        similarities: NDArray[np.float32] = asked.vectors[kept] @ words.vectors.T
        return similarities if kept else np.zeros((1, len(words.tokens)), dtype=np.float32)

    def _read(self, text: str) -> tuple[tuple[Passage, ...], TokenVectors]:
        """The sentences of a text and its word vectors; the last few are kept."""
        with self._lock:
            if text in self._cache:
                self._cache.move_to_end(text)
                return self._cache[text]
        passages = cut(text, "")
        read = passages, self._embedder.embed_tokens([plain(p.text) for p in passages])
        with self._lock:
            self._cache[text] = read
            while len(self._cache) > CACHED_TEXTS:
                self._cache.popitem(last=False)
        return read


def defines(sentence: str, question: str) -> bool:
    """Whether a question asks what something is, and a plain sentence names that thing and says what it is."""
    asked = _DEFINITION.match(question)
    if asked is None:
        return False
    term = content_stems(asked["term"])
    return bool(term) and set(term) <= set(content_stems(sentence)) and _DEFINING.search(sentence) is not None


def cut(text: str, paper_id: str) -> tuple[Passage, ...]:
    """The sentences of a text as passages."""
    return tuple(Passage(paper_id, n, start, end, text[start:end]) for n, (start, end) in enumerate(sentence_spans(text)))


def quote(passage: Passage, passages: Sequence[Passage], text: str) -> Quote:
    """The verbatim words of a passage, with the sentence before it where it leans on that one and could not be read alone.

    Args:
        passage: the sentence to quote.
        passages: all sentences of its paper, in order.
        text: the paper's text.
    """
    leans = passage.ordinal > 0 and _LEANS.match(plain(passage.text))
    start = passages[passage.ordinal - 1].start if leans else passage.start
    return Quote(text[start : passage.end], start, passage.end)
