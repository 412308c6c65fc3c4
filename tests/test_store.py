"""The index on disk, with real Chroma: damage, other processes, limits, and the door for LlamaIndex."""

from __future__ import annotations

import contextlib
import gc
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from rag.embeddings import DIMENSION, EMBEDDER_ID, LocalEmbedding
from rag.errors import LockedError, StampError, StoreError
from rag.records import Origin, Paper, Passage
from rag.store import Entry, Store
from rag.words import PaperWords
from tests.conftest import AskRun, clean_environment

WIDTH = 8
NO_WORDS = PaperWords("", (), (), (), np.zeros(0, dtype=np.uint16), np.zeros((0, 64), dtype=np.int8))


def entry(name: str, vector: NDArray[np.float32] | None = None, sentences: int = 2, **known: object) -> Entry:
    """A paper of any name whose vectors all point one way."""
    at = np.zeros(WIDTH, dtype=np.float32)
    at[int.from_bytes(name.encode(), "big") % WIDTH] = 1
    vector = at if vector is None else vector
    paper = Paper(name, "Some text. " * sentences, (Origin("a.jsonl", 1),), **known)  # type: ignore[arg-type]
    passages = tuple(Passage(name, n, 11 * n, 11 * n + 10, "Some text.") for n in range(sentences))
    return Entry(paper, passages, vector, np.stack([vector] * sentences), NO_WORDS)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "collections" / "default", "some-model", WIDTH)
    yield made
    made.close()


def filled(store: Store, *entries: Entry) -> Store:
    with store.writing():
        store.add(entries)
    return store


def again(store: Store) -> Store:
    """The same collection, as another process would open it."""
    store.close()
    return Store(store.folder, "some-model", WIDTH)


def towards(*where: int) -> NDArray[np.float32]:
    vector = np.zeros(WIDTH, dtype=np.float32)
    vector[list(where)] = 1
    return vector / np.float32(np.linalg.norm(vector))


def test_a_paper_comes_back_as_it_was(store: Store) -> None:
    origins = (Origin("a.jsonl", 3, "x-1"), Origin("b.txt", 2))
    full = Paper("b", "Some text. " * 2, origins, title="Ünï\ncode", authors=("Doe, Jane", "李"), venue="ICML", year=2024, url="https://a.org")
    e = entry("b")
    bare = entry("a")
    filled(store, Entry(full, e.passages, e.whole, e.sentences, NO_WORDS), bare)
    assert list(again(store).papers.values()) == [bare.paper, full]


# Reading writes nothing ------------------------------------------------------------------------------------------------


def test_looking_into_an_empty_home_makes_nothing(tmp_path: Path, store: Store) -> None:
    assert store.papers == store.passage_counts == {}
    assert store.nearest_papers(towards(1), 5) == store.nearest_passages(towards(1), 5) == []
    store.check_stamp()
    assert not store.changed()
    with pytest.raises(StoreError, match="There is no index"):
        store.vector_store()
    assert list(tmp_path.iterdir()) == [tmp_path / "cwd"]


def test_ask_status_on_a_fresh_home_makes_no_folder(tmp_path: Path, ask: AskRun) -> None:
    home = tmp_path / "fresh"
    assert ask("status", home=home).returncode == 0
    assert not home.exists()


# Search ----------------------------------------------------------------------------------------------------------------


def test_scores_are_cosines_and_the_order_is_total(store: Store) -> None:
    filled(store, entry("c", towards(0)), entry("a", towards(0)), entry("b", towards(0, 1)), entry("d", towards(2)))
    assert store.nearest_papers(towards(0), 9) == [("a", 1.0), ("c", 1.0), ("b", pytest.approx(0.5**0.5)), ("d", pytest.approx(0, abs=1e-6))]
    assert [i for i, _ in store.nearest_passages(towards(0), 4)] == ["a", "a", "c", "c"]


