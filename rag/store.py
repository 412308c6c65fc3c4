"""The index on disk: two Chroma collections, `papers` and `passages`, in one folder a collection of ours.

A paper's row is written after its passages, so it marks them as complete: what a kill in mid-write leaves behind is passages
of no known paper, which no search returns and the next ingest overwrites. What is known of its words (`rag/words.py`) is written before both.
A title is part of the paper's vector and of its words; authors, venue and the rest live in metadata only, so that learning them later costs no
embedding. A paper's text is metadata too, and no Chroma document: those are indexed for
full-text search, which is BM25's work here and took a twentieth of the time of an ingest.

Chroma is used through its own client: LlamaIndex's adapter turns cosine distances into exp(-distance), stores each node twice,
and batches by a limit of its own (41,665) that the embedded server (5,461) refuses. `vector_store` is the door for
LlamaIndex pipelines that want the adapter.
"""

from __future__ import annotations

import logging
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from rag.errors import StampError, StoreError
from rag.records import Paper, Passage
from rag.rows import from_metadata, passage_id, to_metadata
from rag.sharing import Sharing
from rag.store_errors import is_theirs, ours
from rag.words import PaperWords, WordsFile

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection
    from llama_index.vector_stores.chroma import ChromaVectorStore

#: Raised when what is stored, or how a text is cut into passages, changes so that an old index would answer wrongly.
SCHEMA_VERSION = 2
#: A write of another `ask` takes a fifth of a second; whoever holds the database for longer is another program, and Chroma would wait on.
BUSY_WAIT_S = 10.0
#: Chroma's default space is l2. Its default search (`ef_search` 100) missed 8% of the 400 nearest of 8,000 vectors, and which ones
#: depended on the order of writing; 2000 missed 0.1% and took no longer (5 ms).
_CONFIGURATION = {"hnsw": {"space": "cosine", "ef_search": 2000}}

Name = Literal["papers", "passages"]
_log = logging.getLogger(__name__)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Entry:
    """A paper with its passages, its words and vectors: `whole` (d,) and `sentences` (passages, d), float32 of length 1."""

    paper: Paper
    passages: tuple[Passage, ...]
    whole: NDArray[np.float32]
    sentences: NDArray[np.float32]
    words: PaperWords


