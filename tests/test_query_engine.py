"""The whole way from question to checked answer, quoted and written, with a real server that fails on demand."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from llama_index.core.base.base_query_engine import BaseQueryEngine

from rag.assistant import Assistant, Cancel
from rag.errors import LLMError, UsageError
from rag.prompts import CANNOT_ANSWER
from rag.records import Answer, Delta, Event, Filters, Repairs, Turn
from rag.settings import Settings
from tests.openai_server import OpenAIServer, Reply, error_reply

Writer = Callable[..., Assistant]


@pytest.fixture
def writer(seeded_home: Path, server: OpenAIServer) -> Writer:
    """An assistant over the seeds that asks the scripted server."""

    def make(**settings: object) -> Assistant:
        return Assistant(
            Settings.load(home=seeded_home, openai_base_url=server.url, model="test-model", retries=0, timeout_first_s=1, timeout_next_s=1, **settings)
        )

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


TOO_LONG = error_reply(400, "This model's maximum context length is 4096 tokens.", code="context_length_exceeded")
BEFORE = (Turn("What is BrainLM?", "What is BrainLM?", "A foundation model [1].", ()),)
WAITS = [
    pytest.param((Reply(fault="silent"),), (), id="no status line comes"),
    pytest.param((Reply(fault="comments_first"),), (), id="no token comes"),
    pytest.param((Reply(pieces=("BrainLM ",), fault="stall"),), (), id="it falls silent"),
    pytest.param((TOO_LONG, Reply(fault="silent")), (), id="silent at the second, shorter prompt"),
    pytest.param((error_reply(429, "Busy.", headers={"retry-after": "50"}),), (), id="asked to come back later"),
    pytest.param((Reply(fault="silent"),), BEFORE, id="silent while it puts a follow-up into words"),
]


@pytest.mark.parametrize(("replies", "history"), WAITS)
def test_a_cancelled_question_waits_on_for_a_silent_server(
    seeded_home: Path, server: OpenAIServer, replies: tuple[Reply, ...], history: tuple[Turn, ...]
) -> None:
    server.script(*replies)
    patient = Settings.load(home=seeded_home, openai_base_url=server.url, model="test-model", retries=1, timeout_first_s=60, timeout_next_s=60)
    cancel, events = Cancel(), list[Event]()
    reader = threading.Thread(target=lambda: events.extend(Assistant(patient).stream("How long was it trained?", history=history, cancel=cancel)))
    reader.start()
    for _ in range(600):
        if len(server.chats) == len(replies):
            break
        time.sleep(0.05)
    time.sleep(0.3)  # so that it waits
    cancel.cancel()
    reader.join(20)
    assert not reader.is_alive()
    assert not any(isinstance(e, Answer) for e in events)
    assert replies[-1].status == 429 or server.chats[-1].disconnected.wait(5)
    assert len(server.chats) == len(replies), "and asks nothing more"


def test_what_was_cancelled_beforehand_is_sent(writer: Writer, server: OpenAIServer) -> None:
    cancel = Cancel()
    cancel.cancel()
    assert not any(isinstance(e, Answer) for e in writer().stream("How many hours of fMRI was BrainLM trained on?", cancel=cancel))
    assert not server.chats


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


FMRI = "BrainLM was trained on 6,700 hours of fMRI recordings [1]."


def test_a_strict_answer_keeps_what_no_abstract_supports_or_hides_that_it_was_there(writer: Writer, server: OpenAIServer) -> None:
    said = f"Zebras repel horseflies [2]. {FMRI} Paris is the capital of France. It reads 99,000 hours of fMRI recordings [1]."
    server.script(Reply(pieces=(said,)), Reply(pieces=(said,)), Reply(pieces=("Zebras repel horseflies [2].",)))
    shown, strict, nothing = writer().ask(HOURS), writer(strict=True).ask(HOURS), writer(strict=True).ask(HOURS)
    assert [s.support for s in shown.sentences] == ["unsupported", "supported", "uncited", "unsupported"]
    assert all(s.reason for s in shown.sentences if s.support != "supported")
    assert (shown.repairs.marked, shown.repairs.removed) == (3, 0)
    assert [s.text for s in strict.sentences] == ["BrainLM was trained on 6,700 hours of fMRI recordings."]
    assert [s.n for s in strict.sources] == [1], "a removed sentence leaves no source behind"
    well_formed(strict)
    assert (strict.repairs.marked, strict.repairs.removed) == (0, 3)
    assert any("3 sentences" in n and "removed" in n for n in strict.notices)
    assert (nothing.mode, nothing.outcome, nothing.repairs.replaced) == ("extractive", "answered", 1)
    assert any("Nothing that test-model wrote is supported" in n for n in nothing.notices)


HOURS = "How many hours of fMRI was BrainLM trained on?"
REPAIRED = [
    ("BrainLM was trained on 6,700 hours of fMRI recordings [2].", {"corrected": 1}, "corrected"),
    ("BrainLM was trained on 6,700 hours of fMRI recordings.", {"added": 1}, "added"),
    ("BrainLM was trained on 6,700 hours of fMRI recordings [1][3].", {"taken": 1}, "taken away"),
    ("BrainLM was trained on 6,700 hours of fMRI recordings [1][77].", {"set_aside": 1}, "[77]"),
    ("BrainLM was trained on 6,700 hours of fMRI recordings https://evil.example/x?d=1 [1].", {"set_aside": 1}, "address"),
    (f"In summary: {FMRI}", {}, ""),
]


@pytest.mark.parametrize(("said", "counted", "told"), REPAIRED, ids=[t or "nothing to repair" for *_, t in REPAIRED])
def test_a_repair_is_not_counted_or_not_told(writer: Writer, server: OpenAIServer, said: str, counted: dict[str, int], told: str) -> None:
    server.script(Reply(pieces=(said,)))
    answer = writer().ask(HOURS)
    well_formed(answer)
    assert [s.support for s in answer.sentences] == ["supported"]
    assert "BrainLM" in (answer.sources[0].paper.title or "")
    assert answer.repairs == Repairs(**counted)
    assert any(told in n for n in answer.notices) or not told


NOT_SAID = [
    (CANNOT_ANSWER, "alone"),
    (f"**{CANNOT_ANSWER}**", "in bold"),
    (f"{CANNOT_ANSWER} However, such models are usually trained on eight A100 GPUs.", "with knowledge of its own"),
    (f"{CANNOT_ANSWER} {FMRI}", "before what they do say"),
    ("The provided abstracts do not contain information about the number of GPUs.", "in other words"),
    ("I'm sorry, but the number of GPUs is not mentioned in the abstracts.", "with an apology"),
    ("The abstract of BrainLM does not state the number of GPUs [1].", "with a citation"),
    ("Die Abstracts beantworten das nicht.", "translated"),
    ("Les résumés ne répondent pas à cette question.", "translated again"),
]


@pytest.mark.parametrize(("said", "why"), NOT_SAID, ids=[w for _, w in NOT_SAID])
def test_an_honest_decline_is_shown_as_a_claim_without_a_source(writer: Writer, server: OpenAIServer, said: str, why: str) -> None:
    server.script(Reply(pieces=(said,)), Reply(pieces=(said,)))
    here = writer().ask("How many GPUs was BrainLM trained on?")
    well_formed(here)
    assert (here.outcome, here.mode, here.model) == ("not_in_abstract", "llm", "test-model"), why
    assert all(s.support == "supported" for s in here.sentences)
    assert "A100" not in here.text
    nowhere = writer().ask("What is the capital of France?")
    assert (nowhere.outcome, nowhere.sentences, nowhere.sources) == ("no_paper", (), ())


def test_an_answer_with_a_gap_told_in_other_words_is_thrown_away(writer: Writer, server: OpenAIServer) -> None:
    server.script(Reply(pieces=(f"The abstracts do not state the number of GPUs. {FMRI}",)))
    answer = writer().ask("How many hours of fMRI was BrainLM trained on, and on how many GPUs?")
    assert (answer.outcome, [s.support for s in answer.sentences]) == ("answered", ["supported"])
    assert any("do not answer all" in n for n in answer.notices)


def test_an_answer_in_the_reader_s_language_is_marked_sentence_by_sentence_or_passes_for_checked(writer: Writer, server: OpenAIServer) -> None:
    said = (
        "BrainLM wurde auf 6.700 Stunden von Aufnahmen trainiert [1]. Das Modell ist ein Grundlagenmodell und wird feinabgestimmt [1]. "
        "Es wurde auf 99.000 Stunden trainiert [1]."
    )
    server.script(Reply(pieces=(said,)))
    answer = writer().ask("Auf wie vielen Stunden fMRI wurde BrainLM trainiert?")
    well_formed(answer)
    assert answer.mode == "llm"
    assert [s.support for s in answer.sentences] == ["unsupported"] * 3, "never supported: its words were not compared"
    assert [bool(s.reason) for s in answer.sentences] == [False, False, True], "only the number that is not there is marked"
    assert (answer.repairs.uncompared, answer.repairs.marked) == (2, 1)
    assert sum("language of the abstracts" in n for n in answer.notices) == 1


def test_a_sentence_that_tells_of_two_papers_needs_one_that_says_both(writer: Writer, server: OpenAIServer) -> None:
    server.behaviour = lambda request: Reply(
        pieces=(
            "LESS integrates a constant sized cache with eviction-based cache methods, while Dynamic Memory Compression "
            "does not add any extra parameters [1][2].",
        )
    )
    answer = writer().ask("How do LESS and Dynamic Memory Compression differ?")
    assert [(s.support, len(s.citations)) for s in answer.sentences] == [("supported", 2)]


def test_a_written_count_says_no_number(writer: Writer) -> None:
    answer = writer().ask("How many papers compress the KV cache?")
    assert answer.mode == "llm"
    fitting = {n for s in answer.sentences if s.support == "supported" for n in s.citations}
    assert fitting
    assert answer.lead.startswith(("", "One", "Two", "Three", "Four")[len(fitting)] + " of the ")
