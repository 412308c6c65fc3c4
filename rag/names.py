"""The papers that a question names: by a method's name that only they bear, or by the head of their title."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from rag.kinds import names_in
from rag.markup import plain
from rag.records import Paper

#: The part of a title before its colon names the method if it has at least two words and at most this many.
HEAD_WORDS = 5
#: Titles kept as they were read, since each question looks at all of them: 4,871 papers took 187 ms a question when each was read anew, and take 8.
KEPT = 16_384
_PLURAL = re.compile(r"\w*[A-Z]s")


def named_papers(question: str, papers: Iterable[Paper]) -> list[Paper]:
    """The papers that a question names, each once, in the order in which it names them.

    A name told by its shape ("DMC") is the paper's whose title alone has it, or else that alone introduces it, or else whose
    abstract alone has it; a name that several papers use, or a plural ("LLMs"), is nobody's. A title's head ("Dynamic Memory
    Compression") is its paper's. Of the gold questions this finds two papers
    for 7 of the 11 comparisons and for one other, which asks of both.
    """
    return list({paper.id: paper for _, paper in named_in(question, papers)}.values())


def named_in(question: str, papers: Iterable[Paper]) -> list[tuple[str, Paper]]:
    """As `named_papers`, each paper with the name it is named by; a paper named in two ways is there twice."""
    known = list(papers)
    asked = plain(question)
    found: list[tuple[int, str, Paper]] = []
    for name in (n for n in names_in(asked) if not _PLURAL.fullmatch(n)):
        holders = [(p, text) for p in known if name in p.text and holds(text := plain(p.text), name)]
        owner = (
            _only(p for p in known if name in (title := _title(p.title)) and holds(title, name))
            or _only(p for p, text in holders if re.search(rf"\b(?:introduc|propos|present)\w*\b[^.]{{0,120}}(?<!\w){re.escape(name)}(?!\w)", text))
            or _only(p for p, _ in holders)
        )
        if owner:
            found.append((asked.index(name), name, owner))
    folded = asked.casefold()
    for paper in known:
        head = _head(paper.title)
        if head and head in folded:
            found.append((folded.index(head), head, paper))
    return [(name, paper) for _, name, paper in sorted(found, key=lambda at: (at[0], at[2].id))]


@lru_cache(maxsize=KEPT)
def _title(title: str | None) -> str:
    return plain(title or "")


@lru_cache(maxsize=KEPT)
def _head(title: str | None) -> str:
    """The part of a title before its colon, if it can name the method; else empty."""
    head, colon, _ = _title(title).partition(":")
    return head.casefold() if colon and 2 <= len(head.split()) <= HEAD_WORDS else ""


def _only(papers: Iterable[Paper]) -> Paper | None:
    """The paper, if there is exactly one."""
    first: Sequence[Paper] = [p for p, _ in zip(papers, range(2), strict=False)]
    return first[0] if len(first) == 1 else None


def holds(text: str, name: str) -> bool:
    """Whether a name stands in a text as a word of its own; a title's head in any case."""
    return (name == name.casefold() and name in text.casefold()) or re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", text) is not None
