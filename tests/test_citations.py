"""Sentences checked against what they cite, repaired, numbered, marked or removed."""

from __future__ import annotations

import pytest

from rag import citations
from rag.assistant import Assistant
from rag.checking import check
from rag.embeddings import LocalEmbedding
from rag.evidence import EvidenceFinder
from rag.lexical import LexicalIndex
from rag.markers import Claim, parse
from rag.numbering import Numbering
from rag.records import Quote
from rag.support import Supported
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


TITLED = [
    make_hit(make_paper(LESS, title="Get More with LESS: Synthesizing Recurrence with KV Cache Compression")),
    make_hit(make_paper(DMC, title="Dynamic Memory Compression: Retrofitting LLMs with DMC")),
]
RIGHT = "LESS integrates a constant sized cache with eviction-based methods [1]."
ELSEWHERE = "up to 3.7 times the throughput on an H100 GPU"
POINTING = [
    (f"{RIGHT} It gives {ELSEWHERE}.", "a pronoun"),
    (f"{RIGHT} This method gives {ELSEWHERE}.", "a method that was spoken of"),
    (f"{RIGHT} However, the proposed approach gives {ELSEWHERE}.", "behind a word that leads over"),
    (f"{RIGHT} They report {ELSEWHERE}.", "its authors"),
    (f"{RIGHT} This is because it gives {ELSEWHERE}.", "a reason"),
    (f"{RIGHT} When the cache is small, it gives {ELSEWHERE}.", "a pronoun behind a clause"),
    (f"{RIGHT} It gives {ELSEWHERE} [1].", "a pronoun, with the number of what it points at"),
    (f"Zebra stripes repel horseflies. It gives {ELSEWHERE}.", "what no abstract supports"),
    (f"The abstracts do not mention zebras. They give {ELSEWHERE}.", "a sentence that declines"),
    (f"It gives {ELSEWHERE}.", "nothing before it"),
    ("LESS adds no extra parameters.", "the name of another paper's method, in words that are said of it"),
    (f"LESS gives {ELSEWHERE}.", "the name of another paper's method"),
]


@pytest.mark.parametrize(("text", "why"), POINTING, ids=[w for _, w in POINTING])
def test_a_sentence_about_one_paper_is_cited_to_another(assistant: Assistant, text: str, why: str) -> None:
    checked = check(parse(text), TITLED, assistant.finder)
    assert checked.sentences[-1].support != "supported", why
    assert DMC not in [s.paper.text for s in checked.sources], why
    assert not checked.repairs.added, why
    assert not checked.repairs.corrected, why


def test_what_is_said_of_a_named_paper_is_cited_to_one_that_does_not_name_it(assistant: Assistant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(citations, "judge", lambda claim, text, *_: Supported(text == LESS, float(text == LESS), ""))
    for subject, added in (("Dynamic memory compression", 0), ("This method", 0), ("LESS", 1), ("A recurrence", 1)):
        checked = check(parse(f"{subject} integrates a constant sized cache with eviction-based methods."), TITLED, assistant.finder)
        assert checked.repairs.added == added, subject


RESOLVED = [
    (f"DMC retrofits Llama 2 into DMC Transformers [2]. It gives {ELSEWHERE}.", "a pronoun, to the paper before it"),
    (f"DMC retrofits Llama 2 into DMC Transformers [2]. It gives {ELSEWHERE}. This method adds no extra parameters.", "from sentence to sentence"),
    (f"{RIGHT} DMC gives {ELSEWHERE}.", "a name, whatever was spoken of before"),
    (f"Dynamic memory compression gives {ELSEWHERE}.", "the name of a title that is in no way a name by its shape"),
    (f"{RIGHT} With DMC, it gives {ELSEWHERE}.", "a name in the clause before the pronoun"),
    (f"{RIGHT} The compression of memory by DMC gives {ELSEWHERE}.", "a subject that says itself what it is"),
    (f"{RIGHT} This paper [1] retrofits Llama 2 into DMC Transformers.", "a number that is itself the subject"),
]


@pytest.mark.parametrize(("text", "why"), RESOLVED, ids=[w for _, w in RESOLVED])
def test_a_sentence_whose_subject_is_plain_gets_no_citation(assistant: Assistant, text: str, why: str) -> None:
    checked = check(parse(text), TITLED, assistant.finder)
    assert [s.support for s in checked.sentences] == ["supported"] * len(checked.sentences), why
    assert DMC in [s.paper.text for s in checked.sources], why


def test_a_citation_is_added_that_is_just_likely_enough_for_one_the_model_wrote(assistant: Assistant, monkeypatch: pytest.MonkeyPatch) -> None:
    def judged(score: float) -> list[tuple[str, int, int]]:
        monkeypatch.setattr(citations, "judge", lambda claim, text, *_: Supported(text == DMC, score if text == DMC else 0.0, ""))
        told = [check(parse(f"DMC adds no extra parameters{mark}."), HITS, assistant.finder) for mark in (" [2]", "", " [1]")]
        return [(t.sentences[0].support, t.repairs.added, t.repairs.corrected) for t in told]

    assert judged(citations.LEAST_ADDED - 0.01) == [("supported", 0, 0), ("uncited", 0, 0), ("unsupported", 0, 0)]
    assert judged(citations.LEAST_ADDED) == [("supported", 0, 0), ("supported", 1, 0), ("supported", 0, 1)]


@pytest.mark.parametrize(
    "said", ["To", "Extra", "It is given", "The answer is no", "The answer to this question is the GPU", "No", "This paper is about the cache"]
)
def test_words_that_say_nothing_are_supported_because_they_stand_in_an_abstract(assistant: Assistant, said: str) -> None:
    checked = check([Claim(f"{said}.", numbers) for numbers in ((), (2,), (1, 2))], HITS, assistant.finder)
    assert [s.support for s in checked.sentences] == ["uncited", *["unsupported"] * (len(checked.sentences) - 1)]
    assert not assistant.check(f"{said}.", [DMC]).supported


def test_a_sentence_said_again_is_shown_again(assistant: Assistant) -> None:
    false, true, other = "Zebra stripes repel horseflies", "No extra parameters are added", "It closes most of the gap"
    text = f"{false} [1]. {true} [2]. {false} [1]. {true}. {false} [2].\n{true} [2]. {other} [1]."
    checked = check(parse(text), HITS, assistant.finder)
    assert [s.text for s in checked.sentences] == [f"{false}.", f"{true}.", f"{other}."]
    assert (checked.repairs.repeated, checked.repairs.marked, checked.repairs.added) == (4, 1, 0)
    assert "4 sentences that repeat others word for word are left out." in checked.notices


def test_a_removed_sentence_said_again_is_counted_as_said_again(assistant: Assistant) -> None:
    checked = check(
        parse("Zebra stripes repel horseflies [1]. No extra parameters are added [2]. Zebra stripes repel horseflies [9]."), HITS, assistant.finder, strict=True
    )
    assert (checked.repairs.removed, checked.repairs.repeated, checked.repairs.set_aside) == (2, 0, 1)


def test_what_two_papers_say_is_told_of_one(assistant: Assistant) -> None:
    both = [make_hit(make_paper(f"{DMC} No data are lost.")), make_hit(make_paper(DMC))]
    checked = check(parse("- No extra parameters are added [1]\n- No extra parameters are added [2]"), both, assistant.finder)
    assert [s.citations for s in checked.sentences] == [(1,), (2,)], "the same words, but another paper's"
    assert not checked.repairs.repeated
