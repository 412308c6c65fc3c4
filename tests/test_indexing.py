"""Ingesting: nothing is embedded twice, nothing is lost when it is stopped, and two at once do not hurt each other."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag import indexing
from rag.embeddings import DIMENSION, EMBEDDER_ID, LocalEmbedding
from rag.errors import InputError, LockedError, ModelFileError, StampError
from rag.evidence import cut
from rag.indexing import ingest
from rag.markup import plain
from rag.records import IngestReport
from rag.store import Name, Store
from tests.conftest import ASK, AskRun, clean_environment

ONE = "We study gradient descent on wide networks. It converges at a linear rate in 17 steps on every task."
TWO = "We measure how zebra stripes repel horseflies. Flies landed 74% less often on coats that were striped."


class CountingEmbedding(LocalEmbedding):
    """The real embedder, and how many papers it was given."""

    embedded: int = 0

    def embed_papers(self, papers: Sequence[Sequence[str]], *args: object, **kwargs: object) -> object:  # type: ignore[override]
        self.embedded += len(papers)
        return super().embed_papers(papers, *args, **kwargs)  # type: ignore[arg-type]


@pytest.fixture
def embedder() -> CountingEmbedding:
    return CountingEmbedding()


@pytest.fixture
def empty(tmp_path: Path) -> Store:
    return Store(tmp_path / "home" / "collections" / "default", EMBEDDER_ID, DIMENSION)


def jsonl(file: Path, *rows: dict[str, object]) -> Path:
    file.write_text("\n".join(json.dumps(r) for r in rows))
    return file


def many(file: Path, n: int) -> Path:
    """A file of n papers, each of one sentence or two."""
    return jsonl(
        file,
        *({"id": str(i), "title": f"Paper {i}", "text": f"Experiment {i} found that {i * 7} of {i * 11} mice slept. Number {i} snored."} for i in range(n)),
    )


def rows(s: Store, which: Name) -> list[tuple[str, str, dict[str, Any], np.ndarray]]:
    """Every row of a Chroma collection in order of id: id, document, metadata, vector."""
    got = (s._papers if which == "papers" else s._passages).get(include=["documents", "metadatas", "embeddings"])
    return sorted(zip(got["ids"], got["documents"], got["metadatas"], got["embeddings"], strict=True), key=lambda row: row[0])


def assert_same(one: Store, other: Store) -> None:
    """Two stores hold the same papers, passages and vectors."""
    assert one.papers == other.papers
    names: tuple[Name, ...] = ("papers", "passages")
    for which in names:
        for ours, theirs in zip(rows(one, which), rows(other, which), strict=True):
            assert ours[:3] == theirs[:3]
            assert np.array_equal(ours[3], theirs[3])


# Nothing is done twice -------------------------------------------------------------------------------------------------


def test_a_second_ingest_embeds_nothing(tmp_path: Path, empty: Store, embedder: CountingEmbedding) -> None:
    file = jsonl(tmp_path / "a.jsonl", {"text": ONE}, {"text": TWO})
    assert ingest([file], empty, embedder) == IngestReport(2, 0, 0)
    assert embedder.embedded == 2
    assert ingest([file], empty, embedder) == IngestReport(0, 0, 2)
    assert embedder.embedded == 2


def test_a_name_learnt_later_costs_no_embedding(tmp_path: Path, empty: Store, embedder: CountingEmbedding) -> None:
    ingest([jsonl(tmp_path / "a.jsonl", {"text": ONE}, {"text": TWO})], empty, embedder)
    known = {"authors": ["Jane Doe"], "venue": "ICML", "year": 2024, "url": "https://a.org"}
    assert ingest([jsonl(tmp_path / "a.jsonl", {"text": ONE, **known}, {"text": TWO})], empty, embedder) == IngestReport(0, 1, 1)
    assert embedder.embedded == 2
    paper = next(p for p in empty.papers.values() if p.text == ONE)
    assert (paper.authors, paper.label) == (("Jane Doe",), "Doe, ICML 2024")


def test_a_title_learnt_later_or_changed_is_part_of_what_is_searched(tmp_path: Path, empty: Store, embedder: CountingEmbedding) -> None:
    ingest([jsonl(tmp_path / "a.jsonl", {"text": ONE}, {"text": TWO})], empty, embedder)
    for count, title in ((3, "Zebrafish Slopes"), (4, "Slopes of Zebrafish Hearts")):
        assert ingest([jsonl(tmp_path / "a.jsonl", {"text": ONE, "title": title}, {"text": TWO})], empty, embedder) == IngestReport(0, 1, 1)
        assert embedder.embedded == count
        paper = next(p for p in empty.papers.values() if p.text == ONE)
        (vectors,) = LocalEmbedding().embed_papers([[plain(s.text) for s in cut(ONE, "")]], titles=[title])
        assert empty.paper_vectors([paper.id])[paper.id] == pytest.approx(vectors.whole, abs=1e-5)
        assert empty.known_words()[paper.id].title == title
        assert np.array_equal(empty.word_vectors([paper.id])[paper.id], vectors.words)


def test_what_was_known_is_not_forgotten_by_a_file_that_knows_less(tmp_path: Path, empty: Store, embedder: CountingEmbedding) -> None:
    ingest([jsonl(tmp_path / "a.jsonl", {"text": ONE, "title": "Slopes", "id": "x-1"})], empty, embedder)
    ingest([jsonl(tmp_path / "b.jsonl", {"text": ONE})], empty, embedder)
    (paper,) = empty.papers.values()
    assert (paper.title, paper.source_id, [o.file for o in paper.origins]) == ("Slopes", "x-1", ["a.jsonl", "b.jsonl"])


def test_one_abstract_in_two_files_is_one_paper_with_both_origins(tmp_path: Path, empty: Store, embedder: CountingEmbedding) -> None:
    (tmp_path / "b.txt").write_text(f"ICML 2024\n\n{TWO}\n\n{ONE.replace('. ', '.  ')}")
    files = [jsonl(tmp_path / "a.jsonl", {"text": ONE, "id": "first"}), tmp_path / "b.txt"]
    assert ingest(files, empty, embedder) == IngestReport(2, 0, 0)
    paper = next(p for p in empty.papers.values() if p.text == ONE)
    assert [(o.file, o.position, o.source_id) for o in paper.origins] == [("a.jsonl", 1, "first"), ("b.txt", 2, None)]
    assert paper.venue == "ICML"


def test_notices_reach_the_report_once(tmp_path: Path, empty: Store, embedder: CountingEmbedding) -> None:
    file = jsonl(tmp_path / "a.jsonl", {"text": ONE}, {"title": "no text"})
    assert ingest([file, file], empty, embedder).notices == ("a.jsonl, line 2, left out: no text or abstract.",)


def test_progress_counts_up_to_the_papers_that_are_new(tmp_path: Path, empty: Store, embedder: CountingEmbedding) -> None:
    seen: list[tuple[int, int]] = []
    ingest([many(tmp_path / "a.jsonl", 70)], empty, embedder, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(indexing.BATCH, 70), (70, 70)]


# What the seeds become -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def seeded(seeded_home: Path) -> Store:
    return Store(seeded_home / "collections" / "default", EMBEDDER_ID, DIMENSION)


def test_every_stored_passage_is_a_slice_of_its_paper_and_together_they_cover_it(seeded: Store) -> None:
    covered: dict[str, list[tuple[int, int]]] = {}
    for _, document, metadata, _ in rows(seeded, "passages"):
        paper = seeded.papers[str(metadata["paper_id"])]
        assert paper.text[metadata["start"] : metadata["end"]] == document
        covered.setdefault(paper.id, []).append((metadata["start"], metadata["end"]))
    assert covered.keys() == seeded.papers.keys()
    for paper_id, spans in covered.items():
        left = list(seeded.papers[paper_id].text)
        for start, end in spans:
            left[start:end] = " " * (end - start)
        assert not "".join(left).strip()


def test_both_granularities_are_there_as_unit_vectors(seeded: Store) -> None:
    whole, sentences = rows(seeded, "papers"), rows(seeded, "passages")
    assert len(whole) == 95
    assert len(sentences) == sum(seeded.passage_counts.values()) > 95 * 4
    for _, _, _, vector in (*whole, *sentences):
        assert vector.shape == (DIMENSION,)
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_a_stored_vector_is_the_embedders_own(seeded: Store) -> None:
    paper = min(seeded.papers.values(), key=lambda p: len(p.text))
    sentences = [plain(str(d)) for i, d, _, _ in sorted(rows(seeded, "passages"), key=lambda r: int(r[0].split(":")[1])) if i.startswith(paper.id)]
    (vectors,) = LocalEmbedding().embed_papers([sentences], titles=[plain(paper.title or "")])
    (stored,) = [v for i, _, _, v in rows(seeded, "papers") if i == paper.id]
    assert stored == pytest.approx(vectors.whole, abs=1e-5)
    assert dict(seeded.nearest_papers(vectors.whole, 1)) == {paper.id: pytest.approx(1, abs=1e-5)}
    assert seeded.nearest_passages(vectors.sentences[1], 1)[0] == (paper.id, pytest.approx(1, abs=1e-5))


# What is refused before any work ---------------------------------------------------------------------------------------


def test_one_bad_path_and_nothing_is_written(tmp_path: Path, empty: Store, embedder: CountingEmbedding) -> None:
    with pytest.raises(InputError, match="does not exist"):
        ingest([many(tmp_path / "a.jsonl", 3), tmp_path / "missing.txt"], empty, embedder)
    assert not empty.folder.exists()


@pytest.mark.parametrize(
    ("embedder_id", "dimension", "rows"),
    [("another-model", DIMENSION, 2), (EMBEDDER_ID, 7, 2), ("another-model", DIMENSION, 1)],
    ids=["embedder", "dimension", "killed before its first paper was complete"],
)
def test_an_index_of_another_embedder_is_refused_before_anything_is_embedded(
    tmp_path: Path, empty: Store, embedder: CountingEmbedding, embedder_id: str, dimension: int, rows: int
) -> None:
    file = many(tmp_path / "a.jsonl", 3)
    other = Store(empty.folder, embedder_id, dimension)
    with other.writing():
        _ = (other._passages, other._papers) if rows == 2 else other._passages
    other.close()
    with pytest.raises(StampError, match=r"another version of this program: (embedder another-model|dimension 7) instead of") as refused:
        ingest([file], empty, embedder)
    assert "`ask ingest PATH --rebuild`" in refused.value.hint
    assert embedder.embedded == 0
    assert ingest([file], empty, embedder, rebuild=True) == IngestReport(3, 0, 0)
    assert len(empty.papers) == 3


def test_the_hint_for_another_collection_names_it(tmp_path: Path, embedder: CountingEmbedding) -> None:
    mine = Store(tmp_path / "mine", "another-model", DIMENSION)
    with mine.writing():
        _ = mine._papers
    mine.close()
    with pytest.raises(StampError, match="ask --collection mine ingest PATH --rebuild"):
        ingest([many(tmp_path / "a.jsonl", 1)], Store(tmp_path / "mine", EMBEDDER_ID, DIMENSION), embedder)


def test_a_rebuild_with_a_damaged_model_leaves_the_old_index(tmp_path: Path, empty: Store, embedder: CountingEmbedding) -> None:
    file = many(tmp_path / "a.jsonl", 3)
    ingest([file], empty, embedder)
    with pytest.raises(ModelFileError):
        ingest([file], empty, LocalEmbedding(folder=tmp_path), rebuild=True)
    assert len(empty.papers) == 3


def test_a_rebuild_holds_the_new_papers_alone(tmp_path: Path, empty: Store, embedder: CountingEmbedding) -> None:
    ingest([jsonl(tmp_path / "a.jsonl", {"text": ONE})], empty, embedder)
    assert ingest([jsonl(tmp_path / "b.jsonl", {"text": TWO})], empty, embedder, rebuild=True) == IngestReport(1, 0, 0)
    assert [p.text for p in empty.papers.values()] == [TWO]


# Stopped in the middle -------------------------------------------------------------------------------------------------

PAPERS = 400


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Store]:
    """A file of many papers, and the index of an ingest that nobody stopped."""
    folder = tmp_path_factory.mktemp("many")
    file = many(folder / "many.jsonl", PAPERS)
    whole = Store(folder / "home" / "collections" / "default", EMBEDDER_ID, DIMENSION)
    ingest([file], whole, LocalEmbedding())
    return file, whole


def started(file: Path, home: Path) -> subprocess.Popen[str]:
    """`ask ingest` in a process of its own, once it has written some papers and while it has more to write."""
    environment = clean_environment() | {"ASK_HOME": str(home)}
    running = subprocess.Popen([str(ASK), "ingest", str(file)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    database = home / "collections" / "default" / "chroma.sqlite3"
    deadline = time.monotonic() + 120
    while not papers_written(database):
        assert running.poll() is None, running.stderr and running.stderr.read()
        assert time.monotonic() < deadline, "the ingest wrote nothing"
        time.sleep(0.005)
    return running


def papers_written(database: Path) -> int:
    """How many papers another process has written so far."""
    with contextlib.suppress(sqlite3.OperationalError), contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as reader:
        return int(reader.execute("SELECT count(*) FROM embedding_metadata WHERE key = 'origins'").fetchone()[0])
    return 0


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_a_stopped_ingest_goes_on_from_there(tmp_path: Path, uninterrupted: tuple[Path, Store], how: signal.Signals) -> None:
    file, whole = uninterrupted
    running = started(file, tmp_path / "home")
    running.send_signal(how)
    _, err = running.communicate(timeout=60)
    if how is signal.SIGINT:
        assert running.returncode == 130
        assert "Traceback" not in err
        assert err.strip().endswith("Stopped.")
    mine = Store(tmp_path / "home" / "collections" / "default", EMBEDDER_ID, DIMENSION)
    before = len(mine.papers)
    assert 0 < before < PAPERS
    embedder = CountingEmbedding()
    assert ingest([file], mine, embedder) == IngestReport(PAPERS - before, 0, before)
    assert embedder.embedded == PAPERS - before
    assert_same(mine, whole)


def test_two_ingests_at_once_both_end_well(tmp_path: Path, ask: AskRun) -> None:
    home = tmp_path / "home"
    first = started(many(tmp_path / "a.jsonl", 200), home)
    second = ask("ingest", str(many(tmp_path / "b.jsonl", 210)), home=home)
    first.communicate(timeout=60)
    assert (first.returncode, second.returncode) == (0, 0)
    assert len(Store(home / "collections" / "default", EMBEDDER_ID, DIMENSION).papers) == 210


def test_an_ingest_that_waits_too_long_is_told_why(tmp_path: Path, empty: Store, embedder: CountingEmbedding, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.sharing.LOCK_WAIT_S", 0.2)
    with Store(empty.folder, EMBEDDER_ID, DIMENSION).writing(), pytest.raises(LockedError, match="Another process is writing"):
        ingest([many(tmp_path / "a.jsonl", 3)], empty, embedder)
    assert embedder.embedded == 0
    assert ingest([many(tmp_path / "a.jsonl", 3)], empty, embedder).added == 3


# A full disk -----------------------------------------------------------------------------------------------------------

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
sys.argv = ["ask", *sys.argv[2:]]
from rag.cli import main
main()
"""


