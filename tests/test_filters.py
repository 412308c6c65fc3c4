"""Filters let through the papers that are meant, and no others."""

from __future__ import annotations

import pytest

from rag.assistant import Assistant
from rag.filters import matches, merged, parted
from rag.reading import read
from rag.records import Filters
from tests.conftest import make_paper

PAPER = make_paper(authors=("Jiawei Han", "Adrian Łańcucki", "O'Neil, Anna"), venue="ICLR", year=2024)
CASES = [
    (Filters(), True, "no filter"),
    (Filters(venue="iclr"), True, "case does not matter"),
    (Filters(venue="ICML"), False, "another venue"),
    (Filters(venue="ICLR", year=2023), False, "another year"),
    (Filters(author="han"), True, "a surname"),
    (Filters(author="Jiawei Han"), True, "a whole name"),
    (Filters(author="Han Jiawei"), True, "the other way round"),
    (Filters(author="Lancucki"), True, "without accents"),
    (Filters(author="O'Neil"), True, "with an apostrophe"),
    (Filters(author="Ha"), False, "a part of a word"),
    (Filters(author="Zhang"), False, "another name"),
    (Filters(author="?"), False, "no name at all"),
]


@pytest.mark.parametrize(("filters", "wanted", "why"), CASES, ids=[w for *_, w in CASES])
def test_a_filter_lets_another_paper_through(filters: Filters, wanted: bool, why: str) -> None:
    assert matches(PAPER, filters) is wanted, why


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (Filters(venue="ICML 2024"), Filters(venue="ICML", year=2024)),
        (Filters(venue="ICML 2024", year=2024), Filters(venue="ICML", year=2024)),
        (Filters(venue="ICML 2024", year=2023), Filters(venue="ICML 2024", year=2023)),
        (Filters(venue="2024"), Filters(venue="2024")),
        (Filters(author="A"), Filters(author="A")),
    ],
)
def test_a_venue_as_it_is_shown_everywhere_matches_nothing(given: Filters, wanted: Filters) -> None:
    assert parted(given) == wanted


@pytest.mark.parametrize(
    ("question", "given", "told"),
    [
        ("Which ICML papers prune?", Filters("ICLR"), ("Searched ICLR as the filter is set, not ICML as the question says.",)),
        ("Which papers prune, in 2023?", Filters(year=2024), ("Searched 2024 as the filter is set, not 2023 as the question says.",)),
        ("Which papers by Ada Lovelace prune?", Filters(author="Han"), ("Searched Han as the filter is set, not Ada Lovelace as the question says.",)),
        ("Which ICLR papers by Jiawei Han prune?", Filters("iclr", 2024, "han"), ()),
        ("Which papers prune?", Filters("ICML"), ()),
    ],
)
def test_a_given_filter_overrules_the_question_without_a_word(question: str, given: Filters, told: tuple[str, ...]) -> None:
    reading = read(question, (PAPER,), given)
    assert reading.notices == told
    assert merged(given, reading.filters).told() == reading.filters.told()


def test_a_given_exclusion_takes_the_place_of_that_of_the_question() -> None:
    assert read("Which papers prune, but not images?", (PAPER,), Filters(exclude=("video",))).filters.exclude == ("video", "images")


def test_a_dropped_filter_still_holds_or_its_words_are_looked_for(assistant: Assistant) -> None:
    question = "Which ICML 2024 papers are about diffusion, but not images?"
    read = assistant.ask(question)
    assert read.filters == Filters("ICML", 2024, exclude=("images",))
    for part in read.filters.apart():
        wider = assistant.ask(question, dropped=[part])
        assert wider.filters == read.filters.less([part])
        assert {s.paper.id for s in read.sources} <= {s.paper.id for s in wider.sources}
        assert wider.outcome == "answered"
    assert assistant.ask(question, filters=Filters("ICLR"), dropped=[Filters("ICML")]).filters.venue == "ICLR", "what is given goes before"
