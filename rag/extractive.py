"""An answer without a language model: the sentences that answer, quoted word for word, under a short frame.

A fact is answered from the best paper, a list by one sentence a paper that is on the topic. Nothing is written beyond the
frame (`lead`) and, in a list, the title of the paper before its quote.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag.citations import Numbering
from rag.evidence import EvidenceFinder, quote
from rag.markup import plain
from rag.records import Evidence, Hit, Judgement, Kind, Sentence, Source

HEDGE = "The closest abstracts; they may not answer this:"
# The numbers below: `python -m eval.tuning answers`.
#: Most sentences quoted of the best paper, and the least share of the best one's score for a further one. Facts, dev: match 0.81 with
#: always two (450 characters an answer), 0.88 with always three (637), 0.87 with three at this share (537).
SENTENCES_OF_TOP = 3
SENTENCE_SHARE = 0.3
#: Most papers that answer a fact, and how far the further ones' fused score may lie below the best one's, as a share of it. Facts, dev:
#: 0.93 of the cited papers are right, 0.92 at 0.2 and 0.88 at 0.35, and the right one is cited as often.
FACT_PAPERS = 2
PAPER_SPREAD = 0.1
#: A paper is on the topic of a list if its fused score lies at most this share of the best one's below it. Precision and recall of 31
#: lists, dev and test together, since dev alone has 10: 0.79 and 0.61 at 0.3, 0.73 and 0.78 here, 0.66 and 0.82 at 0.6.
LIST_SPREAD = 0.45
#: In a list, added to a sentence that says what the paper does: a problem it starts from is no reason to read it. The quote is then the
#: gold sentence for 0.74 of the right papers of dev lists (23) against 0.52 without, of test lists (46) for 0.65 against 0.61.
CONTRIBUTION_BONUS = 0.35
_CONTRIBUTION = re.compile(
    r"\b(?:we|this (?:paper|work|study|article)|our)\b[^.]{0,60}\b(?:propos|introduc|present|develop|design|investigat|study|studies|explor|show|prov"
    r"|demonstrat|analy[sz]|address|focus|establish|examin|conduct|provid|unveil|describ)\w*\b|\bis proposed\b",
    re.IGNORECASE,
)
_COUNT_WORDS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve")


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer's frame, its sentences and their sources."""

    lead: str
    sentences: tuple[Sentence, ...]
    sources: tuple[Source, ...]


def compose(question: str, kind: Kind, hits: Sequence[Hit], finder: EvidenceFinder, judgement: Judgement, limit: int) -> Draft:
    """Quotes what answers.

    Args:
        question: the stand-alone question.
        kind: `list` gives one line a paper, `compare` a few sentences of each of the hits, `fact` the sentences that answer.
        hits: retrieved papers, best first; at least one. For `compare` the sides alone.
        finder: finds the sentences.
        judgement: says how the answer is introduced.
        limit: most papers cited.
    """
    top = hits[0]
    if judgement.outcome == "not_in_abstract":
        name = f"“{plain(top.paper.title)}”" if top.paper.title else f"The abstract of {top.paper.label}"
        return _quoted(
            f"{name} is here, but its abstract does not say this. The nearest it says:", [(top, _ranked(question, top, finder)[:1])], finder, titles=False
        )
    if kind == "list":
        chosen = _on_topic(hits)[:limit]
        count = _COUNT_WORDS[len(chosen)] if len(chosen) < len(_COUNT_WORDS) else str(len(chosen))
        lead = f"{count} abstract{' is' if len(chosen) == 1 else 's are'} about this."
        return _quoted(HEDGE if judgement.hedged else lead, [(h, [contribution(_ranked(question, h, finder))]) for h in chosen], finder, titles=True)
    if kind == "compare":
        sides = [(h, _side(_ranked(question, h, finder))) for h in hits[:limit]]
        return _quoted(HEDGE if judgement.hedged else "Each from its own abstract:", sides, finder, titles=True)
    near = [h for h in hits[:FACT_PAPERS] if h.score >= top.score * (1 - PAPER_SPREAD)][:limit]
    return _quoted(
        HEDGE if judgement.hedged else "", [(h, _best(_ranked(question, h, finder), SENTENCES_OF_TOP if h is top else 1)) for h in near], finder, titles=False
    )


def _ranked(question: str, hit: Hit, finder: EvidenceFinder) -> list[Evidence]:
    return finder.rank(question, hit.paper.text, hit.paper.id)


def _on_topic(hits: Sequence[Hit]) -> list[Hit]:
    """The papers that stand close enough to the best one by their fused score."""
    return [h for h in hits if h.score >= hits[0].score * (1 - LIST_SPREAD)]


def contribution(evidence: Sequence[Evidence]) -> Evidence:
    """The sentence that bears on the question and says what the paper does, of near equals the earlier."""
    return max(evidence, key=lambda e: (e.score + CONTRIBUTION_BONUS * bool(_CONTRIBUTION.search(plain(e.passage.text))), -e.passage.ordinal))


def _side(evidence: Sequence[Evidence]) -> list[Evidence]:
    """What one side of a comparison is, and what bears on the question best, in the order in which they stand."""
    chosen = {e.passage.ordinal: e for e in (contribution(evidence), evidence[0])}
    return [chosen[n] for n in sorted(chosen)]


def _best(evidence: Sequence[Evidence], most: int) -> list[Evidence]:
    """The sentences of one paper worth quoting: the best first, what else bears on the question after it in order of place."""
    worth = [e for e in evidence[:most] if e.score >= SENTENCE_SHARE * evidence[0].score]
    return [worth[0], *sorted(worth[1:], key=lambda e: e.passage.ordinal)]


def _quoted(lead: str, chosen: Sequence[tuple[Hit, Sequence[Evidence]]], finder: EvidenceFinder, *, titles: bool) -> Draft:
    """Sentences that are quotes, each citing its paper. A quote that another holds already is not said twice."""
    numbering = Numbering()
    sentences = []
    for hit, found in chosen:
        passages = finder.passages(hit.paper.text)
        said: list[tuple[int, int]] = []
        for one in found:
            if any(start <= one.passage.start and one.passage.end <= end for start, end in said):
                continue
            words = quote(one.passage, passages, hit.paper.text)
            # The sentence before, once quoted, is not quoted again for the one that leans on it.
            start = max([words.start, *(end for start, end in said if start <= words.start < end)])
            text = plain(hit.paper.text[start : words.end])
            said.append((words.start, words.end))
            prefix = f"{plain(hit.paper.title)}: " if titles and hit.paper.title and len(said) == 1 else ""
            sentences.append(Sentence(prefix + text, (numbering.cite(hit, words),), "supported", 1.0))
    return Draft(lead, tuple(sentences), numbering.sources())
