"""The retrieval suite: any corpus with queries and judgements in BEIR form.

    corpus.jsonl    one document a line: `_id` or `id`, `title`, `text`
    queries.jsonl   one query a line: `_id` or `id`, `text`
    qrels/test.tsv or qrels*.tsv   a heading, then query id, document id and relevance by tabs; above 0 is right

Each .jsonl may be gzipped (.gz). A query without a right document is not asked.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import Any

from eval import retrieval_metrics
from eval.gold import as_text, read_lines, split_of, spread
from eval.runner import representatives
from eval.runs import Cost, Row
from rag.assistant import MAX_QUESTION_CHARS, Assistant
from rag.errors import InputError
from rag.records import IngestReport

#: Ranks that retrieval is measured to.
DEPTH = 100
#: Ranks that a row keeps, for a reader who looks what was found instead.
KEPT = 10
SUITE = "retrieval"


@dataclass(frozen=True, slots=True)
class Document:
    """One line of a corpus."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked, and its right documents with their grades."""

    id: str
    text: str
    right: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Corpus:
    """A file of documents and what is asked of them.

    `collection` is a name of its own for each content, so that no document of an older version stays among the papers; `digest` stands
    for documents, queries and judgements.
    """

    file: Path
    queries: tuple[Query, ...]
    collection: str
    digest: str


def read(folder: Path, queries: str | None = None, qrels: str | None = None, limit: int | None = None) -> Corpus:
    """Finds and reads what a folder holds; the documents themselves only when they are ingested.

    Args:
        folder: in BEIR form.
        queries: name of the file of queries, with or without .jsonl and .gz; not needed where there is one.
        qrels: name of the file of judgements, with or without .tsv; not needed where there is one, or one named like the queries.
        limit: most queries taken, evenly spread over the file.

    Raises:
        InputError: a file is missing, is one of several, or has a line that is not of its form; or no query has a right document.
    """
    corpus, asked_file, qrels_file = files(folder, queries, qrels)
    right = judgements(qrels_file)
    asked = tuple(Query(d.id, d.text, right[d.id]) for d in documents(asked_file, "query") if d.id in right)
    if not asked:
        raise InputError(f"No query of {asked_file.name} has a right document in {qrels_file.name}.", "Name the judgements that belong to the queries.")
    asked = tuple(spread(asked, limit))
    with corpus.open("rb") as content:
        hashed = hashlib.file_digest(content, "sha1")
    collection = f"{SUITE}-{hashed.hexdigest()[:12]}"
    hashed.update(json.dumps([asdict(q) for q in asked]).encode())
    return Corpus(corpus, asked, collection, hashed.hexdigest())


def ingest(assistant: Assistant, corpus: Corpus, progress: Callable[[int, int], None] | None = None) -> IngestReport:
    """Adds the documents to the assistant's collection; those that are there are not embedded again.

    Raises:
        InputError: the corpus has a line that is no document, or no document can be indexed.
    """
    with tempfile.TemporaryDirectory(prefix="ask-eval-") as folder:
        # The same name each time, because the index keeps it with the paper.
        clean = Path(folder) / "corpus.jsonl.gz"
        with gzip.open(clean, "wt", encoding="utf-8", compresslevel=1) as lines:
            for d in documents(corpus.file, "document"):
                # A document without a text is found by its title.
                lines.write(json.dumps({"id": d.id, "title": d.title, "text": d.text.strip() or d.title}) + "\n")
        return assistant.ingest([clean], progress=progress)


def rows(assistant: Assistant, corpus: Corpus, skip: Collection[str] = ()) -> Iterator[tuple[Row, Cost]]:
    """Searches for each query in order, save those to skip.

    Documents of one text are one paper, which is right if any of them is; so are duplicates.

    Raises:
        InputError: no right document of any query is in the collection.
    """
    same = representatives(assistant)
    ids = {o.source_id: same.get(p.id, p.id) for p in assistant.papers() for o in p.origins if o.source_id}
    if not any(document in ids for query in corpus.queries for document in query.right):
        raise InputError(f"No right document of any query is in {corpus.file}.", "Name the judgements that belong to this corpus.")
    for query in corpus.queries:
        if query.id in skip:
            continue
        begun = time.perf_counter()
        hits = assistant.search(query.text[:MAX_QUESTION_CHARS], DEPTH)
        milliseconds = (time.perf_counter() - begun) * 1000
        yield _row(query, [same.get(h.paper.id, h.paper.id) for h in hits], ids), Cost(query.id, round(milliseconds, 2))


