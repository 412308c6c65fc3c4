"""A question as it is put to the assistant, and the questions that the buttons under its answer put next.

What comes back from a browser are numbers that name a question or a filter; what fits nothing asks nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from rag.records import Answer, Filters, Turn

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Asking:
    """A question and how it is asked; `dropped` are filters that do not hold although its words say so. Once it is over, its answer."""

    question: str
    history: tuple[Turn, ...] = ()
    filters: Filters = field(default_factory=Filters)
    dropped: tuple[Filters, ...] = ()
    mode: str | None = None
    sources: int | None = None
    answer: Answer | None = None

    @property
    def options(self) -> dict[str, Any]:
        """What `Assistant.stream` takes beside the question."""
        return {"history": self.history, "filters": self.filters, "dropped": self.dropped, "mode": self.mode, "sources": self.sources}

    @property
    def told(self) -> tuple[str, ...]:
        """How it is asked, in words, as far as that is not as usual."""
        modes = {"extractive": "quoted, no language model", "llm": "written by the language model"}
        told = [*self.filters.told(), *(f"not filtered by {words}" for filters in self.dropped for words in filters.told())]
        most = f"at most {self.sources} source{'' if self.sources == 1 else 's'}"
        return (*told, *([modes[self.mode]] if self.mode else ()), *([most] if self.sources else ()))


def typed(question: str, turns: tuple[Turn, ...], edited: Asking | None, **how: Any) -> Asking:
    """A question from the box. One that was edited follows what it followed, and the filters taken off it stay off unless they are set anew."""
    if edited is None:
        return Asking(question, turns, **how)
    dropped = tuple(taken for taken in edited.dropped if how["filters"].less([taken]) == how["filters"])
    return Asking(question, edited.history, dropped=dropped, **how)


def again(asked: Sequence[Asking], wanted: Mapping[str, Any]) -> Asking | None:
    """What a button under a question asks: the same once more, or the same without a filter.

    Args:
        asked: every question of the conversation.
        wanted: what the button says: `asked` is the place of its question, `without` that of a filter.
    """
    if (before := at(asked, wanted.get("asked"))) is None:
        return None
    if "without" in wanted:
        if before.answer is None or (taken := at(before.answer.filters.apart(), wanted["without"])) is None:
            return None
        kept, dropped = before.filters.less([taken]), (*before.dropped, taken)
        return replace(before, question=before.answer.standalone_question, history=(), filters=kept, dropped=dropped, answer=None)
    return replace(before, answer=None)


def at(found: Sequence[_T], place: object) -> _T | None:
    """What stands at a place that a browser named; None where nothing does."""
    return found[int(place)] if isinstance(place, str) and re.fullmatch(r"[0-9]{1,6}", place) and int(place) < len(found) else None
