"""The tables of a report, as data: texts and figures, for any form they are shown in."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from eval import claims, decline_metrics
from eval.comparison import Comparison
from eval.failures import known, title
from eval.runs import Row, Run
from eval.summary import ANSWERABLE, FATES, NO_ANSWER, SHOWN, SPLITS, STRESS, Entry, Estimate, answers, entries, estimate, summary, sure_of

_DECLINING = ("declined", *(f.name for f in FATES))
TUNED = (
    "Of the bundled questions, test is what to believe: the program's numbers were tuned on dev, but for the weights that decline, which were fitted on "
    "both halves (`python -m eval.fit_answerable` reports these by cross-validation)."
)
#: Labelled claims by a kind that only they have, and how to have them judged.
_CLAIMS = (("number", "the bundled claims", ""), ("contradict", "SciFact's claims", " --claims FOLDER"))
#: A change stands out below this p.
NOTABLE = 0.05

Cell = str | tuple[str, str]


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table: so many columns of words, then figures. A cell may have something smaller with it, such as an interval.

    Rows whose number is in `marked` stand out; `folds` are lists of names, each under what they are.
    """

    id: str
    title: str
    note: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    words: int = 1
    marked: frozenset[int] = frozenset()
    folds: Sequence[tuple[str, Sequence[str]]] = ()


def sheets(run: Run, comparison: Comparison | None = None, beside: Sequence[Run] = ()) -> list[Sheet]:
    """The tables, in order; those that would be empty are left out. Of the runs beside it, what a model wrote and the claims are shown."""
    found = summary(run.rows)
    kinds = entries([r for r in answers(run.rows) if r.wanted == "answered"], lambda r: r.kind)
    made = (
        _headline(found),
        changes(comparison, {r.id: r.question for r in run.rows} | {c.id: c.claim for c in run.claims}),
        _groups("groups", "By group of questions", found),
        _groups("kinds", "By kind of question", [e for e in kinds if e["split"] == "both"]),
        _declining(found),
        _confidence(run.rows),
        _written(run, beside),
        *(_claims(r, n) for n, r in enumerate((run, *beside))),
        _costs(run),
        _papers(run),
        _provenance(run.about),
    )
    return [s for s in made if s.rows]


def _cell(told: Estimate | None) -> Cell:
    """A mean and its interval, but for one that chance cannot widen, such as that of one question."""
    return "" if told is None else f"{told['mean']:.3f}" if told["low"] == told["high"] else (f"{told['mean']:.3f}", f"{told['low']:.2f}–{told['high']:.2f}")


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _headline(found: Sequence[Entry]) -> Sheet:
    """Measures down and halves across, which a phone has room for."""
    by = {(e["group"], e["split"]): e for e in found}
    # The retrieval suite has one group and no totals.
    main = ANSWERABLE if (ANSWERABLE, "both") in by else found[0]["group"] if found else ""
    rows: list[list[Cell]] = []
    for group, name in [*((main, n) for n in SHOWN), *((NO_ANSWER, n) for n in _DECLINING)]:
        cells = [_cell(by[group, split]["measures"].get(name)) if (group, split) in by else "" for split in SPLITS]
        if any(cells):
            rows.append([SHOWN[name].heading if group == main else (SHOWN[name].heading, "where no abstract answers"), SHOWN[name].meaning, *cells])
    counts = [f"{split} ({by[main, split]['n']})" if (main, split) in by else split for split in SPLITS]
    note = TUNED if main == ANSWERABLE else ""
    stress = f" The stress set “{STRESS}” is not in the totals." if (STRESS, "both") in by else ""
    return Sheet("headline", "Results", note + stress, ["measure", "meaning", *counts], rows, words=2)


def changes(comparison: Comparison | None, texts: Mapping[str, str]) -> Sheet:
    """What changed between two runs, and in which questions and claims, whose texts are given by id."""
    if comparison is None:
        return Sheet("changes", "", "", [], [])
    note = (
        f"{comparison.after} against {comparison.before}, the same questions in pairs; p is of each measure by itself. "
        "Of declines, where neither way is better by itself, won are those that are new."
    )
    alone = ((comparison.before, comparison.only_before), (comparison.after, comparison.only_after))
    folds = [(f"Only in {name}: {len(ids)}", list(ids)) for name, ids in alone if ids]
    rows: list[list[Cell]] = []
    for c in comparison.changes:
        moved, p = f"{c.paired.difference:+.3f}", "<0.001" if c.paired.p < 0.001 else f"{c.paired.p:.3f}"
        change = (moved, f"{c.paired.low:+.2f} to {c.paired.high:+.2f}") if c.lost or c.won else moved
        rows.append([c.measure.heading, str(c.paired.n), f"{c.before:.3f}", f"{c.after:.3f}", change, p, str(len(c.lost)), str(len(c.won))])
        moves = (("lost", c.lost), ("won", c.won))
        folds += [(f"{c.measure.heading}: {len(ids)} {what}", [f"{i}: {texts.get(i, '')}" for i in ids]) for what, ids in moves if ids]
    headings = ["measure", "n", "before", "after", "change", "p", "lost", "won"]
    marked = frozenset(n for n, c in enumerate(comparison.changes) if c.paired.p < NOTABLE)
    return Sheet("changes", "Changes", note, headings, rows, marked=marked, folds=folds)


