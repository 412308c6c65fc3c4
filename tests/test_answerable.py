"""Declining: what a question asks for that the abstract lacks, what it takes for granted that the abstract denies, and who says so."""

from __future__ import annotations

import pytest

from rag.absent import absent_names
from rag.answerable import SIGNALS
from rag.assistant import Assistant
from rag.embeddings import LocalEmbedding
from rag.indexing import words
from rag.store import Store
from rag.words import Words
from tests.conftest import make_hit, make_paper


@pytest.mark.parametrize(
    ("question", "outcome"),
    [
        ("How much faster is Dynamic Memory Compression?", "answered"),
        ("How many hours of fMRI recordings was BrainLM trained on?", "answered"),
        ("Under which licence is BiLLM released?", "not_in_abstract"),
        ("What batch size was BrainLM trained with?", "not_in_abstract"),
        ("Why does BiLLM need several days on a cluster to binarize a 7-billion LLM?", "not_in_abstract"),
        ("Who won the men's singles title at Wimbledon in 2019?", "no_paper"),
        ("How do I bake sourdough bread?", "no_paper"),
    ],
)
def test_a_question_is_answered_or_declined_in_the_wrong_way(assistant: Assistant, question: str, outcome: str) -> None:
    answer = assistant.ask(question)
    assert answer.outcome == outcome
    assert (not answer.sources) == (outcome == "no_paper")


@pytest.mark.parametrize("question", ["Under which licence is BiLLM released?", "What batch size was BrainLM trained with?"])
def test_a_missing_detail_is_declined_without_its_paper(assistant: Assistant, question: str) -> None:
    answer = assistant.ask(question)
    assert ("BrainLM" if "BrainLM" in question else "BiLLM") in (answer.sources[0].paper.title or "")
    assert "does not say" in answer.lead


@pytest.mark.parametrize(
    ("asked", "denied"),
    [
        ("How long does BiLLM take to binarize a 7-billion LLM?", "Why does BiLLM need several days on a cluster to binarize a 7-billion LLM?"),
        ("How many hours of fMRI recordings was BrainLM trained on?", "How many GPU hours was BrainLM trained for?"),
    ],
)
def test_a_question_that_an_abstract_denies_is_as_sure_as_one_that_it_answers(assistant: Assistant, asked: str, denied: str) -> None:
    assert assistant.ask(asked).confidence > assistant.ask(denied).confidence


def test_a_question_of_symbols_or_of_one_word_fails(assistant: Assistant) -> None:
    for question in ("1?", "why", "α β γ", "How many?", "of the in"):
        assert set(assistant.signals(question)) == set(SIGNALS)
        assert 0.0 <= assistant.ask(question).confidence <= 1.0


@pytest.fixture(scope="module")
def seed_words(assistant: Assistant) -> Words:
    stamp = assistant.stamp()
    store = Store(assistant.settings.home / "collections" / "default", str(stamp["embedder"]), int(stamp["dimension"]))
    return words(store, LocalEmbedding())


ABSENT = [
    ("How does DPO avoid a reward model?", "DPO"),
    ("How does RWKV handle long contexts?", "RWKV"),
    ("How much memory does QLoRA save?", "QLoRA"),
    ("Which vision encoder does LLaVA use?", "LLaVA"),
    ("How does StreamingLLM keep the KV cache small?", "StreamingLLM"),
    ("What is Segment Anything trained on?", "Segment Anything"),
    ("Why does Mixtral use experts?", "Mixtral"),
    ("Can Voyager learn skills in Minecraft?", "Voyager"),
    ("How does Gaussian Splatting render scenes?", "Gaussian Splatting"),
    ("Which papers use FlashAttention?", "FlashAttention"),
    ("How does Mamba select states?", "Mamba"),
    ("Define GraphSAGE.", "GraphSAGE"),
    ("GaLore", "GaLore"),
]


@pytest.mark.parametrize(("question", "name"), ABSENT, ids=[name for _, name in ABSENT])
def test_a_method_that_is_nowhere_here_is_answered_from_others(assistant: Assistant, question: str, name: str) -> None:
    answer = assistant.ask(question)
    assert answer.outcome == "no_paper" or (answer.hedged and answer.confidence <= 0.5)
    assert f"“{name}”" in " ".join((answer.lead, *answer.notices)), "the reader is told which name is missing"


def test_a_name_beside_the_subject_that_is_nowhere_here_is_not_told_or_declined(assistant: Assistant) -> None:
    answer = assistant.ask("How much faster is Dynamic Memory Compression than with FlashAttention?")
    assert "Dynamic Memory" in (answer.sources[0].paper.title or "")
    assert "No abstract here mentions “FlashAttention”." in answer.notices


def test_a_name_that_is_here_is_said_to_be_missing(assistant: Assistant, seed_words: Words) -> None:
    papers = assistant.papers()
    for name in seed_words.holders:
        assert absent_names(f"How does {name} work?", papers, (), seed_words).names == (), name
    for paper in papers:
        for written in (*paper.authors, paper.venue):
            assert absent_names(f"what does {written} say", papers, (), seed_words).names == (), written
    spelt_out = make_hit(make_paper("We rank with support vector machines."))
    assert absent_names("Do I need an SVM?", papers, (spelt_out,), seed_words).names == ()
    assert absent_names("Do I need an SVM?", papers, (), seed_words).names == ("SVM",)
    assert absent_names("WHAT IS SHOUTED", papers, (), seed_words).names == ()
    assert absent_names("Which CLIP-style or ZQX-like scores work?", papers, (), seed_words).names == ()
