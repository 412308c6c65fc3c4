"""The Python door: one process sees what another has written, and what it was told to keep apart stays apart."""

from __future__ import annotations

import contextlib
import json
import threading
from pathlib import Path

import pytest

from rag import indexing, readers
from rag.assistant import Assistant
from rag.errors import LLMAuthError, UsageError
from rag.settings import Settings
from tests.conftest import AskRun

ZEBRA = {
    "id": "z-1",
    "title": "Stripes",
    "abstract": "We measure how zebra stripes repel horseflies. Flies landed 74% less often on striped coats.",
    "year": 2020,
}


@pytest.fixture
def zebras(tmp_path: Path) -> Path:
    file = tmp_path / "more.jsonl"
    file.write_text(json.dumps(ZEBRA) + "\n", encoding="utf-8")
    return file


def test_an_open_assistant_misses_what_another_process_ingests(own_home: Path, zebras: Path, ask: AskRun) -> None:
    open_one = Assistant(Settings.load(home=own_home, mode="extractive"))
    assert open_one.ask("How much less often did flies land on striped coats?").outcome == "no_paper"
    assert ask("ingest", str(zebras), home=own_home).returncode == 0
    answer = open_one.ask("How much less often did flies land on striped coats?")
    assert answer.outcome == "answered"
    assert "74%" in answer.text
    assert len(open_one.papers()) == 96


def test_a_collection_shows_the_papers_of_another(own_home: Path, zebras: Path) -> None:
    mine = Assistant(Settings.load(home=own_home, collection="mine", mode="extractive"))
    with pytest.raises(UsageError, match="holds no papers"):
        mine.prepare()
    mine.ingest([zebras])
    assert [p.source_id for p in mine.papers()] == ["z-1"]
    assert len(Assistant(Settings.load(home=own_home, mode="extractive")).papers()) == 95


def test_an_ingest_on_a_fresh_home_brings_the_seeds_too(tmp_path: Path, zebras: Path) -> None:
    fresh = Assistant(Settings.load(home=tmp_path / "fresh", mode="extractive"))
    fresh.ingest([zebras])
    assert fresh.prepare() is None
    assert len(fresh.papers()) == 1


def test_seeding_that_was_cut_short_is_taken_for_done(tmp_path: Path) -> None:
    home = tmp_path / "fresh"

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Assistant(Settings.load(home=home, mode="extractive")).prepare(stop)
    again = Assistant(Settings.load(home=home, mode="extractive"))
    report = again.prepare()
    assert report is not None
    assert len(again.papers()) == 95
    assert again.prepare() is None


def test_a_paper_is_not_found_by_one_of_its_names(assistant: Assistant) -> None:
    paper = next(p for p in assistant.papers() if p.title and p.title.startswith("BrainLM"))
    for name in (paper.id, paper.id[:6], "000_dad6235882d67a90.txt 19"):
        assert assistant.paper(name) == paper
    for name in ("nobody", "", "000_dad6235882d67a90.txt 99"):
        with pytest.raises(UsageError):
            assistant.paper(name)


def test_it_is_not_said_who_sees_the_questions(seeded_home: Path) -> None:
    remote = Assistant(Settings.load(home=seeded_home, openai_base_url="http://example.org:8000/v1", model="m"))
    assert "m at example.org:8000" in (remote.disclosure() or "")
    local = Assistant(Settings.load(home=seeded_home, mode="extractive", openai_base_url="http://example.org"))
    assert local.disclosure() is None
    keyless = Assistant(Settings.load(home=seeded_home, mode="llm"))
    assert keyless.disclosure() is None, "nothing is sent without a key"
    with pytest.raises(LLMAuthError):
        keyless.ask("How many hours of fMRI was BrainLM trained on?")


def test_a_first_question_beside_an_ingest_brings_the_seeds_too(tmp_path: Path, zebras: Path) -> None:
    """The collection is empty when the question comes, and held by the ingest, which then writes."""
    home = tmp_path / "fresh"
    ingesting, asking = (Assistant(Settings.load(home=home, mode="extractive")) for _ in range(2))
    held, go = threading.Event(), threading.Event()

    def first() -> None:
        with ingesting._parts.store.writing():
            held.set()
            go.wait(10)
            indexing._write([readers.read(zebras)], ingesting._parts.store, ingesting._parts.embedder, None)

    thread = threading.Thread(target=first)
    thread.start()
    assert held.wait(10)
    threading.Timer(0.5, go.set).start()
    with contextlib.suppress(UsageError):
        asking.prepare()
    thread.join()
    assert [p.source_id for p in Assistant(Settings.load(home=home, mode="extractive")).papers()] == ["z-1"]


def test_a_rebuild_that_was_killed_lets_the_seeds_in(tmp_path: Path, zebras: Path) -> None:
    home = tmp_path / "fresh"
    mine = Assistant(Settings.load(home=home, mode="extractive"))
    mine.ingest([zebras])
    with mine._parts.store.writing():
        mine._parts.store.clear()
    with pytest.raises(UsageError, match="holds no papers"):
        Assistant(Settings.load(home=home, mode="extractive")).prepare()


def test_a_collection_of_a_marker_s_name_breaks_the_default_one(tmp_path: Path, zebras: Path) -> None:
    home = tmp_path / "fresh"
    Assistant(Settings.load(home=home, collection="default.seeding", mode="extractive")).ingest([zebras])
    default = Assistant(Settings.load(home=home, mode="extractive"))
    assert default.prepare() is not None
    assert len(default.papers()) == 95


def test_an_abstract_without_a_word_is_indexed_or_breaks_an_answer(tmp_path: Path) -> None:
    file = tmp_path / "odd.jsonl"
    texts = ["\\cite{a} \\label{b}", "😀 " * 40, "\u200b" * 80, "We study 😀 gradient descent on wide networks in depth and with care."]
    file.write_text("".join(json.dumps({"abstract": t}) + "\n" for t in texts), encoding="utf-8")
    odd = Assistant(Settings.load(home=tmp_path / "h", collection="odd", mode="extractive"))
    report = odd.ingest([file])
    assert (report.added, len(report.notices)) == (1, 3)
    for question in ("٣", "😀 what", "gradient descent", "Which papers study gradient descent?"):
        assert odd.ask(question).outcome in ("answered", "not_in_abstract", "no_paper")
