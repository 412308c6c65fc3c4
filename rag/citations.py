"""Citations: parse the markers of a written answer, resolve them, check each sentence against what it cites, repair, number.

    text -> claims (a sentence and the numbers it cites) -> each checked against its papers, then against the others -> Sentence, Source

Models write markers in many forms ("[1, 2]", "[1-3]", "【1】", "[Source 1]", after the full stop …); all become one, and numbers
that name no given abstract are set aside and reported, never dropped silently.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag.evidence import EvidenceFinder, quote
from rag.records import Evidence, Hit, Paper, Quote, Sentence, Source, Support
from rag.sentences import sentence_spans
from rag.support import judge
from rag.text import content_stems

#: Where what a claim cites does not support it, so many other papers are read for one that does: those that hold most of its words, and at
#: least this share, weighted by rarity. Reading one costs 20 ms.
OTHERS_READ, MAY_SUPPORT = 2, 0.25
#: A marker as one private character while a text is split: it survives any splitter and holds the number.
_BASE, _MAX = 0xE100, 0x7FF
_NUMBER = r"(?:sources?|abstracts?|papers?|docs?|documents?|refs?\.?|references?|no\.)?\s*#?\^?\s*\d{1,3}(?!\d)"
_MARKER = re.compile(
    rf"`?(?:\[+|【|〔|［)\s*({_NUMBER}(?:\s*(?:[,;]\s*and|[,;&]|and|–|—|-|to)\s*{_NUMBER})*)\s*(?:†[^\]】]*)?(?:\]+|】|〕|］)`?(?!\()",
    re.IGNORECASE,
)
#: Forms that become the plain one first: escaped brackets, links within the page, superscripts, emphasis, a word in round brackets.
_FORMS = (
    (re.compile(r"\\([\[\]])"), r"\1"),
    (re.compile(r"(\[\^?\d{1,3}\])\(#[^)\s]*\)"), r"\1"),
    (re.compile(r"<sup>\s*\[?(\d{1,3})\]?\s*</sup>", re.IGNORECASE), r"[\1]"),
    (re.compile(r"(\*\*|__)(\s*\[[^\]]{1,40}\]\s*)\1"), r"\2"),
    (re.compile(r"\((?:source|abstract|paper|doc|ref\.?|reference)\s+#?(\d{1,3})\)", re.IGNORECASE), r"[\1]"),
    # An interval is no citation.
    (re.compile(r"\b(in|from|within|range|interval|over|∈)\s*\[(-?\d+)\s*,\s*(-?\d+)\]", re.IGNORECASE), r"\1 ⟦\2, \3⟧"),
    (re.compile(r"\[0\s*,\s*(\d+)\]"), r"⟦0, \1⟧"),
)
_ROUND = re.compile(r"\((\d{1,2}(?:\s*[,;–-]\s*\d{1,2})*)\)(?=\s*(?:[.!?]|$))")
_RANGE = re.compile(r"(\d+)\s*(?:–|—|-|to)\s*\D*?(\d+)", re.IGNORECASE)
_AFTER_STOP = re.compile(rf"([.!?…]+[\"”')\]]*)((?:\s*[{chr(_BASE)}-{chr(_BASE + _MAX)}])+)")
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_MARK = re.compile(rf"\s*([{chr(_BASE)}-{chr(_BASE + _MAX)}])")


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a written answer without its markers, and the numbers they named."""

    text: str
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found for a claim in one set of papers: the best evidence, whether it supports the claim, and why not."""

    supported: bool
    score: float
    reason: str
    evidence: Evidence | None


@dataclass(frozen=True, slots=True)
class Checked:
    """An answer after checking: its sentences, its sources, and what was repaired or set aside, in words."""

    sentences: tuple[Sentence, ...]
    sources: tuple[Source, ...]
    notices: tuple[str, ...]


def parse(text: str) -> list[Claim]:
    """Splits a written answer into claims. A marker after a full stop belongs to the sentence before it."""
    text = _PRIVATE.sub("", text)
    for form, plainer in _FORMS:
        text = form.sub(plainer, text)
    marked = _MARKER.sub(lambda m: _mark(m[1]), text)
    if marked == text:
        # Round brackets hold all sorts of things; they are read as markers only at a sentence's end where nothing else is.
        marked = _ROUND.sub(lambda m: _mark(m[1]), marked)
    marked = _AFTER_STOP.sub(lambda m: "".join(m[2].split()) + m[1], marked)
    claims: list[Claim] = []
    for line in marked.splitlines():
        for start, end in sentence_spans(line):
            piece = line[start:end]
            cited = tuple(dict.fromkeys(ord(c) - _BASE for c in _MARK.findall(piece)))
            piece = piece.replace("⟦", "[").replace("⟧", "]")
            words = re.sub(r"^(?:[-*•]\s+|\d+[.)]\s+)", "", _MARK.sub("", piece).strip())
            if re.search(r"\w", words):
                claims.append(Claim(words, cited))
            elif cited and claims:
                last = claims.pop()
                claims.append(Claim(last.text, tuple(dict.fromkeys(last.numbers + cited))))
    return claims


def verify(claim: str, papers: Sequence[Paper], finder: EvidenceFinder) -> Verdict:
    """Whether any one of some papers supports a claim, with its best sentence; `support.judge` decides."""
    verdicts = [v for p in papers if (v := _judge(claim, p.text, finder, p.id, p.title or ""))]
    return max(verdicts, key=lambda v: (v.supported, v.score), default=Verdict(False, 0.0, "it cites no abstract", None))


def verify_text(claim: str, texts: Sequence[str], finder: EvidenceFinder) -> Verdict:
    """As `verify`, against texts that are in no collection."""
    verdicts = [v for t in texts if (v := _judge(claim, t, finder))]
    return max(verdicts, key=lambda v: (v.supported, v.score), default=Verdict(False, 0.0, "it cites no abstract", None))


def check(claims: Sequence[Claim], hits: Sequence[Hit], finder: EvidenceFinder) -> Checked:
    """Checks each claim against what it cites, repairs numbers, and numbers the sources by first citation.

    Args:
        claims: from `parse`; their numbers count the hits from 1.
        hits: the abstracts that the answer was written from.
    """
    numbering = Numbering()
    sentences, notices = [], []
    for claim in claims:
        cited = [hits[n - 1] for n in claim.numbers if 1 <= n <= len(hits)]
        notices += [f"The answer cited [{n}], but only {len(hits)} abstracts were given." for n in claim.numbers if not 1 <= n <= len(hits)]
        verdict = verify(claim.text, [h.paper for h in cited], finder)
        if not verdict.supported:
            others = _worth_reading(claim.text, [h for h in hits if h not in cited], finder)
            better = verify(claim.text, [h.paper for h in others], finder)
            if better.supported and better.evidence is not None:
                owner = next(h for h in others if h.paper.id == better.evidence.passage.paper_id)
                notices.append(f"A citation was {'corrected' if cited else 'added'}: “{_short(claim.text)}”.")
                cited, verdict = [owner], better
        if verdict.supported:
            bearing = [h for h in cited if verify(claim.text, [h.paper], finder).supported] if len(cited) > 1 else cited
            if len(bearing) < len(cited):
                notices.append(f"A citation that does not support its sentence was taken away: “{_short(claim.text)}”.")
            cited = bearing
        sentences.append(_sentence(claim, cited, verdict, numbering, finder))
    return Checked(tuple(sentences), numbering.sources(), tuple(dict.fromkeys(notices)))


class Numbering:
    """Numbers papers from 1 in order of first citation and gathers their quotes, each once, in order of place."""

    def __init__(self) -> None:
        self._hits: list[Hit] = []
        self._quotes: dict[str, list[Quote]] = {}

    def cite(self, hit: Hit, words: Quote) -> int:
        """The number of a paper, with one more quote of it."""
        if hit.paper.id not in self._quotes:
            self._hits.append(hit)
        quotes = self._quotes.setdefault(hit.paper.id, [])
        if not any(q.start <= words.start and words.end <= q.end for q in quotes):
            quotes[:] = [q for q in quotes if not (words.start <= q.start and q.end <= words.end)] + [words]
        return next(n for n, h in enumerate(self._hits, start=1) if h.paper.id == hit.paper.id)

    def sources(self) -> tuple[Source, ...]:
        """The sources in order of their numbers."""
        return tuple(Source(n, h.paper, tuple(sorted(self._quotes[h.paper.id], key=lambda q: q.start)), h.score) for n, h in enumerate(self._hits, start=1))


def _sentence(claim: Claim, cited: Sequence[Hit], verdict: Verdict, numbering: Numbering, finder: EvidenceFinder) -> Sentence:
    """A claim with its verdict, its papers numbered and quoted by the sentence that bears on it best."""
    numbers_ = []
    for hit in cited:
        ranked = finder.rank(claim.text, hit.paper.text, hit.paper.id)
        if ranked:
            numbers_.append(numbering.cite(hit, quote(ranked[0].passage, finder.passages(hit.paper.text), hit.paper.text)))
    support: Support = "uncited" if not cited else "supported" if verdict.supported else "unsupported"
    return Sentence(claim.text, tuple(sorted(set(numbers_))), support, round(verdict.score, 4), "" if verdict.supported else verdict.reason)


def _worth_reading(claim: str, hits: Sequence[Hit], finder: EvidenceFinder) -> list[Hit]:
    """The papers that hold most of a claim's words, best first."""
    wanted = content_stems(claim)
    held = [(finder.coverage(wanted, content_stems(f"{h.paper.title or ''} {h.paper.text}")), n) for n, h in enumerate(hits)]
    return [hits[n] for share, n in sorted(held, key=lambda x: (-x[0], x[1]))[:OTHERS_READ] if share >= MAY_SUPPORT]


def _judge(claim: str, text: str, finder: EvidenceFinder, paper_id: str = "", title: str = "") -> Verdict | None:
    """The verdict on a claim from one text; nothing if the text has no sentence."""
    ranked = finder.rank(claim, text, paper_id)
    if not ranked:
        return None
    found = judge(claim, text, finder, title)
    return Verdict(found.supported, found.score, found.reason, ranked[0])


def _mark(inner: str) -> str:
    """The private characters of the numbers in a marker; a range is counted out."""
    spread = _RANGE.sub(lambda m: ", ".join(str(n) for n in range(int(m[1]), min(int(m[2]), int(m[1]) + 20) + 1)) or m[0], inner)
    return "".join(chr(_BASE + min(int(n), _MAX)) for n in re.findall(r"\d+", spread))


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57].rstrip() + "…"
