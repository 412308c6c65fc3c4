"""The Python door: one process sees what another has written, and what it was told to keep apart stays apart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
