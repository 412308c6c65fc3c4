"""What a paper is called in a question, and where a question calls it so.

A person calls a paper by its method ("DMC"), by the head of its title ("Dynamic Memory Compression"), or has no short name for it. The
name that was used already is kept; else the head of the title; else the name that the abstract gives its own method; else the title.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence

from rag.kinds import names_in
from rag.markup import plain
from rag.names import named_papers
from rag.records import Paper

#: A title's part before its colon names the paper if it is at most this many words and no other paper's.
NAME_WORDS = 6
#: A longer name is put in quotes, so that the sentence around it can still be read.
BARE_WORDS = 3
#: Words of a title, or of an abstract without one, that say enough.
TITLE_WORDS = 20
_INTRODUCES = r"\b(?:introduc(?:es?|ing)|propos(?:es?|ing)|presents?|called|call|namely|named|dubbed|termed)"
#: "The use of Monte Carlo (MC) methods" introduces no name.
_OF_A_KIND = r"(?!\)?\s+(?:approach|method|algorithm|technique|framework|model|scheme|task|problem)s?\b)"
_ACTS = (
    "can|achieves|allows|attains|consists|creates|demonstrates|enables|exhibits|features|helps|improves|learns|leverages|models|outperforms|performs|preserves"
    "|provides|reaches|reduces|requires|shows|surpasses|uses|utilizes|works|yields"
)
_PLURAL = re.compile(r"\w*[A-Z]s")


def called(paper: Paper, papers: Mapping[str, Paper], said: Sequence[str] = ()) -> str:
    """What a paper is called in a question.

    Args:
        paper: of the collection.
        papers: of the collection, by id.
        said: the questions so far, oldest first; a name that they use is kept.
    """
    used = (n for question in reversed(said) for n in names_in(plain(question)))
    if name := next((n for n in used if _is_method(n, paper) and _is_own(n, paper, papers)), ""):
        return name
    head = head_of(paper)
    if head and not any(head_of(p) == head for p in papers.values() if p.id != paper.id):
        return head
    return next((n for n in _introduced(paper.text) if _is_own(n, paper, papers)), "") or _whole(paper)


def quoted(name: str) -> str:
    """A name as it stands in a sentence."""
    return name if len(name.split()) <= BARE_WORDS else f"“{name}”"


def subject_of(paper: Paper) -> str:
    """What a paper is about: its title, without a name of one word before the colon, which is nobody else's subject."""
    head = head_of(paper)
    return plain(paper.title or "").partition(":")[2].strip() if head and " " not in head else _whole(paper)


def place_in(question: str, paper: Paper, papers: Mapping[str, Paper]) -> tuple[int, int] | None:
    """Where a question calls a paper by any of its names, quotation marks included."""
    shaped = (n for n in names_in(question) if _is_method(n, paper) and _is_own(n, paper, papers, plain_word=True))
    for name in sorted({called(paper, papers), head_of(paper), _whole(paper)} - {""}, key=lambda n: (-len(n), n)):
        if found := re.search(rf"[“\"]?(?<!\w){re.escape(name)}(?!\w)[”\"]?", question, re.IGNORECASE):
            return found.span()
    return next((m.span() for n in shaped if (m := re.search(rf"(?<!\w){re.escape(n)}(?!\w)", question))), None)


def head_of(paper: Paper) -> str:
    """What stands before the colon of a title, if it is short enough to be a name."""
    return _head(paper.title or "")


@functools.lru_cache(maxsize=16384)  # asked of every paper, several times a question
def _head(title: str) -> str:
    head, colon, _ = plain(title).partition(":")
    words = head.split()
    if not colon or len(words) > NAME_WORDS:
        return ""
    # "THOUGHT PROPAGATION" shouts; one word in capitals is a name ("CARTE").
    return " ".join(w.capitalize() if head.isupper() and len(words) > 1 else w for w in words)


def _whole(paper: Paper) -> str:
    """The title, or the first words of an abstract without one."""
    return " ".join((plain(paper.title or "") or plain(paper.text)).split()[:TITLE_WORDS]).rstrip(".") or paper.label


@functools.lru_cache(maxsize=1024)
def _introduced(text: str) -> tuple[str, ...]:
    """The names that an abstract gives: "we introduce AnyTool", "an algorithm called incremental predictive coding (iPC)"."""
    said = plain(text)
    names = (n for n in names_in(said) if not _PLURAL.fullmatch(n))
    return tuple(n for n in names if re.search(rf"{_INTRODUCES} (?:an? |the )?(?:(?:[\w-]+ ){{1,10}}\()?{re.escape(n)}(?![\w-]| [A-Z]){_OF_A_KIND}", said))


def _is_method(name: str, paper: Paper) -> bool:
    """Whether a name is what a paper is about, and not what it speaks of: it introduces it, or says what it does ("FastGen demonstrates")."""
    acts = re.search(rf"(?<![\w-]){re.escape(name)} (?:{_ACTS})\b", plain(paper.text))
    return acts is not None or name in (head_of(paper), *_introduced(paper.text))


def _is_own(name: str, paper: Paper, papers: Mapping[str, Paper], *, plain_word: bool = False) -> bool:
    """Whether a name is one paper's; unless it may be a `plain_word`, no other abstract has it in small letters, as they have "less"."""
    folded = name.casefold()
    # Which papers can hold it at all is seen faster than whose it is.
    near = [p for p in papers.values() if folded in p.text.casefold() or folded in (p.title or "").casefold()]
    if not plain_word and any(re.search(rf"(?<![\w-]){re.escape(folded)}(?![\w-])", p.text) for p in near if p.id != paper.id):
        return False
    return any(p.id == paper.id for p in named_papers(name, near))
