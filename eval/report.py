"""What a run found: its summary, the tables for a terminal, and the report as one HTML file and as Markdown.

Questions, abstracts and answers may hold anything; they are escaped wherever they stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.table import Table
from rich.text import Text

from eval import decline_metrics, retrieval_metrics
from eval.comparison import Comparison
from eval.failures import failures
from eval.runs import Run
from eval.sheets import Cell, Sheet, sheets
from eval.sheets import changes as changes_sheet
from eval.summary import SHOWN, STRESS, answers, summary, sure_of

__all__ = ["changes", "html", "markdown", "summary", "tables"]

#: What a terminal of 110 columns has no room for where answers are measured; the report has it.
_WIDE = ("recall_10", "reciprocal_rank", "average_precision", "cited_recall", "support_rate", "faithful", "held_back", "plain")
#: The risk of the first few answers hangs on one or two of them; the curve begins where this share is answered.
LEAST_COVERAGE = 0.05
#: Ranks in the plot of recall.
DEPTH = 10


def tables(run: Run) -> list[Table]:
    """The summary for a terminal of 110 columns: questions, then what a model wrote, then labelled claims."""
    found = [e for e in summary(run.rows) if e["split"] != "both"]
    answered = any("declined" in e["measures"] for e in found)
    names = [n for n in SHOWN if any(n in e["measures"] for e in found) and not (answered and n in _WIDE)]
    rows = [
        [e["group"].replace("_", " "), e["split"], str(e["n"]), *(f"{e['measures'][n]['mean']:.3f}" if n in e["measures"] else "" for n in names)]
        for e in found
    ]
    questions = Sheet("", "", "", ["questions", "half", "n", *(SHOWN[n].heading for n in names)], rows, words=2)
    others = [replace(s, rows=[[c if isinstance(c, str) else c[0] for c in row] for row in s.rows]) for s in sheets(run) if s.id in ("written", "claims")]
    return [_table(s) for s in (questions, *others) if s.rows]


def changes(comparison: Comparison) -> Table:
    """What changed, for a terminal."""
    return _table(changes_sheet(comparison, {}))


def _table(sheet: Sheet) -> Table:
    made = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for n, heading in enumerate(sheet.headings):
        made.add_column(heading, justify="left" if n < sheet.words else "right")
    for row in sheet.rows:
        # As a text of its own, in which brackets are no markup.
        made.add_row(*(Text(printable(_words(cell))) for cell in row))
    return made


def html(run: Run, comparison: Comparison | None = None, beside: Sequence[Run] = ()) -> str:
    """The report as one HTML file that loads nothing."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    page = environment.get_template("report.html.j2")
    return page.render(name=run.name, intro=_intro(run), sheets=sheets(run, comparison, beside), plots=_plots(run), failures=failures(run))


def markdown(run: Run, comparison: Comparison | None = None, beside: Sequence[Run] = ()) -> str:
    """The report as Markdown, without the plots."""
    lines = [f"# {_literal(run.name)}", "", _literal(_intro(run))]
    for sheet in sheets(run, comparison, beside):
        lines += ["", f"## {_literal(sheet.title)}", "", *([_literal(sheet.note), ""] if sheet.note else [])]
        lines += [*(f"- {_literal(what)}: {_literal('; '.join(listed))}" for what, listed in sheet.folds), *([""] if sheet.folds else [])]
        lines += [_row(sheet.headings), "|" + " --- |" * sheet.words + " ---: |" * (len(sheet.headings) - sheet.words), *map(_row, sheet.rows)]
    for way in failures(run):
        lines += ["", f"## {way.what}: {len(way.worst)} of {way.n}", ""]
        for f in way.worst:
            found = "; ".join(name + " (right)" * right for name, right in f.found)
            lines.append(f"- {_literal(f.row.question)} ({_literal(f.row.id)}, confidence {f.row.confidence:.2f})")
            lines += [f"  - {label}: {_literal(text)}" for label, text in (("expected", f.expected), ("got", f.row.answer), ("found", found)) if text]
    return "\n".join(lines) + "\n"


def _intro(run: Run) -> str:
    """What was run, in a line."""
    counts = [f"{n} {what}" for n, what in ((len(run.rows), "questions"), (len(run.claims), "claims")) if n]
    ended = str(run.about.get("finished") or "not finished")[:16].replace("T", " ")
    return " · ".join([f"suite {run.about.get('suite')}", *counts, f"commit {run.about.get('commit') or 'unknown'}", ended])


def _plots(run: Run) -> dict[str, list[tuple[str, str]]]:
    """SVG and caption of the plots, by the table they stand with."""
    # Matplotlib takes a second to import, which nothing but a report should wait for.
    from eval import plots

    drawn: dict[str, list[tuple[str, str]]] = {}
    asked = answers(run.rows)
    curves, chosen = {}, {}
    for split in ("dev", "test"):
        here = [r for r in asked if r.split == split]
        given = [r for r in here if r.outcome == "answered"]
        share = len(given) / len(here) if here else 0
        curve = decline_metrics.risk_coverage([r.confidence for r in given], [r.measures.get("correct") == 1 for r in given])
        points = [(p.coverage * share, p.risk) for p in curve if p.coverage * share >= LEAST_COVERAGE]
        wrong = [r.measures.get("correct") == 0 for r in given if not r.hedged]
        if points and wrong:
            curves[split], chosen[split] = points, (len(wrong) / len(here), sum(wrong) / len(wrong))
    if curves:
        caption = "Risk and coverage: answering only from some confidence on. The line ends with all that is answered; the dot leaves out hedged answers."
        drawn["confidence"] = [(plots.risk_coverage(curves, chosen), caption)]
    if asked:
        bins = decline_metrics.reliability([r.confidence for r in asked], [sure_of(r) for r in asked])
        caption = "Reliability: how often an abstract answers a question and was found first, by the confidence in that. Larger dots stand for more questions."
        drawn.setdefault("confidence", []).append((plots.reliability([(b.confidence, b.correct, b.n) for b in bins]), caption))
    sought = [r for r in run.rows if r.gold and r.wanted == "answered"]
    series = {name: [r for r in sought if (STRESS if r.group == STRESS else r.split) == name] for name in ("dev", "test", STRESS)}
    recalls = {
        name: [sum(retrieval_metrics.recall(r.ranked, r.gold, k) for r in rows) / len(rows) for k in range(1, DEPTH + 1)]
        for name, rows in series.items()
        if rows
    }
    if recalls:
        drawn["groups"] = [(plots.recall(recalls), "Recall: the share of the right papers among the first k that were found.")]
    if run.costs:
        drawn["costs"] = [(plots.latency([c.milliseconds for c in run.costs]), "Latency. The slowest hundredth is in the last bar.")]
    return drawn


def _row(cells: Iterable[Cell]) -> str:
    return "| " + " | ".join(_literal(_words(cell)) for cell in cells) + " |"


def printable(text: str) -> str:
    """A text without the characters that a terminal acts on."""
    return "".join(c if c.isprintable() else " " for c in text)


def _words(cell: Cell) -> str:
    return cell if isinstance(cell, str) else f"{cell[0]} ({cell[1]})"


def _literal(text: str) -> str:
    """A text as Markdown that shows it as it is, on one line."""
    return re.sub(r"([\\`*_\[\]|#~$<>&])", r"\\\1", " ".join(text.split()))
