"""Asks gold questions and measures what came back: one row a question."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from eval import citation_metrics, retrieval_metrics
from eval.gold import Item
from eval.runs import Cost, Row, Said
from rag.assistant import Assistant
from rag.errors import InputError
from rag.records import Answer, Delta, Turn

#: Ranks that retrieval is looked at to.
DEPTH = 10


def run(assistant: Assistant, items: Sequence[Item], progress: Callable[[int, int], None] | None = None) -> list[Row]:
    """The rows of all questions, in order."""
    rows: list[Row] = []
    for answered in answers(assistant, items):
        rows += [row for row, _ in answered]
        if progress:
            progress(len(rows), len(items))
    return rows


def answers(assistant: Assistant, items: Sequence[Item], workers: int = 1) -> Iterator[list[tuple[Row, Cost]]]:
    """Asks the questions, those of a conversation one after the other, each with what was said before; in order if one by one.

    A duplicate of a right paper is as right: of papers that are one work, each stands for the first by id.

    Args:
        workers: questions asked at once, which pays where a language model's server is waited for.

    Raises:
        InputError: a gold paper is not in the collection.
    """
    same = representatives(assistant)
    ids = {(o.file, o.position): same.get(p.id, p.id) for p in assistant.papers() for o in p.origins}
    for item in items:
        missing = [p for p in item.papers if p not in ids]
        if missing:
            raise InputError(
                f"The gold question {item.id} names {missing[0][0]} {missing[0][1]}, which is not in the collection.",
                "Ingest the papers that the questions are about.",
            )

    def unit(turns: Sequence[Item]) -> list[tuple[Row, Cost]]:
        history: list[Turn] = []
        return [_ask(assistant, item, history, list(dict.fromkeys(ids[p] for p in item.papers)), same) for item in turns]

    if workers == 1:
        yield from map(unit, units(items))
        return
    with ThreadPoolExecutor(workers) as pool:
        try:
            # As they come, so that what was answered behind a slow one is kept if the run is stopped.
            for answered in as_completed([pool.submit(unit, turns) for turns in units(items)]):
                yield answered.result()
        finally:
            # A run that is stopped, or a question that fails, waits for those under way and starts no more.
            pool.shutdown(cancel_futures=True)


def representatives(assistant: Assistant) -> dict[str, str]:
    """The first by id of the papers that are one work with a paper, for each that is not alone."""
    return {i: min(group) for i, group in assistant.duplicates().items()}


def units(items: Sequence[Item]) -> list[list[Item]]:
    """What is asked in one go: a conversation's turns together, any other question alone; in order of first appearance."""
    together: dict[str, list[Item]] = {}
    for item in items:
        together.setdefault(f"conversation {item.conversation}" if item.conversation else f"question {item.id}", []).append(item)
    return [sorted(turns, key=lambda i: i.turn) for turns in together.values()]


def _ask(assistant: Assistant, item: Item, history: list[Turn], gold: Sequence[str], same: Mapping[str, str]) -> tuple[Row, Cost]:
    """Asks one question and adds it to the history."""
    begun = time.perf_counter()
    *before, answer = assistant.stream(item.question, history=history)
    milliseconds = (time.perf_counter() - begun) * 1000
    assert isinstance(answer, Answer), "an answer comes last"
    written = "".join(e.text for e in before if isinstance(e, Delta))
    history.append(assistant.turn(answer))
    ranked = [same.get(h.paper.id, h.paper.id) for h in assistant.search(answer.standalone_question, DEPTH)]
    used = answer.usage
    cost = Cost(item.id, round(milliseconds, 2), used.prompt_tokens if used else None, used.completion_tokens if used else None)
    cited = list(dict.fromkeys(same.get(s.paper.id, s.paper.id) for s in answer.sources))
    return row(item, answer, gold, ranked, cited, lambda claim, texts: assistant.check(claim, texts).supported, written), cost


def row(
    item: Item,
    answer: Answer,
    gold: Sequence[str],
    ranked: Sequence[str],
    cited: Sequence[str],
    supports: Callable[[str, Sequence[str]], bool],
    written: str = "",
) -> Row:
    """One question with its measures. Ranking is measured wherever a paper is right; the answer where there is one.

    Args:
        gold: ids of the right papers.
        ranked: ids of the papers found, best first.
        cited: ids of the papers that the answer cites.
        supports: the support check.
        written: what a language model wrote, before it was checked.
    """
    measures: dict[str, float | None] = {}
    if gold:
        measures |= {f"recall_{k}": retrieval_metrics.recall(ranked, gold, k) for k in (1, 5, 10)}
        measures["ndcg_10"] = retrieval_metrics.ndcg(ranked, gold, 10)
        measures["reciprocal_rank"] = retrieval_metrics.reciprocal_rank(ranked, gold)
        measures["average_precision"] = retrieval_metrics.average_precision(ranked, gold)
    declined = answer.outcome != "answered"
    correct = declined
    if item.outcome == "answered":
        matched = citation_metrics.answer_match(answer, item.answers)
        correct = matched and not declined
        measures["answer_match"] = float(matched)
        measures["right_paper_cited"] = float(any(i in cited for i in gold))
        measures["cited_precision"] = citation_metrics.cited_precision(cited, gold)
        measures["cited_recall"] = citation_metrics.cited_recall(cited, gold)
    measures["citation_precision"] = citation_metrics.citation_precision(answer, supports)
    measures["citation_recall"] = citation_metrics.citation_recall(answer, supports)
    measures["support_rate"] = citation_metrics.support_rate(answer)
    measures |= {"faithful": float(citation_metrics.faithful(answer)), "declined": float(declined), "correct": float(correct)}
    return Row(
        id=item.id,
        group=item.group,
        kind=item.kind,
        split=item.split,
        question=item.question,
        standalone_question=answer.standalone_question,
        expected=item.answers,
        wanted=item.outcome,
        outcome=answer.outcome,
        hedged=answer.hedged,
        confidence=round(answer.confidence, 6),
        answer=answer.text,
        notices=answer.notices,
        papers=tuple(f"{file} {position}" for file, position in item.papers),
        gold=tuple(gold),
        ranked=tuple(ranked),
        cited=tuple(cited),
        measures={name: None if value is None else round(value, 6) for name, value in measures.items()},
        mode=answer.mode,
        written=written,
        sentences=tuple(Said(s.text, s.citations, s.support, s.reason) for s in answer.sentences),
        repaired=answer.repairs.corrected + answer.repairs.added + answer.repairs.taken,
    )
