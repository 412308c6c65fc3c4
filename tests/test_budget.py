"""Prompts that fit a model's window: what is kept, what is told, and where the window is known from."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rag.assistant import Assistant, plain
from rag.budget import TEMPLATE_TOKENS, fit, tokens_of
from rag.errors import LLMTooLongError
from rag.llm import ChatModel
from rag.prompts import answer_messages
from rag.records import Answer
from rag.settings import Settings
from tests.openai_server import OpenAIServer, Reply, Request, answer_from_prompt, error_reply

QUESTION = "How many hours of fMRI was BrainLM trained on?"
Writer = Callable[..., Assistant]


@pytest.fixture
def writer(seeded_home: Path, server: OpenAIServer) -> Writer:
    """An assistant over the seeds that asks the scripted server."""

    def make(**settings: object) -> Assistant:
        return Assistant(Settings.load(**{"home": seeded_home, "openai_base_url": server.url, "model": "test-model", "retries": 0, **settings}))

    return make


def size_of(request: Request) -> int:
    """Tokens of a prompt and the answer it asks for, as they are counted here."""
    return sum(tokens_of(m["content"]) for m in request.body["messages"]) + request.body["max_tokens"]


def given(request: Request) -> list[str]:
    """The texts of the abstracts in a prompt."""
    return re.findall(r"^Text: (.*)$", request.text("user"), re.MULTILINE)


@pytest.mark.parametrize("window", [1_400, 2_048, 2_400])
def test_prompt_and_answer_do_not_fit_the_window_or_more_is_left_out_than_must_be(writer: Writer, server: OpenAIServer, window: int) -> None:
    server.behaviour = lambda r: answer_from_prompt(r) if size_of(r) <= window else error_reply(400, "The context length is exceeded.")
    answer = writer(context_window=window).ask(QUESTION)
    [request] = server.chats
    assert size_of(request) <= window
    assert size_of(request) + TEMPLATE_TOKENS > window - 150, "another sentence would have fitted"
    assert answer.mode == "llm"
    assert "6,700 hours" in answer.text
    [notice] = [n for n in answer.notices if "window" in n]
    assert re.match(rf"\d+ of the \d+ sentences found were not given to test-model.* window of {window:,} tokens\.", notice)


def test_sentences_are_cut_in_their_midst_or_change_places(assistant: Assistant) -> None:
    papers = [h.paper for h in assistant.search(QUESTION, 8)]
    whole = [plain(p.text) for p in papers]
    for room in (900, 1_500, 2_500):
        fitted = fit(QUESTION, papers, "fact", room, assistant.finder)
        assert fitted is not None
        assert sum(tokens_of(m["content"]) for m in answer_messages(QUESTION, papers[: len(fitted.texts)], fitted.texts, "fact")) <= room
        assert fitted.texts[0]
        assert len(fitted.texts) == len(papers) - fitted.papers_out
        kept = 0
        for paper, text, cut in zip(papers, whole, fitted.texts, strict=False):
            said = [plain(s.text) for s in assistant.finder.passages(paper.text)]
            runs = cut.split(" … ")
            assert runs == sorted(runs, key=text.find)
            for run in runs:
                assert run in " ".join(said)
                kept += sum(s in run for s in said)
            best = assistant.finder.rank(QUESTION, paper.text)[0].passage
            assert plain(best.text) in cut
        assert kept == fitted.sentences - fitted.sentences_out
        assert any("6,700 hours" in text for text in fitted.texts)


def test_what_fits_is_changed_all_the_same(writer: Writer, server: OpenAIServer) -> None:
    asking = writer()
    answer = asking.ask(QUESTION)
    assert given(server.chats[0]) == [plain(h.paper.text) for h in asking.search(QUESTION, 8)][: len(given(server.chats[0]))]
    assert not [n for n in answer.notices if "window" in n]


def test_abstracts_have_more_tokens_than_is_counted() -> None:
    # Counted with SmolLM2's tokenizer, whose vocabulary is the smallest of those tried.
    assert tokens_of("我们提出了一种用于压缩大型语言模型键值缓存的方法，在保持准确率的同时减少内存。") >= 64
    assert tokens_of("∇f(x) ≤ ‖x‖² → ∑ᵢ αᵢ") >= 23


WINDOWS = [
    ({"context_window": 1_000}, "gpt-5.4-mini", {"max_model_len": 9}, 1_000, "the setting goes before all"),
    ({}, "gpt-5.4-mini", {"max_model_len": 9}, 400_000, "LlamaIndex knows OpenAI's models"),
    ({}, "openai/gpt-4o-mini", {}, 128_000, "under the name of a gateway too"),
    ({}, "test-model", {"max_model_len": 5_000}, 5_000, "vLLM tells"),
    ({}, "test-model", {"meta": {"n_ctx": 2_048, "n_ctx_train": 8_192}}, 2_048, "llama.cpp tells what it runs with, and what the model was trained with"),
    ({}, "test-model", {"context_length": 7_000}, 7_000, "OpenRouter tells"),
    ({}, "test-model", {"max_model_len": "many"}, 4_096, "what is no number is not told"),
    ({}, "test-model", {}, 4_096, "Ollama does not tell"),
]


@pytest.mark.parametrize(("settings", "model", "told", "window", "why"), WINDOWS, ids=[w for *_, w in WINDOWS])
def test_the_window_is_taken_from_the_wrong_place(
    server: OpenAIServer, settings: dict[str, object], model: str, told: dict[str, object], window: int, why: str
) -> None:
    server.models_reply = Reply(body={"object": "list", "data": [{"id": "another", "max_model_len": 3}, {"id": model, **told}]})
    chat = ChatModel.from_settings(Settings.load(openai_base_url=server.url, model=model, **settings))
    assert chat.window().tokens == window, why
    assert chat.window().assumed == (window == 4_096)
    assert len(server.requests) == (model == "test-model"), "asked once, and only where nobody else tells"


def test_the_only_model_of_a_server_is_not_its_own_under_another_name(server: OpenAIServer) -> None:
    server.models_reply = Reply(body={"data": [{"id": "/models/smol.gguf", "meta": {"n_ctx": 2_048}}]})
    assert ChatModel.from_settings(Settings.load(openai_base_url=server.url, model="test-model")).window().tokens == 2_048


@pytest.mark.parametrize("reply", [Reply(status=500), Reply(status=404), Reply(body={"data": "x"}), Reply(body="<html>")])
def test_a_server_without_a_list_of_models_is_not_asked_or_the_guess_is_not_told(writer: Writer, server: OpenAIServer, reply: Reply) -> None:
    server.models_reply = reply
    answer = writer(max_tokens=2_000).ask(QUESTION)
    assert answer.mode == "llm"
    [notice] = [n for n in answer.notices if "window" in n]
    assert "assumed to be 4,096 tokens (ASK_CONTEXT_WINDOW)" in notice


def test_a_prompt_that_the_server_finds_too_long_is_not_cut_once_more(writer: Writer, server: OpenAIServer) -> None:
    server.behaviour = lambda r: answer_from_prompt(r) if size_of(r) <= 2_048 else error_reply(400, "request exceeds the available context size")
    answer = writer(context_window=100_000).ask(QUESTION)
    assert len(server.chats) == 2
    assert (answer.mode, answer.model) == ("llm", "test-model")
    assert "6,700 hours" in answer.text
    assert any("its server found the prompt too long" in n for n in answer.notices)


def test_a_prompt_that_is_always_too_long_is_cut_for_ever_or_the_fault_is_not_named(writer: Writer, server: OpenAIServer) -> None:
    server.script(*[error_reply(400, "request exceeds the available context size")] * 5)
    answer: Answer = writer().ask(QUESTION)
    assert len(server.chats) == 2
    assert (answer.mode, answer.model) == ("extractive", None)
    assert "6,700 hours" in answer.text
    assert "too long for test-model" in answer.notices[0]
    assert "ASK_CONTEXT_WINDOW" in answer.notices[0]
    with pytest.raises(LLMTooLongError):
        writer(mode="llm").ask(QUESTION)


def test_a_window_that_holds_nothing_is_filled_anyway(writer: Writer, server: OpenAIServer) -> None:
    answer = writer(context_window=600).ask(QUESTION)
    assert server.chats == []
    assert answer.mode == "extractive"
    assert "does not hold" in answer.notices[0]


def test_an_answer_may_be_as_long_as_the_window(writer: Writer, server: OpenAIServer) -> None:
    writer(context_window=3_000, max_tokens=50_000).ask(QUESTION)
    assert server.chats[0].body["max_tokens"] == 1_500
