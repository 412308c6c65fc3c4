"""The index on disk: two Chroma collections, `papers` and `passages`, in one folder a collection of ours.

A paper's row is written after its passages, so it marks them as complete: what a kill in mid-write leaves behind is passages
of no known paper, which no search returns and the next ingest overwrites. Titles and the rest live in metadata only, never in
a vector, so that naming a paper later costs no embedding.

Chroma is used through its own client: LlamaIndex's adapter turns cosine distances into exp(-distance), stores each node twice,
and batches by a limit of its own (41,665) that the embedded server (5,461) refuses. `vector_store` is the door for
LlamaIndex pipelines that want the adapter.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from rag.errors import LockedError, StampError, StoreError
from rag.records import Origin, Paper, Passage

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection
    from llama_index.vector_stores.chroma import ChromaVectorStore

#: Raised when what is stored, or how a text is cut into passages, changes so that an old index would answer wrongly.
SCHEMA_VERSION = 1
#: Two first questions asked at once both want to index the seeds (4 s here); the second waits for the first.
LOCK_WAIT_S = 120.0
REBUILD_HINT = "Run `ask ingest PATH --rebuild` to make the index anew from your files."
#: Chroma's default space is l2.
_CONFIGURATION = {"hnsw": {"space": "cosine"}}


@dataclass(frozen=True, slots=True)
class Entry:
    """A paper with its passages and vectors: `whole` (d,) and `sentences` (passages, d), float32 of length 1."""

    paper: Paper
    passages: tuple[Passage, ...]
    whole: NDArray[np.float32]
    sentences: NDArray[np.float32]


class Store:
    """One collection of papers on disk. Nothing is touched before the first call that needs it.

    Args:
        folder: where this collection lives; made on the first write.
        embedder: the id of the embedder, kept with the index; another one is refused.
        dimension: length of its vectors.
    """

    def __init__(self, folder: Path, embedder: str, dimension: int) -> None:
        self.folder = folder
        self.stamp: dict[str, str | int] = {"embedder": embedder, "dimension": dimension, "schema": SCHEMA_VERSION}

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
            limit = self._client.get_max_batch_size()
            passages = [(p, v) for e in entries for p, v in zip(e.passages, e.sentences, strict=True)]
            for batch in (passages[i : i + limit] for i in range(0, len(passages), limit)):
                self._passages.upsert(
                    ids=[_passage_id(p.paper_id, p.ordinal) for p, _ in batch],
                    embeddings=np.stack([v for _, v in batch]),
                    documents=[p.text for p, _ in batch],
                    metadatas=[{"paper_id": p.paper_id, "ordinal": p.ordinal, "start": p.start, "end": p.end} for p, _ in batch],
                )
            for chunk in (entries[i : i + limit] for i in range(0, len(entries), limit)):
                self._papers.upsert(
                    ids=[e.paper.id for e in chunk],
                    embeddings=np.stack([e.whole for e in chunk]),
                    documents=[e.paper.text for e in chunk],
                    metadatas=[_to_metadata(e.paper, len(e.passages)) for e in chunk],
                )
        self._forget()

    def update(self, papers: Sequence[Paper]) -> None:
        """Rewrites what is known of papers that are there; text and vectors stay. Hold `writing()` around it."""
        with self._errors("written to"):
            limit = self._client.get_max_batch_size()
            for chunk in (papers[i : i + limit] for i in range(0, len(papers), limit)):
                self._papers.update(ids=[p.id for p in chunk], metadatas=[_to_metadata(p, self.passage_counts[p.id]) for p in chunk])
        self._forget()

    def nearest_papers(self, vector: NDArray[np.float32], k: int, only: Sequence[str] | None = None) -> list[tuple[str, float]]:
        """Ids and cosines of the k papers whose whole abstract is nearest to a vector (d,), nearest first; of `only` these if given."""
        return self._nearest(self._papers, vector, k, only)

    def nearest_passages(self, vector: NDArray[np.float32], k: int, only: Sequence[str] | None = None) -> list[tuple[str, float]]:
        """Paper ids and cosines of the k passages nearest to a vector (d,), nearest first; a paper may come more than once."""
        ids = None if only is None else [_passage_id(p, n) for p in only for n in range(self.passage_counts[p])]
        return [(i.partition(":")[0], cosine) for i, cosine in self._nearest(self._passages, vector, k, ids)]

    def vector_store(self, which: str = "passages") -> ChromaVectorStore:
        """LlamaIndex's adapter over one of the two collections, for pipelines built on it; its scores are exp(-distance)."""
        from llama_index.vector_stores.chroma import ChromaVectorStore

        return ChromaVectorStore(chroma_collection={"papers": self._papers, "passages": self._passages}[which])

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Holds the right to write to this collection, across processes.

        Raises:
            LockedError: another process has held it for longer than LOCK_WAIT_S.
        """
        with self._errors("written to"):
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder.with_name(self.folder.name + ".lock"), timeout=LOCK_WAIT_S)
            try:
                lock.acquire()
            except Timeout:
                raise LockedError("Another process is writing to this collection.", "Wait until it is done, or end it, and try again.") from None
        try:
            self._forget()
            yield
        finally:
            lock.release()

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
        """Lets go of the files."""
        self._forget()
        if "_client" in self.__dict__:
            from chromadb.api.shared_system_client import SharedSystemClient

            del self._client
            SharedSystemClient.clear_system_cache()
        for name in ("_papers", "_passages"):
            self.__dict__.pop(name, None)

    def _forget(self) -> None:
        """Drops what was read, so that the next look reads it anew."""
        for name in ("papers", "passage_counts", "_table"):
            self.__dict__.pop(name, None)

    @cached_property
    def _table(self) -> list[tuple[Paper, int]]:
        """Every complete paper with the number of its passages, in order of id."""
        if not self.exists:
            return []
        with self._errors("read"):
            got = self._papers.get(include=["documents", "metadatas"])
            rows = [_from_metadata(i, t, m) for i, t, m in zip(got["ids"], got["documents"] or (), got["metadatas"] or (), strict=True)]
        return sorted(rows, key=lambda row: row[0].id)

    def _nearest(self, collection: Collection, vector: NDArray[np.float32], k: int, ids: Sequence[str] | None) -> list[tuple[str, float]]:
        """Ids and cosines, ties broken by id."""
        with self._errors("read"):
            count = collection.count() if ids is None else len(ids)
            if not count:
                return []
            got = collection.query(query_embeddings=[vector], n_results=min(k, count), include=["distances"], ids=None if ids is None else list(ids))
        pairs = zip(got["ids"][0], (got["distances"] or [[]])[0], strict=True)
        return sorted(((i, 1.0 - float(d)) for i, d in pairs), key=lambda pair: (-pair[1], pair[0]))

    @cached_property
    def _client(self) -> ClientAPI:
        import chromadb
        from chromadb.config import Settings

        with self._errors("opened"):
            return chromadb.PersistentClient(str(self.folder), settings=Settings(anonymized_telemetry=False))

    @cached_property
    def _papers(self) -> Collection:
        return self._collection("papers")

    @cached_property
    def _passages(self) -> Collection:
        return self._collection("passages")

    def _collection(self, name: str) -> Collection:
        """A Chroma collection, made and stamped if it is not there, refused if its stamp is another."""
        with self._errors("opened"):
            collection = self._client.get_or_create_collection(name, embedding_function=None, metadata=dict(self.stamp), configuration=_CONFIGURATION)  # type: ignore[arg-type]
        found = {key: (collection.metadata or {}).get(key) for key in self.stamp}
        if found != self.stamp:
            told = ", ".join(f"{key} {found[key]} instead of {want}" for key, want in self.stamp.items() if found[key] != want)
            raise StampError(f"The index in {self.folder} was made by another version of this program: {told}.", REBUILD_HINT)
        return collection

    @contextmanager
    def _errors(self, done: str) -> Iterator[None]:
        """The one door at which Chroma's, SQLite's and the disk's errors become ours."""
        from chromadb.errors import ChromaError

        try:
            yield
        except (ChromaError, sqlite3.Error, OSError, ValueError, KeyError, RuntimeError) as error:
            raise _ours(error, self.folder, done) from error


