"""What is known of each paper's words, kept beside the index so that opening a collection reads it instead of reading every abstract again.

Of each paper: the stems of its title and of its abstract (for BM25), its names, and one vector a word (for comparing word by word). They lie in one
SQLite file in the collection's folder, in the order in which they are needed: what every question needs of all papers in one table, the vectors,
which are needed of a hundred, in another. A row of a paper that has another title by now, or that is cut short, counts as missing.

Opening a collection of 4,871 papers took 5.7 s when it stemmed them anew, and vectors for its words would take a minute.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag.kinds import names_in
from rag.markup import plain
from rag.records import Paper
from rag.text import content_stems

FILE = "words.sqlite3"
#: Length of a word's vector; `rag/embeddings.py` makes them.
WIDTH = 64
#: A batch of another process is written in a fraction of this.
BUSY_WAIT_S = 10.0
#: Ids asked for in one statement; SQLite takes 32,766, and did take 999.
_ASKED_AT_ONCE = 900
_TABLES = """
CREATE TABLE IF NOT EXISTS words (id TEXT PRIMARY KEY, title TEXT NOT NULL, title_stems TEXT NOT NULL, stems TEXT NOT NULL, names TEXT NOT NULL,
    pieces BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS vectors (id TEXT PRIMARY KEY, vectors BLOB NOT NULL);
"""
#: A text with more capitals than this is shouted, and tells no names.
_SHOUTED = 0.6


@dataclass(frozen=True, slots=True, eq=False)
class PaperWords:
    """One paper's words: stems of its title and of its abstract, its names, and of each word piece its number and its int8 vector (pieces, WIDTH)."""

    title: str
    title_stems: tuple[str, ...]
    stems: tuple[str, ...]
    names: tuple[str, ...]
    pieces: NDArray[np.uint16]
    vectors: NDArray[np.int8]


def words_of(paper: Paper, pieces: NDArray[np.uint16], vectors: NDArray[np.int8]) -> PaperWords:
    """What is kept of a paper's words.

    Args:
        paper: title and abstract are read.
        pieces, vectors: from the embedder.
    """
    title = paper.title or ""
    return PaperWords(title, tuple(content_stems(title)), tuple(content_stems(paper.text)), names_of(f"{title} . {paper.text}"), pieces, vectors)


def names_of(text: str) -> tuple[str, ...]:
    """The names that a text uses (`kinds.names_in`), each in one form, once, in order.

    "BiSHop", "P-BO", "t3VAE"; of a compound its parts in capitals too ("IoT-based": IoT). A plural is its singular ("LLMs": LLM). A text in
    capitals has none.
    """
    said = plain(text)
    letters = sum(c.isalpha() for c in said)
    if letters and sum(c.isupper() for c in said) > _SHOUTED * letters:
        return ()
    found: dict[str, None] = {}
    for written in names_in(said):
        name = written.replace("^", "")
        parts = [p for p in name.split("-") if p != name and sum(c.isupper() for c in p) > 1]
        found |= dict.fromkeys(map(form_of, (name, *parts)))
    return tuple(found)


def form_of(name: str) -> str:
    """The one form of a name, as far as its letters tell: "t^3VAE" is "t3VAE", "LLMs" is "LLM"."""
    return re.sub(r"(?<=..[A-Z])s$", "", name.replace("^", ""))


class WordsFile:
    """The file of one collection. Each call opens it anew, so that any thread may; errors are SQLite's.

    Args:
        folder: the collection's.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE

    def write(self, rows: Mapping[str, PaperWords]) -> None:
        """Adds or replaces rows by id of their paper."""
        with self._open() as database, database:
            database.executescript(_TABLES)
            database.executemany(
                "INSERT OR REPLACE INTO words VALUES (?, ?, ?, ?, ?, ?)",
                [(i, w.title, " ".join(w.title_stems), " ".join(w.stems), " ".join(w.names), w.pieces.tobytes()) for i, w in rows.items()],
            )
            database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", [(i, w.vectors.tobytes()) for i, w in rows.items()])

    def read(self, papers: Mapping[str, Paper]) -> dict[str, PaperWords]:
        """The rows of papers that are there and up to date, without their vectors."""
        if not self._file.exists():
            return {}
        nothing = np.zeros((0, WIDTH), dtype=np.int8)
        with self._open() as database:
            database.executescript(_TABLES)
            query = (
                "SELECT words.id, title, title_stems, stems, names, pieces FROM words JOIN vectors USING (id) WHERE length(vectors) * 2 = length(pieces) * ?"
            )
            return {
                i: PaperWords(title, tuple(own.split()), tuple(stems.split()), tuple(names.split()), np.frombuffer(pieces, dtype=np.uint16), nothing)
                for i, title, own, stems, names, pieces in database.execute(query, (WIDTH,))
                if i in papers and title == (papers[i].title or "")
            }

    def vectors(self, ids: Sequence[str]) -> dict[str, NDArray[np.int8]]:
        """The vectors of some papers' words."""
        found: dict[str, NDArray[np.int8]] = {}
        with self._open() as database:
            for at in range(0, len(ids), _ASKED_AT_ONCE):
                some = ids[at : at + _ASKED_AT_ONCE]
                query = f"SELECT id, vectors FROM vectors WHERE id IN ({','.join('?' * len(some))})"
                found |= {i: np.frombuffer(blob, dtype=np.int8).reshape(-1, WIDTH) for i, blob in database.execute(query, some)}
        return found

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._file, timeout=BUSY_WAIT_S)) as database:
            yield database


class Words:
    """The words of all papers of a collection.

    Args:
        known: of every paper, by id.
        vectors: reads the vectors of some of them, for those that have none in `known`.
    """

    def __init__(self, known: Mapping[str, PaperWords], vectors: Callable[[Sequence[str]], Mapping[str, NDArray[np.int8]]]) -> None:
        self.known, self._read = known, vectors

    @cached_property
    def stems(self) -> dict[str, tuple[str, ...]]:
        """The stems of each paper's title and abstract."""
        return {i: w.title_stems + w.stems for i, w in self.known.items()}

    def vectors(self, ids: Sequence[str]) -> list[NDArray[np.int8]]:
        """The vectors of some papers' words, in the order given."""
        held = {i: self.known[i].vectors for i in ids if len(self.known[i].vectors)}
        read = self._read(missing) if (missing := [i for i in ids if i not in held and len(self.known[i].pieces)]) else {}
        nothing = np.zeros((0, WIDTH), dtype=np.int8)
        return [held[i] if i in held else read.get(i, nothing) for i in ids]

    def weights(self, pieces: NDArray[np.uint16]) -> NDArray[np.float32]:
        """How much each word piece of a question counts: the root of its inverse document frequency."""
        return np.sqrt(self._piece_rarity[pieces])

    def name_rarity(self, name: str) -> float:
        """How rare a name is: its inverse document frequency as a share of that of a name of one paper; 0 for one that is in none."""
        holders, n = self.holders[name], len(self.known)
        return math.log(1 + (n - holders + 0.5) / (holders + 0.5)) / math.log(1 + (n - 0.5) / 1.5) if holders else 0.0

    @cached_property
    def holders(self) -> Counter[str]:
        """How many papers have a name."""
        return Counter(name for w in self.known.values() for name in w.names)

    @cached_property
    def _piece_rarity(self) -> NDArray[np.float32]:
        """Inverse document frequency by number of the word piece."""
        n = len(self.known)
        counts = np.zeros(1 << 16)
        for w in self.known.values():
            counts[np.unique(w.pieces)] += 1
        return np.log(1 + (n - counts + 0.5) / (counts + 0.5)).astype(np.float32)
