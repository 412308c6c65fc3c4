"""The query engine: retrieve, judge, synthesise (by a language model or by quoting), verify. Streams events, the checked answer last.

    question -> hits -> judgement -> llm: text live, then claims checked against their abstracts | extractive: quotes -> Answer

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

from rag import citations, extractive
from rag.answerable import judge
from rag.errors import LLMBrokenStreamError, LLMError
from rag.evidence import EvidenceFinder
from rag.filters import matches
from rag.kinds import is_foreign, kind_of, names_in, topic_of
from rag.llm import ChatModel
from rag.markup import plain
from rag.names import named_papers
from rag.prompts import CANNOT_ANSWER, answer_messages
from rag.records import Answer, Delta, Event, Filters, Hit, Judgement, Kind, Mode, Paper, Progress, Sentence, Source, Usage
from rag.retrieval import HybridRetriever, to_node
from rag.store import Store
from rag.text import tokens

#: Papers looked at for a list; the longest list that the seeds' gold questions want has fewer.
LIST_PAPERS = 12
#: Papers offered where nothing is about the question.
NEAREST = 3


@dataclass(frozen=True, slots=True)
class Request:
    """One question, ready to be answered. `fall_back` says whether a failing language model may be replaced by quotes."""

    question: str
    standalone_question: str
    mode: Mode
    sources: int
    top_k: int = 8
    filters: Filters = field(default_factory=Filters)
    fall_back: bool = True
    notices: tuple[str, ...] = ()


@dataclass(slots=True)
class _Run:
    """What is known of a question while it is being answered."""

    request: Request
    kind: Kind
    topic: str
    hits: list[Hit]
    judgement: Judgement
    notices: list[str]
    timings: dict[str, float]
    model: str | None = None
    usage: Usage | None = None
    last: float = field(default_factory=time.perf_counter)

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
        """Answers a question: what is being done, the unchecked text as a language model writes it, and last the checked answer.

        Raises:
            LLMError: the language model failed and `request.fall_back` is off.
            StoreError: the index cannot be read.
        """
        yield Progress("Searching")
        kind, topic = kind_of(request.standalone_question), topic_of(request.standalone_question)
        foreign = request.mode == "extractive" and is_foreign(request.standalone_question)
        names = names_in(topic) if foreign else ()
        topic = " ".join(names) or topic
        run = _Run(request, kind, topic, [], Judgement("no_paper", 0.0, False), list(request.notices), {})
        wanted = max(request.top_k, request.sources, LIST_PAPERS if run.kind == "list" else 0)
        run.hits = self._retriever.search(run.topic, wanted, request.filters)
        run.clock("retrieve")
        run.judgement = judge(run.topic, run.hits, self._finder)
        if run.kind != "list":
            self._set_sides(run)
        if foreign:
            self._by_names(run, names)
        run.clock("judge")
        answer = None
        if request.mode == "llm" and run.hits:
            try:
                answer = yield from self._written(run)
            except LLMError as error:
                if not request.fall_back:
                    raise
                broke_off = " What it had written is not shown." if isinstance(error, LLMBrokenStreamError) else ""
                run.notices.append(f"The language model failed, so this answer quotes the abstracts instead. {error}{broke_off}")
                run.model = run.usage = None
        yield answer or self._quoted(run)

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """The papers for a question, best first."""
        return self._retriever.retrieve(query_bundle)

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        question = query_bundle.query_str
        d = self._defaults
        request = Request(question, question, d.mode, d.sources, d.top_k, d.filters, d.fall_back, d.notices)
        answer = next(e for e in self.stream(request) if isinstance(e, Answer))
        nodes = [to_node(Hit(s.paper, s.score)) for s in answer.sources]
        return Response(response=answer.text, source_nodes=nodes, metadata={"answer": answer})

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return self._query(query_bundle)

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}

    def _written(self, run: _Run) -> Generator[Event, None, Answer | None]:
        """Has the language model write, and checks each sentence; nothing if the answer has no support at all."""
        assert self._chat is not None, "mode llm needs a chat model"
        given = run.hits[: min(run.request.top_k, run.request.sources)] if run.kind != "compare" else run.hits[: run.request.sources]
        yield Progress(f"Asking {self._chat.model} at {self._chat.host}")
        papers = [h.paper for h in given]
        run.model = self._chat.model
        with self._chat.stream(answer_messages(run.request.standalone_question, papers, [plain(p.text) for p in papers], run.kind)) as stream:
            for piece in stream:
                yield Delta(piece)
            text, run.usage = stream.text, stream.usage
            if stream.truncated:
                run.notices.append("The language model stopped at its length limit; the last sentence may be cut (ASK_MAX_TOKENS).")
        run.clock("write")
        yield Progress("Checking")
        claims = [c for c in citations.parse(text) if CANNOT_ANSWER.rstrip(".").casefold() not in c.text.casefold()]
        if CANNOT_ANSWER.rstrip(".").casefold() in text.casefold():
            if not claims:
                return self._declined_by_model(run)
            run.notices.append(f"{self._chat.model} added that the abstracts do not answer all of this.")
        checked = citations.check(claims, given, self._finder)
        run.clock("check")
        run.notices += checked.notices
        if not any(s.support == "supported" for s in checked.sentences):
            run.notices.append(f"Nothing that {self._chat.model} wrote is supported by the abstracts, so this answer quotes them instead.")
            run.model = None
            return None
        judgement = replace(run.judgement, outcome="answered")
        return self._answer(run, "llm", judgement, "", checked.sentences, checked.sources)

    def _set_sides(self, run: _Run) -> None:
        """Makes a question that names several papers a comparison of these, each of them read; a side is never left out silently."""
        named = named_papers(run.topic, (p for p in self._store.papers.values() if matches(p, run.request.filters)))
        if len(named) < 2:
            return
        scores = {h.paper.id: h for h in run.hits}
        run.kind = "compare"
        run.hits = [scores.get(p.id, Hit(p, 0.0)) for p in named]
        left_out = [f"“{plain(h.paper.title or h.paper.label)}”" for h in run.hits[run.request.sources :]]
        if left_out:
            run.notices.append(f"Also named, but past the number of sources: {', '.join(left_out)}.")
        if run.judgement.outcome != "answered":
            run.judgement = replace(run.judgement, outcome="answered", hedged=True)

    def _by_names(self, run: _Run, names: Sequence[str]) -> None:
        """Hedges what was found for the names of a question in another language, if the first paper holds at least half of them."""
        run.notices.append("Without a language model only English is understood; of this question nothing but its names could be matched.")
        told = set(tokens(f"{run.hits[0].paper.title or ''} {run.hits[0].paper.text}")) if run.hits else set()
        found = bool(names) and 2 * sum(set(tokens(name)) <= told for name in names) >= len(names)
        # Names that match say little of what was asked, however near they are.
        confidence = min(run.judgement.confidence, 0.5)
        run.judgement = Judgement("answered" if found else "no_paper", confidence, hedged=found)

    def _declined_by_model(self, run: _Run) -> Answer:
        """An honest decline that the language model chose."""
        if run.judgement.outcome == "no_paper":
            return self._nothing(run, "llm")
        judgement = Judgement("not_in_abstract", run.judgement.confidence, False)
        return self._answer_from(run, "llm", judgement)

    def _quoted(self, run: _Run) -> Answer:
        """The extractive answer."""
        if run.judgement.outcome == "no_paper":
            return self._nothing(run, "extractive")
        return self._answer_from(run, "extractive", run.judgement)

    def _answer_from(self, run: _Run, mode: Mode, judgement: Judgement) -> Answer:
        draft = extractive.compose(run.topic, run.kind, run.hits, self._finder, judgement, run.request.sources)
        run.clock("quote")
        return self._answer(run, mode, judgement, draft.lead, draft.sentences, draft.sources)

    def _nothing(self, run: _Run, mode: Mode) -> Answer:
        """The answer that nothing here is about the question: what was searched, and what is nearest."""
        searched = searched_of([p for p in self._store.papers.values() if matches(p, run.request.filters)])
        return self._answer(run, mode, run.judgement, f"No abstract here answers this. Searched: {searched}.", (), ())

    def _answer(self, run: _Run, mode: Mode, judgement: Judgement, lead: str, sentences: Sequence[Sentence], sources: Sequence[Source]) -> Answer:
        r = run.request
        return Answer(
            question=r.question,
            standalone_question=r.standalone_question,
            mode=mode,
            kind=run.kind,
            outcome=judgement.outcome,
            confidence=judgement.confidence,
            hedged=judgement.hedged,
            lead=lead,
            sentences=tuple(sentences),
            sources=tuple(sources),
            nearest=tuple(run.hits[:NEAREST]) if judgement.outcome == "no_paper" else (),
            filters=r.filters,
            notices=tuple(dict.fromkeys(run.notices)),
            model=run.model if mode == "llm" else None,
            timings_ms=dict(run.timings),
            usage=run.usage,
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
