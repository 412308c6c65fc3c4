"""Labelled claims for the support check: which it accepts, and which it should have.

A file of claims is JSON lines, one claim a line:

    id      unique string
    claim   one sentence, as an answer might say it
    paper   the paper it cites, as [file, position]; or `text`, the cited text itself
    label   supported or unsupported
    kind    faithful (these alone are supported), or in what way it is false: number, entity, negation, direction, citation (another
            paper says it), general (it claims more than the paper), contradict, not_enough (the paper says nothing of it)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from eval import decline_metrics, suites
from eval.gold import Split, as_text, read_lines, split_of
from eval.runs import Claim
from rag.assistant import Assistant
from rag.errors import InputError

FOLDER = Path(__file__).parent / "gold" / "claims"
FAITHFUL = "faithful"
#: The scores that are told of a claim, by field of `eval.runs.Claim`: the check's own, and those of the baselines.
SCORES = ("score", "words", "embeddings")
KINDS = (FAITHFUL, "number", "entity", "negation", "direction", "citation", "general", "contradict", "not_enough")
_FIELDS = "See eval/claims.py for the fields."


@dataclass(frozen=True, slots=True)
class LabelledClaim:
    """A claim with the paper or text it cites, and whether that supports it."""

    id: str
    claim: str
    kind: str
    paper: tuple[str, int] | None = None
    text: str | None = None

    @property
    def supported(self) -> bool:
        """Whether what it cites supports it."""
        return self.kind == FAITHFUL

    @property
    def split(self) -> Split:
        """Half by hash of the paper, named as in gold questions; else of the text."""
        return split_of(f"{self.paper[0]} {self.paper[1]}" if self.paper else self.text or "")


def find(path: Path | None = None) -> list[LabelledClaim]:
    """The claims of a file, of all files in a folder, or of a folder in SciFact's form; the bundled ones if no path is given.

    Raises:
        InputError: there is none, or a line is no claim.
    """
    path = path or FOLDER
    return scifact(path) if path.is_dir() and any(path.glob("evidence*.jsonl*")) else load(path)


def load(path: Path = FOLDER) -> list[LabelledClaim]:
    """Every claim of a file, or of all files in a folder, in order of file and line.

    Raises:
        InputError: a line is no claim, or there is none.
    """
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    claims = [claim for file in files for claim in read_lines(file, "labelled claim", _claim, _FIELDS)]
    if not claims:
        raise InputError(f"{path} holds no labelled claim.", "Give a JSONL file of them, or a folder of such files.")
    return claims


def scifact(folder: Path) -> list[LabelledClaim]:
    """The claims of SciFact (Wadden et al. 2020) in a folder in BEIR form, with evidence*.jsonl beside it; one a claim and document.

    A document that contradicts a claim, or that was found for it and says too little, does not support it.

    Raises:
        InputError: a file is missing, or a line is not of its form.
    """
    corpus, queries, qrels = suites.files(folder)
    texts = {d.id: d.text for d in suites.documents(corpus, "document")}
    asked = {q.id: q.text for q in suites.documents(queries, "query")}
    kinds = {(query, document): "not_enough" for query, right in suites.judgements(qrels).items() for document in right}
    for file in sorted(folder.glob("evidence*.jsonl*")):
        kinds |= read_lines(file, "evidence", _evidence, "It needs query_id, doc_id and label, SUPPORT or CONTRADICT.")
    pairs = [(query, document) for query, document in kinds if query in asked and texts.get(document)]
    return [LabelledClaim(f"{q}-{d}", asked[q], kinds[q, d], text=texts[d]) for q, d in pairs]


def verdicts(assistant: Assistant, claims: Sequence[LabelledClaim], skip: Collection[str] = ()) -> Iterator[Claim]:
    """What the support check and the baselines say of each claim, save those to skip, and the text it cites, in order.

    Raises:
        InputError: a claim cites a paper that is not in the collection.
    """
    # It brings the embedder, which a report of claims should not wait for.
    from eval.baselines import Baselines

    texts = {(o.file, o.position): p.text for p in assistant.papers() for o in p.origins}
    for claim in claims:
        if claim.paper and claim.paper not in texts:
            raise InputError(f"The claim {claim.id} cites {claim.paper[0]} {claim.paper[1]}, which is not in the collection.", "Ingest the papers it is about.")
    if all(c.id in skip for c in claims):
        return
    told = {c.id: texts[c.paper] if c.paper else c.text or "" for c in claims}
    baselines = Baselines(told.values())
    for claim in claims:
        if claim.id in skip:
            continue
        text = told[claim.id]
        verdict = assistant.check(claim.claim, [text])
        cited = f"{claim.paper[0]} {claim.paper[1]}" if claim.paper else ""
        scores = (round(s, 6) for s in (verdict.score, baselines.words(claim.claim, text), baselines.embeddings(claim.claim, text)))
        yield Claim(claim.id, cited, claim.kind, claim.split, claim.claim, claim.supported, verdict.supported, *scores)


def summary(claims: Sequence[Claim]) -> list[dict[str, Any]]:
    """One entry a kind and split, then one of all false claims: how many, the share judged rightly, and the AUC of each score.

    Faithful claims are rightly accepted, others rightly marked. The AUC is how often a faithful claim of that split has a higher score than
    a false one of that kind: what the best threshold could make of the score.
    """
    made = []
    for kind in (*sorted({c.kind for c in claims}, key=lambda k: (k != FAITHFUL, k)), "false"):
        for split in ("dev", "test", "both"):
            inside = [c for c in claims if split in (c.split, "both")]
            here = [c for c in inside if c.kind == kind or (kind == "false" and not c.wanted)]
            if here:
                right = fmean(c.supported == c.wanted for c in here)
                scored = [c for c in inside if c.wanted] + here
                aucs = {name: _auc(scored, name) for name in SCORES}
                made.append({"kind": kind, "split": split, "n": len(here), "right": right, "auc": aucs})
    return made


def _auc(claims: Sequence[Claim], score: str) -> float | None:
    """How well a score tells the faithful claims from the others; nothing where some have none."""
    scores = [getattr(c, score) for c in claims]
    return None if None in scores else decline_metrics.auroc(scores, [c.wanted for c in claims])


def _claim(row: dict[str, Any]) -> LabelledClaim:
    """The claim of one line; ValueError says what is wrong with it."""
    kind, label, paper, text = row["kind"], row["label"], row.get("paper"), row.get("text")
    if kind not in KINDS or label not in ("supported", "unsupported"):
        raise ValueError(f"kind {kind!r} or label {label!r} is unknown")
    if (kind == FAITHFUL) != (label == "supported"):
        raise ValueError(f"a claim of the kind {kind} is not {label}")
    if (paper is None) == (text is None):
        raise ValueError("it needs either a paper or a text")
    if paper is None:
        return LabelledClaim(as_text(row["id"]), as_text(row["claim"]), kind, text=as_text(text))
    file, position = paper
    return LabelledClaim(as_text(row["id"]), as_text(row["claim"]), kind, (as_text(file), int(position)))


def _evidence(row: dict[str, Any]) -> tuple[tuple[str, str], str]:
    """The query and document of a line, with the kind of claim they make."""
    return (str(row["query_id"]), str(row["doc_id"])), {"SUPPORT": FAITHFUL, "CONTRADICT": "contradict"}[row["label"]]
