"""Files to papers to the index, incrementally: what is there already is not embedded again.

Papers are written in small batches, each complete in itself, so that an ingest that was stopped goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path

from rag import readers
from rag.embeddings import LocalEmbedding
from rag.evidence import cut
from rag.markup import plain
from rag.records import IngestReport, Paper
from rag.store import Entry, Store
from rag.words import Words, words_of

#: Papers between two writes: under a second of work that a kill loses. Chroma holds Python's lock while it writes, so that smaller
#: batches keep the embedder waiting more often (the seeds: 2.2 s with 4, 1.75 s with 8, 1.6 s with 16 to 96).
BATCH = 48
#: Papers cut and given to the embedder at once, which goes on with them while a batch is written; longer lists only delay the first.
AHEAD = 256

OnProgress = Callable[[int, int], None]


def ingest(paths: Iterable[Path], store: Store, embedder: LocalEmbedding, *, rebuild: bool = False, progress: OnProgress | None = None) -> IngestReport:
    """Adds the papers of files or folders to a collection, or updates what is known of them.

    Args:
        paths: files or folders.
        store: the collection.
        embedder: makes the vectors.
        rebuild: start from an empty collection, also where the old one is damaged.
        progress: called with papers done and papers to do.

    Raises:
        InputError: a path is missing, of no known format, or holds no paper; nothing has been written then.
        ModelFileError: the embedder's files are missing or damaged; nothing has been written then.
        StoreError: the index cannot be written to, or is of another embedder; what was written before is kept.
    """
    readings = [readers.read(path) for path in paths]
    embedder.load()
    with store.writing():
        if rebuild:
            store.clear()
        return _write(readings, store, embedder, progress)


def seed(folder: Path, store: Store, embedder: LocalEmbedding, progress: OnProgress | None = None) -> IngestReport | None:
    """Indexes bundled papers into a collection that nobody has written to, or where this was stopped before; else does nothing.

    Whether somebody has is asked again once the right to write is held: an `ask ingest` that runs beside a first question wins.

    Raises:
        As `ingest`.
    """
    if not store.seeding and store.folder.exists():
        return None
    reading = readers.read(folder)
    embedder.load()
    with store.writing():
        if not store.seeding and store.papers:
            return None
        store.seeding = True
        report = _write([reading], store, embedder, progress)
        store.seeding = False
    return report


def _write(readings: Sequence[readers.Reading], store: Store, embedder: LocalEmbedding, progress: OnProgress | None) -> IngestReport:
    """Adds what is new and updates what is known, while the right to write is held."""
    store.check_stamp()
    papers, known = merge(p for r in readings for p in r.papers), store.papers
    there = [(known[p.id], _join(known[p.id], p)) for p in papers if p.id in known]
    changed = [(before, after) for before, after in there if before != after]
    # A title is part of what is embedded.
    retitled = [after for before, after in changed if before.title != after.title]
    store.update([after for before, after in changed if before.title == after.title])
    new = [p for p in papers if p.id not in known]
    _add([*retitled, *new], store, embedder, progress)
    notices = dict.fromkeys(n for r in readings for n in r.notices)
    return IngestReport(len(new), len(changed), len(there) - len(changed), tuple(notices))


def words(store: Store, embedder: LocalEmbedding) -> Words:
    """The words of all papers of a collection; those that are missing, as where their file was deleted, are made again and kept.

    Raises:
        StoreError: the index is damaged or cannot be read.
    """
    known = store.known_words()
    missing = [p for i, p in store.papers.items() if i not in known]
    if missing:
        made = {e.paper.id: e.words for e in _entries(missing, embedder)}
        store.keep_words(made)
        known |= made
    # In the order of the papers, whatever was made when.
    return Words({i: known[i] for i in store.papers}, store.word_vectors)


def merge(papers: Iterable[Paper]) -> list[Paper]:
    """Papers of one text made one, in order of first appearance; each keeps every origin."""
    out: dict[str, Paper] = {}
    for paper in papers:
        out[paper.id] = _join(out[paper.id], paper) if paper.id in out else paper
    return list(out.values())


def _add(papers: Sequence[Paper], store: Store, embedder: LocalEmbedding, progress: OnProgress | None) -> None:
    """Cuts, embeds and writes papers that are not in the store. A batch is written while the next is embedded, as far as Python's lock allows."""

    def write(batch: Sequence[Entry], done: int) -> None:
        store.add(batch)
        if progress:
            progress(done, len(papers))

    entries = _entries(papers, embedder)
    done, written = 0, None
    # One thread writes, so that Ctrl-C, which reaches this one, never falls into a write: leaving the block waits for the last.
    with ThreadPoolExecutor(1) as writer, closing(entries):
        while batch := list(islice(entries, BATCH)):
            done += len(batch)
            if written:
                written.result()
            written = writer.submit(write, batch, done)
        if written:
            written.result()


def _entries(papers: Sequence[Paper], embedder: LocalEmbedding) -> Generator[Entry, None, None]:
    """Papers with their passages and vectors, in the order given."""
    for at in range(0, len(papers), AHEAD):
        ahead = papers[at : at + AHEAD]
        passages = [cut(p.text, p.id) for p in ahead]
        vectors = embedder.embed_papers([[plain(s.text) for s in one] for one in passages], titles=[plain(p.title or "") for p in ahead])
        yield from (Entry(p, s, v.whole, v.sentences, words_of(p, v.pieces, v.words)) for p, s, v in zip(ahead, passages, vectors, strict=True))


def _join(old: Paper, new: Paper) -> Paper:
    """The old paper with the new one's origins, and what the new one knows in place of what the old one knew."""
    told = {k: v for k in ("title", "authors", "venue", "year", "url") if (v := getattr(new, k))}
    return replace(old, origins=tuple(dict.fromkeys((*old.origins, *new.origins))), **told)
