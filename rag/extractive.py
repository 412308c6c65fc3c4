"""An answer without a language model: the sentences that answer, quoted word for word, under a short frame.

A fact is answered from the best paper, a list by one sentence a paper that is on the topic, a claim by the sentences that decide it. Nothing is
written beyond the frame (`lead`) and, where several papers answer, the title of the paper before its quote.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag.evidence import EvidenceFinder, cut, quote
from rag.facets import FACETS, asks_for_code, facet_in, gives_code, shows
from rag.markup import plain
from rag.numbering import Numbering
from rag.records import BY_PAPER, Evidence, Hit, Judgement, Kind, Quote, Sentence, Source

if TYPE_CHECKING:
    from rag.claims import Weighed

HEDGE = "The closest abstracts; they may not answer this:"
# The numbers below: `python -m eval.tuning answers`.
#: Most sentences quoted of the best paper, and the least share of the best one's likelihood for a further one. Facts, dev: match 0.88 with
#: always two (480 characters an answer), 0.91 with always three (656), 0.91 with three at this share (591).
SENTENCES_OF_TOP = 3
SENTENCE_SHARE = 0.005
#: Most papers that answer a fact, and how far the further ones' fused score may lie below the best one's, as a share of it. Facts, dev:
#: 0.96 of the cited papers are right and the right one is cited for 0.956; at 0.2 0.94 and 0.961, at 0.35 0.92 and 0.961.
FACT_PAPERS = 2
PAPER_SPREAD = 0.1
#: In a list, added to a sentence that says what the paper does: a problem it starts from is no reason to read it. The quote is then the
#: gold sentence for 0.76 of the right papers of dev lists against 0.54 without, of test lists for 0.69 against 0.60 (`eval.tuning lists`).
CONTRIBUTION_BONUS = 0.5
_CONTRIBUTION = re.compile(
    r"\b(?:we|this (?:paper|work|study|article)|our)\b[^.]{0,60}\b(?:propos|introduc|present|develop|design|investigat|study|studies|explor|show|prov"
    r"|demonstrat|analy[sz]|address|focus|establish|examin|conduct|provid|unveil|describ)\w*\b|\bis proposed\b",
    re.IGNORECASE,
)
_COUNT_WORDS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve")
UNDECIDED = "No abstract here clearly supports or contradicts this. The nearest says:"
#: How a claim can stand, by one abstract and by several.
_CLAIM_LEADS = {
    "supported": ("One abstract supports this:", "The abstracts support this:"),
    "contradicted": ("One abstract says otherwise:", "The abstracts say otherwise:"),
    "both": ("", "The abstracts disagree; those that say otherwise come first:"),
    "near": (UNDECIDED, UNDECIDED),
}


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer's frame, its sentences and their sources."""

    lead: str
    sentences: tuple[Sentence, ...]
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be answered from the papers found.

    `topic` is what the question is about (empty where it asks for all that meet its filters), `frame` a lead that is known already,
    `searched` the number of papers looked through, `limit` the most papers cited, `code` whether papers with code were asked for.
    """

    topic: str
    kind: Kind
    judgement: Judgement
    limit: int
    searched: int = 0
    frame: str = ""
    code: bool = False


def compose(task: Task, hits: Sequence[Hit], finder: EvidenceFinder) -> Draft:
    """Quotes what answers, from hits that are best first, at least one: for a list those on the topic, for a comparison the sides."""
    top, hedged = hits[0], task.judgement.hedged
    if task.kind in ("paper", "metadata"):
        most = 1 if task.kind == "metadata" else SENTENCES_OF_TOP
        return _quoted(task.frame, [(top, about(_ranked(task.topic or top.paper.text, top, finder), most))], titles=False)
    if task.judgement.outcome == "not_in_abstract":
        name = f"“{plain(top.paper.title)}”" if top.paper.title else f"The abstract of {top.paper.label}"
        not_said = f"{name} is here, but its abstract does not say this. The nearest it says:"
        lead = "No abstract here is clearly about this. The nearest says:" if task.kind in BY_PAPER else not_said
        return _quoted(lead, [(top, _ranked(task.topic, top, finder)[:1])], titles=False)
    if task.kind in BY_PAPER:
        chosen = hits[: task.limit]
        return _quoted(_list_lead(task, len(hits), len(chosen)), [(h, [_line(task, h, finder)]) for h in chosen], titles=True)
    if task.kind == "compare":
        sides = [(h, _side(_ranked(task.topic, h, finder))) for h in hits[: task.limit]]
        lead = "Each from its own abstract:" if len(sides) > 1 else "From its own abstract:"
        return _quoted(HEDGE if hedged else lead, sides, titles=True)
    if task.kind == "claim":
        from rag.claims import weigh  # only here: the check of claims takes a while to import

        return _checked(weigh(task.topic, hits, finder)[: task.limit])
    ranked = _ranked(task.topic, top, finder)
    if asks_for_code(task.topic) and (given := [e for e in ranked if gives_code(plain(e.passage.text))]):
        address = next((e for e in given if shows(plain(e.passage.text), "code")), given[0])
        return _quoted(HEDGE if hedged else "", [(top, [address])], titles=False)
    near = [h for h in hits[:FACT_PAPERS] if h.score >= top.score * (1 - PAPER_SPREAD)][: task.limit]
    further = [(h, _best(_ranked(task.topic, h, finder), 1)) for h in near if h is not top]
    return _quoted(HEDGE if hedged else "", [(top, _best(ranked, SENTENCES_OF_TOP)), *further], titles=False)


def counted(papers: int, read: int) -> str:
    """How many papers a language model named with support, of those it was given."""
    number = _COUNT_WORDS[papers] if papers < len(_COUNT_WORDS) else str(papers)
    return f"{number} of the {read} abstracts read {'fits' if papers == 1 else 'fit'} this."


def _list_lead(task: Task, total: int, shown: int) -> str:
    """How many papers there are, in words, how surely, and how many of them are shown."""
    number = _COUNT_WORDS[total] if total < len(_COUNT_WORDS) else str(total)
    one = total == 1
    cut = "" if shown == total else " The first:" if shown == 1 else f" The first {shown}:"
    of_all = task.kind == "count" and task.searched != total
    papers = f"{number} of the {task.searched:,} abstracts" if of_all else f"{number} abstract{'' if one else 's'}"
    fits, is_about = ("may fit", "may be about") if task.judgement.hedged else ("fits", "is about") if one else ("fit", "are about")
    return f"{papers} {fits if task.kind == 'count' or not task.topic else is_about} this.{cut}"


def _line(task: Task, hit: Hit, finder: EvidenceFinder) -> Evidence:
    """The sentence that puts a paper on a list: one that shows what was asked for by set phrases, else what it does on the topic."""
    ranked = _ranked(task.topic, hit, finder) if task.topic else [Evidence(p, 0.0) for p in cut(hit.paper.text, hit.paper.id)]
    asked = facet_in(task.topic)
    facet = asked[0] if asked else FACETS[0] if task.code and not task.topic else None
    shown = [e for e in ranked if facet and shows(plain(e.passage.text), facet.name)]
    return shown[0] if shown else contribution(ranked)


def _checked(weighed: Sequence[Weighed]) -> Draft:
    """A claim with the sentences that decide it, under a lead that says how it stands."""
    standings = {w.standing for w in weighed}
    how = "both" if len(standings) > 1 else next(iter(standings))
    return _quoted(_CLAIM_LEADS[how][len(weighed) > 1], [(w.hit, [w.evidence]) for w in weighed], titles=False)


def _ranked(question: str, hit: Hit, finder: EvidenceFinder) -> list[Evidence]:
    return finder.rank(question, hit.paper.text, hit.paper.id)


def contribution(evidence: Sequence[Evidence]) -> Evidence:
    """The sentence that bears on the question and says what the paper does, of near equals the earlier."""
    return max(evidence, key=lambda e: (e.score + CONTRIBUTION_BONUS * bool(_CONTRIBUTION.search(plain(e.passage.text))), -e.passage.ordinal))


def about(evidence: Sequence[Evidence], most: int) -> list[Evidence]:
    """What a paper is: its contribution first, then what else it says of itself, in the order in which they stand."""
    first = contribution(evidence)
    after = [e for e in evidence if e.passage.ordinal > first.passage.ordinal]
    rest = sorted(after, key=lambda e: (not _CONTRIBUTION.search(plain(e.passage.text)), -e.score, e.passage.ordinal))
    return [first, *sorted(rest[: most - 1], key=lambda e: e.passage.ordinal)]


def _side(evidence: Sequence[Evidence]) -> list[Evidence]:
    """What one side of a comparison is, and what bears on the question best, in the order in which they stand."""
    chosen = {e.passage.ordinal: e for e in (contribution(evidence), evidence[0])}
    return [chosen[n] for n in sorted(chosen)]


def _best(evidence: Sequence[Evidence], most: int) -> list[Evidence]:
    """The sentences of one paper worth quoting: the best first, what else bears on the question after it in order of place."""
    worth = [e for e in evidence[:most] if e.score >= SENTENCE_SHARE * evidence[0].score]
    return [worth[0], *sorted(worth[1:], key=lambda e: e.passage.ordinal)]


def _quoted(lead: str, chosen: Sequence[tuple[Hit, Sequence[Evidence]]], *, titles: bool) -> Draft:
    """Sentences that are quotes, each citing its paper. A quote that another holds already is not said twice."""
    numbering = Numbering()
    sentences = []
    for hit, found in chosen:
        passages = cut(hit.paper.text, hit.paper.id)
        said: list[tuple[int, int]] = []
        for one in found:
            if any(start <= one.passage.start and one.passage.end <= end for start, end in said):
                continue
            words = quote(one.passage, passages, hit.paper.text)
            # The sentence before, once quoted, is not quoted again for the one that leans on it.
            start = max([words.start, *(end for start, end in said if start <= words.start < end)])
            own = hit.paper.text[start : words.end].lstrip()
            said.append((words.start, words.end))
            prefix = f"{plain(hit.paper.title)}: " if titles and hit.paper.title and len(said) == 1 else ""
            behind = Quote(own, words.end - len(own), words.end)
            sentences.append(Sentence(prefix + plain(own), (numbering.cite(hit, words),), "supported", 1.0, quotes=(behind,)))
    return Draft(lead, tuple(sentences), numbering.sources())
