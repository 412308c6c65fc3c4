"""Citations: each claim of a written answer held against what it cites, and repaired where another abstract given supports it.

    claims (markers) -> each checked against its papers, then against the others given -> Finding (-> numbering)

What is found for a claim depends on that claim and the one before it, which its subject may point at, so it can be found while the rest is still
being written. Only abstracts that the model was given can be cited: numbers of others are set aside and reported, never dropped silently.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rag.evidence import EvidenceFinder, quote
from rag.kinds import is_foreign, names_in
from rag.markers import Claim
from rag.markup import URL, plain, url_end
from rag.records import Evidence, Hit, Paper, Quote, Support
from rag.subjects import may_be_cited
from rag.support import Supported, judge
from rag.text import content_stems, tokens
from rag.unclaimed import declines, says_nothing

#: Where what a claim cites does not support it, so many other papers are read for one that does: those that hold most of its words, and at
#: least this share, weighted by rarity.
OTHERS_READ, MAY_SUPPORT = 2, 0.25
#: Clauses that say of one paper each what they say: "LESS caches states, while DMC merges them".
_CLAUSES = re.compile(r"(?:;|,?\s+(?:while|whereas|but)\b|,\s+and\b),?\s+")
_LEAST_CLAUSE = 4
#: Least score of a citation that the model did not write: a sentence that names no paper is likelier an invention than one that does. By
#: `python -m eval.added`, of 243 faithful claims without a citation 210 get theirs at 0.65 (222 at 0.5, 200 at 0.75, 231 with no such bar), of 514
#: false ones beside their paper and its neighbours 36 get one (49, 30, 70), and of 757 claims beside the neighbours alone 2 (2, 1, 3).
#: Asking it of each clause as well ("…, which is", "… by doing") takes more from the faithful than from the false ones.
LEAST_ADDED = 0.65
NO_ABSTRACT = "it cites no abstract"
NOTHING_SAID = "it says too little to be held against an abstract"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found for a claim in one set of papers: the best evidence, whether it supports the claim, and why not."""

    supported: bool
    score: float
    reason: str
    evidence: Evidence | None


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found for one claim.

    `cited` are the papers it is to be shown with, each with its words; `repair` says whether they are others than it cited, `taken` whether some that
    it cited are not among them, `unknown` which numbers it cited of nothing. `uncompared`: it is not in the language of the abstracts, and nothing
    that can be told across languages speaks against it. `cleaned`: an address that no abstract holds was taken out of it.
    """

    text: str
    cited: tuple[tuple[Hit, Quote], ...]
    verdict: Verdict
    repair: Literal["", "corrected", "added"] = ""
    taken: bool = False
    unknown: tuple[int, ...] = ()
    uncompared: bool = False
    cleaned: bool = False

    @property
    def support(self) -> Support:
        """The verdict in one word."""
        return "uncited" if not self.cited else "supported" if self.verdict.supported else "unsupported"

    @property
    def borne_by(self) -> tuple[str, ...]:
        """Ids of the papers that support it."""
        return tuple(h.paper.id for h, _ in self.cited) if self.support == "supported" else ()


#: Findings by their claim and what bears out the claim before it.
Kept = dict[tuple[Claim, tuple[str, ...] | None], Finding]


def verify(claim: str, papers: Sequence[Paper], finder: EvidenceFinder, least: float = 0.0) -> Verdict:
    """Whether any one of some papers supports a claim, with its best sentence; `support.judge` decides, which also says what `least` is."""
    return _best([(p.id, p.text, p.title or "") for p in papers], claim, finder, least)


def verify_text(claim: str, texts: Sequence[str], finder: EvidenceFinder) -> Verdict:
    """As `verify`, against texts that are in no collection."""
    return _best([("", text, "") for text in texts], claim, finder)


def examine(claim: Claim, hits: Sequence[Hit], finder: EvidenceFinder, before: Sequence[str] | None = None) -> Finding:
    """Checks one claim against what it cites, then against the other papers given that it may be about.

    Args:
        claim: from `markers.parse`; its numbers count the hits from 1.
        hits: the abstracts that the answer was written from.
        finder: for the words.
        before: ids of the papers that support the claim before it; None where it is the first.
    """
    text = _without_addresses(claim.text, hits)
    named = [hits[n - 1] for n in claim.numbers if 1 <= n <= len(hits)]
    unknown = tuple(n for n in claim.numbers if not 1 <= n <= len(hits))
    verdicts = [verify(text, [h.paper], finder) for h in named]
    bearing = [h for h, v in zip(named, verdicts, strict=True) if v.supported]
    verdict = max(verdicts, key=lambda v: (v.supported, v.score), default=Verdict(False, 0.0, NO_ABSTRACT, None))
    cited, repair = bearing or named, ""
    if not bearing and len(named) > 1 and (by_clause := _by_clause(text, named, finder)):
        cited, verdict = by_clause
    if not verdict.supported:
        allowed = may_be_cited(text, hits, before, cites=bool(named))
        others = _worth_reading(text, [h for h in allowed if h not in named], finder)
        better = verify(text, [h.paper for h in others], finder, LEAST_ADDED)
        if better.supported and better.evidence is not None and better.score >= LEAST_ADDED:
            cited, verdict = [h for h in others if h.paper.id == better.evidence.passage.paper_id], better
            repair = "corrected" if named else "added"
    return Finding(
        text,
        tuple((h, words) for h in cited if (words := _quote(text, h.paper, finder))),
        verdict,
        repair,  # type: ignore[arg-type]
        taken=not repair and len(cited) < len(named),
        unknown=unknown,
        uncompared=not verdict.supported and bool(named) and _cannot_be_compared(text, named),
        cleaned=text != claim.text,
    )


def in_turn(claims: Iterable[Claim], hits: Sequence[Hit], finder: EvidenceFinder, kept: Kept | None = None) -> Iterator[Finding | None]:
    """What is found for each claim after the one before it; nothing for a sentence that declines. `kept`: what was found earlier, and is added to."""
    kept = {} if kept is None else kept
    before: tuple[str, ...] | None = None
    for claim in claims:
        finding = None
        if not declines(claim.text):
            finding = kept.get((claim, before)) or examine(claim, hits, finder, before)
            kept[claim, before] = finding
        before = finding.borne_by if finding else ()
        yield finding


def _best(texts: Sequence[tuple[str, str, str]], claim: str, finder: EvidenceFinder, least: float = 0.0) -> Verdict:
    """The verdict of the text that supports a claim best; texts are given as id, text and title."""
    # A line of a list may be a title and no more: then it is that paper's.
    named = Supported(True, 1.0, "")
    found = [
        (named if title and tokens(claim) == tokens(title) else _judge(claim, text, finder, title, least), paper_id, text) for paper_id, text, title in texts
    ]
    if not found:
        return Verdict(False, 0.0, NO_ABSTRACT, None)
    best, paper_id, text = max(found, key=lambda f: (f[0].supported, f[0].score))
    evidence = next(iter(finder.rank(claim, text, paper_id)), None)
    return Verdict(best.supported and evidence is not None, best.score, best.reason, evidence)


def _judge(claim: str, text: str, finder: EvidenceFinder, title: str, least: float) -> Supported:
    """As `judge`; a word or two may stand in a text and still say nothing of it."""
    return Supported(False, 0.0, NOTHING_SAID) if says_nothing(claim) else judge(claim, text, finder, title, least)


def _by_clause(text: str, named: Sequence[Hit], finder: EvidenceFinder) -> tuple[list[Hit], Verdict] | None:
    """The papers of a sentence that tells of several, and its verdict, where each of its clauses is supported by one of them."""
    clauses = _CLAUSES.split(text)
    if len(clauses) < 2 or any(len(c.split()) < _LEAST_CLAUSE for c in clauses):
        return None
    verdicts = []
    for clause in clauses:
        verdicts.append(verify(clause, [h.paper for h in named], finder))
        if not verdicts[-1].supported:
            return None
    ids = {v.evidence.passage.paper_id for v in verdicts if v.evidence}
    return [h for h in named if h.paper.id in ids], min(verdicts, key=lambda v: v.score)


def _worth_reading(claim: str, hits: Sequence[Hit], finder: EvidenceFinder) -> list[Hit]:
    """The papers that hold most of a claim's words, best first."""
    wanted = content_stems(claim)
    held = [(finder.coverage(wanted, content_stems(f"{h.paper.title or ''} {h.paper.text}")), n) for n, h in enumerate(hits)]
    return [hits[n] for share, n in sorted(held, key=lambda x: (-x[0], x[1]))[:OTHERS_READ] if share >= MAY_SUPPORT]


