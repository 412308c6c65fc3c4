"""Which of the papers spoken of a follow-up tells: by place ("the other one"), by what it is about ("the weather one"), or together ("the two")."""

from __future__ import annotations

import re

from rag.again import another, ended, left_out
from rag.calling import place_in, subject_of
from rag.pointing import NOUNS, own_words, points_back
from rag.records import Paper
from rag.talk import Talk
from rag.text import content_stems

#: "They" after a list means its papers; the names of more would drown the question.
NAMED_TOGETHER = 3
_BACK_TO = re.compile(r"^\W*(?:(?:ok|okay|so|now|and|but|let'?s|go|going|coming)\W+)*back to (?P<which>[^:,;.?!]+)\W*", re.IGNORECASE)
_PLACE = re.compile(
    rf"\bthe (?P<place>first|second|third|last|former|latter|other)(?: (?:{NOUNS}|one|of (?:them|these|those))\b|(?=\s*(?:[?:,;.!]|$)))"
    r"|\[(?P<number>\d)\]|\b(?:paper|source|abstract|number) (?P<numbered>\d)\b(?!\.\d)",
    re.IGNORECASE,
)
_PLACES = {"first": 0, "former": 0, "second": 1, "latter": 1, "third": 2, "last": -1}
_DESCRIBED = re.compile(r"\bthe (?P<which>(?:[\w-]+ ){1,3}?)(?:one|paper)\b(?!\s+(?:on|of|by|about|that|which|with|for)\b)", re.IGNORECASE)
_NOTHING_ELSE = re.compile(r"^\W*(?:(?:and|or|but|so|then|what about|how about)\b\W*)*$", re.IGNORECASE)
_TOGETHER = re.compile(
    r"(?:\b(?:which|either|neither|both|none|each|one|any) of |\b(?:compare|contrast|between|among) )(?P<these>(?:them|these|those|the)(?: two)?|both)\b"
    r"|\b(?P<two>the two(?: of them| papers| methods| approaches| models| ones)?|both(?: of them| papers| methods)?)"
    r"(?=\s*(?:[?.!,;:]|$)|\s+(?:differ|compare)\b)"
    r"|\b(?P<they>they)(?=\s+(?:differ|compare)\b)",
    re.IGNORECASE,
)
_COMPARED = re.compile(r"^\W*(?:and |please )*(?:compare|contrast)\W*$|\bdifferences?\W*$", re.IGNORECASE)
_WHICH = re.compile(r"^\W*(?:and\s+)?which(?: one)?(?=\s+(?:is|was|does|has|needs?|performs?|works?|gives?)\b)", re.IGNORECASE)


def back_to(question: str, talk: Talk) -> tuple[Paper, str] | None:
    """The paper that "Back to the pairwise one: …" goes back to, and what is asked of it."""
    found = _BACK_TO.match(question)
    if not found:
        return None
    which = found["which"]
    place = _told(which, talk)
    wanted = own_words(which)
    shared = [len(wanted & stems_of(p)) for p in talk.known]
    paper = next((p for p in talk.known if place_in(which, p, talk.papers)), place[1] if place else None)
    if paper is None and any(shared):
        paper = talk.known[shared.index(max(shared))]
    if paper is None and points_back(f"is {which}?"):
        paper = talk.topic
    return (paper, question[found.end() :]) if paper else None


def placed(question: str, talk: Talk) -> str | None:
    """The name of the paper in the place of "the first one", "the ICML one", "[2]"; where nothing else is asked, the last question asked of it."""
    told = _told(question, talk)
    if told is None:
        return _no_other(question, talk)
    (start, end), paper = told
    alone = _stands_alone(question, start, end)
    return (talk.instead(talk.name(paper)) if alone else None) or question[:start] + talk.name(paper) + question[end:]


def several(question: str, talk: Talk) -> str | None:
    """The names of the papers of the last list, or of the last two spoken of, for "the two" and "which of them"."""
    found = _TOGETHER.search(question)
    which = _WHICH.match(question) if talk.told[-1].several and not own_words(question) else None
    compared = _COMPARED.search(question)
    if len(talk.together) < 2 or not (found or which or compared):
        return None
    if found:
        start, end = found.span(found.lastgroup or 0)
        most = 2 if re.search(r"\b(?:two|both)\b", found[0], re.IGNORECASE) else NAMED_TOGETHER
        return question[:start] + talk.names(talk.together[:most]) + question[end:]
    names = talk.names(talk.together[:NAMED_TOGETHER])
    if which:
        return f"Which of {names}{question[which.end() :]}"
    return ended(question, f"between {names}" if "differ" in question.lower() else names)


def stems_of(paper: Paper) -> set[str]:
    """Stems of the words of a paper."""
    return set(content_stems(f"{paper.title or ''} {paper.text}"))


def _no_other(question: str, talk: Talk) -> str | None:
    """A question for "the other one" where only one paper was spoken of: there is none, so another one is looked for."""
    found = _PLACE.search(question)
    if not found or (found["place"] or "").lower() != "other":
        return None
    if _stands_alone(question, *found.span()):
        return another("another paper?", talk)
    return f"{question[: found.start()]}another paper {left_out(talk)} on {subject_of(talk.topic)}{question[found.end() :]}"


def _stands_alone(question: str, start: int, end: int) -> bool:
    """Whether a question says nothing but what stands there."""
    return bool(_NOTHING_ELSE.match(question[:start]) and _NOTHING_ELSE.match(question[end:]))


def _told(question: str, talk: Talk) -> tuple[tuple[int, int], Paper] | None:
    """Where a question tells a paper by its place or by what it is about, and which paper that is."""
    last = talk.told[-1].papers
    if found := _PLACE.search(question):
        if n := int(found["number"] or found["numbered"] or 0):
            return (found.span(), last[n - 1]) if n <= len(last) else None
        place = found["place"].lower()
        if place == "other":
            pair = last if talk.told[-1].several and len(last) == 2 else talk.topics[::-1] if len(talk.topics) > 1 else (*last, *talk.together)
            other = next((p for p in pair if p.id != talk.topic.id), None)
            return (found.span(), other) if other else None
        listed = last if len(last) > 1 else talk.topics
        at = _PLACES[place]
        return (found.span(), listed[at]) if 1 < len(listed) > at else None
    for found in _DESCRIBED.finditer(question):
        which = found["which"].strip().casefold()
        words_of = own_words(which)
        fits = [p for p in talk.known if which == (p.venue or "").casefold()] or [p for p in talk.known if words_of and words_of <= stems_of(p)]
        if len(fits) == 1:
            return found.span(), fits[0]
    return None
