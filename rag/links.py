"""A paper pointed at without a question: by its address, DOI, arXiv id or id, or by its whole title."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from rag.markup import plain
from rag.records import Paper

_URL = r"https?://[^\s<>\"”]+|\b(?:www\.)?(?:openreview\.net|arxiv\.org|doi\.org|github\.com|aclanthology\.org)/[^\s<>\"”]+"
_DOI = r"\b(?:doi:\s*)?10\.\d{4,9}/[^\s<>\"”]+"
_ARXIV = r"\barxiv:?\s*\d{4}\.\d{4,5}(?:v\d+)?|(?<![\w.])\d{4}\.\d{5}(?:v\d+)?(?![\w%])"
_LINK = re.compile(rf"{_URL}|{_DOI}|{_ARXIV}", re.IGNORECASE)
#: An id typed alone ("qOl2WWOqFg"): one word with a digit or a capital inside, as long as those of OpenReview or of this program.
_ID = re.compile(r"[\w-]{6,40}")
#: A title of fewer words may be an ordinary phrase.
TITLE_WORDS = 3


@dataclass(frozen=True, slots=True)
class Link:
    """An address or id as it was typed, the papers it leads to, and the question without it."""

    text: str
    papers: tuple[Paper, ...]
    rest: str


def link_in(question: str, papers: Collection[Paper]) -> Link | None:
    """The first link of a question; nothing where it has none, or where a bare word is no paper's id."""
    found = _LINK.search(question)
    if found:
        text = found[0].rstrip(".,;:!?)]’'")
        wanted = _keys(text)
        rest = " ".join(f"{question[: found.start()]} {question[found.start() + len(text) :]}".split())
        # Most papers do not hold it at all, which is seen faster than which addresses they hold.
        near = (p for p in papers if any(k.casefold() in f"{p.url} {p.source_id} {p.text}".casefold() for k in wanted))
        return Link(text, tuple(p for p in near if wanted & _own_keys(p)), rest)
    word = question.strip(" ?.")
    if _ID.fullmatch(word):
        those = tuple(p for p in papers if word in (p.id, p.source_id) or any(word == o.source_id for o in p.origins) or word in _keys(p.url or ""))
        return Link(word, those, "") if those else None
    return None


def titled(question: str, papers: Iterable[Paper]) -> Paper | None:
    """The paper whose title a question is, case, markup and punctuation aside."""
    asked = _letters(question)
    # Markup makes a title longer, never shorter; only the few that begin alike are read letter by letter.
    near = (p for p in papers if p.title and len(p.title) >= len(asked) and (not p.title[0].isalnum() or p.title[0].casefold() == asked[:1]))
    return next((p for p in near if len((p.title or "").split()) >= TITLE_WORDS and asked in (_letters(p.title or ""), _letters(plain(p.title or "")))), None)


def _letters(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())


def _own_keys(paper: Paper) -> set[str]:
    """What leads to a paper: its address and id, and the addresses that its abstract gives (its code, its preprint)."""
    keys = _keys(paper.url or "") | _keys(paper.source_id or "")
    if "://" in paper.text:
        for found in _LINK.finditer(paper.text):
            keys |= _keys(found[0].rstrip(".,;:!?)]}"))
    return keys


def _keys(link: str) -> set[str]:
    """The forms in which two addresses of one thing agree: an id where it has one, else the address without scheme and case."""
    if found := re.search(r"(?<![\d.])(\d{4}\.\d{4,5})(?:v\d+)?(?![\d.])", link):
        return {found[1]}
    if found := re.search(r"\b10\.\d{4,9}/\S+", link):
        return {found[0].casefold().removesuffix(".pdf")}
    if found := re.search(r"openreview\.net/\S*[?&]id=([\w-]+)", link):
        return {found[1]}
    bare = re.sub(r"^(?:https?://)?(?:www\.)?", "", link.strip()).casefold().rstrip("/").removesuffix(".git")
    return {bare} if bare else set()
