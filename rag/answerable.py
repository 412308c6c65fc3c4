"""Whether the abstracts can answer a question: signals, two probabilities, an outcome.

Two logistic models over the same signals, fit by `python -m eval.fit_answerable` on the dev half of the gold questions: one says
whether a paper here is about the question at all (else `no_paper`), one whether its abstract answers it (else
`not_in_abstract`). The second is the answer's confidence.

What tells best is how near the question's words are to the abstract's, word by word: alone it parts answerable questions from
those off the topic with an AUC of 1.00 and from those near the topic with 0.94; the cosine of the best sentence, as the
design had it, reaches 0.99 and 0.86, covered words 0.96 and 0.91, BM25 0.99 and 0.93.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from rag.evidence import EvidenceFinder, defines
from rag.markup import plain
from rag.records import Hit, Judgement
from rag.text import content_stems

SIGNALS = ("closeness", "weakest", "coverage", "sentence", "length", "defined")
#: Papers compared word by word: the right one is among the first two in 97 of 100 dev questions, and each costs 40 ms.
PAPERS_READ = 2


def signals(question: str, hits: Sequence[Hit], finder: EvidenceFinder) -> dict[str, float]:
    """What the decision is made from, by name; all zero where nothing was found.

    `closeness` and `weakest` are the mean cosine of all, and of the worst matched quarter, of the question's words to their
    nearest words in an abstract; `coverage` the share of its words, weighted by rarity, that the abstract holds; `sentence` the
    cosine of the nearest sentence here; `length` the logarithm of its number of words; `defined` is 1 where a question asks what
    something is and a sentence says it. The best of the first papers counts.

    Args:
        question: the stand-alone question.
        hits: retrieved papers, best first.
        finder: for the words.
    """
    if not hits:
        return dict.fromkeys(SIGNALS, 0.0)
    wanted = content_stems(question)
    read = [h.paper for h in hits[:PAPERS_READ]]
    near = [finder.closeness(question, p.text) for p in read]
    return {
        "closeness": max(mean for mean, _ in near),
        "weakest": max(weakest for _, weakest in near),
        "coverage": max(finder.coverage(wanted, content_stems(f"{p.title or ''} {p.text}")) for p in read),
        "sentence": max(h.parts["sentence"] for h in hits),
        "length": math.log1p(len(wanted)),
        "defined": float(any(defines(plain(s.text), question) for p in read for s in finder.passages(p.text))),
    }


def judge(question: str, hits: Sequence[Hit], finder: EvidenceFinder) -> Judgement:
    """The outcome for a question, from the papers retrieved for it."""
    if not hits:
        return Judgement("no_paper", 0.0, False)
    values, weights = signals(question, hits, finder), _weights()
    about, answers = (_probability(values, weights[name]) for name in ("about", "answers"))
    if about < weights["no_paper_below"]:
        return Judgement("no_paper", answers, False)
    if answers < weights["not_in_abstract_below"]:
        return Judgement("not_in_abstract", answers, False)
    return Judgement("answered", answers, answers < weights["hedged_below"])


def _probability(values: Mapping[str, float], model: Mapping[str, float]) -> float:
    """Logistic regression by hand: one sum is not worth a library at run time."""
    return 1 / (1 + math.exp(-(model["intercept"] + sum(model[name] * values[name] for name in SIGNALS))))


@cache
def _weights() -> dict[str, Any]:
    weights: dict[str, Any] = json.loads(files("rag.weights").joinpath("answerable.json").read_text(encoding="utf-8"))
    return weights
