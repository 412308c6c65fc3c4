"""Citation markers in every form models write them, and sentences checked against what they cite."""

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

FORMS = [
    ("It is fast [1].", [("It is fast.", (1,))], "the form that is asked for"),
    ("It is fast. [1]", [("It is fast.", (1,))], "after the full stop it belongs to the sentence before"),
    ("It is fast.[1] It is small.[2]", [("It is fast.", (1,)), ("It is small.", (2,))], "glued to the full stop, twice"),
    ("It is fast [1][2].", [("It is fast.", (1, 2))], "two markers"),
    ("It is fast [1, 2].", [("It is fast.", (1, 2))], "a list"),
    ("It is fast [1; 3].", [("It is fast.", (1, 3))], "a list with semicolons"),
    ("It is fast [1-3].", [("It is fast.", (1, 2, 3))], "a range"),
    ("It is fast [1–3].", [("It is fast.", (1, 2, 3))], "a range with an en dash"),
    ("It is fast 【1】.", [("It is fast.", (1,))], "CJK brackets"),
    ("It is fast 【1†source】.", [("It is fast.", (1,))], "the form of hosted file search"),
    ("It is fast [[1]].", [("It is fast.", (1,))], "doubled brackets"),
    ("It is fast [^1].", [("It is fast.", (1,))], "a Markdown footnote"),
    ("It is fast [Source 1].", [("It is fast.", (1,))], "with a word before the number"),
    ("It is fast [Abstract 2].", [("It is fast.", (2,))], "with the prompt's own word"),
    ("It is fast [Source 1, Source 2].", [("It is fast.", (1, 2))], "words in a list"),
    ("It is fast `[1]`.", [("It is fast.", (1,))], "in backticks"),
    ("It is fast (1).", [("It is fast.", (1,))], "round brackets at the end, where there is no other marker"),
    ("Two steps (1) warm up and (2) cool down [3].", [("Two steps (1) warm up and (2) cool down.", (3,))], "round brackets that count steps are no markers"),
    ("It is fast.", [("It is fast.", ())], "none at all"),
    ("It is fast [7].", [("It is fast.", (7,))], "a number that may not exist is still parsed, so that it can be reported"),
    ("- It is fast [1].\n- It is small [2].", [("It is fast.", (1,)), ("It is small.", (2,))], "a list of lines"),
    ("1. It is fast [1].", [("It is fast.", (1,))], "a numbered line"),
    ("It is fast.\n[1]", [("It is fast.", (1,))], "alone on the next line"),
    ("It gains 3.7× (see Fig. 2) [1]. Then e.g. more [2].", [("It gains 3.7× (see Fig. 2).", (1,)), ("Then e.g. more.", (2,))], "full stops inside a sentence"),
    ("See [this page](http://x.y) [1].", [("See this page (http://x.y).", (1,))], "a Markdown link is no marker"),
    ("See [1](http://x.y).", [("See 1 (http://x.y).", ())], "a link whose text is a number is no marker"),
    ("It is fast [3](#s3).", [("It is fast.", (3,))], "a link within the page"),
    (r"It is fast \[3\].", [("It is fast.", (3,))], "escaped brackets"),
    ("It is fast [doc 3].", [("It is fast.", (3,))], "another word before the number"),
    ("It is fast (Abstract 3).", [("It is fast.", (3,))], "a word in round brackets"),
    ("It is fast <sup>3</sup>.", [("It is fast.", (3,))], "a superscript"),
    ("It is fast **[3]**.", [("It is fast.", (3,))], "in bold"),
    ("It is fast [1, 2, and 3].", [("It is fast.", (1, 2, 3))], "a list in words"),
    ("Ratios in [1, 4] are learnt [3].", [("Ratios in [1, 4] are learnt.", (3,))], "an interval is no marker"),
    ("Values lie in the range [0, 1] [2].", [("Values lie in the range [0, 1].", (2,))], "nor is the unit interval"),
    ("It was shown at ICML [2024] that it is fast [1].", [("It was shown at ICML [2024] that it is fast.", (1,))], "a year is no marker"),
    ("It is fast \ue101[1].", [("It is fast.", (1,))], "a private character in the answer is no marker"),
    ("", [], "nothing"),
    ("[1]", [], "a marker without a sentence"),
]


@pytest.mark.parametrize(("text", "expected", "reason"), FORMS, ids=[r for _, _, r in FORMS])
def test_a_marker_opens_another_paper_if_its_form_is_misread(text: str, expected: list[tuple[str, tuple[int, ...]]], reason: str) -> None:
    assert [(c.text, c.numbers) for c in parse(text)] == expected, reason


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
