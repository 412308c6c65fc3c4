"""Findings written down as the sentences of an answer: numbered by first citation, repeats and what is to be removed left out, repairs told and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag.records import Hit, Quote, Repairs, Sentence, Source

if TYPE_CHECKING:
    from rag.citations import Finding


#: Of more numbers of nothing than these, a notice names the first and the last.
MOST_LISTED = 4


@dataclass(frozen=True, slots=True)
class Checked:
    """An answer after checking: its sentences, its sources, and what was repaired, marked, removed or set aside, in words and counted."""

    sentences: tuple[Sentence, ...]
    sources: tuple[Source, ...]
    notices: tuple[str, ...]
    repairs: Repairs


class Sheet:
    """Writes findings down as the sentences of an answer, in order, and keeps its numbers.

    Args:
        given: how many abstracts the answer was written from.
        strict: leave out what no abstract supports.
    """

    def __init__(self, given: int, *, strict: bool) -> None:
        self._given, self._strict = given, strict
        self._numbering = Numbering()
        self._sentences: list[Sentence] = []
        self._said: dict[str, set[str]] = {}
        self._notices: dict[str, None] = {}
        self._counts: Counter[str] = Counter()

    def add(self, finding: Finding) -> Sentence | None:
        """The next sentence; nothing where it is left out, as is one that was said before, unless a further paper bears it out."""
        if finding.unknown:
            told = f"The answer cited {_listed(finding.unknown)}, but only {self._given} abstract{' was' if self._given == 1 else 's were'} given."
            self._note("set_aside", told, len(finding.unknown))
        if finding.cleaned:
            self._note("set_aside", "An address that none of the abstracts holds was taken out of the answer.")
        if self._strict and finding.support != "supported":
            self._counts["removed"] += 1
            return None
        words = " ".join(finding.text.split())
        if words in self._said and self._said[words].issuperset(finding.borne_by):
            self._counts["repeated"] += 1
            return None
        self._said.setdefault(words, set()).update(finding.borne_by)
        if finding.repair:
            self._note(finding.repair, f"A citation was {finding.repair}: “{_short(finding.text)}”.")
        if finding.taken:
            self._note("taken", f"A citation that does not support its sentence was taken away: “{_short(finding.text)}”.")
        behind = {self._numbering.cite(hit, words): words for hit, words in finding.cited}
        numbers = tuple(sorted(behind))
        reason = "" if finding.support == "supported" or finding.uncompared else finding.verdict.reason
        if finding.uncompared:
            self._note("uncompared", "What is not in the language of the abstracts could be checked for its numbers and names only: read the quotes.")
        self._counts["marked"] += bool(reason)
        sentence = Sentence(finding.text, numbers, finding.support, round(finding.verdict.score, 4), reason, tuple(behind[n] for n in numbers))
        self._sentences.append(sentence)
        return sentence

    def checked(self) -> Checked:
        """The answer so far."""
        if removed := self._counts["removed"]:
            told = f"{removed} sentence{' that no abstract supports was' if removed == 1 else 's that no abstract supports were'} removed (ASK_STRICT)."
            self._notices[told] = None
        if repeated := self._counts["repeated"]:
            told = "1 sentence that repeats another word for word is" if repeated == 1 else f"{repeated} sentences that repeat others word for word are"
            self._notices[f"{told} left out."] = None
        return Checked(tuple(self._sentences), self._numbering.sources(), tuple(self._notices), Repairs(**self._counts))

    def _note(self, count: str, told: str, times: int = 1) -> None:
        self._counts[count] += times
        self._notices[told] = None


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


def _listed(numbers: Sequence[int]) -> str:
    """Numbers as they are cited, the middle of many left out."""
    told = [f"[{n}]" for n in sorted(numbers)]
    if len(told) > MOST_LISTED:
        return f"{told[0]} and {len(told) - 1} more up to {told[-1]}"
    return " and ".join(filter(None, (", ".join(told[:-1]), told[-1])))


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57].rstrip() + "…"
