"""Whether the abstracts can answer a question: signals, three probabilities, an outcome, a confidence.

Three logistic models, fit by `python -m eval.fit_answerable` on the gold questions: one says whether a paper here is about the question
(else `no_paper`); one whether the abstract holds the thing that is asked for, and one whether what the question takes for granted
can stand (else `not_in_abstract`). A fourth makes of their logarithms the confidence: the probability that the question is
answerable here and the paper found first is right.

What tells best whether a paper is about the question is how near its words are to the abstract's, word by word: alone it parts
answerable questions from those off the topic with an AUC of 1.00 and from those near the topic with 0.96; the cosine of the best
sentence reaches 0.98 and 0.85, covered words 0.94 and 0.90, BM25 0.98 and 0.91. It does not tell a missing detail (0.59) nor a false
premise (0.32: these use the abstract's own words). There, a number that fits reaches 0.82, an absent attribute 0.71; an opposite
beside the same word 0.80 (dev).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from rag import asked, premise
from rag.evidence import EvidenceFinder, defines
from rag.markup import plain
from rag.records import Hit, Judgement
from rag.text import content_stems

#: What each model looks at.
MODELS = {
    "about": ("closeness", "weakest", "coverage", "sentence", "length", "defined"),
    "detail": asked.SIGNALS,
    "premise": premise.SIGNALS,
}
SIGNALS = tuple(name for names in MODELS.values() for name in names)
#: Papers compared word by word: the right one is among the first two in 97 of 100 dev questions, and each costs 40 ms.
PAPERS_READ = 2
#: Below this a probability tells the confidence no more: Brier score 0.0956, 0.0966 without a floor (grouped cross-validation).
LEAST = 0.01


def signals(question: str, hits: Sequence[Hit], finder: EvidenceFinder) -> dict[str, float]:
    """What the decision is made from, by name; all zero where nothing was found.

    `closeness` and `weakest` are the mean cosine of all, and of the worst matched quarter, of the question's words to their
    nearest words in an abstract; `coverage` the share of its words, weighted by rarity, that the abstract holds; `sentence` the
    cosine of the nearest sentence here; `length` the logarithm of its number of words; `defined` is 1 where a question asks what
    something is and a sentence says it. The best of the first papers counts. The rest, which `asked` and `premise` explain, look at
    the closest of these papers.

    Args:
        question: the stand-alone question.
        hits: retrieved papers, best first.
        finder: for the words.
    """
    if not hits:
        return dict.fromkeys(SIGNALS, 0.0)
    q, wanted = plain(question), content_stems(question)
    read = [h.paper for h in hits[:PAPERS_READ]]
    near = [finder.closeness(question, p.text) for p in read]
    present = [content_stems(f"{p.title or ''} {p.text}") for p in read]
    closest = max(range(len(read)), key=lambda n: (near[n][0], -n))
    values = {
        "closeness": max(mean for mean, _ in near),
        "weakest": max(weakest for _, weakest in near),
        "coverage": max(finder.coverage(wanted, have) for have in present),
        "sentence": max(h.parts["sentence"] for h in hits),
        "length": math.log1p(len(wanted)),
        "defined": float(any(defines(plain(s.text), question) for p in read for s in finder.passages(p.text))),
    }
    alignment = finder.align(question, read[closest].text)
    if not alignment.asked:
        return dict.fromkeys(SIGNALS, 0.0) | values
    best = asked.best_sentences(asked.asked_for(q), alignment)
    return values | asked.asked_signals(q, alignment, present[closest], finder.rarity) | premise.premise_signals(q, alignment, best)


def judge(question: str, hits: Sequence[Hit], finder: EvidenceFinder, *, named: bool = False) -> Judgement:
    """The outcome for a question, from the papers retrieved for it.

    Args:
        question: the stand-alone question.
        hits: retrieved papers, best first.
        finder: for the words.
        named: the question names the first of them. What is then asked may be far from its abstract, but a paper is here: "Who wrote
            the DMC paper?" is `not_in_abstract`.
    """
    if not hits:
        return Judgement("no_paper", 0.0, False)
    judged = decide(signals(question, hits, finder), _weights())
    return replace(judged, outcome="not_in_abstract") if named and judged.outcome == "no_paper" else judged


def decide(values: Mapping[str, float], weights: Mapping[str, Any]) -> Judgement:
    """The outcome for the signals of a question; `eval.fit_answerable` says what the bars stand for."""
    p = {name: _probability(values, weights[name]) for name in MODELS}
    bars = weights["bars"]
    confidence = _probability({name: math.log(max(value, LEAST)) for name, value in p.items()}, weights["confidence"])
    if p["about"] < bars["about"]:
        return Judgement("no_paper", confidence, False)
    if p["detail"] < bars["detail"] or p["premise"] < bars["premise"]:
        return Judgement("not_in_abstract", confidence, False)
    return Judgement("answered", confidence, confidence < bars["hedged"])


def _probability(values: Mapping[str, float], model: Mapping[str, float]) -> float:
    """Logistic regression by hand: one sum is not worth a library at run time."""
    return 1 / (1 + math.exp(-(model["intercept"] + sum(weight * values[name] for name, weight in model.items() if name != "intercept"))))


@cache
def _weights() -> dict[str, Any]:
    weights: dict[str, Any] = json.loads(files("rag.weights").joinpath("answerable.json").read_text(encoding="utf-8"))
    return weights
