"""Fits the weights of `rag/answerable.py` on the gold questions, and reports how they do by grouped cross-validation.

usage: python -m eval.fit_answerable [--write] [--also FILE.jsonl]

Two questions on one paper, or of one conversation, are always in the same fold. `--also` names questions that are judged in the fold of
their paper and never trained on. The bars are quantiles of out-of-fold scores of answerable questions, so that they are not set on
scores that training made too good.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from eval.gold import Item, load
from rag.answerable import LEAST, MODELS, decide
from rag.assistant import Assistant
from rag.settings import Settings

WEIGHTS = Path(__file__).resolve().parent.parent / "rag" / "weights" / "answerable.json"
#: Share of answerable questions below each bar, chosen so that 0.05 at most are declined and 0.15 at most hedged with room to spare. In
#: cross-validation 0.043 and 0.098 are; with 0.011 for `detail` 0.040 are, and missing details are declined in 0.41 of cases rather than 0.44.
LOSSES = {"about": 0.014, "detail": 0.014, "premise": 0.010}
HEDGED = 0.10
#: Regularisation of the logistic regressions. With 1.0 for all, dev declined 0.54 of missing details (0.56 here) and 0.69 of false premises (0.78).
C = {"about": 1.0, "detail": 0.1, "premise": 0.1}
FOLDS, INNER_FOLDS, REPEATS, RESAMPLES = 10, 5, 3, 1000

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Questions with their signals, and what is true of each."""

    items: list[Item]
    rows: list[dict[str, float]]
    right: NDArray[np.bool_]

    def columns(self, names: Sequence[str]) -> Floats:
        """Some signals of all questions (questions, signals)."""
        return np.array([[row[n] for n in names] for row in self.rows])

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Which questions have an answer."""
        return np.array([i.outcome == "answered" for i in self.items])

    def truths(self) -> dict[str, tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
        """For each model what it is to say, and the questions that tell it."""
        why = np.array([i.unanswerable or "" for i in self.items])
        return {
            "about": (np.array([i.outcome != "no_paper" for i in self.items]), np.ones(len(self.items), dtype=bool)),
            "detail": (self.answered, self.answered | (why == "missing_detail")),
            "premise": (self.answered, self.answered | (why == "false_premise")),
        }


def main() -> None:
    """Fits, prints rates by group, and writes the weights if told to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the weights into the package")
    parser.add_argument("--also", type=Path, help="questions to judge and never to train on")
    args = parser.parse_args()
    assistant = Assistant(Settings.load(mode="extractive"))
    assistant.prepare()
    # Conversations are left out: a follow-up is judged by the question it becomes. Questions in another language are answered by their
    # names alone, whatever is judged. Lay wording is a stress set, judged and not trained on.
    gold = [i for i in load() if not i.conversation and i.noise != "language"]
    also = load(args.also) if args.also else []
    data = _measure(assistant, [*(i for i in gold if i.style != "lay"), *(i for i in gold if i.style == "lay"), *also])
    trained = np.array([i.style != "lay" and i not in also for i in data.items])
    _report(data, trained, [_cross_validated(data, trained, seed) for seed in range(REPEATS)], {i.id for i in also})
    if args.write:
        WEIGHTS.write_text(json.dumps(_rounded(_fit(data, np.flatnonzero(trained), 0)), indent=1) + "\n", encoding="utf-8")


def _measure(assistant: Assistant, items: list[Item]) -> Data:
    ids = {(o.file, o.position): p.id for p in assistant.papers() for o in p.origins}
    rows = [dict(assistant.signals(i.question)) for i in items]
    found = [assistant.search(i.question, 1)[0].paper.id for i in items]
    return Data(items, rows, np.array([f in {ids[p] for p in i.papers} for i, f in zip(items, found, strict=True)]))


def _folds(items: Sequence[Item], number: int, seed: int) -> NDArray[np.intp]:
    """A fold for each question, the same for all on one paper."""
    keys = [f"{i.papers[0][0]} {i.papers[0][1]}" if i.papers else i.id for i in items]
    order = sorted(set(keys))
    np.random.default_rng(seed).shuffle(order)
    fold = {key: n % number for n, key in enumerate(order)}
    return np.array([fold[k] for k in keys])


def _cross_validated(data: Data, trained: NDArray[np.bool_], seed: int) -> list[tuple[str, bool, float]]:
    """Outcome, hedge and confidence of every question, judged by weights that saw no question on its paper."""
    fold = _folds(data.items, FOLDS, seed)
    judged: list[tuple[str, bool, float]] = [("", False, 0.0)] * len(data.items)
    for held in range(FOLDS):
        weights = _fit(data, np.flatnonzero(trained & (fold != held)), seed)
        for n in np.flatnonzero(fold == held):
            j = decide(data.rows[n], weights)
            judged[n] = (j.outcome, j.hedged, j.confidence)
    return judged


def _fit(data: Data, train: NDArray[np.intp], seed: int) -> dict[str, Any]:
    """All weights and bars from some questions."""
    weights: dict[str, Any] = {name: _logistic(data, train, name) for name in MODELS}
    p = _out_of_fold(data, train, seed)
    answered = data.answered[train]
    bars = {"about": float(np.quantile(p["about"][answered], LOSSES["about"]))}
    kept = answered & (p["about"] >= bars["about"])
    bars |= {name: float(np.quantile(p[name][kept], LOSSES[name])) for name in ("detail", "premise")}
    logs = np.log(np.stack([p[name] for name in MODELS], axis=1).clip(LEAST))
    model = LogisticRegression(C=1.0).fit(logs, (data.answered & data.right)[train])
    weights["confidence"] = {"intercept": float(model.intercept_[0]), **dict(zip(MODELS, model.coef_[0].tolist(), strict=True))}
    kept &= (p["detail"] >= bars["detail"]) & (p["premise"] >= bars["premise"])
    bars["hedged"] = float(np.quantile(model.predict_proba(logs)[kept, 1], HEDGED))
    return weights | {"bars": bars}


