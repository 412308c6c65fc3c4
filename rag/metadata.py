"""What is known of a paper beside its abstract, as a question asks for it: who wrote it, where it was published, where it can be read."""

from __future__ import annotations

import re
from typing import Literal

from rag.markup import plain
from rag.records import Paper

Asked = Literal["authors", "venue", "address"]
_ADDRESS = re.compile(r"\b(?:link|url|address|doi|web ?page|bibtex|citation)\b", re.IGNORECASE)
_AUTHORS = re.compile(r"^\W*who\b|\b(?:authors?|writers?) of\b", re.IGNORECASE)
#: The words that ask, taken off to find which paper is meant.
_FRAME = re.compile(
    r"^\W*(?:who (?:wrote|authored|published|are the (?:authors?|writers?) of|is the (?:first |last |lead )?author of|were the authors? of)"
    r"|(?:the )?(?:authors?|writers?) of"
    r"|(?:where|when|in (?:what|which) year|at (?:what|which) (?:venue|conference)|in (?:what|which) (?:venue|journal)) (?:was|were|is|did)"
    r"|(?:give me |show me |what is |what's )?(?:the |a )?(?:link|url|address|doi|web ?page|bibtex|citation) (?:to|of"
    r"|for))\s+(?:the )?(?:paper |abstract )?(?:on |about |called |titled )?"
    r"|\s+(?:published|presented|accepted|appear(?:ed)?|come out)\b.*$",
    re.IGNORECASE,
)


def asked_for(question: str) -> Asked:
    """Which of the known things a question asks for."""
    return "authors" if _AUTHORS.search(question) else "address" if _ADDRESS.search(question) else "venue"


def subject_of(question: str) -> str:
    """Which paper a question about authors, venue or address means, in its own words."""
    return _FRAME.sub("", question).strip(" ?.") or question


def told(paper: Paper, asked: Asked) -> str:
    """What the metadata say, as a frame for a quote; empty where they say nothing."""
    name = f"“{plain(paper.title)}”" if paper.title else f"The abstract of {paper.label}"
    if asked == "authors":
        return f"Listed authors of {name}: {', '.join(paper.authors)}." if paper.authors else ""
    if asked == "address":
        return f"Listed address of {name}: {paper.url}" if paper.url else ""
    place = " ".join(str(x) for x in (paper.venue, paper.year) if x)
    return f"{name} is listed under {place}." if place else ""
