"""Whether a text supports a claim: each kind of falsehood is marked, faithful wording and quotes are not."""

from __future__ import annotations

from random import Random

import pytest

from eval.light_edits import edited
from rag.assistant import Assistant, plain
from rag.quantities import quantities, same_unit, same_value
from rag.sentences import sentence_spans
from rag.support import examine, judge, quoted
from rag.turned import against

TEXT = (
    "Large models are slow at inference. We present Heron, a cache that needs no retraining and reduces memory by 3.7 times on an H100 GPU. "
    "Heron predicts an answer within 5 seconds, whereas the older Stork takes two minutes. "
    "On six benchmarks, Heron achieves higher accuracy than the Stork baseline. "
    "Deeper layers make the warm-up phase longer, and the upper bound is convex."
)
FAITHFUL = [
    "Heron is a cache that needs no retraining.",
    "Heron predicts an answer within 5 seconds.",
    "On six benchmarks, Heron reaches higher accuracy than Stork.",
    "Without any retraining, the Heron cache reduces memory by 3.7 times on an H100 GPU.",
]
FALSE = [
    ("Heron reduces memory by 7.3 times on an H100 GPU.", "the number 7.3 is not", "a number that is not there"),
    ("Heron predicts an answer within 5 minutes.", "the number 5 is not", "another unit: five minutes are 300 seconds"),
    ("Heron reduces memory by 3.7 times on an A100 GPU.", "the name A100 is not", "another name"),
    ("Zebra stripes repel horseflies in the savanna.", "too few of its words", "something else altogether"),
    ("Heron does not predict answers within 5 seconds.", "denies", "a negation put in"),
]


@pytest.mark.parametrize("claim", FAITHFUL)
def test_a_faithful_sentence_is_marked(assistant: Assistant, claim: str) -> None:
    found = judge(claim, TEXT, assistant.finder)
    assert found.supported, found
    assert found.reason == ""


@pytest.mark.parametrize(("claim", "reason", "why"), FALSE, ids=[w for *_, w in FALSE])
def test_a_false_sentence_passes(assistant: Assistant, claim: str, reason: str, why: str) -> None:
    found = judge(claim, TEXT, assistant.finder)
    assert not found.supported, why
    assert reason in found.reason


SIGNS = [
    ("Heron increases memory by 3.7 times on an H100 GPU.", "opposite_beside", "the other way round: “reduces”, not “increases”", "a direction turned round"),
    ("The lower bound is convex.", "opposite_beside", "the other way round: “upper”, not “lower”", "upper and lower"),
    ("The upper bound is nonconvex.", "opposite_beside", "the other way round: “convex”, not “nonconvex”", "an opposite by its prefix"),
    ("On six benchmarks, the Stork baseline achieves higher accuracy than Heron.", "exchanged", "compares them the other way round", "the sides exchanged"),
    ("Heron is not a cache.", "denies", "it denies", "a negation put in"),
    ("On 5 benchmarks, accuracy is higher.", "number_wrong", "another unit", "seconds are no benchmarks"),
    ("Heron reduces memory by at least 3.7 times on two new devices.", "number_apart", "", "two is said of minutes"),
    ("Heron uses Bayesian caches.", "name_gap", "the name Bayesian is not", "a capitalised word that is not there"),
]


@pytest.mark.parametrize(("claim", "signal", "reason", "why"), SIGNS, ids=[w for *_, w in SIGNS])
def test_a_sign_of_a_falsehood_is_not_seen(assistant: Assistant, claim: str, signal: str, reason: str, why: str) -> None:
    values, faults = examine(claim, TEXT, assistant.finder)
    assert values[signal] > 0, why
    assert not reason or any(reason in f.reason for f in faults), [f.reason for f in faults]


NO_SIGNS = [
    ("Heron has not only higher accuracy than Stork.", "denies", "“not only” denies nothing"),
    ("Without retraining, Heron saves memory.", "denies", "“without” stands for “needs no”"),
    ("Heron achieves higher accuracy than Stork.", "exchanged", "the same order"),
    ("Stork achieves lower accuracy than Heron.", "exchanged", "exchanged, and the comparison turned too"),
    ("Stork takes 120 seconds.", "number_wrong", "two minutes are 120 seconds"),
    ("Memory shrinks 3.7-fold.", "number_wrong", "-fold is times"),
]


