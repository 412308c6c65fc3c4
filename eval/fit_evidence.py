"""Fits the weights of `rag/evidence.py`, and reports what was not fit on.

usage: python -m eval.fit_evidence DATA [--write]

Questions are fit on the dev half of the gold (those about one paper that stand alone), claims on SciFact's training evidence
(DATA/scifact) and, at a lower weight, on the same questions, so that claims about machine learning are not judged by medicine alone.
Claims and dev questions are reported by cross-validation in which an abstract is never on both sides.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from eval import gold
from rag.assistant import Assistant, plain
from rag.embeddings import LocalEmbedding
from rag.evidence import SIGNALS, EvidenceFinder
from rag.lexical import LexicalIndex
from rag.settings import Settings

WEIGHTS = Path(__file__).resolve().parent.parent / "rag" / "weights" / "evidence.json"
#: The signals of each model; the others changed its measures by less than 0.01.
MODELS = {
    "questions": ("votes", "covered", "position", "length", "opening", "number", "definition"),
    "claims": ("nearest", "covered", "position", "length", "opening", "purpose"),
}
#: Weight of a gold question beside a claim when claims are fit: at 0, 0.3 and 1 the first sentence is right for 0.69, 0.69 and 0.68 of the
#: claims, and for 0.61, 0.64 and 0.65 of the test questions, were they taken for claims.
QUESTION_WEIGHT = 0.3
#: L2 on weights for signals of unit variance; 0.1 to 10 changed no measure by more than 0.02.
PENALTY = 1.0
FOLDS = 5
#: Wording that the table of the README is about; the rest of the dev questions is fit on, and not reported here.
STYLES = ("named", "paraphrase", "noisy")


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A question or claim with an abstract: what the model sees of each sentence, which are right, and what tells it."""

    group: str
    signals: NDArray[np.float64]
    right: NDArray[np.bool_]
    said: tuple[str, ...]
    answers: tuple[str, ...] = ()
    split: str = ""
    style: str = ""

    def holds(self, order: Sequence[int]) -> bool:
        """Whether these sentences hold the answer, or one of them is right where no answer is given."""
        told = " ".join(self.said[n] for n in order).casefold()
        return any(a.casefold() in told for a in self.answers) if self.answers else bool(self.right[list(order)].any())


@click.command()
@click.argument("data", type=click.Path(exists=True, path_type=Path))
@click.option("--write", is_flag=True, help="Write the weights into the package.")
def main(data: Path, write: bool) -> None:
    """Fits, prints the shares in the first 1, 2, 3 sentences, and writes the weights if told to."""
    questions, claims = list(_questions()), list(_claims(data / "scifact"))
    dev = [p for p in questions if p.split == "dev"]
    test = [p for p in questions if p.split == "test"]
    weights = {"questions": _fit(dev, MODELS["questions"]), "claims": _fit(claims, MODELS["claims"], dev)}
    _row("questions, dev, cross-validated", [x for x in _held_out(dev, MODELS["questions"]) if x[0].style in STYLES])
    _row("questions, test", [(p, _order(p, weights["questions"])) for p in test if p.style in STYLES])
    _row("questions in lay words, test", [(p, _order(p, weights["questions"])) for p in test if p.style == "lay"])
    _row("claims, cross-validated", _held_out(claims, MODELS["claims"], dev))
    click.echo(json.dumps(weights, indent=1))
    if write:
        WEIGHTS.write_text(json.dumps(weights, indent=1) + "\n", encoding="utf-8")


def _questions() -> Iterator[Pair]:
    """The gold questions about one paper that stand alone."""
    assistant = Assistant(Settings.load(mode="extractive"))
    assistant.prepare()
    papers = {(o.file, o.position): p for p in assistant.papers() for o in p.origins}
    for item in gold.load():
        if item.outcome != "answered" or len(item.papers) != 1 or (item.conversation and item.turn > 1):
            continue
        paper = papers[item.papers[0]]
        said = tuple(plain(p.text) for p in assistant.finder.passages(paper.text))
        evidence = _overlapped(assistant.finder, paper.text, item.evidence)
        telling = np.array([any(plain(a).casefold() in s.casefold() for a in item.answers) for s in said])
        # Best is gold evidence that holds the answer; a number may stand in other sentences by chance.
        right = next((r for r in (evidence & telling, telling) if r.any()), evidence)
        signals = assistant.finder.signals(item.question, paper.text)
        yield Pair(paper.id, signals, right, said, tuple(plain(a) for a in item.answers), item.split, item.style)