def _out_of_fold(data: Data, train: NDArray[np.intp], seed: int) -> dict[str, Floats]:
    fold = _folds([data.items[n] for n in train], INNER_FOLDS, seed + 1)
    p = {name: np.zeros(len(train)) for name in MODELS}
    for held in range(INNER_FOLDS):
        for name, names in MODELS.items():
            model = _logistic(data, train[fold != held], name)
            x = data.columns(names)[train[fold == held]]
            p[name][fold == held] = 1 / (1 + np.exp(-(model["intercept"] + x @ np.array([model[n] for n in names]))))
    return p


def _logistic(data: Data, train: NDArray[np.intp], name: str) -> dict[str, float]:
    """Logistic regression with balanced classes, its weights for the signals as they are (not standardised)."""
    names, (truth, telling) = MODELS[name], data.truths()[name]
    chosen = train[telling[train]]
    x = data.columns(names)[chosen]
    scaler = StandardScaler().fit(x)
    model = LogisticRegression(C=C[name], class_weight="balanced", max_iter=1000).fit(scaler.transform(x), truth[chosen])
    weights = model.coef_[0] / scaler.scale_
    return {"intercept": float(model.intercept_[0] - weights @ scaler.mean_), **{n: float(w) for n, w in zip(names, weights, strict=True)}}


def _groups(items: Sequence[Item], trained: NDArray[np.bool_], also: set[str]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Named groups of questions for the table."""
    answered = np.array([i.outcome == "answered" for i in items])
    noisy = np.array([i.style == "noisy" for i in items])
    yield "answerable", trained & answered
    yield "  not noisy", trained & answered & ~noisy
    yield "  noisy", trained & answered & noisy
    yield "  why", trained & answered & np.array([i.kind == "why" for i in items])
    yield "lay", np.array([i.style == "lay" for i in items])
    for kind in ("off_topic", "near_topic", "missing_detail", "false_premise"):
        is_kind = np.array([i.unanswerable == kind for i in items])
        yield kind, trained & is_kind
        for split in ("dev", "test"):
            yield f"  {split}", trained & is_kind & np.array([i.split == split for i in items])
        if also:
            yield "  also", is_kind & np.array([i.id in also for i in items])


def _report(data: Data, trained: NDArray[np.bool_], runs: list[list[tuple[str, bool, float]]], also: set[str]) -> None:
    """Rates by group with bootstrap intervals over papers, and the calibration of the confidence."""
    none = np.mean([[o == "no_paper" for o, _, _ in run] for run in runs], axis=0)
    silent = np.mean([[o == "not_in_abstract" for o, _, _ in run] for run in runs], axis=0)
    hedged = np.mean([[h for _, h, _ in run] for run in runs], axis=0)
    confidence = np.mean([[c for _, _, c in run] for run in runs], axis=0)
    keys = _folds(data.items, len(data.items), 0)
    print(f"{'group':16}{'n':>4}{'no_paper':>10}{'not_in_abs':>11}{'and right':>10}{'hedged':>8}{'declined':>10}{'95%':>12}{'or hedged':>11}{'95%':>12}")  # noqa: T201
    for name, here in _groups(data.items, trained, also):
        if not here.any():
            continue
        # A missing detail or false premise is declined well where the right paper is named.
        asked_here = np.array([i.unanswerable in ("missing_detail", "false_premise") for i in data.items])
        declined = np.where(asked_here, silent * data.right, none + silent)
        either = none + silent + hedged
        spans = [_interval(values[here], keys[here]) for values in (declined, either)]
        print(  # noqa: T201
            f"{name:16}{here.sum():4}{none[here].mean():10.3f}{silent[here].mean():11.3f}{(silent * data.right)[here].mean():10.3f}{hedged[here].mean():8.3f}"
            f"{declined[here].mean():10.3f}{spans[0]:>12}{either[here].mean():11.3f}{spans[1]:>12}"
        )
    truth = (data.answered & data.right)[trained].astype(float)
    told = confidence[trained]
    order = np.argsort(told, kind="stable")
    bins = np.array_split(order, 10)
    ece = sum(len(b) / len(order) * abs(told[b].mean() - truth[b].mean()) for b in bins)
    print(f"confidence: {len(truth)} questions, {truth.mean():.2f} right; ECE {ece:.3f}, Brier {((told - truth) ** 2).mean():.3f}")  # noqa: T201
    print("  told, true by tenth: " + "  ".join(f"{told[b].mean():.2f} {truth[b].mean():.2f}" for b in bins))  # noqa: T201
    kept = truth[order[::-1]]
    print("  risk at coverage: " + "  ".join(f"{c:.1f} {1 - kept[: int(c * len(kept))].mean():.3f}" for c in (0.3, 0.5, 0.6, 0.7, 0.8, 1.0)))  # noqa: T201


def _interval(values: Floats, keys: NDArray[np.intp]) -> str:
    """95 of 100 bootstrap means, papers drawn with replacement."""
    rng = np.random.default_rng(0)
    papers = [np.flatnonzero(keys == k) for k in np.unique(keys)]
    means = [values[np.concatenate([papers[n] for n in rng.integers(len(papers), size=len(papers))])].mean() for _ in range(RESAMPLES)]
    low, high = np.percentile(means, (2.5, 97.5))
    return f"{low:.2f}-{high:.2f}"


def _rounded(weights: dict[str, Any]) -> dict[str, Any]:
    return {name: {n: round(v, 6) for n, v in model.items()} for name, model in weights.items()}


if __name__ == "__main__":
    main()
