"""Whether the abstracts can answer a question: signals, two probabilities, an outcome.

Two logistic models over the same signals, fit by `python eval/fit_answerable.py` on the dev half of the gold questions: one says
whether a paper here is about the question at all (else `no_paper`), one whether its abstract answers it (else
`not_in_abstract`). The second is the answer's confidence.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from rag.evidence import EvidenceFinder
from rag.lexical import LexicalIndex
from rag.records import Evidence, Hit, Outcome
from rag.text import content_stems, plain

#: A word with a capital or digit inside, or all capitals: the name of a method, model or data set.
_NAME = re.compile(r"\b(?=\w*[A-Z0-9])(?=\w*[A-Za-z])\w[\w^+-]*[A-Z0-9][\w+-]*\b")
SIGNALS = ("sentence", "abstract", "evidence", "coverage_paper", "coverage_sentence", "rarest_missing", "missing_name", "lexical_margin", "agreement", "length")


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome, how sure it is that the abstracts answer (0 to 1), and whether the answer must be introduced with care."""

    outcome: Outcome
    confidence: float
    hedged: bool


def signals(question: str, hits: Sequence[Hit], evidence: Mapping[str, Sequence[Evidence]], lexical: LexicalIndex) -> dict[str, float]:
    """What the decision is made from, by name; all zero where nothing was found.

    Args:
        question: the stand-alone question.
        hits: retrieved papers, best first.
        evidence: ranked sentences of the first of them, by paper id.
        lexical: for the rarity of words.
    """
    if not hits:
        return dict.fromkeys(SIGNALS, 0.0)
    top = hits[0]
    wanted = content_stems(question)
    paper = content_stems(f"{top.paper.title or ''} {top.paper.text}")
    best = evidence[top.paper.id][0]
    missing = sorted(set(wanted) - set(paper))
    names = {s for name in _NAME.findall(question) for s in content_stems(name)}
    lexical_scores = sorted((h.parts["lexical"] for h in hits), reverse=True)
    second = lexical_scores[1] if len(lexical_scores) > 1 else 0.0
    by_dense = max(hits, key=lambda h: h.parts["abstract"] + h.parts["sentence"])
    by_words = max(hits, key=lambda h: h.parts["lexical"])
    return {
        "sentence": max(h.parts["sentence"] for h in hits),
        "abstract": top.parts["abstract"],
        "evidence": best.score,
        "coverage_paper": lexical.coverage(wanted, paper),
        "coverage_sentence": lexical.coverage(wanted, content_stems(plain(best.passage.text))),
        "rarest_missing": max((lexical.rarity(s) for s in missing), default=0.0),
        "missing_name": float(bool(names - set(paper))),
        "lexical_margin": (lexical_scores[0] - second) / (lexical_scores[0] + 1e-9),
        "agreement": float(by_dense.paper.id == by_words.paper.id),
        "length": math.log1p(len(wanted)),
    }


def judge(question: str, hits: Sequence[Hit], finder: EvidenceFinder, lexical: LexicalIndex) -> Judgement:
    """The outcome for a question, from the papers retrieved for it."""
    if not hits:
        return Judgement("no_paper", 0.0, False)
    values = signals(question, hits, finder.in_papers(question, [hits[0].paper.id]), lexical)
    weights = _weights()
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
def _weights() -> dict[str, dict[str, float] | float]:  # type: ignore[misc]
    return json.loads(files("rag.weights").joinpath("answerable.json").read_text())  # type: ignore[no-any-return]