def test_the_nearest_of_many_are_really_the_nearest(tmp_path: Path) -> None:
    # Of these, Chroma's default search misses one in five.
    store = Store(tmp_path / "collections" / "many", "some-model", 384)
    vectors = np.random.default_rng(7).standard_normal((5000, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    papers = [Paper(f"{n:04}", "Some text.", (Origin("a.jsonl", n),)) for n in range(len(vectors))]
    filled(store, *(Entry(p, (), v, np.empty((0, 384)), NO_WORDS) for p, v in zip(papers, vectors, strict=True)))
    nearest = {f"{n:04}" for n in np.argsort(-(vectors @ vectors[7]))[:200]}
    found = {i for i, _ in store.nearest_papers(vectors[7], 200)}
    store.close()
    assert len(found & nearest) >= 198


def test_a_search_among_some_papers_finds_only_these(store: Store) -> None:
    filled(store, *(entry(n, towards(0)) for n in "abcdef"))
    assert [i for i, _ in store.nearest_papers(towards(0), 3, ["e", "b"])] == ["b", "e"]
    assert [i for i, _ in store.nearest_passages(towards(0), 9, ["e", "b"])] == ["b", "b", "e", "e"]
    assert store.nearest_papers(towards(0), 3, []) == []


def test_more_rows_than_chroma_takes_at_once_are_written_in_batches(store: Store) -> None:
    filled(store)
    limit = store._client.get_max_batch_size()
    papers = [Paper(f"{n:05}", "Some text.", (Origin("a.jsonl", n),)) for n in range(limit + 1)]
    vectors = np.stack([towards(0)])
    filled(store, *(Entry(p, (Passage(p.id, 0, 0, 10, "Some text."),), vectors[0], vectors, NO_WORDS) for p in papers))
    with store.writing():
        store.update([replace(p, title=f"T {p.id}") for p in papers])
    reread = again(store)
    assert len(reread.papers) == len(reread.passage_counts) == limit + 1
    assert all(p.title == f"T {p.id}" for p in reread.papers.values())


def test_collections_do_not_mix(tmp_path: Path, ask: AskRun) -> None:
    home = tmp_path / "home"
    for name, text in (("mice", "Experiment one found that seven mice slept. " * 3), ("stars", "Seven stars were seen by a telescope at night. " * 3)):
        (tmp_path / f"{name}.txt").write_text(f"ICML 2024\n\n{text}")
        assert ask("--collection", name, "ingest", str(tmp_path / f"{name}.txt"), home=home).returncode == 0
    found = ask("--collection", "stars", "search", "mice", home=home).stdout
    assert "Seven stars" in found or "stars" in found
    assert "mice slept" not in found
    for name in ("mice", "stars"):
        assert len(Store(home / "collections" / name, EMBEDDER_ID, DIMENSION).papers) == 1


# Other processes -------------------------------------------------------------------------------------------------------

WRITER = """
import sys
from pathlib import Path
from tests.test_store import WIDTH, Store, entry, filled
filled(Store(Path(sys.argv[1]), "some-model", WIDTH), *(entry(n) for n in sys.argv[2:]))
"""


def elsewhere(store: Store, *names: str) -> None:
    """Another process adds papers."""
    subprocess.run(
        [sys.executable, "-c", WRITER, str(store.folder), *names], check=True, env=clean_environment() | {"PYTHONPATH": str(Path(__file__).parent.parent)}
    )


@pytest.mark.parametrize("before", [("a",), ()], ids=["open", "still empty"])
def test_a_reader_sees_what_another_process_wrote(store: Store, before: tuple[str, ...]) -> None:
    if before:
        filled(store, *(entry(n) for n in before))
    assert list(store.papers) == list(before)
    assert len(store.nearest_passages(towards(0), 99)) == 2 * len(before)
    assert not store.changed()
    elsewhere(store, "b", "c")
    assert store.changed()
    assert not store.changed()
    assert list(store.papers) == [*before, "b", "c"]
    assert len(store.nearest_passages(towards(0), 99)) == 2 * len(store.papers)


def test_a_writer_sees_what_another_process_wrote_meanwhile(store: Store) -> None:
    filled(store, entry("a"))
    assert list(store.papers) == ["a"]
    elsewhere(store, "b")
    with store.writing():
        assert list(store.papers) == ["a", "b"]
        store.add([entry("c")])
    assert not store.changed()
    assert {i for i, _ in store.nearest_papers(towards(0), 9)} == {"a", "b", "c"}


def test_a_search_in_another_thread_survives_that_the_index_is_read_anew(store: Store) -> None:
    filled(store, *(entry(f"{n:03}") for n in range(100)))
    errors: list[BaseException] = []
    done = threading.Event()

    def search() -> None:
        while not done.is_set():
            try:
                assert len(store.nearest_papers(towards(0), 5)) == 5
            except BaseException as error:  # noqa: BLE001  # whatever it is, the test must see it
                errors.append(error)
                return

    thread = threading.Thread(target=search)
    thread.start()
    for _ in range(20):
        store.close()
        assert len(store.papers) == 100
    done.set()
    thread.join()
    assert errors == []


HOLDER = """
import sqlite3, sys
other = sqlite3.connect(sys.argv[1])
other.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_database_that_another_program_holds_is_told_to_be_locked(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.store.BUSY_WAIT_S", 0.2)
    store = again(filled(store, entry("a")))
    held = subprocess.Popen([sys.executable, "-c", HOLDER, str(store.folder / "chroma.sqlite3")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with held:
        assert held.stdout is not None
        assert held.stdout.readline() == "held\n"
        with pytest.raises(LockedError, match="database is locked"):
            _ = store.papers
        with pytest.raises(LockedError, match="database is locked") as refused, store.writing():
            store.add([entry("b")])
        held.communicate()
    assert refused.value.hint == "Wait until the other process is done, and try again."
    filled(store, entry("b"))
    assert list(store.papers) == ["a", "b"]


# Damage ----------------------------------------------------------------------------------------------------------------


def garbled(file: Path) -> None:
    file.write_bytes(b"garbage" * 5000)


def cut_short(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def of_another_program(file: Path) -> None:
    file.unlink()
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE migrations (x)")


@pytest.mark.parametrize("damage", [garbled, cut_short, of_another_program])
def test_a_damaged_database_is_told_and_a_rebuild_mends_it(store: Store, damage: Callable[[Path], None]) -> None:
    filled(store, *(entry(f"{n:03}") for n in range(200)))
    store = again(store)
    damage(store.folder / "chroma.sqlite3")
    for _ in range(2):  # Chroma hands out a client that failed to open, unless it is told not to
        with pytest.raises(StoreError, match="cannot be") as refused:
            _ = store.papers
        assert "`ask ingest PATH --rebuild`" in refused.value.hint
        assert str(store.folder) in refused.value.hint
    with store.writing():
        store.clear()
        store.add([entry("a")])
    assert list(store.papers) == ["a"]


def test_damaged_vectors_are_told_although_the_database_is_sound(store: Store) -> None:
    # From 1,000 vectors on, Chroma keeps them in files of its own.
    filled(store, *(entry(f"{n:04}", sentences=1) for n in range(1200)))
    store = again(store)
    for header in store.folder.rglob("header.bin"):
        garbled(header)
    with pytest.raises(StoreError) as refused:
        store.nearest_passages(towards(0), 5)
    assert "--rebuild" in refused.value.hint


@pytest.mark.parametrize("damage", [garbled, cut_short])
def test_damaged_words_are_told_and_a_rebuild_mends_them(store: Store, damage: Callable[[Path], None]) -> None:
    filled(store, *(entry(f"{n:03}", title=f"Some title {n}") for n in range(200)))
    damage(store.folder / "words.sqlite3")
    for look in (store.known_words, lambda: store.word_vectors(["001"])):
        with pytest.raises(StoreError, match="cannot be read") as refused:
            look()
        assert "`ask ingest PATH --rebuild`" in refused.value.hint
    with store.writing():
        store.clear()
        store.add([entry("a")])
    assert list(store.known_words()) == ["a"]


def test_words_are_there_before_the_paper_is_and_go_with_the_collection(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(store, entry("a"))

    def killed(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(store._papers), "upsert", killed)
    with pytest.raises(KeyboardInterrupt), store.writing():
        store.add([entry("b")])
    assert list(store.known_words()) == list(store.papers) == ["a"]
    assert set(store.word_vectors(["a", "b"])) == {"a", "b"}
    with store.writing():
        store.clear()
    assert not (store.folder / "words.sqlite3").exists()


def test_metadata_of_another_program_is_damage_too(store: Store) -> None:
    filled(store, entry("a"))
    store._papers.upsert(ids=["x"], embeddings=[towards(0)], documents=["text"], metadatas=[{"title": "no origins"}])
    store = again(store)
    with pytest.raises(StoreError, match="cannot be read"):
        _ = store.papers


def test_a_stamp_of_another_schema_is_refused_by_every_way_of_reading(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(store, entry("a"))
    store.close()
    monkeypatch.setattr("rag.store.SCHEMA_VERSION", 99)
    newer = Store(store.folder, "some-model", WIDTH)
    for look in (newer.check_stamp, lambda: newer.papers, lambda: newer.nearest_papers(towards(0), 1), newer.vector_store):
        with pytest.raises(StampError, match="schema 2 instead of 99"):
            look()


def test_opening_a_stamped_collection_does_not_restamp_it(store: Store) -> None:
    filled(store, entry("a"))
    other = Store(store.folder, "another-model", WIDTH)
    store.close()
    for _ in range(2):
        with pytest.raises(StampError, match="embedder some-model instead of another-model"):
            other.check_stamp()
    other.close()
    assert list(again(store).papers) == ["a"]


# No write access -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("home", ["/dev/null/x", "file/x", "file"])
def test_a_home_that_cannot_be_a_folder_is_told(tmp_path: Path, home: str) -> None:
    (tmp_path / "file").touch()
    store = Store(tmp_path / home / "collections" / "default", "some-model", WIDTH)
    assert store.papers == {}
    with pytest.raises(StoreError, match="cannot be written to: Not a directory") as refused, store.writing():
        raise AssertionError("the right to write was given")
    assert refused.value.hint == "Set ASK_HOME to a folder that you may write to."


@pytest.fixture
def read_only(tmp_path: Path, store: Store) -> Iterator[Store]:
    """A collection on a file system that is mounted to be read only, where this user may mount one."""
    filled(store, entry("a"))
    store.close()
    home = str(store.folder.parent)
    if os.geteuid() != 0 or subprocess.run(["mount", "--bind", home, home], capture_output=True, check=False).returncode:
        pytest.skip("mounting a file system read-only needs root")
    subprocess.run(["mount", "-o", "remount,bind,ro", home], check=True)
    yield store
    store.close()
    subprocess.run(["umount", "-l", home], check=True)


def test_a_read_only_disk_is_told(read_only: Store) -> None:
    with pytest.raises(StoreError) as refused, read_only.writing():
        raise AssertionError("the right to write was given")
    assert refused.value.hint == "Set ASK_HOME to a folder that you may write to."
    with pytest.raises(StoreError) as refused:
        _ = read_only.papers
    assert refused.value.hint == "Set ASK_HOME to a folder that you may write to."


# LlamaIndex's door -----------------------------------------------------------------------------------------------------


def test_llama_index_retrieves_through_its_own_adapter(seeded_home: Path) -> None:
    from llama_index.core import VectorStoreIndex

    seeded = Store(seeded_home / "collections" / "default", EMBEDDER_ID, DIMENSION)
    index = VectorStoreIndex.from_vector_store(seeded.vector_store(), embed_model=LocalEmbedding())
    nodes = index.as_retriever(similarity_top_k=3).retrieve("What perplexity does BiLLM reach on LLaMA2-70B?")
    assert len(nodes) == 3
    assert "BiLLM" in nodes[0].node.get_content()
    assert [n.score for n in nodes] == sorted((n.get_score() for n in nodes), reverse=True)


def test_a_store_leaves_no_file_open(tmp_path: Path) -> None:
    store = Store(tmp_path / "default", "some-model", WIDTH)
    filled(store, entry("a"))
    store.close()
    del store
    gc.collect()  # a ResourceWarning, if any, is an error here
    links = Path("/proc/self/fd")
    if not links.is_dir():
        pytest.skip("the open files of a process are listed on Linux alone")
    # Chroma's own threads let go of the database a moment later.
    patience = time.monotonic() + 20
    while open_files(links, tmp_path) and time.monotonic() < patience:
        gc.collect()
        time.sleep(0.05)
    assert not open_files(links, tmp_path)


def open_files(links: Path, folder: Path) -> list[str]:
    """The files of a folder that this process has open."""
    found = []
    for link in links.iterdir():
        with contextlib.suppress(OSError):  # closed since it was listed
            found.append(str(link.readlink()))
    return [f for f in found if f.startswith(str(folder))]
