"""Metrics of one answer: does it hold an accepted string, does it cite the right papers, do its sentences stand."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rag.assistant import plain
from rag.records import Answer


def answer_match(answer: Answer, accepted: Sequence[str]) -> bool:
    """Whether the answer's sentences contain one of the accepted strings, case aside (as in SQuAD-style containment)."""
    said = plain(" ".join(s.text for s in answer.sentences)).casefold()
    return any(plain(a).casefold() in said for a in accepted)


def cited_precision(cited: Sequence[str], relevant: Collection[str]) -> float:
    """Share of the cited papers that are right; 0 where nothing is cited."""
    return sum(i in relevant for i in cited) / len(cited) if cited else 0.0


def cited_recall(cited: Sequence[str], relevant: Collection[str]) -> float:
    """Share of the right papers that are cited."""
    return sum(i in cited for i in relevant) / len(relevant)


def support_rate(answer: Answer) -> float | None:
    """Share of the sentences that their citations support; nothing where the answer has none."""
    return sum(s.support == "supported" for s in answer.sentences) / len(answer.sentences) if answer.sentences else None


def faithful(answer: Answer) -> bool:
    """Whether every quote is verbatim; anything but True is a defect of the program."""
    return all(s.paper.text[q.start : q.end] == q.text for s in answer.sources for q in s.quotes)
