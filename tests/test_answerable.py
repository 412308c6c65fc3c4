"""Declining: what a question asks for that the abstract lacks, what it takes for granted that the abstract denies, and who says so."""

from __future__ import annotations

import pytest

from rag.answerable import SIGNALS
from rag.assistant import Assistant


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
