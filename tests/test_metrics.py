"""The measures of the eval suite against second implementations, enumeration and counts by hand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from statistics import fmean

import ir_measures
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ir_measures import AP, RR, R, nDCG
from scipy.stats import permutation_test
from sklearn.calibration import calibration_curve
from sklearn.metrics import roc_auc_score

from eval import citation_metrics, decline_metrics, retrieval_metrics, significance
from rag.assistant import Assistant
from rag.records import Answer, Sentence, Source
from tests.conftest import make_paper

IDS = [f"d{n}" for n in range(12)]
RANKINGS = st.permutations(IDS).flatmap(lambda order: st.integers(0, len(order)).map(lambda n: order[:n]))
#: None below 0: pytrec_eval 0.5.11 writes outside its memory where all are, and dies or hangs.
GRADES = st.dictionaries(st.sampled_from([*IDS, "unfound"]), st.integers(0, 3), min_size=1)
#: Few levels, so that many are equal.
JUDGED = st.lists(st.tuples(st.integers(0, 10).map(lambda n: n / 10), st.booleans()), min_size=1, max_size=40)


@given(RANKINGS, GRADES, st.integers(1, 14))
@settings(deadline=None)
def test_ranking_measures_differ_from_trec_eval(ranked: list[str], grades: dict[str, int], k: int) -> None:
    qrels = [ir_measures.Qrel("q", i, g) for i, g in grades.items()]
    # A query with nothing found is missing from a run; trec_eval scores it only if asked to, so a wrong paper stands in.
    run = [ir_measures.ScoredDoc("q", i, -float(n)) for n, i in enumerate(ranked or ["wrong"])]
    theirs = ir_measures.calc_aggregate([nDCG @ k, nDCG, AP @ k, AP, RR, R @ k], qrels, run)
    right = sum(g > 0 for g in grades.values())
    ours = {
        nDCG @ k: retrieval_metrics.ndcg(ranked, grades, k),
        nDCG: retrieval_metrics.ndcg(ranked, grades),
        AP @ k: retrieval_metrics.average_precision(ranked, grades, k),
        AP: retrieval_metrics.average_precision(ranked, grades),
        RR: retrieval_metrics.reciprocal_rank(ranked, grades),
        # Theirs divides by all that are right, ours by as many as can be among the first k.
        R @ k: retrieval_metrics.recall(ranked, grades, k) * (min(k, right) / right if right else 1),
    }
    assert ours == pytest.approx(theirs, abs=1e-9)


def test_ids_without_grades_are_not_all_worth_the_same() -> None:
    ranked = ["x", "a", "b", "y", "c"]
    for measure in (retrieval_metrics.recall, retrieval_metrics.average_precision, retrieval_metrics.ndcg):
        assert measure(ranked, {"a", "c"}, 3) == measure(ranked, {"a": 1, "c": 1, "x": 0}, 3)
        assert measure(ranked, {"a": 1, "x": -1}, 3) == measure(ranked, ["a"], 3)
    assert retrieval_metrics.ndcg(ranked, ["a"], 5) == pytest.approx(1 / math.log2(3))


ABSTRACTS = {1: make_paper("It is fast."), 2: make_paper("It is small.", title="SmallNet"), 3: make_paper("It is old.")}


def _answer(*sentences: tuple[str, tuple[int, ...]]) -> Answer:
    said = tuple(Sentence(text, cited, "supported", 1.0) for text, cited in sentences)
    sources = tuple(Source(n, p, (), 1.0) for n, p in ABSTRACTS.items())
    return replace(Answer("q", "q", "llm", "fact", "answered", 0.9), sentences=said, sources=sources)


def _holds_all(claim: str, texts: Sequence[str]) -> bool:
    """A check of which one text must hold every word of the claim."""
    return any(all(word in text for word in claim.split()) for text in texts)


ALCE = [
    ([("fast", (1,))], 1, 1, "one citation that bears"),
    ([("fast", (2,))], 0, 0, "one that does not"),
    ([("fast", ())], 0, None, "a sentence that cites nothing is not supported, and there is no citation to be wrong"),
    ([("fast small", (1, 2))], 1, 1, "half of it from each: supported together, and neither may go"),
    ([("fast", (1, 3))], 1, 1 / 2, "the second says nothing of it, and the first does without it"),
    ([("It is", (1, 3))], 1, 1, "each supports it alone: one too many, yet not irrelevant"),
    ([("fast small", (1, 2, 3))], 1, 2 / 3, "two needed, one idle"),
    ([("slow", (1, 2))], 0, 0, "citations of a sentence that does not stand are worth nothing"),
    ([("SmallNet small", (2,))], 1, 1, "the title belongs to what is cited"),
    ([("fast", (1, 9))], 1, 1 / 2, "a number of no source is irrelevant where another bears"),
    ([("fast", (9,))], 0, 0, "and supports nothing by itself"),
    ([("fast", (1,)), ("small", (3,)), ("old", ())], 1 / 3, 1 / 2, "means over sentences, and over citations"),
    ([], None, None, "no sentence, nothing to measure"),
]


@pytest.mark.parametrize(("sentences", "recall", "precision", "why"), ALCE)
def test_citations_are_not_counted_as_in_alce(sentences: list[tuple[str, tuple[int, ...]]], recall: float | None, precision: float | None, why: str) -> None:
    answer = _answer(*sentences)
    assert citation_metrics.citation_recall(answer, _holds_all) == (None if recall is None else pytest.approx(recall)), why
    assert citation_metrics.citation_precision(answer, _holds_all) == (None if precision is None else pytest.approx(precision)), why


def test_a_sentence_without_a_citation_passes_a_lenient_check() -> None:
    assert citation_metrics.citation_recall(_answer(("fast", ())), lambda *_: True) == 0


def test_citations_off_by_one_score_as_well_as_sound_ones(assistant: Assistant) -> None:
    def supports(claim: str, texts: Sequence[str]) -> bool:
        return assistant.check(claim, texts).supported

    sound = assistant.ask("Compare BiLLM and AnyTool.")
    assert len(sound.sources) > 1
    broken = replace(sound, sources=tuple(replace(s, n=s.n % len(sound.sources) + 1) for s in sound.sources))
    assert citation_metrics.citation_recall(sound, supports) == citation_metrics.citation_precision(sound, supports) == 1
    assert citation_metrics.citation_recall(broken, supports) == citation_metrics.citation_precision(broken, supports) == 0


def test_declines_are_wrong_by_hand_count() -> None:
    decisions = [(True, True), (True, True), (True, False), (False, True), (False, False)] + [(True, False)] * 2
    assert decline_metrics.refusal_precision(decisions) == 2 / 3
    assert decline_metrics.refusal_recall(decisions) == 2 / 5
    assert decline_metrics.refusal_precision([(True, False)]) is None, "it never declined"
    assert decline_metrics.refusal_recall([(False, True)]) is None, "there was nothing to decline"


@given(JUDGED)
def test_the_risk_of_a_threshold_is_not_that_of_the_answers_above_it(judged: list[tuple[float, bool]]) -> None:
    confidences, correct = zip(*judged, strict=True)

    def above(threshold: float) -> list[bool]:
        return [right for confidence, right in judged if confidence >= threshold]

    curve = decline_metrics.risk_coverage(confidences, correct)
    assert [p.confidence for p in curve] == sorted(set(confidences), reverse=True)
    for point in curve:
        accepted = above(point.confidence)
        assert point.coverage == len(accepted) / len(judged)
        assert point.risk == pytest.approx(1 - fmean(accepted))
    area = fmean(1 - fmean(above(c)) for c in confidences)
    assert decline_metrics.aurc(confidences, correct) == pytest.approx(area, abs=1e-12)


@given(JUDGED)
def test_the_order_of_confidence_is_measured_differently_from_scikit_learn(judged: list[tuple[float, bool]]) -> None:
    confidences, correct = zip(*judged, strict=True)
    theirs = roc_auc_score(correct, confidences) if len(set(correct)) == 2 else None
    assert decline_metrics.auroc(confidences, correct) == (None if theirs is None else pytest.approx(theirs))


@given(st.integers(0, 2**32), st.integers(1, 300), st.integers(1, 20))
def test_calibration_is_measured_differently_from_scikit_learn(seed: int, n: int, bins: int) -> None:
    random = Random(seed)
    confidences = [random.random() for _ in range(n)]
    correct = [random.random() < c for c in confidences]
    shares, means = calibration_curve(correct, confidences, n_bins=bins, strategy="uniform")
    found = decline_metrics.reliability(confidences, correct, bins)
    assert [b.correct for b in found] == pytest.approx(shares)
    assert [b.confidence for b in found] == pytest.approx(means)
    assert sum(b.n for b in found) == n
    # By the definition, question by question.
    gaps = [abs(sum(c - r for c, r in zip(confidences, correct, strict=True) if b.low < c <= b.high)) for b in found]
    assert decline_metrics.ece(confidences, correct, bins) == pytest.approx(sum(gaps) / n)


def test_a_confidence_on_an_edge_falls_out_of_the_bins() -> None:
    found = decline_metrics.reliability([0.0, 0.1, 0.3, 0.31, 1.0], [True] * 5)
    assert [(b.low, b.high, b.n) for b in found] == [(0.0, 0.1, 2), (0.2, 0.3, 1), (0.3, 0.4, 1), (0.9, 1.0, 1)]


def test_nothing_to_measure_is_measured() -> None:
    assert decline_metrics.risk_coverage([], []) == ()
    assert decline_metrics.reliability([], []) == ()
    assert decline_metrics.aurc([], []) is decline_metrics.ece([], []) is decline_metrics.auroc([], []) is None


def test_an_interval_claims_certainty_or_moves_between_runs() -> None:
    values = [float(n % 10 != 0) for n in range(200)]
    low, high = significance.interval(values)
    assert low < 0.9 < high
    assert high - low == pytest.approx(2 * 1.96 * math.sqrt(0.09 / 200), abs=0.02)
    assert significance.interval(values) == (low, high)
    assert significance.interval([1.0] * 40) == pytest.approx((40 / (40 + 1.96**2), 1.0), abs=1e-4)
    assert significance.interval([0.0] * 40)[1] == pytest.approx(1 - 40 / (40 + 1.96**2), abs=1e-4)
    assert significance.interval([1.0] * 40, [n // 2 for n in range(40)]) == significance.interval([1.0] * 20), "as wide as for the papers"
    assert significance.interval([0.1] * 13, "a" + "b" * 5 + "c" * 7) == pytest.approx((0.1, 0.1)), "alike but for rounding"


def test_questions_on_one_paper_count_as_if_they_were_independent() -> None:
    random = Random(0)
    papers = [random.random() < 0.8 for _ in range(50)]
    values, groups = [float(p) for p in papers for _ in range(4)], [n for n in range(50) for _ in range(4)]
    assert significance.interval(values, groups) == pytest.approx(significance.interval([float(p) for p in papers])), "four times the same is once"
    low, high = significance.interval(values)
    wider = significance.interval(values, groups)
    assert wider[1] - wider[0] > 1.7 * (high - low)
    assert significance.paired(values, [1.0] * 200, groups).p > 100 * significance.paired(values, [1.0] * 200).p


@given(st.lists(st.sampled_from([0.0, 0.1, 1 / 3, 0.5, 1.0]), min_size=1, max_size=12), st.data())
@example([0.1] * 3, None)
@settings(deadline=None, max_examples=50)
def test_an_odd_sample_ends_in_a_warning_or_in_no_interval(values: list[float], data: st.DataObject | None) -> None:
    groups = data.draw(st.lists(st.integers(0, 3), min_size=len(values), max_size=len(values))) if data else None
    low, high = significance.interval(values, groups)
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9 or set(values) in ({0.0}, {1.0})
    result = significance.paired(values, values[::-1], groups)
    assert result.low - 1e-9 <= result.difference <= result.high + 1e-9
    assert 0 < result.p <= 1


def _mcnemar(won: int, lost: int) -> float:
    """By enumeration: of all ways in which the changed items could have fallen, the share at least as lopsided."""
    ways = [abs(sum(signs)) for signs in itertools.product((1, -1), repeat=won + lost)]
    return fmean(w >= abs(won - lost) for w in ways)


@pytest.mark.parametrize(("won", "lost"), [(0, 0), (1, 0), (0, 6), (3, 3), (2, 9), (10, 1)])
def test_mcnemar_differs_from_enumeration(won: int, lost: int) -> None:
    before = [0.0] * won + [1.0] * lost + [0.0, 1.0] * 5
    after = [1.0] * won + [0.0] * lost + [0.0, 1.0] * 5
    result = significance.paired(before, after)
    assert result.p == pytest.approx(_mcnemar(won, lost))
    assert (result.n, result.changed) == (won + lost + 10, tuple(range(won + lost)))
    assert result.difference == pytest.approx((won - lost) / result.n)
    assert result.low <= result.difference <= result.high


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.25])
def test_randomisation_differs_from_enumeration(shift: float) -> None:
    differences = np.random.default_rng(1).normal(shift, 0.2, 8)
    sums = [abs(sum(s * d for s, d in zip(signs, differences, strict=True))) for signs in itertools.product((1, -1), repeat=8)]
    exact = fmean(s >= abs(differences.sum()) - 1e-12 for s in sums)
    result = significance.paired([0.5] * 8, (0.5 + differences).tolist())
    # Five standard errors.
    assert result.p == pytest.approx(exact, abs=5 * math.sqrt(2 * exact * (1 - exact / 2) / significance.FLIPS))
    assert significance.paired([0.5] * 8, (0.5 + differences).tolist()) == result
    theirs = permutation_test((differences,), np.sum, permutation_type="samples", vectorized=True).pvalue
    assert exact == pytest.approx(theirs)


def test_the_papers_of_a_group_are_flipped_one_by_one() -> None:
    """Three questions a paper, all of which changed alike: as many cases as papers."""
    before, after = [0.0] * 15, [1.0] * 15
    assert significance.paired(before, after).p == 2 / 2**15
    grouped = significance.paired(before, after, [n // 3 for n in range(15)])
    assert (grouped.p, grouped.n, grouped.changed) == (2 / 2**5, 15, tuple(range(15)))


def test_runs_of_different_length_are_compared() -> None:
    with pytest.raises(ValueError, match="shorter"):
        significance.paired([1.0, 0.0], [1.0])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_differs_from_closed_testing(p_values: list[float]) -> None:
    """By the definition: a test stands only if every set of tests that it belongs to stands by Bonferroni."""
    sets = [s for size in range(1, len(p_values) + 1) for s in itertools.combinations(range(len(p_values)), size)]
    expected = [max(min(1.0, len(s) * min(p_values[m] for m in s)) for s in sets if n in s) for n in range(len(p_values))]
    assert significance.holm(p_values) == pytest.approx(expected)