def test_a_file_that_may_not_grow_is_told_and_the_next_run_goes_on(tmp_path: Path, uninterrupted: tuple[Path, Store]) -> None:
    file, whole = uninterrupted
    home = tmp_path / "home"
    environment = clean_environment() | {"ASK_HOME": str(home)}
    limited = [sys.executable, "-c", LIMITED, "1000000", "ingest", str(file)]
    full = subprocess.run(limited, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert full.returncode == 1
    assert "Traceback" not in full.stderr
    assert "Make sure that the disk is not full and run the same command again." in " ".join(full.stderr.split())
    mine = Store(home / "collections" / "default", EMBEDDER_ID, DIMENSION)
    before = len(mine.papers)
    assert 0 < before < PAPERS
    assert ingest([file], mine, LocalEmbedding()) == IngestReport(PAPERS - before, 0, before)
    assert_same(mine, whole)


@pytest.fixture
def small_disk(tmp_path: Path) -> object:
    """A file system of two megabytes, where this user may mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_disk_that_really_is_full_loses_nothing(tmp_path: Path, small_disk: Path, uninterrupted: tuple[Path, Store]) -> None:
    file, _ = uninterrupted
    environment = clean_environment() | {"ASK_HOME": str(small_disk / "home")}
    full = subprocess.run([str(ASK), "ingest", str(file)], env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert full.returncode == 1
    assert "Traceback" not in full.stderr
    assert "Free some space on the disk and run the same command again" in " ".join(full.stderr.split())
    subprocess.run(["mount", "-o", "remount,size=50m", str(small_disk)], check=True)
    again = subprocess.run([str(ASK), "ingest", str(file)], env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert again.returncode == 0, again.stderr
    mine = Store(small_disk / "home" / "collections" / "default", EMBEDDER_ID, DIMENSION)
    assert len(mine.papers) == PAPERS
    mine.close()


def test_ahead_and_batch_change_no_result(tmp_path: Path, empty: Store, uninterrupted: tuple[Path, Store], monkeypatch: pytest.MonkeyPatch) -> None:
    file, whole = uninterrupted
    monkeypatch.setattr(indexing, "BATCH", 7)
    monkeypatch.setattr(indexing, "AHEAD", 50)
    ingest([file], empty, LocalEmbedding())
    assert_same(empty, whole)
