"""The whole way from question to checked answer, quoted and written, with a real server that fails on demand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from llama_index.core.base.base_query_engine import BaseQueryEngine

from rag.assistant import Assistant
from rag.errors import LLMError, UsageError
from rag.prompts import CANNOT_ANSWER
from rag.records import Answer, Delta, Filters
from rag.settings import Settings
from tests.openai_server import OpenAIServer, Reply

Writer = Callable[..., Assistant]


@pytest.fixture
def writer(seeded_home: Path, server: OpenAIServer) -> Writer:
    """An assistant over the seeds that asks the scripted server."""

    def make(**settings: object) -> Assistant:
        return Assistant(Settings.load(home=seeded_home, openai_base_url=server.url, model="test-model", retries=0, timeout_s=1, **settings))

    return make


def well_formed(answer: Answer) -> None:
    """What holds for every answer: numbers from 1, each citation has its source and each source its citation, quotes verbatim."""
    assert [s.n for s in answer.sources] == list(range(1, len(answer.sources) + 1))
    assert {n for s in answer.sentences for n in s.citations} == {s.n for s in answer.sources}
    for source in answer.sources:
        assert source.quotes
        assert all(source.paper.text[q.start : q.end] == q.text for q in source.quotes)


RIGHT = [
    ("How many hours of fMRI was BrainLM trained on?", "6,700", "BrainLM", "a number"),
    ("What bit-width does BiLLM reach on LLaMA2-70B and with what perplexity?", "1.08", "BiLLM", "two numbers"),
    ("What bit-width does BiLLM reach on LLaMA2-70B and with what perplexity?", "8.41", "BiLLM", "two numbers"),
    (
        "What is proposed for on-line key-value cache compression at inference time?",
        "Dynamic Memory Compression",
        "Dynamic Memory Compression",
        "a method by its purpose",
    ),
]


@pytest.mark.parametrize(("question", "answer_string", "title", "why"), RIGHT)
def test_a_plain_fact_is_not_found(assistant: Assistant, question: str, answer_string: str, title: str, why: str) -> None:
    answer = assistant.ask(question)
    well_formed(answer)
    assert answer.outcome == "answered", why
    assert answer_string in answer.text
    assert title in (answer.sources[0].paper.title or "")
    assert answer.mode == "extractive"
    assert answer.model is None


def test_a_list_misses_a_paper_or_names_one_that_is_not_on_the_topic(assistant: Assistant) -> None:
    answer = assistant.ask("Which papers compress the KV cache?")
    well_formed(answer)
    titles = " ".join(s.paper.title or "" for s in answer.sources)
    assert answer.kind == "list"
    assert all(name in titles for name in ("LESS", "Dynamic Memory Compression", "Model Tells You What to Discard"))
    assert len(answer.sources) == 3
    assert answer.lead.startswith("Three abstracts")
    assert all(s.paper.title and s.paper.title in one.text for s, one in zip(answer.sources, answer.sentences, strict=True)), "one line a paper, with its title"


@pytest.mark.parametrize("question", ["What is the capital of France?", "Who won the 2024 election?", "How do I bake sourdough bread?", "asdf qwer zxcv"])
def test_a_question_about_nothing_here_gets_a_confident_answer(assistant: Assistant, question: str) -> None:
    answer = assistant.ask(question)
    assert answer.outcome == "no_paper"
    assert not answer.sources
    assert not answer.sentences
    assert "95 abstracts, ICLR and ICML 2024" in answer.text
    assert answer.nearest


def test_an_answer_invents_words_of_its_own(assistant: Assistant) -> None:
    for question in ("How many hours of fMRI was BrainLM trained on?", "Why do long-tailed datasets hurt contrastive learning?", "What is LESS?"):
        answer = assistant.ask(question)
        quoted = " ".join(" ".join(q.text.split()) for s in answer.sources for q in s.quotes)
        for sentence in answer.sentences:
            assert sentence.text in quoted or "$" in quoted or "\\" in quoted or "*" in quoted, "only markup may differ from the abstract"


def test_filters_let_other_papers_through(assistant: Assistant) -> None:
    answer = assistant.ask("Which papers compress the KV cache?", filters=Filters(venue="iclr"))
    assert {s.paper.venue for s in answer.sources} == {"ICLR"}
    assert answer.filters == Filters(venue="iclr")
    none = assistant.ask("Which papers compress the KV cache?", filters=Filters(venue="CVPR"))
    assert none.outcome == "no_paper"
    assert none.text == "No paper here is from CVPR. Here are 95 abstracts, ICLR and ICML 2024."


def test_the_number_of_sources_is_not_kept(assistant: Assistant) -> None:
    assert len(assistant.ask("Which papers compress the KV cache?", sources=2).sources) == 2


@pytest.mark.parametrize(("question", "why"), [("", "empty"), (" \x00\x07 \n", "control characters"), ("x " * 10_000, "20,000 characters"), ("?!", "no word")])
def test_a_question_that_is_none_is_answered(assistant: Assistant, question: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        assistant.ask(question)
    assert caught.value.hint, why


def test_the_same_question_gets_two_answers(assistant: Assistant, seeded_home: Path) -> None:
    other = Assistant(Settings.load(home=seeded_home, mode="extractive"))
    for question in ("What does LESS do?", "Which papers are about fairness?"):
        one, two = assistant.ask(question), other.ask(question)
        assert (one.text, one.confidence, [s.paper.id for s in one.sources]) == (two.text, two.confidence, [s.paper.id for s in two.sources])


def test_a_written_answer_is_streamed_then_checked(writer: Writer, server: OpenAIServer) -> None:
    server.script(Reply(pieces=("BrainLM was trained on ", "6,700 hours of fMRI", " recordings [1].")))
    events = list(writer().stream("How many hours of fMRI was BrainLM trained on?"))
    assert "".join(e.text for e in events if isinstance(e, Delta)) == "BrainLM was trained on 6,700 hours of fMRI recordings [1]."
    answer = events[-1]
    assert isinstance(answer, Answer)
    well_formed(answer)
    assert (answer.mode, answer.model, answer.outcome) == ("llm", "test-model", "answered")
    assert [(s.text, s.support) for s in answer.sentences] == [("BrainLM was trained on 6,700 hours of fMRI recordings.", "supported")]
    assert "6,700 hours" in answer.sources[0].quotes[0].text
    assert answer.usage is not None


def test_an_invented_number_is_shown_as_supported(writer: Writer, server: OpenAIServer) -> None:
    server.script(Reply(pieces=("BrainLM was trained on 6,700 hours of fMRI recordings [1]. It reads 99,000 hours of fMRI recordings [1].",)))
    answer = writer().ask("How many hours of fMRI was BrainLM trained on?")
    assert [s.support for s in answer.sentences] == ["supported", "unsupported"]
    assert "99000" in answer.sentences[1].reason.replace(",", "")


def test_an_answer_without_any_support_is_shown(writer: Writer, server: OpenAIServer) -> None:
    server.script(Reply(pieces=("Paris is the capital of France, a country in Europe.",)))
    answer = writer().ask("How many hours of fMRI was BrainLM trained on?")
    assert answer.mode == "extractive"
    assert answer.model is None
    assert "6,700" in answer.text
    assert any("test-model" in n and "supported" in n for n in answer.notices)


def test_a_model_that_says_it_cannot_answer_is_overruled(writer: Writer, server: OpenAIServer) -> None:
    server.script(Reply(pieces=(CANNOT_ANSWER,)), Reply(pieces=(CANNOT_ANSWER,)))
    here = writer().ask("How many GPUs was BrainLM trained on?")
    assert (here.outcome, here.mode) == ("not_in_abstract", "llm")
    assert "BrainLM" in here.lead
    well_formed(here)
    nowhere = writer().ask("What is the capital of France?")
    assert (nowhere.outcome, nowhere.sources, nowhere.sentences) == ("no_paper", (), ())


FAULTS = [
    (Reply(status=401), "401: the key is refused"),
    (Reply(status=500), "500: the server fails"),
    (Reply(pieces=("BrainLM was trained on 6,700",), fault="break"), "the stream breaks in the middle"),
    (Reply(pieces=("BrainLM",), fault="stall"), "the stream stalls"),
    (Reply(fault="html", status=502), "a proxy's page"),
    (Reply(fault="empty"), "an empty stream"),
]


@pytest.mark.parametrize(("reply", "why"), FAULTS, ids=[w for _, w in FAULTS])
def test_a_failing_server_leaves_no_answer_or_hides_the_fault(writer: Writer, server: OpenAIServer, reply: Reply, why: str) -> None:
    server.script(reply)
    answer = writer().ask("How many hours of fMRI was BrainLM trained on?")
    assert (answer.mode, answer.model, answer.outcome) == ("extractive", None, "answered"), why
    assert "6,700 hours" in answer.text
    [notice] = answer.notices
    assert "language model failed" in notice
    server.script(reply)
    with pytest.raises(LLMError):
        writer(mode="llm").ask("How many hours of fMRI was BrainLM trained on?")


def test_without_a_key_something_calls_out(assistant: Assistant, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr("socket.socket.connect", refuse)
    assert assistant.disclosure() is None
    assert assistant.ask("How many hours of fMRI was BrainLM trained on?").outcome == "answered"


def test_closing_the_stream_leaves_the_request_running(writer: Writer, server: OpenAIServer) -> None:
    server.script(Reply(pieces=("BrainLM ",) * 50, delay_s=0.05))
    events = writer().stream("How many hours of fMRI was BrainLM trained on?")
    assert any(isinstance(e, Delta) for e in (next(events), next(events), next(events)))
    events.close()
    assert server.chats[0].disconnected.wait(5)


def test_it_is_no_llamaindex_query_engine(assistant: Assistant) -> None:
    engine = assistant.engine()
    assert isinstance(engine, BaseQueryEngine)
    response = engine.query("How many hours of fMRI was BrainLM trained on?")
    assert "6,700" in str(response)
    assert response.metadata is not None
    assert isinstance(response.metadata["answer"], Answer)
    assert response.source_nodes[0].node.get_content() == response.metadata["answer"].sources[0].paper.text


COMPARED = [
    ("How do LESS and Dynamic Memory Compression differ?", ("LESS", "Dynamic Memory Compression")),
    ("difference between BiSHop and CARTE?", ("BiSHop", "CARTE")),
    ("Do DMC and FastGen each need more training before they can be used?", ("Dynamic Memory Compression", "Model Tells You What to Discard")),
]


@pytest.mark.parametrize(("question", "titles"), COMPARED, ids=[q for q, _ in COMPARED])
def test_a_side_of_a_comparison_is_left_out_silently(assistant: Assistant, question: str, titles: tuple[str, ...]) -> None:
    answer = assistant.ask(question)
    well_formed(answer)
    assert (answer.kind, answer.outcome) == ("compare", "answered")
    assert len(answer.sources) == 2
    assert all(any(t in (s.paper.title or "") for s in answer.sources) for t in titles)
    alone = assistant.ask(question, sources=1)
    assert any("Also named" in n for n in alone.notices)


PASSING = ["What bit-width does BiLLM reach on LLaMA2-70B?", "What is BrainLM?", "What five desiderata does PACE set for explaining ViTs?"]


@pytest.mark.parametrize("question", PASSING)
def test_a_name_in_passing_makes_a_comparison(assistant: Assistant, question: str) -> None:
    assert assistant.ask(question).kind in ("fact", "definition")


def test_an_answer_is_thrown_away_for_a_decline_that_follows_it(writer: Writer, server: OpenAIServer) -> None:
    server.script(Reply(pieces=(f"BrainLM was trained on 6,700 hours of fMRI recordings [1]. {CANNOT_ANSWER}",)))
    answer = writer().ask("How many hours of fMRI was BrainLM trained on, and on how many GPUs?")
    assert (answer.outcome, answer.mode) == ("answered", "llm")
    assert [s.support for s in answer.sentences] == ["supported"]
    assert any("do not answer all" in n for n in answer.notices)


def test_a_language_model_is_given_more_papers_than_may_be_cited(writer: Writer, server: OpenAIServer) -> None:
    writer().ask("Which papers compress the KV cache?", sources=2)
    prompt = server.chats[0].text("user")
    assert "<abstract 2>" in prompt
    assert "<abstract 3>" not in prompt