def _ours(error: Exception, folder: Path, done: str) -> StoreError:
    """A vendor's error in our words."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    reason = " ".join(reason.split())[:200]
    told = f"The index in {folder} cannot be {done}: {reason or type(error).__name__}."
    if "database is locked" in reason:
        return LockedError(told, "Wait until the other process is done, and try again.")
    if isinstance(error, PermissionError | NotADirectoryError | FileExistsError) or "readonly" in reason or "unable to open" in reason:
        return StoreError(told, "Set ASK_HOME to a folder that you may write to.")
    if "full" in reason or "No space" in reason or "too large" in reason:
        return StoreError(told, "Free some space on the disk and run the same command again; it goes on from where it was.")
    return StoreError(told, REBUILD_HINT)


def _passage_id(paper_id: str, ordinal: int) -> str:
    return f"{paper_id}:{ordinal}"


def _to_metadata(paper: Paper, passages: int) -> dict[str, str | int]:
    """Chroma keeps flat values only, so lists travel as JSON."""
    flat = {"title": paper.title, "venue": paper.venue, "year": paper.year, "url": paper.url}
    return {
        **{k: v for k, v in flat.items() if v is not None},
        "authors": json.dumps(paper.authors, ensure_ascii=False),
        "origins": json.dumps([(o.file, o.position, o.source_id) for o in paper.origins], ensure_ascii=False),
        "passages": passages,
    }


def _from_metadata(paper_id: str, text: str, metadata: Mapping[str, Any]) -> tuple[Paper, int]:
    paper = Paper(
        paper_id,
        text,
        tuple(Origin(*o) for o in json.loads(metadata["origins"])),
        title=metadata.get("title"),
        authors=tuple(json.loads(metadata["authors"])),
        venue=metadata.get("venue"),
        year=metadata.get("year"),
        url=metadata.get("url"),
    )
    return paper, int(metadata["passages"])