@pytest.mark.parametrize(("claim", "signal", "why"), NO_SIGNS, ids=[w for *_, w in NO_SIGNS])
def test_a_faithful_wording_is_taken_for_a_sign(assistant: Assistant, claim: str, signal: str, why: str) -> None:
    assert examine(claim, TEXT, assistant.finder)[0][signal] == 0, why


def test_a_name_is_missed_that_is_spelt_out_or_in_the_title(assistant: Assistant) -> None:
    text = "We retrofit models with Dynamic Memory Compression. R$^3$ is a curriculum."
    for claim in ("DMC retrofits models.", "R3 is a curriculum.", "A DMC-style model.", "Heron-7B is a model."):
        assert examine(claim, text, assistant.finder, "Heron-7B: a cache")[0]["name_gap"] == 0, claim
    assert examine("GPTQ retrofits models.", text, assistant.finder, "Heron-7B: a cache")[0]["name_gap"] == 1


def test_a_quote_is_marked(assistant: Assistant) -> None:
    marked = []
    for paper in assistant.papers():
        for passage in assistant.finder.passages(paper.text):
            for said in (passage.text, plain(passage.text), f"{paper.title}: {passage.text}"):
                if not judge(said, paper.text, assistant.finder, paper.title or "").supported:
                    marked.append(said)
    assert marked == []


def test_part_of_a_sentence_or_nothing_counts_as_quoted() -> None:
    whole = [TEXT[start:end] for start, end in sentence_spans(TEXT)]
    for said in (*whole, f"{whole[0]} {whole[1]}", f"{whole[0]} {whole[2]}", whole[0].upper().rstrip(".")):
        assert quoted(said, whole)
        assert quoted(f"A Title: {said}", whole, "A title")
        assert quoted(f"A Title: {said}", ["A title", *whole]), "as where a text opens with it"
        assert not quoted(f"{said} By far.", whole)
    assert not quoted("Memory by 3.7 times", whole)
    assert not quoted(whole[0].split(" ", 1)[1], whole)
    assert not quoted(f"{whole[0]} {whole[2]} by far", whole)
    assert not quoted("", whole)
    assert not quoted("...", whole)
    assert not quoted("", [])


def test_sentences_of_an_abstract_are_marked_for_a_changed_word(assistant: Assistant) -> None:
    told = []
    for n, paper in enumerate(assistant.papers()[::4]):
        said = [plain(p.text) for p in assistant.finder.passages(paper.text) if "http" not in p.text]
        told.append(judge(edited(said[1], said[2], Random(n)), paper.text, assistant.finder, paper.title or "").supported)
    assert sum(told) >= 0.95 * len(told)


def test_words_that_are_none_break_the_check(assistant: Assistant) -> None:
    for claim, text in (("", TEXT), ("...", TEXT), ("So it is.", ""), ("So it is.", "..."), ("一二三", TEXT), ("x" * 4000, TEXT)):
        assert not judge(claim, text, assistant.finder).supported


SAME = [
    ("seven out of ten", "70%"),
    ("half a billion", "500 million"),
    ("half an hour", "0.5 hours"),
    ("a day", "24 hours"),
    ("threefold", "3x"),
    ("6,700", "6700"),
    ("20k", "20,000"),
    ("a tenth of it", "10%"),
    ("twelve tasks", "12 tasks"),
    ("30km", "30 km"),
    ("2 km", "2,000 m"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_one_quantity_in_two_forms_is_two(one: str, other: str) -> None:
    [a], [b] = quantities(one), quantities(other)
    assert same_value(a, b)
    assert same_unit(a, b)


def test_quantities_of_other_kinds_are_one() -> None:
    for one, other in (("5 seconds", "5 minutes"), ("30 km", "30 m"), ("4 bits", "4 tasks"), ("two-dimensional", "two tasks"), ("7B", "7")):
        [a], [b] = quantities(one), quantities(other)
        assert not (same_value(a, b) and same_unit(a, b)), (one, other)
    assert quantities("GPT-4 and LLaMA2-70B, one of many") == []


def test_an_opposite_is_unknown_or_a_word_is_its_own() -> None:
    for one, other in (("reduc", "increas"), ("upper", "lower"), ("preprocess", "postprocess"), ("supervis", "unsupervis")):
        assert other in against(one)
        assert one in against(other)
        assert one not in against(one)
