"""Fits the weights of `rag/answerable.py` on the dev half of the gold questions, and reports the test half.

usage: python -m eval.fit_answerable [--write]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from eval.gold import Item, load
from rag.assistant import Assistant
from rag.settings import Settings

WEIGHTS = Path(__file__).resolve().parent.parent / "rag" / "weights" / "answerable.json"
#: Share of answerable dev questions that may be declined, and hedged. Missing details and false premises look like answerable
#: questions to these signals, so most of what the second bar declines beyond the first is wrong; it is kept for the clear cases.
NO_PAPER_LOSS, NOT_IN_ABSTRACT_LOSS, HEDGED = 0.025, 0.01, 0.12
#: Regularisation of the logistic regression; 0.1 to 10 changed no rate on test by more than 0.03.
C = 1.0


def main() -> None:
    """Fits, prints rates by group and split, and writes the weights if told to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the weights into the package")
    write = parser.parse_args().write
    assistant = Assistant(Settings.load(mode="extractive"))
    assistant.prepare()
    # Conversations are left out: a follow-up is judged by the question it becomes. So is lay wording, which is a stress set.
    items = [i for i in load() if not i.conversation and i.style != "lay"]
    rows = [assistant.signals(i.question) for i in items]
    names = list(rows[0])
    x = np.array([[row[name] for name in names] for row in rows])
    dev = np.array([i.split == "dev" for i in items])
    answered = np.array([i.outcome == "answered" for i in items])
    about = np.array([i.outcome != "no_paper" for i in items])
    # A false premise is about what the abstract does say, so here it counts neither way.
    telling = np.array([i.unanswerable != "false_premise" for i in items])
    models = {"about": _fit(x[dev], about[dev], names), "answers": _fit(x[dev & telling], answered[dev & telling], names)}
    p = {name: _probabilities(x, model, names) for name, model in models.items()}
    no_paper = float(np.quantile(p["about"][dev & answered], NO_PAPER_LOSS))
    kept = p["about"] >= no_paper
    bars = {
        "no_paper_below": no_paper,
        "not_in_abstract_below": float(np.quantile(p["answers"][dev & answered & kept], NOT_IN_ABSTRACT_LOSS)),
        "hedged_below": float(np.quantile(p["answers"][dev & answered & kept], HEDGED)),
    }
    _report(items, p, bars)
    if write:
        rounded = {k: {n: round(v, 6) for n, v in m.items()} for k, m in models.items()} | {k: round(v, 6) for k, v in bars.items()}
        WEIGHTS.write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")


def _fit(x: NDArray[np.float64], y: NDArray[np.float64], names: list[str]) -> dict[str, float]:
    """Logistic regression with balanced classes, its weights for the signals as they are (not standardised)."""
    scaler = StandardScaler().fit(x)
    model = LogisticRegression(C=C, class_weight="balanced").fit(scaler.transform(x), y)
    weights = model.coef_[0] / scaler.scale_
    return {"intercept": float(model.intercept_[0] - weights @ scaler.mean_), **{n: float(w) for n, w in zip(names, weights, strict=True)}}


def _probabilities(x: NDArray[np.float64], model: dict[str, float], names: list[str]) -> NDArray[np.float64]:
    probabilities: NDArray[np.float64] = 1 / (1 + np.exp(-(model["intercept"] + x @ np.array([model[n] for n in names]))))
    return probabilities


def _report(items: list[Item], p: dict[str, NDArray[np.float64]], bars: dict[str, float]) -> None:
    """Rates of each outcome by group and split."""
    none = p["about"] < bars["no_paper_below"]
    silent = ~none & (p["answers"] < bars["not_in_abstract_below"])
    hedged = ~none & ~silent & (p["answers"] < bars["hedged_below"])
    print(f"{'group':16}{'split':6}{'n':>5}{'no_paper':>10}{'not_in_abs':>12}{'hedged':>8}")  # noqa: T201
    for group in [*sorted({i.group for i in items}), "answerable"]:
        for split in ("dev", "test"):
            here = np.array([i.split == split and (i.group == group or (group == "answerable" and i.outcome == "answered")) for i in items])
            if here.any():
                print(f"{group:16}{split:6}{here.sum():5}{none[here].mean():10.2f}{silent[here].mean():12.2f}{hedged[here].mean():8.2f}")  # noqa: T201


if __name__ == "__main__":
    main()
