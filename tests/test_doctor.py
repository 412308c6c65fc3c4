"""`ask doctor`: each thing that can be broken is broken here once, is found, and is told with what to do."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from rag.doctor import examine
from rag.embeddings import DIMENSION, EMBEDDER_ID, LocalEmbedding
from rag.records import Check, Passage
from rag.settings import Settings
from rag.store import Entry, Store
from rag.words import words_of
from tests.conftest import AskRun, make_paper
from tests.openai_server import OpenAIServer, Reply, error_reply

NAMES = ["Python", "SQLite", "home folder", "local model", "index", "language model"]
KEY = "sk-very-secret-12345"


def examined(home: Path, embedder: LocalEmbedding | None = None, **settings: object) -> dict[str, Check]:
    """Every check by name; all must have been made, whatever was found."""
    store = Store(home / "collections" / "default", EMBEDDER_ID, DIMENSION)
    checks = list(examine(Settings.load(home=home, **settings), store, embedder or LocalEmbedding()))
    store.close()
    assert [c.name for c in checks] == NAMES
    return {c.name: c for c in checks}


def broken(checks: dict[str, Check]) -> list[str]:
    """The names of what is broken; each must say what to do."""
    assert all(c.hint for c in checks.values() if not c.ok)
    return [c.name for c in checks.values() if not c.ok]


def test_a_healthy_install_passes(seeded_home: Path) -> None:
    checks = examined(seeded_home)
    assert broken(checks) == []
    assert checks["index"].detail.startswith("95 papers, ")
    assert EMBEDDER_ID in checks["index"].detail
    assert "nothing leaves this machine" in checks["language model"].detail


def test_a_fresh_install_passes_and_is_left_fresh(tmp_path: Path) -> None:
    checks = examined(tmp_path / "fresh" / "home")
    assert broken(checks) == []
    assert checks["home folder"].detail.endswith("can be made")
    assert checks["index"].detail.startswith("none yet")
    assert not (tmp_path / "fresh").exists()


@pytest.mark.parametrize("missing", [False, True])
def test_a_damaged_model_is_found(tmp_path: Path, seeded_home: Path, missing: bool) -> None:
    folder = Path(shutil.copytree(LocalEmbedding().folder, tmp_path / "model"))
    model = folder / "model.onnx"
    if missing:
        model.unlink()
    else:
        content = bytearray(model.read_bytes())
        content[len(content) // 2] ^= 1
        model.write_bytes(content)
    checks = examined(seeded_home, LocalEmbedding(folder=folder))
    assert broken(checks) == ["local model"]
    assert "Reinstall" in checks["local model"].hint


def test_a_damaged_index_is_found(own_home: Path) -> None:
    (own_home / "collections" / "default" / "chroma.sqlite3").write_bytes(b"garbage" * 1000)
    checks = examined(own_home)
    assert broken(checks) == ["index"]
    assert "`ask ingest PATH --rebuild`" in checks["index"].hint


def test_an_index_of_another_embedder_is_found(tmp_path: Path) -> None:
    other = Store(tmp_path / "old" / "collections" / "default", "another-model", DIMENSION)
    with other.writing():
        _ = other._papers
    other.close()
    checks = examined(tmp_path / "old")
    assert broken(checks) == ["index"]
    assert "another-model" in checks["index"].detail
    assert "`ask ingest PATH --rebuild`" in checks["index"].hint


def test_damaged_vectors_are_found_although_the_papers_can_be_read(tmp_path: Path) -> None:
    # From 1,000 vectors on, Chroma keeps them in files of its own.
    store = Store(tmp_path / "large" / "collections" / "default", EMBEDDER_ID, DIMENSION)
    paper, vector = make_paper(), np.eye(1, DIMENSION, dtype=np.float32)[0]
    passages = tuple(Passage(paper.id, n, 0, 2, "We") for n in range(1200))
    with store.writing():
        store.add(
            [
                Entry(
                    paper, passages, vector, np.stack([vector] * len(passages)), words_of(paper, np.zeros(0, dtype=np.uint16), np.zeros((0, 64), dtype=np.int8))
                )
            ]
        )
    store.close()
    assert broken(examined(tmp_path / "large")) == []
    damaged = [header.write_bytes(b"garbage" * 100) for header in store.folder.rglob("header.bin")]
    assert damaged
    assert broken(examined(tmp_path / "large")) == ["index"]


def test_damaged_words_are_found(own_home: Path) -> None:
    (own_home / "collections" / "default" / "words.sqlite3").write_bytes(b"garbage" * 5000)
    assert broken(examined(own_home)) == ["index"]


def test_a_home_that_cannot_be_written_to_is_found() -> None:
    checks = examined(Path("/dev/null/x"))
    assert broken(checks) == ["home folder"]
    assert checks["home folder"].detail == "/dev/null/x cannot be written to: Not a directory"
    assert checks["home folder"].hint.startswith("Set ASK_HOME")


# The language model ----------------------------------------------------------------------------------------------------


def test_a_server_that_offers_the_model_passes(seeded_home: Path, server: OpenAIServer) -> None:
    server.script(Reply(pieces=("one ", "two ", "three"), delay_s=0.2))
    checks = examined(seeded_home, openai_base_url=server.url, openai_api_key=KEY)
    assert broken(checks) == []
    told = checks["language model"].detail
    assert told.startswith(f"gpt-5.4-mini at {server.root.removeprefix('http://')} answers, first token after ")
    first, whole = (float(x) for x in re.findall(r"after (\d+\.\d) s", told))
    assert 0.25 < whole - first < 5, "0.4 s apart, each rounded to a tenth"
    assert told.endswith("streamed in 3 pieces; takes 400,000 tokens; models there: gpt-5.4-mini, test-model")
    assert len(server.chats) == 1


def test_a_server_that_lists_no_models_is_taken_for_broken_or_one_that_does_not_stream_for_well(seeded_home: Path, server: OpenAIServer) -> None:
    server.models_reply = error_reply(404, "No route for /v1/models.")
    server.script(Reply(pieces=("one two three",)))
    checks = examined(seeded_home, openai_base_url=server.url, model="test-model")
    assert broken(checks) == []
    assert "it does not stream" in checks["language model"].detail
    assert checks["language model"].detail.endswith("takes 4,096 tokens (assumed); models there: not told")


@pytest.mark.parametrize("reply", [Reply(status=500), Reply(fault="stall", pieces=("one",)), Reply(fault="html", status=502), error_reply(429, "No.")])
def test_a_server_that_lists_its_models_and_answers_nothing_passes(seeded_home: Path, server: OpenAIServer, reply: Reply) -> None:
    server.script(reply)
    checks = examined(seeded_home, openai_base_url=server.url, model="test-model", retries=0, timeout_next_s=0.3)
    assert broken(checks) == ["language model"]


def test_a_server_that_does_not_offer_the_model_is_found(seeded_home: Path, server: OpenAIServer) -> None:
    checks = examined(seeded_home, openai_base_url=server.url, openai_api_key=KEY, model="no-such-model")
    assert broken(checks) == ["language model"]
    assert "does not offer no-such-model" in checks["language model"].detail
    assert checks["language model"].hint == "Set ASK_MODEL to one of gpt-5.4-mini, test-model."


def test_a_refused_key_is_found_and_not_shown(seeded_home: Path) -> None:
    with OpenAIServer(key="sk-another") as server:
        checks = examined(seeded_home, openai_base_url=server.url, openai_api_key=KEY)
    assert broken(checks) == ["language model"]
    assert "OPENAI_API_KEY" in checks["language model"].hint
    assert KEY not in repr(checks)


def test_a_server_that_is_down_is_found(seeded_home: Path) -> None:
    with OpenAIServer() as server:
        gone = server.url
    checks = examined(seeded_home, openai_base_url=gone, openai_api_key=KEY, retries=0)
    assert broken(checks) == ["language model"]


def test_a_missing_key_is_found_without_a_call(seeded_home: Path) -> None:
    checks = examined(seeded_home, mode="llm")
    assert broken(checks) == ["language model"]
    assert "OPENAI_API_KEY" in checks["language model"].hint


# The command -----------------------------------------------------------------------------------------------------------


def test_the_command_exits_0_where_all_is_well_and_1_where_something_is_broken(ask: AskRun, own_home: Path) -> None:
    assert ask("doctor").returncode == 0
    (own_home / "collections" / "default" / "chroma.sqlite3").write_bytes(b"garbage" * 1000)
    sick = ask("doctor", home=own_home)
    assert sick.returncode == 1
    assert "--rebuild" in sick.stdout
    assert "Traceback" not in sick.stderr
