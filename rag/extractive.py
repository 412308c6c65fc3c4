"""An answer without a language model: the sentences that answer, quoted word for word, under a short frame.

A fact is answered from the best paper, a list by one sentence a paper that is on the topic. Nothing is written beyond the
frame (`lead`) and, in a list, the title of the paper before its quote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag.answerable import Judgement
from rag.citations import Numbering
from rag.evidence import EvidenceFinder, quote
from rag.records import Evidence, Hit, Kind, Sentence, Source
from rag.text import plain

HEDGE = "The closest abstracts; they may not answer this:"
#: Most sentences of one paper in an answer to a fact: two held the answer of almost every dev question that one did not.
SENTENCES_A_PAPER = 2
#: A further sentence of a paper is quoted if it scores at least this share of the best.
SENTENCE_SHARE = 0.7
#: A further paper answers a fact if its fused score comes this near to the best one's.
PAPER_MARGIN = 0.6
#: Most papers that answer a fact.
FACT_PAPERS = 2
#: A paper is on the topic of a list if its best sentence scores at least this share of the best paper's …
LIST_SHARE = 0.72
#: … and its fused score lies at most this share of the best one's below it.
LIST_SPREAD = 0.55
_COUNT_WORDS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve")


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer's frame, its sentences and their sources."""

    lead: str
    sentences: tuple[Sentence, ...]
    sources: tuple[Source, ...]


def compose(kind: Kind, hits: Sequence[Hit], evidence: Mapping[str, Sequence[Evidence]], finder: EvidenceFinder, judgement: Judgement, limit: int) -> Draft:
    """Quotes what answers.

    Args:
        kind: `list` gives one line a paper, anything else the sentences that answer.
        hits: retrieved papers, best first; at least one.
        evidence: the ranked sentences of each of them, by paper id.
        finder: for the sentences around a quote.
        judgement: says how the answer is introduced.
        limit: most papers cited.
    """
    if judgement.outcome == "not_in_abstract":
        top = hits[0]
        name = f"“{plain(top.paper.title)}”" if top.paper.title else f"The abstract of {top.paper.label}"
        return _quoted(f"{name} is here, but its abstract does not say this. The nearest it says:", [(top, evidence[top.paper.id][:1])], finder, titles=False)
    if kind == "list":
        chosen = _on_topic(hits, evidence)[:limit]
        count = _COUNT_WORDS[len(chosen)] if len(chosen) < len(_COUNT_WORDS) else str(len(chosen))
        lead = f"{count} abstract{' is' if len(chosen) == 1 else 's are'} about this."
        return _quoted(HEDGE if judgement.hedged else lead, [(h, evidence[h.paper.id][:1]) for h in chosen], finder, titles=True)
    near = [h for h in hits[:FACT_PAPERS] if h.score >= hits[0].score - PAPER_MARGIN][:limit]
    return _quoted(HEDGE if judgement.hedged else "", [(h, _best(evidence[h.paper.id])) for h in near], finder, titles=False)


def _on_topic(hits: Sequence[Hit], evidence: Mapping[str, Sequence[Evidence]]) -> list[Hit]:
    """The papers that stand close enough to the best one, by their best sentence and by their fused score."""
    best = max(evidence[h.paper.id][0].score for h in hits)
    return [h for h in hits if h is hits[0] or (evidence[h.paper.id][0].score >= LIST_SHARE * best and h.score >= hits[0].score * (1 - LIST_SPREAD))]


def _best(evidence: Sequence[Evidence]) -> list[Evidence]:
    """The sentences of one paper worth quoting, in the order in which they stand."""
    worth = [e for e in evidence[:SENTENCES_A_PAPER] if e.score >= SENTENCE_SHARE * evidence[0].score]
    return sorted(worth, key=lambda e: e.passage.ordinal)


def _quoted(lead: str, chosen: Sequence[tuple[Hit, Sequence[Evidence]]], finder: EvidenceFinder, *, titles: bool) -> Draft:
    """Sentences that are quotes, each citing its paper. A quote that another holds already is not said twice."""
    numbering = Numbering()
    sentences = []
    for hit, found in chosen:
        passages = finder.passages(hit.paper.id)
        said: list[tuple[int, int]] = []
        for one in found:
            words = quote(one.passage, passages, hit.paper.text)
            if any(start <= words.start and words.end <= end for start, end in said):
                continue
            # The sentence before, once quoted, is not quoted again for the one that leans on it.
            start = max([words.start, *(end for start, end in said if start <= words.start < end)])
            text = plain(hit.paper.text[start : words.end])
            said.append((words.start, words.end))
            prefix = f"{plain(hit.paper.title)}: " if titles and hit.paper.title else ""
            sentences.append(Sentence(prefix + text, (numbering.cite(hit, words),), "supported", 1.0))
    return Draft(lead, tuple(sentences), numbering.sources())
