"""The Python door: builds everything from the settings, and answers.

    from rag.assistant import Assistant
    from rag.settings import Settings

    assistant = Assistant(Settings.load())
    print(assistant.ask("Which papers compress the KV cache?").text)

Heavy parts are built at the first call that needs them, so that an Assistant costs nothing until it is asked.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag.cancelling import Cancel
from rag.errors import UsageError
from rag.export import answer_object, bibtex, markdown, search_object
from rag.feedback import Feedback, gold
from rag.filters import parted
from rag.followups import stand_alone
from rag.kinds import is_foreign
from rag.markup import formulas, plain
from rag.parts import Parts
from rag.records import Answer, Check, Event, Evidence, Filters, Hit, IngestReport, Paper, Turn
from rag.sessions import Sessions
from rag.settings import Settings
from rag.talk import MEMORY, NOTHING_ASKED, is_courtesy

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag.citations import Verdict
    from rag.evidence import EvidenceFinder
    from rag.query_engine import AbstractsQueryEngine

SEEDS = Path(__file__).resolve().parent.parent / "seeds"
#: A question of 100 words has 700 characters; one longer than this is a paste gone wrong.
MAX_QUESTION_CHARS = 5_000

__all__ = ["Assistant", "Cancel", "answer_object", "bibtex", "formulas", "gold", "markdown", "plain", "search_object"]


class Assistant:
    """Answers questions from one collection of papers.

    Args:
        settings: from `Settings.load()`.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._parts = Parts(settings)
        self.sessions = Sessions(settings.home / "sessions")
        self.feedback = Feedback(settings.home / "feedback.sqlite3")

    def ask(self, question: str, **options: Any) -> Answer:
        """The checked answer to a question. Takes the options of `stream`."""
        return next(e for e in self.stream(question, **options) if isinstance(e, Answer))

    def stream(
        self,
        question: str,
        *,
        history: Sequence[Turn] = (),
        filters: Filters | None = None,
        sources: int | None = None,
        mode: str | None = None,
        infer_filters: bool = True,
        dropped: Sequence[Filters] = (),
        cancel: Cancel | None = None,
    ) -> Generator[Event, None, None]:
        """Answers a question: `Progress` and, from a language model, unchecked `Delta` and checked `Verified` events, then the checked `Answer`.

        Args:
            question: as the user wrote it.
            history: the conversation so far, oldest first.
            filters: which papers may be asked; each one given goes before what the question's words say.
            sources: most papers cited; the settings' number if not given.
            mode: `auto`, `extractive` or `llm`; the settings' if not given.
            infer_filters: whether filters are taken out of the question's words ("at ICLR 2024", "but not federated").
            dropped: filters that do not hold although the words say so; the words are not looked for all the same.
            cancel: its `cancel()` ends this from another thread, also while the language model is silent; the events then end without an answer.

        Raises:
            UsageError: the question is empty or too long.
            LLMError: mode is `llm` and the language model failed; in mode `auto` the answer is extractive and says so.
            StoreError, ModelFileError: the index or the local model cannot be used.
        """
        from rag.query_engine import LISTED, Request

        question = clean_question(question)
        self._parts.refresh()
        chosen = self.settings.model_copy(update={"mode": mode or self.settings.mode})
        if history and is_courtesy(question):
            yield Answer(question, question, "extractive", "fact", "no_paper", 0.0, lead=NOTHING_ASKED)
            return
        spelt, read_as = (question, ()) if is_foreign(question) else self._spelt(question)
        cancel = cancel or Cancel()
        standalone, notices = self._stand_alone(spelt, history, chosen, cancel)
        request = Request(
            question,
            standalone,
            chosen.effective_mode,
            sources or self.settings.sources,
            self.settings.top_k,
            parted(filters or Filters()),
            fall_back=chosen.mode == "auto",
            notices=(*(f"Read “{written}” as “{meant}”." for written, meant in read_as), *notices),
            listed=sources or max(self.settings.sources, LISTED),
            infer=infer_filters,
            strict=chosen.strict,
            dropped=tuple(dropped),
            cancel=cancel,
        )
        yield from self.engine(chosen).stream(request)

    def search(self, query: str, k: int = 10, filters: Filters | None = None) -> list[Hit]:
        """The k papers nearest to a query, best first.

        Raises:
            UsageError: the query is empty or too long, or k is below 1.
        """
        if k < 1:
            raise UsageError("At least one result must be asked for.", "Give -k a number from 1.")
        self._parts.refresh()
        return self._parts.retriever.search(clean_question(query), k, parted(filters) if filters else None)

    def ingest(self, paths: Iterable[Path], *, rebuild: bool = False, progress: Callable[[int, int], None] | None = None) -> IngestReport:
        """Adds or updates papers from files or folders; see `indexing.ingest`."""
        from rag import indexing

        report = indexing.ingest(paths, self._parts.store, self._parts.embedder, rebuild=rebuild, progress=progress)
        self._parts.renew()
        return report

    def prepare(self, progress: Callable[[int, int], None] | None = None) -> IngestReport | None:
        """Indexes the bundled seeds where nobody has written to the default collection yet, or this was stopped; else does nothing.

        Raises:
            UsageError: the collection holds no papers, and seeds do not belong in it.
        """
        from rag import indexing

        self._parts.refresh()
        if self.settings.collection == "default":
            report = indexing.seed(SEEDS, self._parts.store, self._parts.embedder, progress)
            if report:
                self._parts.renew()
                return report
        if not self._parts.store.papers:
            name = self.settings.collection
            given = "" if name == "default" else f"--collection {name} "
            raise UsageError(f"The collection {name!r} holds no papers.", f"Add some with `ask {given}ingest PATH`.")
        return None

    def papers(self) -> Sequence[Paper]:
        """Every paper of the collection, in order of id."""
        self._parts.refresh()
        return list(self._parts.store.papers.values())

    def paper(self, name: str) -> Paper:
        """A paper by its id, by the id its input gave, or by "file position".

        Raises:
            UsageError: there is none, or more than one.
        """
        found = [
            p
            for p in self._parts.store.papers.values()
            if name in (p.id, p.source_id) or any(name in (f"{o.file} {o.position}", o.source_id) for o in p.origins)
        ]
        found = found or [p for p in self._parts.store.papers.values() if len(name) >= 4 and p.id.startswith(name)]
        if len(found) != 1:
            raise UsageError(f"{'More than one paper is' if found else 'No paper is'} called {name!r}.", "Find its id with `ask search`.")
        return found[0]

    def status(self) -> dict[str, Any]:
        """What is here: collection, papers, sentences, files, venues, mode, model, folder."""
        papers = self.papers()
        venues: dict[str, int] = {}
        for p in papers:
            venue = " ".join(str(x) for x in (p.venue, p.year) if x) or "no venue"
            venues[venue] = venues.get(venue, 0) + 1
        return {
            "collection": self.settings.collection,
            "papers": len(papers),
            "sentences": sum(self._parts.store.passage_counts.values()),
            "files": sorted({o.file for p in papers for o in p.origins}),
            "venues": dict(sorted(venues.items())),
            "mode": self.settings.effective_mode,
            "model": self.settings.model if self.settings.effective_mode == "llm" else None,
            "home": str(self.settings.home),
        }

    def turn(self, answer: Answer) -> Turn:
        """What a follow-up needs of an answer."""
        return Turn(answer.question, answer.standalone_question, answer.text, tuple(s.paper.id for s in answer.sources))

    def restored(self, given: object) -> Answer:
        """An answer that a browser kept as the JSON object of the contract; see `restoring.answer_from`."""
        from rag.restoring import answer_from

        return answer_from(given, self._parts.store.papers)

    def remembered(self, session: str | None) -> tuple[Turn, ...]:
        """The last turns of a saved conversation; none where no name is given."""
        return self.sessions.turns(session)[-MEMORY:] if session else ()

    def disclosure(self) -> str | None:
        """Which model at which host will see the questions; None where nothing leaves this machine."""
        if self.settings.effective_mode == "extractive" or not (self.settings.openai_api_key or self.settings.openai_base_url):
            return None
        return f"Questions and the abstracts found for them go to {self.settings.model} at {self.settings.llm_host}. ASK_MODE=extractive keeps them here."

    def doctor(self) -> Iterator[Check]:
        """Looks at everything an answer needs."""
        from rag import doctor

        return doctor.examine(self.settings, self._parts.store, self._parts.embedder)

    def check(self, claim: str, texts: Sequence[str]) -> Verdict:
        """Whether any of some texts supports a claim; for the eval suite."""
        from rag.citations import verify_text

        return verify_text(claim, texts, self.finder)

    def evidence(self, question: str, text: str) -> list[Evidence]:
        """The sentences of a text that bear on a question, best first; for the eval suite."""
        return self.finder.rank(question, text)

    def stamp(self) -> dict[str, str | int]:
        """What the index is made with: embedder, dimension, layout; for the eval suite."""
        return dict(self._parts.store.stamp)

    def duplicates(self) -> Mapping[str, frozenset[str]]:
        """The group of each paper that is one work with another, by id; for the eval suite."""
        self._parts.refresh()
        return self._parts.retriever.duplicates

    def embedding_seconds(self, texts: Sequence[str], titles: Sequence[str]) -> float:
        """Seconds that the embedder alone takes for texts cut into sentences beforehand, and their titles; for the bench."""
        from rag.evidence import cut

        sentences = [[plain(p.text) for p in cut(text, "")] for text in texts]
        named = [plain(t) for t in titles]
        begun = time.perf_counter()
        for _ in self._parts.embedder.embed_papers(sentences, titles=named):
            pass
        return time.perf_counter() - begun

    def signals(self, question: str) -> Mapping[str, float]:
        """What the decision to decline is made from; for the eval suite."""
        from rag.answerable import signals
        from rag.reading import read

        reading = read(question, self._parts.store.papers.values(), Filters())
        topic = reading.topic or question
        return signals(topic, self._parts.retriever.search(topic, self.settings.top_k, reading.filters), self.finder)

    def engine(self, settings: Settings | None = None) -> AbstractsQueryEngine:
        """The LlamaIndex query engine over this collection.

        Raises:
            LLMAuthError: mode is `llm` and there is no key for a server that needs one.
        """
        from rag.query_engine import AbstractsQueryEngine, Request

        chosen = settings or self.settings
        chat = self._parts.chat if chosen.effective_mode == "llm" else None
        defaults = Request("", "", chosen.effective_mode, chosen.sources, chosen.top_k, fall_back=chosen.mode == "auto", strict=chosen.strict)
        return AbstractsQueryEngine(self._parts.store, self._parts.retriever, self.finder, chat, defaults)

    def _spelt(self, question: str) -> tuple[str, tuple[tuple[str, str], ...]]:
        """The question with names and words as the collection writes them, and which were changed."""
        named, names = self._parts.forms.repair(question)
        spelt, words = self._parts.vocabulary.repair(named)
        return spelt, (*names, *words)

    def _stand_alone(self, question: str, history: Sequence[Turn], chosen: Settings, cancel: Cancel) -> tuple[str, tuple[str, ...]]:
        """The question put so that it needs no history, by the language model where there is one, and notices about that."""
        by_rules = stand_alone(question, history, self._parts.store.papers) if history else question
        if not history or chosen.effective_mode != "llm":
            return by_rules, ()
        from rag.rewrite import rewritten

        return rewritten(question, history, by_rules, self._parts.store.papers, self._parts.chat, cancel)

    @property
    def finder(self) -> EvidenceFinder:
        """Finds sentences and compares texts word by word; for the eval suite and for tests."""
        return self._parts.finder


def clean_question(question: str) -> str:
    """A question without control characters and outer space.

    Raises:
        UsageError: nothing is left, or it is too long.
    """
    kept = "".join(c if c.isprintable() else " " for c in question)
    cleaned = " ".join(kept.split())
    if not any(c.isalnum() for c in cleaned):
        raise UsageError("The question is empty.", 'Ask one in quotes: ask "Which papers compress the KV cache?"')
    if len(cleaned) > MAX_QUESTION_CHARS:
        raise UsageError(f"The question has {len(cleaned):,} characters; at most {MAX_QUESTION_CHARS:,} are read.", "Shorten it to what you want to know.")
    return cleaned
