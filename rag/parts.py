"""The parts of an assistant: each built from the settings at the first call that needs it, and anew once the papers have changed."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from rag.settings import Settings

if TYPE_CHECKING:
    from rag.embeddings import LocalEmbedding
    from rag.evidence import EvidenceFinder
    from rag.forms import NameForms
    from rag.lexical import LexicalIndex
    from rag.llm import ChatModel
    from rag.retrieval import HybridRetriever
    from rag.spelling import Vocabulary
    from rag.store import Store
    from rag.words import Words


class Parts:
    """What an assistant works with, for one collection.

    Args:
        settings: from `Settings.load()`.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @cached_property
    def embedder(self) -> LocalEmbedding:
        """The local model."""
        from rag.embeddings import LocalEmbedding

        return LocalEmbedding()

    @cached_property
    def store(self) -> Store:
        """The index of the settings' collection."""
        from rag.embeddings import DIMENSION, EMBEDDER_ID
        from rag.store import Store

        return Store(self._settings.home / "collections" / self._settings.collection, EMBEDDER_ID, DIMENSION)

    @cached_property
    def lexical(self) -> LexicalIndex:
        """BM25 over its papers."""
        from rag.lexical import LexicalIndex

        return LexicalIndex(self.store.papers, self.words.stems)

    @cached_property
    def words(self) -> Words:
        """What is known of its papers' words."""
        from rag import indexing

        return indexing.words(self.store, self.embedder)

    @cached_property
    def retriever(self) -> HybridRetriever:
        """Ranks its papers."""
        from rag.retrieval import HybridRetriever

        return HybridRetriever(self.store, self.lexical, self.words, self.embedder, self._settings.top_k)

    @cached_property
    def finder(self) -> EvidenceFinder:
        """Finds sentences and compares texts word by word."""
        from rag.evidence import EvidenceFinder

        return EvidenceFinder(self.lexical, self.embedder)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The words that questions are spelt by."""
        from rag.spelling import Vocabulary

        _, tokenizer = self.embedder.load()
        return Vocabulary(self.store.papers.values(), {w for w in tokenizer.get_vocab() if w.isalpha()})

    @cached_property
    def forms(self) -> NameForms:
        """The forms of names that its papers use."""
        from rag.forms import NameForms

        return NameForms(self.words.holders, self.store.papers.values())

    @cached_property
    def chat(self) -> ChatModel:
        """The language model."""
        from rag.llm import ChatModel

        return ChatModel.from_settings(self._settings)

    def refresh(self) -> None:
        """Takes up what another process has written since the last question, as an `ask ingest` beside an open page does."""
        if self.store.changed():
            self.renew()

    def renew(self) -> None:
        """Drops what was built from the papers, after they have changed."""
        for name in ("words", "lexical", "retriever", "finder", "vocabulary", "forms"):
            self.__dict__.pop(name, None)
