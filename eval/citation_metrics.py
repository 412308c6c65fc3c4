"""Metrics of one answer: does it hold an accepted string, does it cite the right papers, do its sentences stand."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from rag.assistant import plain
from rag.records import Answer, Paper, Sentence

#: Whether one of some texts supports a claim: `Assistant.check(claim, texts).supported`. It gets a tuple, so that it can be cached.
Supports = Callable[[str, Sequence[str]], bool]


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


def citation_recall(answer: Answer, supports: Supports) -> float | None:
    """Share of the sentences that the texts they cite, taken as one, support (ALCE: Gao et al. 2023, arXiv 2305.14627, 3.3).

    A sentence without a citation counts as not supported. Nothing where the answer has no sentence.
    """
    stand = [_supported(s.text, _cited(answer, s), supports) for s in answer.sentences]
    return sum(stand) / len(stand) if stand else None


def citation_precision(answer: Answer, supports: Supports) -> float | None:
    """Share of the citations that stand at a supported sentence and are not irrelevant (ALCE: Gao et al. 2023, 3.3).

    One is irrelevant where it does not support its sentence alone and the sentence's other citations do so without it. Nothing where
    the answer has no citation.
    """
    precise = []
    for sentence in answer.sentences:
        texts = _cited(answer, sentence)
        stands = _supported(sentence.text, texts, supports)
        for n, text in enumerate(texts):
            others = texts[:n] + texts[n + 1 :]
            precise.append(stands and (_supported(sentence.text, [text], supports) or not _supported(sentence.text, others, supports)))
    return sum(precise) / len(precise) if precise else None


def _supported(claim: str, texts: Sequence[str], supports: Supports) -> bool:
    """Whether some texts together support a claim: it may take one half from each, so they are shown as one."""
    return bool(texts) and supports(claim, ("\n\n".join(texts),))


def _cited(answer: Answer, sentence: Sentence) -> list[str]:
    """What a sentence cites, in words; a number that no source has is an empty text, which supports nothing."""
    papers = {s.n: s.paper for s in answer.sources}
    return [_shown(papers[n]) if n in papers else "" for n in sentence.citations]


def _shown(paper: Paper) -> str:
    """The title and the abstract, as in ALCE: the name of a method often stands in the title alone."""
    return f"{paper.title}\n\n{paper.text}" if paper.title else paper.text
