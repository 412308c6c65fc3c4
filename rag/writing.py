"""A language model writes, and each sentence is checked as it completes; what stands at the end is told apart from a decline and from inventions."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from rag.budget import BudgetedStream
from rag.cancelling import Cancel
from rag.checking import Checking
from rag.citations import Finding
from rag.evidence import EvidenceFinder
from rag.llm import ChatModel
from rag.markers import without_cut
from rag.numbering import Sheet
from rag.records import Delta, Event, Hit, Kind, Progress, Repairs, Sentence, Source, Usage, Verified
from rag.unclaimed import is_phrase


@dataclass(slots=True)
class Written:
    """What a model wrote, checked. Without sentences nothing of it is to be shown; `declined`: since it said that the abstracts do not answer."""

    sentences: tuple[Sentence, ...] = ()
    sources: tuple[Source, ...] = ()
    notices: list[str] = field(default_factory=list)
    repairs: Repairs = field(default_factory=Repairs)
    usage: Usage | None = None
    declined: bool = False
    timings: dict[str, float] = field(default_factory=dict)


def written(
    chat: ChatModel, question: str, given: Sequence[Hit], kind: Kind, finder: EvidenceFinder, cancel: Cancel, *, strict: bool
) -> Generator[Event, None, Written]:
    """Has a model answer from some papers. Yields its text as it comes and its sentences once checked; nothing stands if it was cancelled.

    Args:
        question: stand-alone.
        given: what it may cite, numbered from 1.
        strict: leave out what no abstract supports.

    Raises:
        LLMError: the model failed.
    """
    begun = time.perf_counter()
    yield Progress(f"Asking {chat.model} at {chat.host}")
    out = Written()
    budgeted = BudgetedStream(chat, question, [h.paper for h in given], kind, finder)
    with budgeted as stream, cancel.ending(stream.close), Checking(given, finder) as checking:
        live = _Live(len(given), strict=strict)
        for piece in stream:
            yield Delta(piece)
            checking.follow(stream.text)
            yield from live.take(checking.ready())
        text, out.usage = stream.text, stream.usage
        out.notices += stream.notices
        if stream.truncated:
            whole = without_cut(text)
            what = "what it broke off in is left out" if whole != text else "more may have followed"
            out.notices.append(f"The language model stopped before its end, as a rule at its length limit (ASK_MAX_TOKENS); {what}.")
            text = whole
        ended = time.perf_counter()
        out.timings["write"] = (ended - begun) * 1000
        if cancel.cancelled:
            return out
        yield Progress("Checking")
        claims = checking.finish(text)
    findings = [f for _, f in claims if f is not None]
    sheet = Sheet(len(given), strict=strict)
    for finding in findings:
        sheet.add(finding)
    checked = sheet.checked()
    out.timings["check"] = (time.perf_counter() - ended) * 1000
    stands = any(f.support == "supported" or f.uncompared for f in findings)
    if len(findings) < len(claims):
        # The phrase says it of the whole question. In other words, and beside what has support, it is said of a part.
        if not stands or is_phrase(claims[0][0].text):
            if findings:
                out.notices.append(f"{chat.model} declined; what else it wrote is not shown.")
            out.declined, out.repairs = True, Repairs(replaced=len(findings))
            return out
        out.notices.append(f"{chat.model} added that the abstracts do not answer all of this.")
    out.notices += checked.notices
    if stands and checked.sentences:
        out.sentences, out.sources, out.repairs = checked.sentences, checked.sources, checked.repairs
    else:
        out.notices.append(f"Nothing that {chat.model} wrote is supported by the abstracts, so this answer quotes them instead.")
        out.repairs = Repairs(set_aside=checked.repairs.set_aside, replaced=len(findings))
    return out


class _Live:
    """Findings as events while the answer is being written. What has no support waits until something has: an answer without any is replaced."""

    def __init__(self, given: int, *, strict: bool) -> None:
        self._sheet = Sheet(given, strict=strict)
        self._held: list[Verified] = []
        self._stands = False

    def take(self, findings: Sequence[Finding]) -> list[Verified]:
        """The sentences that can be shown now."""
        for finding in findings:
            self._stands |= finding.support == "supported"
            if (sentence := self._sheet.add(finding)) is not None:
                self._held.append(Verified(sentence))
        shown = self._held if self._stands else []
        self._held = [] if self._stands else self._held
        return shown