def _row(query: Query, ranked: Sequence[str], ids: Mapping[str, str]) -> Row:
    """A row of this suite; it answers nothing, and what an answer would fill is left empty.

    A right document that is not in the collection counts as not found.
    """
    gold: dict[str, float] = {}
    for document, grade in query.right.items():
        name = ids.get(document, document)
        gold[name] = max(grade, gold.get(name, 0.0))
    missing = [d for d in query.right if d not in ids]
    measures = {f"recall_{k}": retrieval_metrics.recall(ranked, gold, k) for k in (1, 5, 10, 100)}
    measures["ndcg_10"] = retrieval_metrics.ndcg(ranked, gold, 10)
    measures["reciprocal_rank"] = retrieval_metrics.reciprocal_rank(ranked, gold)
    measures["average_precision"] = retrieval_metrics.average_precision(ranked, gold)
    return Row(
        id=query.id,
        group=SUITE,
        kind=SUITE,
        split=split_of(next(iter(query.right))),
        question=query.text,
        standalone_question=query.text,
        expected=(),
        wanted="answered",
        outcome="answered",
        hedged=False,
        confidence=0.0,
        answer="",
        notices=(f"Not in the collection: {', '.join(missing)}.",) if missing else (),
        papers=tuple(query.right),
        gold=tuple(gold),
        ranked=tuple(ranked[:KEPT]),
        cited=(),
        measures={name: round(value, 6) for name, value in measures.items()},
    )


def documents(file: Path, what: str) -> Iterator[Document]:
    """The documents or queries of a file; a query has a text, a document a text or a title.

    Args:
        what: `document` or `query`.

    Raises:
        InputError: the file cannot be read, or a line is none.
    """

    def make(row: dict[str, Any]) -> Document:
        name, title, text = row["_id"] if "_id" in row else row["id"], row.get("title") or "", row.get("text") or ""
        if not isinstance(name, str | int) or not isinstance(title, str) or not isinstance(text, str):
            raise ValueError("its id, title or text is none")
        if what == "query" and not any(c.isalnum() for c in as_text(text)):
            raise ValueError("it asks nothing")
        return Document(as_text(str(name)).strip(), title, text)

    return read_lines(file, what, make, "See eval/suites.py for the form.")


def judgements(file: Path) -> dict[str, dict[str, float]]:
    """The right documents of each query that has any, with their grades.

    Raises:
        InputError: the file cannot be read, or a line is no judgement.
    """
    right: dict[str, dict[str, float]] = {}
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}.", "Check the path.") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            query, document, relevance = (f.strip() for f in line.split("\t"))
            grade = float(relevance)
        except ValueError:
            if number == 1:
                continue  # the heading
            raise InputError(f"{file.name}, line {number}, is no judgement.", "It needs a query id, a document id and a relevance, by tabs.") from None
        if 0 < grade < inf:
            right.setdefault(query, {})[document] = grade
    return right


def files(folder: Path, queries: str | None = None, qrels: str | None = None) -> tuple[Path, Path, Path]:
    """The files of a corpus, of queries and of judgements in a folder.

    Raises:
        InputError: one is missing, or is one of several.
    """
    corpus = _one(folder, ("corpus.jsonl", "corpus.jsonl.gz"), ["corpus"])
    asked = _named(folder, queries) if queries else _one(folder, ("queries*.jsonl", "queries*.jsonl.gz"), ["queries"], "Name one with --queries.")
    if qrels:
        return corpus, asked, _named(folder, qrels)
    # queries_dev goes with qrels_dev and with qrels/dev, and queries without a tail with BEIR's own test set.
    tail = _stem(asked).removeprefix("queries")
    return corpus, asked, _one(folder, ("qrels*.tsv", "qrels/*.tsv"), [f"qrels{tail}", tail.strip("_-.") or "test"], "Name one with --qrels.")


def _named(folder: Path, name: str) -> Path:
    """The file that is meant by a name without its endings."""
    found = [p for part in ("", "qrels/") for end in ("", ".jsonl", ".jsonl.gz", ".tsv") if (p := folder / f"{part}{name}{end}").is_file()]
    if not found:
        raise InputError(f"{folder} holds no {name}.", "Check the name.")
    return found[0]


def _one(folder: Path, patterns: Sequence[str], preferred: Sequence[str], hint: str = "") -> Path:
    """The only file of some patterns, else the first preferred."""
    found = sorted(p for pattern in patterns for p in folder.glob(pattern) if p.is_file())
    if not found:
        raise InputError(f"{folder} holds no {' or '.join(patterns)}.", "Give a folder with a corpus, queries and judgements in BEIR form.")
    if len(found) == 1:
        return found[0]
    best = [p for name in preferred for p in found if _stem(p) == name]
    if not best:
        raise InputError(f"{folder} holds several: {', '.join(p.relative_to(folder).as_posix() for p in found)}.", hint)
    return best[0]


def _stem(file: Path) -> str:
    """A file's name without its endings."""
    return file.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".tsv")