def _claims(folder: Path) -> Iterator[Pair]:
    """SciFact's claims, each with an abstract and all sentences that any annotator gave as a reason."""
    finder = EvidenceFinder(LexicalIndex({}), LocalEmbedding())
    texts = {r["id"]: r["text"] for r in _lines(folder / "corpus.jsonl.gz")}
    reasons: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for row in _lines(folder / "evidence_train.jsonl.gz"):
        reasons[row["doc_id"], row["query_id"], row["claim"]] += row["sentence_text"]
    for (document, _, claim), sentences in sorted(reasons.items()):
        text = texts[document]
        said = tuple(p.text for p in finder.passages(text))
        yield Pair(document, finder.signals(claim, text), _overlapped(finder, text, sentences), said)


def _overlapped(finder: EvidenceFinder, text: str, slices: Sequence[str]) -> NDArray[np.bool_]:
    """Which sentences of a text overlap any of these slices of it."""
    spans = [(text.find(s), text.find(s) + len(s)) for s in slices if s in text]
    return np.array([any(p.start < end and start < p.end for start, end in spans) for p in finder.passages(text)])


def _fit(pairs: Sequence[Pair], names: Sequence[str], light: Sequence[Pair] = ()) -> dict[str, float]:
    """Conditional logistic regression: the right sentences of an abstract against all of them."""
    weighted = [(p, 1.0) for p in pairs] + [(p, QUESTION_WEIGHT) for p in light]
    used = [(p, w) for p, w in weighted if p.right.any() and not p.right.all()]
    columns = [SIGNALS.index(n) for n in names]
    x = np.concatenate([p.signals[:, columns] for p, _ in used])
    scale = x.std(axis=0) + 1e-6
    x = x / scale
    right = np.concatenate([p.right for p, _ in used])
    sizes = [len(p.right) for p, _ in used]
    starts, owner = np.cumsum([0, *sizes[:-1]]), np.repeat(np.arange(len(used)), sizes)
    worth = np.array([w for _, w in used])

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        strengths = x @ weights
        likely = np.exp(strengths - np.maximum.reduceat(strengths, starts)[owner])
        all_, good = np.add.reduceat(likely, starts), np.add.reduceat(likely * right, starts) + 1e-300
        slope = x.T @ (worth[owner] * likely * (1 / all_[owner] - right / good[owner]))
        return float(worth @ (np.log(all_) - np.log(good)) + PENALTY * weights @ weights / 2), slope + PENALTY * weights

    fitted = minimize(loss, np.zeros(len(names)), jac=True, method="L-BFGS-B").x / scale
    return {n: round(float(w), 4) for n, w in zip(names, fitted, strict=True)}


def _held_out(pairs: Sequence[Pair], names: Sequence[str], light: Sequence[Pair] = ()) -> list[tuple[Pair, list[int]]]:
    """Each pair with its ranking by a model that was fit without its abstract."""
    folds = [hashlib.sha1(p.group.encode(), usedforsecurity=False).digest()[1] % FOLDS for p in pairs]
    models = [_fit([p for p, f in zip(pairs, folds, strict=True) if f != k], names, light) for k in range(FOLDS)]
    return [(p, _order(p, models[f])) for p, f in zip(pairs, folds, strict=True)]


def _order(pair: Pair, weights: dict[str, float]) -> list[int]:
    strengths = pair.signals @ np.array([weights.get(n, 0.0) for n in SIGNALS])
    return [int(n) for n in np.argsort(-strengths, kind="stable")]


def _row(name: str, ranked: Sequence[tuple[Pair, list[int]]]) -> None:
    click.echo(f"{name:34}{len(ranked):5}" + "".join(f"{fmean(p.holds(order[:k]) for p, order in ranked):7.3f}" for k in (1, 2, 3)))


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines)


if __name__ == "__main__":
    main()
