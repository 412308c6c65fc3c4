"""Sentences checked against what they cite, repaired, numbered, marked or removed."""

from __future__ import annotations

import pytest

from rag.assistant import Assistant
from rag.citations import Numbering, check
from rag.embeddings import LocalEmbedding
from rag.evidence import EvidenceFinder
from rag.lexical import LexicalIndex
from rag.markers import parse
from rag.records import Quote
from tests.conftest import make_hit, make_paper

DMC = (
    "Dynamic Memory Compression retrofits Llama 2 into DMC Transformers. It gives up to 3.7 times the throughput on an H100 GPU. No extra parameters are added."
)
LESS = "LESS integrates a constant sized cache with eviction-based methods. It closes most of the gap to caching everything on summarisation tasks."
HITS = [make_hit(make_paper(LESS)), make_hit(make_paper(DMC))]


def test_a_supported_sentence_keeps_its_citation_and_quotes_the_sentence_that_supports_it(assistant: Assistant) -> None:
    checked = check(parse("DMC gives up to 3.7 times the throughput on an H100 GPU [2]."), HITS, assistant.finder)
    [sentence], [source] = checked.sentences, checked.sources
    assert (sentence.support, sentence.citations, source.paper.text) == ("supported", (1,), DMC), (
        "the second abstract becomes source 1: numbers follow first citation"
    )
    assert "3.7 times" in source.quotes[0].text
    assert source.quotes[0].text == DMC[source.quotes[0].start : source.quotes[0].end]


FALSE = [
    ("DMC gives up to 9.9 times the throughput on an H100 GPU [2].", "unsupported", "9.9", "a number that is not there"),
    ("Zebra stripes repel horseflies in the savanna [2].", "unsupported", "words", "other words altogether"),
    ("DMC gives up to 3.7 times the throughput on an A100 GPU [2].", "unsupported", "A100", "another name of the same kind"),
    ("GPTQ gives up to 3.7 times the throughput on an H100 GPU [2].", "unsupported", "GPTQ", "another method's result"),
    ("My memory of extra times gives me parameters [2].", "unsupported", "no sentence", "its words, in another sense"),
    ("Zebra stripes repel horseflies in the savanna.", "uncited", "cites no", "no citation and no support"),
    ("Zebra stripes repel horseflies in the savanna [9].", "uncited", "cites no", "a citation of nothing, and no support"),
]


@pytest.mark.parametrize(("text", "support", "reason", "why"), FALSE, ids=[w for *_, w in FALSE])
def test_an_invention_passes_for_supported(assistant: Assistant, text: str, support: str, reason: str, why: str) -> None:
    checked = check(parse(text), HITS, assistant.finder)
    assert checked.sentences[0].support == support, why
    assert reason in checked.sentences[0].reason


def test_a_wrong_number_is_corrected_and_said(assistant: Assistant) -> None:
    checked = check(parse("DMC gives up to 3.7 times the throughput on an H100 GPU [1]."), HITS, assistant.finder)
    assert checked.sources[0].paper.text == DMC
    assert checked.sentences[0].support == "supported"
    assert any("corrected" in n for n in checked.notices)


def test_a_supported_sentence_without_a_citation_gets_one(assistant: Assistant) -> None:
    checked = check(parse("DMC gives up to 3.7 times the throughput on an H100 GPU."), HITS, assistant.finder)
    assert checked.sources[0].paper.text == DMC
    assert any("added" in n for n in checked.notices)


@pytest.mark.parametrize("nothing", [0, 3, 7])
def test_a_citation_of_nothing_is_dropped_silently(assistant: Assistant, nothing: int) -> None:
    checked = check(parse(f"LESS integrates a constant sized cache with eviction-based methods [1][{nothing}]."), HITS, assistant.finder)
    assert any(f"[{nothing}]" in n for n in checked.notices)
    assert [s.paper.text for s in checked.sources] == [LESS]
    assert checked.sentences[0].citations == (1,)


def test_two_passages_of_one_paper_count_as_two_sources() -> None:
    hit = make_hit(make_paper(DMC))
    numbering = Numbering()
    first, second = Quote(DMC[0:20], 0, 20), Quote(DMC[68:100], 68, 100)
    assert numbering.cite(hit, second) == numbering.cite(hit, first) == numbering.cite(hit, first) == 1
    [source] = numbering.sources()
    assert source.quotes == (first, second), "each once, in order of place"


def test_a_citation_beside_the_right_one_is_kept_though_its_paper_says_nothing(assistant: Assistant) -> None:
    checked = check(parse("DMC gives up to 3.7 times the throughput on an H100 GPU [1][2]."), HITS, assistant.finder)
    assert [s.paper.text for s in checked.sources] == [DMC]
    assert checked.sentences[0].citations == (1,)
    assert any("taken away" in n for n in checked.notices)


def test_a_sentence_of_the_only_paper_of_a_collection_is_unsupported() -> None:
    paper = make_paper(DMC)
    finder = EvidenceFinder(LexicalIndex({paper.id: paper}), LocalEmbedding())
    checked = check(parse("DMC gives up to 3.7 times the throughput on an H100 GPU [1]."), [make_hit(paper)], finder)
    assert checked.sentences[0].support == "supported"


def test_a_line_with_a_title_alone_is_marked(assistant: Assistant) -> None:
    paper = make_paper(DMC, title="Retrofitting of Models for Speed")
    checked = check(parse("- *Retrofitting of models for speed* [1]\n- Retrofitting of zebras for speed [1]"), [make_hit(paper)], assistant.finder)
    assert [s.support for s in checked.sentences] == ["supported", "unsupported"]
