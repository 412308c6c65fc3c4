"""Answers checked while they are being written: the same result as at once, nothing waits, nothing is swallowed."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rag import citations
from rag.assistant import Assistant
from rag.checking import Checking
from rag.citations import Finding, examine, in_turn
from rag.markers import Claim, parse
from rag.numbering import Sheet
from rag.records import Answer, Delta, Hit, Verified
from rag.settings import Settings
from tests.conftest import make_hit, make_paper
from tests.openai_server import OpenAIServer, Reply

DMC = (
    "Dynamic Memory Compression retrofits Llama 2 into DMC Transformers. It gives up to 3.7 times the throughput on an H100 GPU. No extra parameters are added."
)
LESS = "LESS integrates a constant sized cache with eviction-based methods. It closes most of the gap to caching everything on summarisation tasks."
HITS = [make_hit(make_paper(LESS)), make_hit(make_paper(DMC))]
ANSWERS = [
    "LESS integrates a constant sized cache with eviction-based methods [1]. DMC gives up to 3.7 times the throughput on an H100 GPU. [2] "
    "Zebra stripes repel horseflies, e.g. in the savanna [2].\nDMC adds no extra parameters [1].",
    "Here are two papers:\n\n- **LESS** integrates a constant sized cache [1, 9].\n- DMC: Llama 2 is retrofitted into DMC Transformers.【2】 It is fast.\n\n"
    "In summary:\nNo extra parameters are added `[2]`.",
    '| Paper | What |\n|---|---|\n| LESS | a constant sized cache [1] |\n| DMC | "3.7 times. The throughput." [2] |\n\nReferences:\n[1] LESS\n[2] DMC',
    "According to [1], LESS closes most of the gap to caching everything (1). [2] shows that DMC has 3.7 times the throughput <abstract 2>. It is so.¹",
    "LESS closes most of the gap (1). DMC adds no extra parameters (2).",
    "LESS integrates a constant sized cache with eviction-based methods [1]. It closes most of the gap to caching everything on summarisation tasks. "
    "It gives up to 3.7 times the throughput on an H100 GPU. The abstracts do not mention zebras. It closes most of the gap to caching everything.",
    "Le cache est constant 【1】。它很快【2】。 The abstracts do not answer this.",
]


@pytest.mark.parametrize("text", ANSWERS)
def test_an_answer_checked_as_it_comes_differs_from_one_checked_at_once(assistant: Assistant, text: str) -> None:
    claims = parse(text)
    at_once = list(zip(claims, in_turn(claims, HITS, assistant.finder), strict=True))
    for seed in range(12):
        rng = random.Random(seed)
        cuts = sorted({0, len(text), *(rng.randrange(len(text)) for _ in range(rng.choice((3, 20, 80))))})
        with Checking(HITS, assistant.finder) as check:
            told = []
            for end in cuts[1:]:
                check.follow(text[:end])
                if rng.random() < 0.3:
                    check._step.result()  # the check may be as fast or as slow as it likes
                told += check.ready()
            finished = check.finish(text)
            told += check.ready()
        assert finished == at_once, f"seed {seed}"
        found = [f for _, f in finished if f]
        assert told == found[: len(told)], f"seed {seed}: what was told early is the beginning of the whole"


def test_sentences_wait_for_the_end_of_the_stream(assistant: Assistant) -> None:
    with Checking(HITS, assistant.finder) as check:
        check._step.result()
        for end in range(len(ANSWERS[0])):
            check.follow(ANSWERS[0][:end])
            check._step.result()
        assert [f.support for f in check.ready()] == ["supported", "supported", "unsupported"], "all but the last"


def test_the_stream_waits_for_the_check(assistant: Assistant, monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()

    def slow(claim: Claim, hits: list[Hit], *_: object) -> Finding:
        assert go.wait(60)
        return examine(claim, hits, assistant.finder)

    monkeypatch.setattr(citations, "examine", slow)
    with Checking(HITS, assistant.finder) as check:
        check._step.result()
        for end in range(len(ANSWERS[0])):
            check.follow(ANSWERS[0][:end])  # a call that waited would wait for ever
            assert check.ready() == []
        go.set()
        assert len(check.finish(ANSWERS[0])) == 4


@pytest.mark.parametrize("door", ["follow", "finish"])
def test_a_check_that_fails_is_swallowed(assistant: Assistant, monkeypatch: pytest.MonkeyPatch, door: str) -> None:
    def fails(*_: object) -> Finding:
        raise ZeroDivisionError("the check is broken")

    monkeypatch.setattr(citations, "examine", fails)
    with Checking(HITS, assistant.finder) as check:
        check._step.result()
        check.follow(ANSWERS[0])
        check._step.exception()  # waits for it
        with pytest.raises(ZeroDivisionError):
            getattr(check, door)(ANSWERS[0])


def test_a_check_left_early_goes_on_in_the_background(assistant: Assistant, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[Claim] = []
    begun, go = threading.Event(), threading.Event()

    def slow(claim: Claim, hits: list[Hit], *_: object) -> Finding:
        checked.append(claim)
        begun.set()
        assert go.wait(60)
        return examine(claim, hits, assistant.finder)

    monkeypatch.setattr(citations, "examine", slow)
    with Checking(HITS, assistant.finder) as check:
        check._step.result()
        check.follow(ANSWERS[0])
        assert begun.wait(60)
    go.set()
    check._step.result()
    assert len(checked) == 1


BRAINLM = "How many hours of fMRI was BrainLM trained on?"
Writer = Callable[..., Assistant]


@pytest.fixture
def writer(seeded_home: Path, server: OpenAIServer) -> Writer:
    def make(**settings: object) -> Assistant:
        return Assistant(Settings.load(home=seeded_home, openai_base_url=server.url, model="test-model", retries=0, timeout_s=5, **settings))

    return make


SLOW = (
    "The fMRI recordings are 99,000 hours long [1]. ",
    "BrainLM was trained on 6,700 hours ",
    "of fMRI recordings.",
    " [1]",
    " BrainLM is a foundation model for brain activity dynamics [1]. ",
    "Paris is ",
    "the capital of France.",
)


def test_checked_sentences_come_only_after_the_last_piece(writer: Writer, server: OpenAIServer) -> None:
    server.script(Reply(pieces=SLOW, delay_s=0.5))
    events = list(writer().stream(BRAINLM))
    answer = events[-1]
    assert isinstance(answer, Answer)
    told = [e.sentence for e in events if isinstance(e, Verified)]
    assert tuple(told) == answer.sentences[: len(told)]
    assert [s.support for s in told] == ["unsupported", "supported", "supported"], "all but the last, and what has no support waits for what has"
    last_piece = max(n for n, e in enumerate(events) if isinstance(e, Delta))
    assert any(isinstance(e, Verified) for e in events[:last_piece])
    assert "".join(e.text for e in events if isinstance(e, Delta)) == "".join(SLOW)
    assert (answer.repairs.marked, answer.sentences[-1].support) == (2, "uncited")


def test_a_sentence_is_told_of_an_answer_that_is_then_replaced(writer: Writer, server: OpenAIServer) -> None:
    server.script(Reply(pieces=("Zebras are striped [1]. ", "Paris is in France [1]. ", "Bees ", "dance."), delay_s=0.3))
    events = list(writer().stream(BRAINLM))
    assert not any(isinstance(e, Verified) for e in events)
    answer = events[-1]
    assert isinstance(answer, Answer)
    assert (answer.mode, answer.repairs.replaced) == ("extractive", 3)


def test_numbers_follow_the_order_of_the_prompt(assistant: Assistant) -> None:
    sheet = Sheet(2, strict=False)
    text = "DMC adds no extra parameters [2]. LESS integrates a constant sized cache with eviction-based methods [1]. DMC Transformers retrofit Llama 2 [2]."
    for claim in parse(text):
        sheet.add(examine(claim, HITS, assistant.finder))
    checked = sheet.checked()
    assert [s.citations for s in checked.sentences] == [(1,), (2,), (1,)]
    assert [len(s.quotes) for s in checked.sources] == [2, 1], "two passages of one paper are one source"