def _groups(name: str, title: str, found: Sequence[Entry]) -> Sheet:
    """Entries down and measures across, but for those that the table of declines shows."""
    names = [n for n in SHOWN if n not in _DECLINING and any(n in e["measures"] for e in found)]
    return Sheet(name, title, "", ["questions", "half", "n", *(SHOWN[n].heading for n in names)], _lines(found, names), words=2)


def _declining(found: Sequence[Entry]) -> Sheet:
    """What became of the questions, by group."""
    here = [e for e in found if "declined" in e["measures"]]
    # Those without an answer come first here, and last in the summary.
    answerable = max((n for n, e in enumerate(here, start=1) if e["group"] == ANSWERABLE), default=0)
    note = "First, by reason, the questions that no abstract answers and that should be declined; then those that one answers and that should not."
    rows = _lines([*here[answerable:], *here[:answerable]], _DECLINING)
    return Sheet("declining", "Declining", note, ["questions", "half", "n", *(SHOWN[n].heading for n in _DECLINING)], rows, words=2)


def _lines(found: Iterable[Entry], names: Sequence[str]) -> list[list[Cell]]:
    return [[e["group"].replace("_", " "), e["split"], str(e["n"]), *(_cell(e["measures"].get(n)) for n in names)] for e in found]


def _confidence(rows: Sequence[Row]) -> Sheet:
    """How well it tells what it can answer, and how well its confidence does."""
    lines: list[list[Cell]] = []
    for split in SPLITS:
        here = [r for r in answers(rows) if split in (r.split, "both")]
        if not here:
            continue
        refusals = (
            [(float(r.wanted != "answered"), r) for r in here if r.outcome != "answered"],
            [(float(r.outcome != "answered"), r) for r in here if r.wanted != "answered"],
        )
        sure, true = [r.confidence for r in here], [sure_of(r) for r in here]
        given = [r for r in here if r.outcome == "answered"]
        risk = decline_metrics.aurc([r.confidence for r in given], [r.measures.get("correct") == 1 for r in given])
        figures = (decline_metrics.ece(sure, true), decline_metrics.auroc(sure, true), risk)
        lines.append([split, str(len(here)), *(_cell(estimate(r) if r else None) for r in refusals), *map(_figure, figures)])
    note = (
        "Refusal precision is the share of the declined questions that no abstract answers, recall the share of those that are declined. Confidence is how "
        "sure it is that an abstract answers and was found first: ECE says how far off that is, AUROC how well it tells, AURC how often answers are wrong "
        "over all thresholds."
    )
    return Sheet("confidence", "Confidence", note, ["half", "n", "refusal precision", "refusal recall", "ECE", "AUROC", "AURC"], lines)


def _written(run: Run, beside: Sequence[Run]) -> Sheet:
    """What a language model wrote and what the check made of it, a run a line; the marked sentences and replaced answers of this run in full."""
    rows: list[list[Cell]] = []
    for one in (run, *beside):
        asked = [r for r in one.rows if r.written]
        if not asked:
            continue
        shown = [r for r in asked if r.mode == "llm" and r.outcome == "answered"]
        verdicts = Counter(s.support for r in shown for s in r.sentences)
        counts = (
            len(asked),
            sum(r.mode != "llm" for r in asked),
            sum(r.mode == "llm" for r in asked) - len(shown),
            verdicts.total(),
            *(verdicts[v] for v in ("supported", "unsupported", "uncited")),
            sum(r.repaired for r in shown),
        )
        means = ([(v, r) for r in shown if (v := r.measures.get(name)) is not None] for name in ("citation_precision", "citation_recall"))
        settings = one.about.get("of", {}).get("settings", {})
        rows.append([(one.name, str(settings.get("model", ""))), *map(str, counts), *(_cell(estimate(m) if m else None) for m in means)])
    marked = [(s, f"{r.id}: {s.text} ({s.reason})") for r in run.rows if r.written and r.mode == "llm" for s in r.sentences if s.support != "supported"]
    replaced = [f"{r.id}: {r.written}" for r in run.rows if r.written and r.mode != "llm"]
    lists = (
        ("sentences marked: the cited abstract does not support them", [line for s, line in marked if s.support == "unsupported"]),
        ("sentences marked: they cite nothing, and no abstract supports them", [line for s, line in marked if s.support == "uncited"]),
        ("answers replaced by quotes", replaced),
    )
    note = (
        "Answers of which nothing is supported are replaced by quotes, and their sentences are not counted. Repaired are citations that were corrected, "
        "added or taken away. ALCE P and R are the precision and recall of the citations as shown, by the same check."
    )
    held = {c.kind for one in (run, *beside) for c in one.claims}
    absent = [f"{what} (`python -m eval run --suite support{option}`)" for kind, what, option in _CLAIMS if kind not in held]
    note += f" Not among these runs: {', '.join(absent)}; then `report --beside`." if absent else ""
    headings = ["run", "asked", "replaced", "declined", "sentences", "supported", "unsupported", "uncited", "repaired", "ALCE P", "ALCE R"]
    return Sheet("written", "What the model wrote", note, headings, rows, folds=[(f"{len(lines)} {what}", lines) for what, lines in lists if lines])


