"""An answer back from its JSON object, as a browser kept it. Nothing of it is trusted: what does not hold together is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rag.errors import InputError
from rag.records import Answer, Hit, Paper, Sentence, Source

#: Characters of one text in it; the longest abstract seen has 5,000, and a question may have as many.
MAX_TEXT_CHARS = 50_000
#: A page shows 50 sources at most, and some quotes of each.
MAX_ITEMS = 1_000
_ANSWERS: TypeAdapter[Answer] = TypeAdapter(Answer)
_REFUSED = "See `ask --json` for what an answer is made of."


def answer_from(given: object, papers: Mapping[str, Paper]) -> Answer:
    """The answer that `answer_object` made this of, but for what it leaves out.

    Args:
        given: what JSON gave, of any shape.
        papers: the collection, by id; papers that were near and are no longer there are left out.

    Raises:
        InputError: it is no answer.
    """
    try:
        _check_size(given)
        row = dict(given)  # type: ignore[call-overload]  # a TypeError below if it is none
        near = [Hit(papers[hit["paper_id"]], float(hit["score"])) for hit in row.pop("nearest") if hit["paper_id"] in papers]
        row["sources"] = [_source(source) for source in row["sources"]]
        answer = _ANSWERS.validate_python(row | {"nearest": near})
    except (ValidationError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise InputError("This is no answer that was given here.", _REFUSED) from None
    _check(answer)
    return answer


def _source(source: Mapping[str, Any]) -> dict[str, Any]:
    """A source as the records have it: what is known of its paper apart."""
    paper = {name: source[name] for name in ("text", "title", "authors", "venue", "year", "url")}
    origin = {"file": source["file"], "position": source["position"], "source_id": source["source_id"]}
    return {"n": source["n"], "paper": paper | {"id": source["paper_id"], "origins": [origin]}, "quotes": source["quotes"], "score": source["score"]}


def _check(answer: Answer) -> None:
    """Refuses what would show words that no abstract holds, or a number that leads nowhere."""
    numbers = [source.n for source in answer.sources]
    verbatim = all(s.quotes and all(q.text and s.paper.text[q.start : q.end] == q.text for q in s.quotes) for s in answer.sources)
    cited = all(n in numbers for sentence in answer.sentences for n in sentence.citations)
    if numbers != list(range(1, len(numbers) + 1)) or not verbatim or not cited or not all(_is_behind(s, answer.sources) for s in answer.sentences):
        raise InputError("This answer does not hold together.", _REFUSED)


def _is_behind(sentence: Sentence, sources: Sequence[Source]) -> bool:
    """Whether what is said to stand behind a sentence is quoted of what it cites; what was kept earlier does not say."""
    if not sentence.quotes:
        return True
    quoted = [sources[n - 1] for n in sentence.citations]
    return len(quoted) == len(sentence.quotes) and all(
        q.text and s.paper.text[q.start : q.end] == q.text and any(whole.start <= q.start and q.end <= whole.end for whole in s.quotes)
        for s, q in zip(quoted, sentence.quotes, strict=True)
    )


def _check_size(given: object) -> None:
    """Refuses what is larger than any answer; ValueError."""
    if isinstance(given, str) and len(given) > MAX_TEXT_CHARS:
        raise ValueError("a text is too long")
    if isinstance(given, Mapping | list):
        if len(given) > MAX_ITEMS:
            raise ValueError("too many items")
        for part in given.values() if isinstance(given, Mapping) else given:
            _check_size(part)