class Store:
    """One collection of papers on disk. Nothing is written before the first call that writes.

    Args:
        folder: where this collection lives; made on the first write. Its lock lies beside it.
        embedder: the id of the embedder, kept with the index; another one is refused.
        dimension: length of its vectors.
    """

    def __init__(self, folder: Path, embedder: str, dimension: int) -> None:
        self.folder = folder
        self.stamp: dict[str, str | int] = {"embedder": embedder, "dimension": dimension, "schema": SCHEMA_VERSION}
        self._sharing = Sharing(folder)
        self._probed = False
        self._words = WordsFile(folder)

    @property
    def seeding(self) -> bool:
        """Whether the bundled papers are being indexed here, or were when that was stopped."""
        return self._sharing.seeding

    @seeding.setter
    def seeding(self, value: bool) -> None:
        with self._errors("written to"):
            self._sharing.seeding = value

    @property
    def exists(self) -> bool:
        """Whether anything was ever written here."""
        return (self.folder / "chroma.sqlite3").exists()

    @cached_property
    def papers(self) -> dict[str, Paper]:
        """Every complete paper by id, in order of id; read once, and again after a write."""
        return {paper.id: paper for paper, _ in self._table}

    @cached_property
    def passage_counts(self) -> dict[str, int]:
        """Paper id to the number of its passages."""
        return {paper.id: count for paper, count in self._table}

    def add(self, entries: Sequence[Entry]) -> None:
        """Writes papers with their passages; one that is there is replaced. Hold `writing()` around it.

        Raises:
            StoreError: the disk is full, the folder cannot be written to, or the index is damaged.
        """
        with self._errors("written to"):
            # Looked at first, so that an index of another stamp is refused before anything is written.
            _ = self._papers, self._passages
            self._words.write({e.paper.id: e.words for e in entries})
            passages = [(p, v) for e in entries for p, v in zip(e.passages, e.sentences, strict=True)]
            for batch in self._batches(passages):
                self._passages.upsert(
                    ids=[passage_id(p.paper_id, p.ordinal) for p, _ in batch],
                    embeddings=np.stack([v for _, v in batch]),
                    documents=[p.text for p, _ in batch],
                    metadatas=[{"paper_id": p.paper_id, "start": p.start, "end": p.end} for p, _ in batch],
                )
            for chunk in self._batches(entries):
                self._papers.upsert(
                    ids=[e.paper.id for e in chunk],
                    embeddings=np.stack([e.whole for e in chunk]),
                    metadatas=[to_metadata(e.paper, len(e.passages)) for e in chunk],
                )
        self._forget()

    def known_words(self) -> dict[str, PaperWords]:
        """What is kept of the words of papers, without their vectors; those of which it is missing, or of an older title, are left out.

        Raises:
            StoreError: the file is damaged or cannot be read.
        """
        if not self.exists:
            return {}
        with self._errors("read"):
            return self._words.read(self.papers)

    def keep_words(self, rows: Mapping[str, PaperWords]) -> None:
        """Writes words that were missing. A disk that takes none is no reason not to answer; each start then makes them again, and the log says so."""
        try:
            with self._errors("written to"):
                self._words.write(rows)
        except StoreError as error:
            _log.warning("The words of %d papers were made again and could not be kept: %s", len(rows), error)

    def word_vectors(self, ids: Sequence[str]) -> dict[str, NDArray[np.int8]]:
        """The vectors of the words of some papers.

        Raises:
            StoreError: the file is damaged or cannot be read.
        """
        with self._errors("read"):
            return self._words.vectors(ids)

    def paper_vectors(self, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """The vectors (d,) of some papers, by id."""
        with self._errors("read"):
            got = self._papers.get(ids=list(ids), include=["embeddings"])
            return {i: np.asarray(v, dtype=np.float32) for i, v in zip(got["ids"], got["embeddings"] if got["embeddings"] is not None else (), strict=True)}

    def update(self, papers: Sequence[Paper]) -> None:
        """Rewrites what is known of papers that are there; text and vectors stay. Hold `writing()` around it.

        Raises:
            StoreError: as for `add`.
        """
        with self._errors("written to"):
            for chunk in self._batches(papers):
                self._papers.update(ids=[p.id for p in chunk], metadatas=[to_metadata(p, self.passage_counts[p.id]) for p in chunk])
        self._forget()

    def nearest_papers(self, vector: NDArray[np.float32], k: int, only: Sequence[str] | None = None) -> list[tuple[str, float]]:
        """Ids and cosines of the k papers whose whole abstract is nearest to a vector (d,), nearest first; of `only` these if given."""
        return self._nearest("papers", vector, k, only)

    def nearest_passages(self, vector: NDArray[np.float32], k: int, only: Sequence[str] | None = None) -> list[tuple[str, float]]:
        """Paper ids and cosines of the k passages nearest to a vector (d,), nearest first; a paper may come more than once.

        They may be of a paper that is not in `papers`: one that an ingest was stopped at.
        """
        ids = None if only is None else [passage_id(p, n) for p in only for n in range(self.passage_counts[p])]
        return [(i.partition(":")[0], cosine) for i, cosine in self._nearest("passages", vector, k, ids)]

    def vector_store(self) -> ChromaVectorStore:
        """LlamaIndex's adapter over the passages, for pipelines built on it; its scores are exp(-distance).

        Raises:
            StoreError: nothing was ever written here.
        """
        from llama_index.vector_stores.chroma import ChromaVectorStore

        if not self.exists:
            raise StoreError(f"There is no index in {self.folder}.", "Add papers with `ask ingest PATH`.")
        return ChromaVectorStore(chroma_collection=self._passages)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Holds the right to write to this collection, across processes.

        Raises:
            LockedError: another process has held it for too long (`sharing.LOCK_WAIT_S`).
        """
        with ExitStack() as turn:
            with self._errors("written to"):
                self.folder.mkdir(parents=True, exist_ok=True)
                turn.enter_context(self._sharing.turn())
                self.changed()
                self._sharing.mark_written()
            try:
                yield
            finally:
                with self._errors("written to"):
                    self._sharing.mark_written()

    def changed(self) -> bool:
        """Whether another process has written since this was last asked; if so, everything is read anew. Costs one `stat`."""
        if not self._sharing.written_since():
            return False
        self.close()
        return True

    def clear(self) -> None:
        """Removes the whole collection from disk, also one that is damaged or of another embedder. Hold `writing()` around it."""
        self.close()
        with self._errors("removed"):
            shutil.rmtree(self.folder)
            self.folder.mkdir(parents=True)

    def check_stamp(self) -> None:
        """Refuses an index of another embedder or schema, before anything is embedded.

        Raises:
            StampError: the stamps differ.
        """
        if self.exists:
            _ = self._papers, self._passages

    def close(self) -> None:
        """Lets go of the files, as soon as no other thread is reading them."""
        self._forget()
        for name in ("_client", "_papers", "_passages"):
            self.__dict__.pop(name, None)
        # Chroma keeps one client a folder, also one that failed to open, and hands it out again. Its own `close` would pull the files
        # from under a search in another thread.
        from chromadb.api.shared_system_client import SharedSystemClient

        SharedSystemClient.clear_system_cache()

    def _forget(self) -> None:
        """Drops what was read, so that the next look reads it anew."""
        for name in ("papers", "passage_counts", "_table"):
            self.__dict__.pop(name, None)

    def _batches(self, rows: Sequence[_T]) -> Iterator[Sequence[_T]]:
        """Rows in batches that Chroma takes."""
        limit = self._client.get_max_batch_size()
        return (rows[i : i + limit] for i in range(0, len(rows), limit))

    @cached_property
    def _table(self) -> list[tuple[Paper, int]]:
        """Every complete paper with the number of its passages, in order of id."""
        if not self.exists:
            return []
        with self._errors("read"):
            got = self._papers.get(include=["metadatas"])
            rows = [from_metadata(i, m) for i, m in zip(got["ids"], got["metadatas"] or (), strict=True)]
        return sorted(rows, key=lambda row: row[0].id)

    def _nearest(self, which: Name, vector: NDArray[np.float32], k: int, ids: Sequence[str] | None) -> list[tuple[str, float]]:
        """Ids and cosines, ties broken by id."""
        if not self.exists:
            return []
        with self._errors("read"):
            collection = self._papers if which == "papers" else self._passages
            if ids is not None and not ids:
                return []
            # Chroma gives what there is where that is fewer than k; counting first takes longer than the search.
            got = collection.query(query_embeddings=vector, n_results=k, include=["distances"], ids=None if ids is None else list(ids))
        pairs = zip(got["ids"][0], (got["distances"] or [[]])[0], strict=True)
        return sorted(((i, 1.0 - float(d)) for i, d in pairs), key=lambda pair: (-pair[1], pair[0]))

    @cached_property
    def _client(self) -> ClientAPI:
        import chromadb
        from chromadb.config import Settings

        with self._errors("opened"):
            if not self._probed and self.exists:
                self._probe()
            return chromadb.PersistentClient(str(self.folder), settings=Settings(anonymized_telemetry=False))

    def _probe(self) -> None:
        """Fails where another program holds the database, or where it is none.

        Only once, before Chroma has the file open: closing a second handle drops a process's locks on it (POSIX).
        """
        with closing(sqlite3.connect(self.folder / "chroma.sqlite3", timeout=BUSY_WAIT_S, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            database.execute("ROLLBACK")
        self._probed = True

    @cached_property
    def _papers(self) -> Collection:
        return self._collection("papers")

    @cached_property
    def _passages(self) -> Collection:
        return self._collection("passages")

    def _collection(self, name: Name) -> Collection:
        """A Chroma collection, made and stamped if it is not there, refused if its stamp is another."""
        with self._errors("opened"):
            collection = self._client.get_or_create_collection(name, embedding_function=None, metadata=dict(self.stamp), configuration=_CONFIGURATION)  # type: ignore[arg-type]
        found = {key: (collection.metadata or {}).get(key) for key in self.stamp}
        if found != self.stamp:
            told = ", ".join(f"{key} {found[key]} instead of {want}" for key, want in self.stamp.items() if found[key] != want)
            raise StampError(f"The index in {self.folder} was made by another version of this program: {told}.", self._rebuild_hint)
        return collection

    @property
    def _rebuild_hint(self) -> str:
        name = "" if self.folder.name == "default" else f"--collection {self.folder.name} "
        return f"Run `ask {name}ingest PATH --rebuild` to make it anew from your files, or delete {self.folder} to start over."

    @contextmanager
    def _errors(self, done: str) -> Iterator[None]:
        """The one door at which Chroma's, SQLite's and the disk's errors become ours."""
        try:
            yield
        except BaseException as error:
            if not is_theirs(error):
                raise
            # A client that failed to open would be handed out again, broken.
            self.close()
            raise ours(error, self.folder, done, self._rebuild_hint) from error
