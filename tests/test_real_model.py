"""A model that makes things up, behind llama.cpp's own server: it is streamed, ended and kept within bounds, and its inventions are marked.

Needs what `make model` installs; skipped without, but for REAL_MODEL=required.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from eval import gold
from rag.assistant import Assistant, answer_object
from rag.markup import plain
from rag.records import Answer, Delta
from rag.settings import Settings
from tests.conftest import ASK, AskRun, clean_environment
from tests.endpoint import LlamaServer
from tests.llama_server import MODEL, missing

QUESTION = "How does Dynamic Memory Compression make inference faster?"
#: Tokens that take the model far longer to write than a client that is gone goes unnoticed.
LONG = 2_000
#: Questions of how many, which tempt a model to make up a number.
COUNTED = [i for i in gold.load() if re.match(r"How (?:many|much)\b|What share\b", i.question) and not i.conversation]
#: Few abstracts and tokens, because the model reads 100 tokens a second on a busy core, and time for it where the machine has much else to do.
SMALL: dict[str, Any] = {"top_k": 3, "sources": 3, "max_tokens": 120, "retries": 0, "timeout_first_s": 300, "timeout_s": 600}


def _running(*, endless: bool) -> Iterator[LlamaServer]:
    if (why := missing()) is not None:
        if os.environ.get("REAL_MODEL") == "required":
            pytest.fail(why)
        pytest.skip(why)
    with LlamaServer(endless=endless) as server:
        yield server


@pytest.fixture(scope="module")
def model() -> Iterator[LlamaServer]:
    """The model as it is."""
    yield from _running(endless=False)


@pytest.fixture(scope="module")
def endless() -> Iterator[LlamaServer]:
    """The model that never ends an answer by itself."""
    yield from _running(endless=True)


def _assistant(server: LlamaServer, home: Path, **settings: Any) -> Assistant:
    return Assistant(Settings.load(**{"home": home, "openai_base_url": server.url, "model": MODEL, "mode": "llm", **SMALL, **settings}))


def _environment(server: LlamaServer, **more: str) -> dict[str, str]:
    small = {f"ASK_{name.upper()}": str(value) for name, value in SMALL.items()}
    return {"OPENAI_BASE_URL": server.url, "ASK_MODEL": MODEL, **small, **more}


def test_an_answer_comes_in_one_piece(endless: LlamaServer, seeded_home: Path) -> None:
    events = _assistant(endless, seeded_home, max_tokens=60).stream(QUESTION)
    next(e for e in events if isinstance(e, Delta))
    assert endless.busy, "the first piece is here before the last is written"
    rest = list(events)
    assert sum(isinstance(e, Delta) for e in rest) > 20
    assert isinstance(rest[-1], Answer)


def test_the_model_writes_on_for_nobody_when_an_answer_is_cancelled(endless: LlamaServer, seeded_home: Path) -> None:
    events = _assistant(endless, seeded_home, max_tokens=LONG).stream(QUESTION)
    next(e for e in events if isinstance(e, Delta))
    assert endless.busy
    events.close()
    assert endless.until_idle() < LONG / 2


def test_the_model_writes_on_for_nobody_after_ctrl_c(endless: LlamaServer, seeded_home: Path, tmp_path: Path) -> None:
    environment = clean_environment() | {"ASK_HOME": str(seeded_home)} | _environment(endless, ASK_MAX_TOKENS=str(LONG))
    with subprocess.Popen([ASK, QUESTION], env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as asking:
        endless.until_writing()
        asking.send_signal(signal.SIGINT)
        _, errors = asking.communicate(timeout=60)
    assert asking.returncode == 130
    assert "Traceback" not in errors
    assert endless.until_idle() < LONG / 2


def test_a_timeout_leaves_the_model_at_work_or_the_user_without_an_answer(endless: LlamaServer, seeded_home: Path) -> None:
    # The model takes longer than that to read eight abstracts.
    answer = _assistant(endless, seeded_home, mode="auto", top_k=8, sources=8, max_tokens=LONG, timeout_s=1).ask(
        "Which papers compress the KV cache of an LLM?"
    )
    assert (answer.mode, answer.outcome) == ("extractive", "answered")
    assert any("The language model failed" in notice for notice in answer.notices)
    assert endless.until_idle() < LONG / 2


def test_an_answer_is_longer_than_its_budget_or_looks_whole(endless: LlamaServer, seeded_home: Path) -> None:
    answer = _assistant(endless, seeded_home, max_tokens=24).ask(QUESTION)
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 24
    assert answer.usage.prompt_tokens > 500
    assert any("length limit" in notice for notice in answer.notices)


def test_doctor_does_not_find_the_model(model: LlamaServer, ask: AskRun) -> None:
    told = ask("doctor", **_environment(model))
    assert told.returncode == 0, told.stdout + told.stderr
    assert MODEL in told.stdout


def test_an_invention_is_not_marked_on_the_command_line(model: LlamaServer, ask: AskRun) -> None:
    told = ask("--json", "How many papers does Dynamic Memory Compression cite?", **_environment(model))
    assert told.returncode == 0, told.stderr
    assert _unmarked(json.loads(told.stdout)) == []


def test_an_invention_is_not_marked(model: LlamaServer, seeded_home: Path) -> None:
    assistant = _assistant(model, seeded_home)
    invented = 0
    for item in gold.drawn(COUNTED, 6):
        *events, answer = assistant.stream(item.question)
        assert any(isinstance(e, Delta) for e in events), "the model was not asked"
        assert isinstance(answer, Answer)
        assert _unmarked(answer_object(answer)) == [], item.question
        replaced = answer.mode == "extractive"
        assert replaced == any("so this answer quotes them instead" in n for n in answer.notices)
        invented += replaced or any(s.support != "supported" for s in answer.sentences)
    assert invented, "a model of this size made nothing up: another test is needed"


def _unmarked(answer: Mapping[str, Any]) -> list[str]:
    """What is wrong with the marks of an answer: a mark without a reason, or support without a verbatim quote or with a number of its own."""
    sources = {s["n"]: s for s in answer["sources"]}
    wrong = []
    for s in sources.values():
        if not s["quotes"] or any(s["text"][q["start"] : q["end"]] != q["text"] for q in s["quotes"]):
            wrong.append(f"[{s['n']}] has no quote, or one that is not verbatim")
    for sentence in answer["sentences"]:
        cited = [sources[n] for n in sentence["citations"]]
        if sentence["support"] == "supported":
            strange = _strange_numbers(sentence["text"], cited)
            wrong += [f"no source: {sentence['text']}"] * (not cited) + [f"not in its sources: {n} of {sentence['text']}" for n in strange]
        elif not sentence["reason"] or (sentence["support"] == "uncited") != (not cited):
            wrong.append(f"marked without a reason: {sentence['text']}")
    return wrong


def _strange_numbers(text: str, cited: Sequence[Mapping[str, Any]]) -> list[str]:
    """Numbers in digits that no cited title or abstract holds."""
    told = " ".join(plain(f"{s['title'] or ''} {s['text']}") for s in cited)
    return [n for n in re.findall(r"\d+(?:[.,]\d+)*", plain(text)) if not re.search(rf"(?<![\d.,]){re.escape(n)}(?!\d|[.,]\d)", told)]
