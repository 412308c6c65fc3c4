"""Asks every gold question and keeps what came back, one row a question."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from eval import citation_metrics, retrieval_metrics
from eval.gold import Item
from rag.assistant import Assistant
from rag.errors import InputError
from rag.records import Answer, Turn

#: Ranks that retrieval is measured to.
DEPTH = 10


@dataclass(frozen=True, slots=True)
class Row:
    """One question with what is measured of its answer; None where a measure does not apply."""

    id: str
    group: str
    split: str
    question: str
    standalone_question: str
    wanted: str
    outcome: str
    hedged: bool
    confidence: float
    answer: str
    gold: tuple[str, ...]
    ranked: tuple[str, ...]
    cited: tuple[str, ...]
    recall_1: float | None
    recall_5: float | None
    reciprocal_rank: float | None
    answer_match: float | None
    right_paper_cited: float | None
    cited_precision: float | None
    cited_recall: float | None
    support_rate: float | None
    faithful: float
    declined: float
    milliseconds: float

    def as_dict(self) -> dict[str, object]:
        """The row for a JSON file."""
        return asdict(self)


def run(assistant: Assistant, items: Sequence[Item], progress: Callable[[int, int], None] | None = None) -> list[Row]:
    """Asks the questions in order; the turns of a conversation are asked with what was said before.

    Raises:
        InputError: a gold paper is not in the collection.
    """
    ids = {(o.file, o.position): p.id for p in assistant.papers() for o in p.origins}
    history: dict[str, list[Turn]] = {}
    rows = []
    for done, item in enumerate(items, start=1):
        missing = [p for p in item.papers if p not in ids]
        if missing:
            raise InputError(
                f"The gold question {item.id} names {missing[0][0]} {missing[0][1]}, which is not in the collection.",
                "Ingest the papers that the questions are about.",
            )
        turns = history.setdefault(item.conversation, []) if item.conversation else []
        begun = time.perf_counter()
        answer = assistant.ask(item.question, history=turns)
        taken = (time.perf_counter() - begun) * 1000
        turns.append(assistant.turn(answer))
        ranked = [h.paper.id for h in assistant.search(answer.standalone_question, DEPTH)]
        rows.append(measure(item, answer, [ids[p] for p in item.papers], ranked, taken))
        if progress:
            progress(done, len(items))
    return rows


def measure(item: Item, answer: Answer, gold: Sequence[str], ranked: Sequence[str], milliseconds: float) -> Row:
    """The measures of one answer. Ranking is measured wherever a paper is right; the answer where there is one."""
    cited = [s.paper.id for s in answer.sources]
    answerable = item.outcome == "answered"
    return Row(
        id=item.id,
        group=item.group,
        split=item.split,
        question=item.question,
        standalone_question=answer.standalone_question,
        wanted=item.outcome,
        outcome=answer.outcome,
        hedged=answer.hedged,
        confidence=answer.confidence,
        answer=answer.text,
        gold=tuple(gold),
        ranked=tuple(ranked),
        cited=tuple(cited),
        recall_1=retrieval_metrics.recall(ranked, gold, 1) if gold else None,
        recall_5=retrieval_metrics.recall(ranked, gold, 5) if gold else None,
        reciprocal_rank=retrieval_metrics.reciprocal_rank(ranked, gold) if gold else None,
        answer_match=float(citation_metrics.answer_match(answer, item.answers)) if answerable else None,
        right_paper_cited=float(any(i in cited for i in gold)) if answerable else None,
        cited_precision=citation_metrics.cited_precision(cited, gold) if answerable else None,
        cited_recall=citation_metrics.cited_recall(cited, gold) if answerable else None,
        support_rate=citation_metrics.support_rate(answer),
        faithful=float(citation_metrics.faithful(answer)),
        declined=float(answer.outcome != "answered"),
        milliseconds=milliseconds,
    )
