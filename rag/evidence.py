"""The sentences of an abstract that bear best on a question or a claim.

Each word of the question votes: its vector, in the context of the question, is compared with the vectors of all words of the
abstract, and its one vote is shared among the sentences by how near their nearest word is (a softmax over late interaction,
after ColBERT, arXiv 2004.12832). What all sentences share, such as the name of the method, so decides nothing. The votes are one
of the signals of a small model, a conditional logistic regression over the sentences of an abstract, with one set of weights
for questions and one for claims; `python -m eval.fit_evidence` fits both and prints this table.

Share whose answer stands in the first 1, 2, 3 sentences. Questions: single-paper ones on the seeds (dev by grouped
cross-validation, 179, mean of ten foldings; test, 201). Claims: SciFact's training evidence, a claim and an abstract at a time (564), by grouped
cross-validation.

                                 questions, dev      test                claims
    cosine of the sentence       0.48 0.69 0.81      0.42 0.59 0.72      0.41 0.59 0.71
    covered words by rarity      0.55 0.73 0.84      0.57 0.73 0.82      0.54 0.78 0.86
    votes                        0.60 0.79 0.88      0.58 0.79 0.90      0.50 0.74 0.85
    votes, with hand-set bonuses 0.68 0.86 0.92      0.64 0.84 0.92      0.57 0.77 0.87
    this module                  0.69 0.88 0.94      0.68 0.87 0.94      0.69 0.89 0.93

One set of weights for both holds 0.65 and 0.92 of the claims in 1 and 3 sentences, and 0.84 and 0.93 of the test questions in 2 and 3.
Tried and left out, each within 0.02 on test questions and claims, as a rule for the worse: cosines, votes weighted by rarity, the votes of
neighbours, word pairs, the second and the last place, cue words (results, causes, code, data sets, limits) by kind of question, the
thing counted beside its number, sentences unlike those already chosen, and boosted trees over all of these.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from rag.alignment import Alignment, align
from rag.embeddings import LocalEmbedding, TokenVectors
from rag.lexical import LexicalIndex
from rag.markup import plain
from rag.records import Evidence, Passage, Quote
from rag.sentences import sentence_spans
from rag.text import content_stems, numbers

#: What the model sees of a sentence. `votes`: its share of the votes. `nearest`: the mean cosine of the question's words to their nearest
#: words in it. `covered`: the share of the question's words that it holds, each weighted by how few sentences of the abstract do.
#: `position`: from 0 to 1. `length`: logarithm of its number of words. `opening`: it is the first, which tells what everybody knows,
#: and no definition is asked for. `number`: it has a number where one is asked for. `definition`: it says what the thing is that
#: is asked for. `purpose`: it tells what was to be found out, not what was found.
SIGNALS = ("votes", "nearest", "covered", "position", "length", "opening", "number", "definition", "purpose")
#: How sharply a word votes for its nearest sentence; alone, 5, 10, 20, 30 and 50 hold 0.77, 0.77, 0.79, 0.79 and 0.79 of the answers in
#: two sentences of dev, and 0.74, 0.76, 0.79, 0.76 and 0.74 of test.
SHARPNESS = 20.0
#: Texts whose word vectors are kept, about 400 kB each: an answer that is checked looks at the same few again and again.
CACHED_TEXTS = 64
#: A question, told from a claim or from keywords.
_QUESTION = re.compile(
    r"[?？؟]|^\W*(?:(?:in|on|at|by|for|from|to|with|of|about|under|and|or|but|so)\s+)?(?:what|which|who|whom|whose|where|when|why|how)\b"
    r"|^\W*(?:is|are|was|were|do|does|did|can|could|has|have|will|would|should|define|explain|describe|tell|list|name|give|show|find)\b",
    re.IGNORECASE,
)
_ASKS_NUMBER = re.compile(
    r"\bhow (?:many|much|large|big|small|high|long|far|fast|often|accurate)\b"
    r"|\b(?:by|at|in|on|of|to) (?:what|how much|which) (?:factor|margin|percentage|resolution|rate|share)\b"
    r"|\bwhat (?:\w+[\s-]){0,3}(?:percentage|percent|share|fraction|proportion|number|accuracy|score|speed-?up|factor|perplexity|bit-?width|rate|ratio|size"
    r"|gain|improvement|resolution)\b",
    re.IGNORECASE,
)
#: Counts that are spelled out, which `numbers` leaves alone.
_SPELT = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozens?|hundreds?|thousands?|millions?|half|twice|double|triple)\b", re.IGNORECASE
)
_PURPOSE = re.compile(
    r"\b(?:aim|objective|purpose|goal|hypothes\w*|to (?:determine|investigate|assess|examine|evaluate|test|identify))\b"
    r"|^(?:background|introduction|objectives?|aims?|methods?|design|setting|participants)\b",
    re.IGNORECASE,
)
#: "What is BiLLM?", "Define TENG.": what is asked for is the sentence that names the thing and says what it is.
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
#: A sentence that opens so leans on the one before it. ("In this paper", "This work" at the start and "our results" read well alone.)
_LEANS = re.compile(
    r"(?:it|its|this|these|those|they|their|that|such|he|she|both|here|there|hence|thus|therefore|however|moreover|furthermore|also|"
    r"additionally|consequently|the (?:former|latter|result|results|method|approach|key|idea|proposed)|doing so|to (?:this|that) (?:end|aim)|as such"
    r"|with this in mind|to (?:address|accomplish|achieve|overcome|tackle|solve|alleviate|mitigate|remedy|do) (?:this|these|those|that|it|them|such))\b",
    re.IGNORECASE,
)
#: Most sentences before a quoted one that are quoted with it. Of 537 sentences ranked first to third for dev questions 89 lean; with one
#: sentence before, three different quotes still began with "This …" or "Such …", with two, one began with "With this in mind".
MOST_BEFORE = 2


@dataclass(frozen=True, slots=True, eq=False)
class _Read:
    """A text as it was read: its sentences, each in plain text and as stems, and its word vectors."""

    passages: tuple[Passage, ...]
    said: tuple[str, ...]
    stems: tuple[tuple[str, ...], ...]
    words: TokenVectors


class EvidenceFinder:
    """Finds the best sentences of a text, and tells how near two texts are word by word. Safe to share between threads."""

    def __init__(self, lexical: LexicalIndex, embedder: LocalEmbedding) -> None:
        self._lexical, self._embedder = lexical, embedder
        self._cache: OrderedDict[str, _Read] = OrderedDict()
        self._lock = Lock()

    def rank(self, question: str, text: str, paper_id: str = "") -> list[Evidence]:
        """The sentences of a text, best first, ties by place; each one's score is how likely it is the best, from 0 to 1."""
        read = self._read(text)
        if not len(read.words.tokens):
            return [Evidence(replace(p, paper_id=paper_id), 0.0) for p in read.passages]
        weights = _weights()["questions" if _QUESTION.search(question) else "claims"]
        strengths = self.signals(question, text) @ np.array([weights.get(name, 0.0) for name in SIGNALS])
        likely = np.exp(strengths - strengths.max())
        scores = (likely / likely.sum()).tolist()
        scored = [Evidence(replace(p, paper_id=paper_id), s) for p, s in zip(read.passages, scores, strict=True)]
        return sorted(scored, key=lambda e: (-e.score, e.passage.ordinal))

    def signals(self, question: str, text: str) -> NDArray[np.float64]:
        """What the model sees of each sentence of a text with words: (sentences, SIGNALS)."""
        read, asked = self._read(text), content_stems(question)
        similarities = self._similarities(question, read.words)
        near = np.stack([similarities[:, read.words.owner == p.ordinal].max(axis=1, initial=-1.0) for p in read.passages], axis=1)
        shares = np.exp(SHARPNESS * (near - near.max(axis=1, keepdims=True)))
        place = np.arange(len(read.passages))
        wants_number, wants_definition = _ASKS_NUMBER.search(question) is not None, _DEFINITION.match(question) is not None
        columns = {
            "votes": (shares / shares.sum(axis=1, keepdims=True)).mean(axis=0),
            "nearest": near.mean(axis=0),
            "covered": _covered(asked, read.stems),
            "position": place / max(1, len(place) - 1),
            "length": np.log1p([len(s) for s in read.stems]),
            "opening": (place == 0) & (not wants_definition),
            "number": [wants_number and bool(numbers(s) or _SPELT.search(s)) for s in read.said],
            "definition": [defines(s, question) for s in read.said],
            "purpose": [_PURPOSE.search(s) is not None for s in read.said],
        }
        return np.stack([np.asarray(columns[name], dtype=np.float64) for name in SIGNALS], axis=1)

    def closeness(self, question: str, text: str) -> tuple[float, float]:
        """How near the words of a question are to their nearest words in a text: the mean cosine of all, and of the worst quarter.

        Both are from 0 to 1, and 0 for an empty text.
        """
        words = self._read(text).words
        if not len(words.tokens):
            return 0.0, 0.0
        nearest = np.sort(self._similarities(question, words).max(axis=1).clip(min=0.0))
        return float(nearest.mean()), float(nearest[: max(1, len(nearest) // 4)].mean())

    def align(self, question: str, text: str) -> Alignment:
        """The words of a question beside those of a text."""
        read = self._read(text)
        return align(self._read(question).words, read.words, read.said)

    def rarity(self, stem: str) -> float:
        """How rare a stem is in this collection, from just above 0 to 1."""
        return self._lexical.rarity(stem)

    def passages(self, text: str) -> tuple[Passage, ...]:
        """The sentences of a text in order."""
        return self._read(text).passages

    def coverage(self, wanted: Sequence[str], present: Sequence[str]) -> float:
        """The share of wanted stems that are present, weighted by rarity in this collection."""
        return self._lexical.coverage(wanted, present)

    def _similarities(self, question: str, words: TokenVectors) -> NDArray[np.float32]:
        """Cosines (words of the question, words of the text); punctuation of the question does not count, where it has words."""
        asked = self._read(question).words
        kept = [n for n, token in enumerate(asked.tokens) if any(c.isalnum() for c in token)] or list(range(len(asked.tokens)))
        similarities: NDArray[np.float32] = asked.vectors[kept] @ words.vectors.T
        return similarities if kept else np.zeros((1, len(words.tokens)), dtype=np.float32)

    def _read(self, text: str) -> _Read:
        """The sentences of a text and its word vectors; the last few are kept."""
        with self._lock:
            if text in self._cache:
                self._cache.move_to_end(text)
                return self._cache[text]
        passages = cut(text, "")
        said = tuple(plain(p.text) for p in passages)
        read = _Read(passages, said, tuple(tuple(content_stems(s)) for s in said), self._embedder.embed_tokens(said))
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
    """The verbatim words of a passage, with what stands before it where it leans on that and could not be read alone.

    Args:
        passage: the sentence to quote.
        passages: all sentences of its paper, in order.
        text: the paper's text.
    """
    first = passage.ordinal
    while first > max(0, passage.ordinal - MOST_BEFORE) and _LEANS.match(plain(passages[first].text)):
        first -= 1
    start = passages[first].start
    return Quote(text[start : passage.end], start, passage.end)


def _covered(wanted: Sequence[str], sentences: Sequence[Sequence[str]]) -> list[float]:
    """The share of the wanted stems that each sentence holds, each weighted by the inverse of how many sentences hold it."""
    holders = Counter(stem for one in sentences for stem in set(one))
    weights = {stem: math.log((len(sentences) + 1) / max(1, holders[stem])) for stem in sorted(set(wanted))}
    total = sum(weights.values()) or 1.0
    return [sum(weight for stem, weight in weights.items() if stem in set(one)) / total for one in sentences]


@cache
def _weights() -> Mapping[str, Mapping[str, float]]:
    weights: Mapping[str, Mapping[str, float]] = json.loads(files("rag.weights").joinpath("evidence.json").read_text(encoding="utf-8"))
    return weights