def _claims(run: Run, place: int) -> Sheet:
    """Labelled claims by the way in which they are false; `place` is 0 for the run itself, and counts those beside it."""
    by = {(e["kind"], e["split"]): e for e in claims.summary(run.claims)}
    rows: list[list[Cell]] = []
    for kind in dict.fromkeys(kind for kind, _ in by):
        here = [c for c in run.claims if c.kind == kind or (kind == "false" and not c.wanted)]
        accepted = sum(c.supported for c in here)
        halves = [_figure(by[kind, split]["right"] if (kind, split) in by else None) for split in SPLITS]
        aucs = (_figure(by[kind, "both"]["auc"][name]) for name in claims.SCORES)
        rows.append([kind.replace("_", " "), *map(str, (len(here), accepted, len(here) - accepted)), *halves, *aucs])
    note = (
        "Faithful claims are rightly accepted, all others rightly marked. AUC is how well the score could tell the false from the faithful; beside it that of "
        "two baselines, the share of the claim's words that are in the text, by rarity, and the cosine of the claim to its nearest sentence."
    )
    headings = ["claims", "n", "accepted", "marked", "right, dev", "right, test", "right, both", "AUC", "words alone", "embeddings alone"]
    return Sheet(f"claims-{place}" if place else "claims", f"Support check: {run.name}" if place else "Support check", note, headings, rows)


def _costs(run: Run) -> Sheet:
    """Time and tokens."""
    taken = sorted(c.milliseconds for c in run.costs)
    tokens = [("tokens read", sum(c.prompt_tokens or 0 for c in run.costs)), ("tokens written", sum(c.completion_tokens or 0 for c in run.costs))]
    told = [(heading, f"{n:,}") for heading, n in tokens if n]
    if taken:
        told = [
            ("median", f"{median(taken):.0f} ms"),
            ("95th percentile", f"{taken[int(0.95 * (len(taken) - 1))]:.0f} ms"),
            ("longest", f"{taken[-1]:.0f} ms"),
            *told,
        ]
    return Sheet("costs", "Time and tokens", "", ["questions", *(h for h, _ in told)], [[str(len(taken)), *(v for _, v in told)]] if taken else [], words=0)


def _papers(run: Run) -> Sheet:
    """For each paper, of the questions it answers: how many found it, got an accepted answer, and cited it."""
    asked: dict[str, list[Row]] = defaultdict(list)
    for row in answers(run.rows):
        for paper in dict.fromkeys(row.gold if row.wanted == "answered" else ()):
            asked[paper].append(row)
    rows: list[list[Cell]] = []
    never, seldom, marked = [], [], []
    for n, paper in enumerate(sorted(asked, key=lambda i: _place(run, i))):
        of = asked[paper]
        # The papers of a list of eight cannot all be among the first five.
        found = sum(paper in r.ranked[: max(5, len(r.gold))] for r in of)
        cited = sum(paper in r.cited for r in of)
        if not (found and cited):
            never.append(title(run, paper))
        if found + cited < 2 * len(of):
            seldom.append(title(run, paper))
            marked.append(n)
        figures = (len(of), found, sum(r.measures.get("answer_match") == 1 for r in of), cited)
        rows.append([(title(run, paper), known(run, paper).get("name", paper)), *map(str, figures)])
    held = run.about.get("of", {}).get("index", {}).get("papers")
    note = (
        f"{len(rows)}{f' of {held}' if held else ''} papers are asked about. Never found or never cited: {'; '.join(never) or 'none'}. Not found and cited "
        f"every time: {len(seldom)}. Found is among the first five, or among the first n where n papers are right."
    )
    folds = [(f"The {len(seldom)} not found and cited every time", seldom)] if seldom else []
    return Sheet("papers", "By paper", note, ["paper", "asked", "found", "answered", "cited"], rows, marked=frozenset(marked), folds=folds)


def _place(run: Run, paper: str) -> tuple[str, int, str]:
    """A paper's file and position, to sort by."""
    file, _, position = known(run, paper).get("name", paper).rpartition(" ")
    return file, int(position) if position.isdecimal() else 0, paper


def _provenance(about: Mapping[str, Any]) -> Sheet:
    """What run.json says, but for the names of the papers."""
    told = {**about.get("of", {}), **{k: v for k, v in about.items() if k not in ("of", "papers")}}
    return Sheet("provenance", "What was run", "", ["what", "value"], [list(pair) for pair in _flat(told)], words=2)


def _flat(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """What nested dictionaries say, a line each."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{name} {key}".strip())
    elif value is not None:
        yield name, str(value)