def _quote(claim: str, paper: Paper, finder: EvidenceFinder) -> Quote | None:
    """The words of a paper that bear on a claim best; nothing if it has none."""
    ranked = finder.rank(claim, paper.text, paper.id)
    return quote(ranked[0].passage, finder.passages(paper.text), paper.text) if ranked else None


def _cannot_be_compared(claim: str, named: Sequence[Hit]) -> bool:
    """Whether a claim is not in the language of the papers it cites, and its numbers and names stand in one of them."""
    if not is_foreign(claim):
        return False
    for hit in named:
        told = f"{plain(hit.paper.title or '')} {plain(hit.paper.text)}"
        if _digits(claim) <= _digits(told) and all(name.casefold() in told.casefold() for name in names_in(claim)) and not is_foreign(told):
            return True
    return False


def _digits(text: str) -> set[str]:
    """The numbers of a text as their digits alone: "6.700", "6 700" and "3,7" here are "6,700" and "3.7" there."""
    return {re.sub(r"\D", "", n) for n in re.findall(r"\d[\d.,]*(?:\s\d{3}(?!\d))*", text)}


def _without_addresses(text: str, hits: Sequence[Hit]) -> str:
    """A claim without the addresses that none of the papers holds: a model was made to write them, or made them up."""

    def known(match: re.Match[str]) -> str:
        end = url_end(match[0])
        address = match[0][:end]
        return match[0] if any(address in f"{h.paper.url or ''} {plain(h.paper.text)}" for h in hits) else f"[…]{match[0][end:]}"

    return URL.sub(known, text)
