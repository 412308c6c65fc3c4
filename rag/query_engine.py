"""The query engine: retrieve, judge, synthesise (by a language model or by quoting), verify. Streams events, the checked answer last.

    question -> reading -> hits -> judgement -> llm: text live, each sentence checked once complete | extractive: quotes -> Answer

It is a LlamaIndex query engine: `query(question)` returns a Response whose metadata holds the whole `Answer` under "answer".
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import RESPONSE_TYPE, Response
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import NodeWithScore, QueryBundle

from rag import extractive
from rag.cancelling import Cancel
from rag.errors import LLMBrokenStreamError, LLMError
from rag.evidence import EvidenceFinder
from rag.filters import matches
from rag.finding import Found, Search
from rag.llm import ChatModel
from rag.markup import plain
from rag.reading import Reading, read
from rag.records import BY_PAPER, Answer, Event, Filters, Hit, Judgement, Mode, Paper, Progress, Repairs, Sentence, Source, Usage
from rag.retrieval import HybridRetriever, to_node
from rag.store import Store

#: Most papers of a list, unless the caller says how many sources; more could not be read. The longest gold list has 20.
LISTED = 25
#: Papers offered where nothing is about the question.
NEAREST = 3


@dataclass(frozen=True, slots=True)
class Request:
    """One question, ready to be answered.

    `fall_back` says whether a failing language model may be replaced by quotes, `infer` whether filters are read out of the question's words,
    `dropped` which of them do not hold;
    `listed` is the most papers of a list, `sources` of any other answer; `strict` leaves out what no abstract supports;
    `cancel` ends it from another thread: the events then end without an answer.
    """

    question: str
    standalone_question: str
    mode: Mode
    sources: int
    top_k: int = 8
    filters: Filters = field(default_factory=Filters)
    fall_back: bool = True
    notices: tuple[str, ...] = ()
    listed: int = LISTED
    infer: bool = True
    strict: bool = False
    dropped: tuple[Filters, ...] = ()
    cancel: Cancel = field(default_factory=Cancel)


@dataclass(slots=True)
class _Run:
    """What is known of a question while it is being answered."""

    request: Request
    reading: Reading
    found: Found
    notices: list[str]
    timings: dict[str, float]
    model: str | None = None
    usage: Usage | None = None
    repairs: Repairs = field(default_factory=Repairs)
    last: float = field(default_factory=time.perf_counter)

    @property
    def most(self) -> int:
        """Most papers that the answer may cite."""
        return self.request.listed if self.found.kind in BY_PAPER else self.request.sources

    def clock(self, stage: str) -> None:
        """Books the time since the last call under a stage."""
        now = time.perf_counter()
        self.timings[stage] = self.timings.get(stage, 0.0) + (now - self.last) * 1000
        self.last = now


class AbstractsQueryEngine(BaseQueryEngine):
    """Answers questions from the papers of one collection.

    Args:
        store, retriever, finder: the collection, and how it is searched.
        chat: the language model; None where none is configured.
        defaults: what `query` uses beside its question.
    """

    def __init__(self, store: Store, retriever: HybridRetriever, finder: EvidenceFinder, chat: ChatModel | None, defaults: Request) -> None:
        super().__init__(callback_manager=None)
        self._store, self._retriever, self._finder, self._chat, self._defaults = store, retriever, finder, chat, defaults

    def stream(self, request: Request) -> Generator[Event, None, None]:
        """Answers a question: what is being done, a language model's text as it comes, its sentences once checked, and last the checked answer.

        What was cancelled ends without an answer.

        Raises:
            LLMError: the language model failed and `request.fall_back` is off.
            StoreError: the index cannot be read.
        """
        yield Progress("Searching")
        begun = time.perf_counter()
        papers = self._store.papers
        reading = read(request.standalone_question, papers.values(), request.filters, infer=request.infer, dropped=request.dropped)
        found = Search(papers, self._retriever, self._finder).find(reading, max(request.top_k, request.sources), extractive=request.mode == "extractive")
        run = _Run(request, reading, found, [*request.notices, *reading.notices, *found.notices], {}, last=begun)
        run.clock("retrieve")
        left_out = [f"“{plain(h.paper.title or h.paper.label)}”" for h in found.hits[request.sources :]] if found.kind == "compare" else []
        if left_out:
            run.notices.append(f"Also named, but past the number of sources: {', '.join(left_out)}.")
        answer = None
        # What the metadata tell is no question to a model.
        if request.mode == "llm" and found.hits and found.kind != "metadata":
            try:
                answer = yield from self._written(run)
            except LLMError as error:
                if not request.fall_back:
                    raise
                broke_off = " What it had written is not shown." if isinstance(error, LLMBrokenStreamError) else ""
                run.notices.append(f"The language model failed, so this answer quotes the abstracts instead. {error}{broke_off}")
                run.model = run.usage = None
        if not request.cancel.cancelled:
            yield answer or self._quoted(run)

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """The papers for a question, best first."""
        return self._retriever.retrieve(query_bundle)

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        question = query_bundle.query_str
        d = self._defaults
        request = replace(d, question=question, standalone_question=question)
        answer = next(e for e in self.stream(request) if isinstance(e, Answer))
        nodes = [to_node(Hit(s.paper, s.score)) for s in answer.sources]
        return Response(response=answer.text, source_nodes=nodes, metadata={"answer": answer})

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return self._query(query_bundle)

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}

    def _written(self, run: _Run) -> Generator[Event, None, Answer | None]:
        """Has the language model write; nothing if what it wrote has no support at all, or was ended."""
        from rag.writing import written  # what it needs takes a while to import, and quotes need none of it

        assert self._chat is not None, "mode llm needs a chat model"
        request, found = run.request, run.found
        given = found.hits[: request.sources if found.kind == "compare" else min(request.top_k, run.most)]
        run.model = self._chat.model
        text = yield from written(self._chat, request.standalone_question, given, found.kind, self._finder, request.cancel, strict=request.strict)
        run.timings |= text.timings
        run.last = time.perf_counter()
        run.usage, run.repairs = text.usage, text.repairs
        run.notices += text.notices
        if text.declined:
            return self._declined_by_model(run)
        if not text.sentences:
            run.model = None
            return None
        judgement = replace(found.judgement, outcome="answered")
        fitting = {n for s in text.sentences if s.support == "supported" for n in s.citations}
        lead = extractive.counted(len(fitting), len(given)) if found.kind == "count" else ""
        return self._answer(run, "llm", judgement, lead, text.sentences, text.sources)

    def _declined_by_model(self, run: _Run) -> Answer:
        """An honest decline that the language model chose."""
        if run.found.judgement.outcome == "no_paper":
            return self._nothing(run, "llm")
        judgement = Judgement("not_in_abstract", run.found.judgement.confidence, False)
        return self._answer_from(run, "llm", judgement)

    def _quoted(self, run: _Run) -> Answer:
        """The extractive answer."""
        if run.found.judgement.outcome == "no_paper":
            return self._nothing(run, "extractive")
        return self._answer_from(run, "extractive", run.found.judgement)

    def _answer_from(self, run: _Run, mode: Mode, judgement: Judgement) -> Answer:
        found = run.found
        task = extractive.Task(found.topic, found.kind, judgement, run.most, found.searched, found.frame, run.reading.filters.code)
        draft = extractive.compose(task, found.hits, self._finder)
        run.clock("quote")
        # A claim that no sentence decides is answered with care, however near the sentence.
        judgement = replace(judgement, hedged=judgement.hedged or draft.lead == extractive.UNDECIDED)
        return self._answer(run, mode, judgement, draft.lead, draft.sentences, draft.sources)

    def _nothing(self, run: _Run, mode: Mode) -> Answer:
        """The answer that nothing here is about the question: what was searched, and what is nearest."""
        here = self._store.papers.values()
        allowed = [p for p in here if matches(p, run.reading.filters)]
        searched = f"Searched: {searched_of(allowed)}" if allowed else f"Here are {searched_of(list(here))}"
        lead = run.found.frame or ("No abstract here addresses this." if run.found.kind == "claim" else "No abstract here answers this.")
        return self._answer(run, mode, run.found.judgement, lead if run.reading.within else f"{lead} {searched}.", (), ())

    def _answer(self, run: _Run, mode: Mode, judgement: Judgement, lead: str, sentences: Sequence[Sentence], sources: Sequence[Source]) -> Answer:
        r = run.request
        return Answer(
            question=r.question,
            standalone_question=r.standalone_question,
            mode=mode,
            kind=run.found.kind,
            outcome=judgement.outcome,
            confidence=judgement.confidence,
            hedged=judgement.hedged,
            lead=lead,
            sentences=tuple(sentences),
            sources=tuple(sources),
            nearest=tuple(run.found.hits[:NEAREST]) if judgement.outcome == "no_paper" else (),
            filters=run.reading.filters,
            notices=tuple(dict.fromkeys(run.notices)),
            model=run.model if mode == "llm" else None,
            timings_ms=dict(run.timings),
            usage=run.usage,
            repairs=run.repairs,
            searched=run.found.searched,
        )


def searched_of(papers: Sequence[Paper]) -> str:
    """What was searched, in words: "95 abstracts, ICLR and ICML 2024"."""
    count = f"{len(papers):,} abstract{'' if len(papers) == 1 else 's'}" if papers else "no abstracts"
    years: dict[int | None, set[str]] = {}
    for p in papers:
        if p.venue:
            years.setdefault(p.year, set()).add(p.venue)
    parts = [f"{' and '.join(sorted(v))}{f' {y}' if y else ''}" for y, v in sorted(years.items(), key=lambda x: x[0] or 0)]
    return ", ".join([count, *parts[:4]]) + (" and others" if len(parts) > 4 else "")
