"""Questions to go on with: made from the papers of an answer by rules, and kept only where the collection answers them from that paper."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, zip_longest

from rag.assistant import Assistant, plain
from rag.records import Answer, Paper, Quote

MOST = 3
#: Candidates that are tried: each takes as long as an extractive answer.
TRIED = 8
#: Papers of an answer that candidates come from, and characters of a name that can stand in a question.
PAPERS, LONGEST_NAME = 4, 40
#: What a part of an abstract that was not quoted yet holds, and what can then be asked.
FORMS = (
    (re.compile(r"\b(?:outperform|improv|achiev|reduc|surpass|faster|accura|state-of-the-art)", re.IGNORECASE), "What does {} achieve?"),
    (re.compile(r"\b(?:propose|introduce|present|develop|leverag)", re.IGNORECASE), "How does {} work?"),
    (re.compile(r"\b(?:data ?sets?|benchmarks?|evaluat|experiments? on)", re.IGNORECASE), "What is {} evaluated on?"),
    (re.compile(r"\bcode\b[^.]*\b(?:available|at|https?)\b|github\.com", re.IGNORECASE), "Is the code of {} available?"),
)


def following(assistant: Assistant, given: Answer, asked: Collection[str]) -> tuple[str, ...]:
    """Up to three questions that this collection answers; without a language model.

    Args:
        asked: the questions of the conversation, which are not offered again.
    """
    known = {question.casefold() for question in asked}
    quoted = {(source.paper.id, quote) for source in given.sources for quote in source.quotes}
    kept: list[str] = []
    for tried, (paper, question) in enumerate(candidates(given)):
        if len(kept) == MOST or tried == TRIED:
            break
        if question.casefold() not in known and _tells_more(assistant.ask(question, mode="extractive"), paper, quoted):
            kept.append(question)
    return tuple(kept)


def candidates(given: Answer) -> Iterator[tuple[Paper, str]]:
    """Questions about the papers of an answer, or about the nearest where it has none; of each paper one in turn and of another form, with that paper."""
    papers = [(source.paper, source.quotes) for source in given.sources] or [(hit.paper, ()) for hit in given.nearest]
    turns = zip_longest(*(_of(paper, quotes, FORMS[n:] + FORMS[:n]) for n, (paper, quotes) in enumerate(papers[:PAPERS])))
    return (candidate for candidate in chain.from_iterable(turns) if candidate)


def _of(paper: Paper, quotes: Collection[Quote], forms: Sequence[tuple[re.Pattern[str], str]]) -> list[tuple[Paper, str]]:
    """What can be asked of one paper by its name, which is the part of its title before the colon."""
    name, colon, _ = plain(paper.title or "").partition(":")
    if not colon or len(name) > LONGEST_NAME:
        return []
    rest = paper.text
    for quote in quotes:
        rest = rest.replace(quote.text, " ")
    return [(paper, question.format(name)) for told, question in forms if told.search(rest)]


def _tells_more(answer: Answer, paper: Paper, quoted: Collection[tuple[str, Quote]]) -> bool:
    """Whether an answer is sure, comes from a paper first of all, and quotes of it what was not quoted before."""
    if answer.outcome != "answered" or answer.hedged or not answer.sources or answer.sources[0].paper.id != paper.id:
        return False
    return any((paper.id, quote) not in quoted for quote in answer.sources[0].quotes)
