"""The evaluation in a table: means by group of question and by split."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, median
from typing import Any

from rich.table import Table

from eval.runner import Row

#: Columns of the table: heading, field of the row.
COLUMNS = (
    ("R@1", "recall_1"),
    ("R@5", "recall_5"),
    ("MRR", "reciprocal_rank"),
    ("match", "answer_match"),
    ("cited", "right_paper_cited"),
    ("cite P", "cited_precision"),
    ("cite R", "cited_recall"),
    ("support", "support_rate"),
    ("declined", "declined"),
)
#: Plain-language wording ("a picture generator" for a diffusion model) is a stress set: shown, and kept out of the totals.
STRESS = "lay"


def summary(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """One entry a group and split, then the totals of answerable and unanswerable questions, each with its number and means."""
    groups: list[tuple[str, Callable[[Row], bool]]] = [(g, lambda r, g=g: r.group == g) for g in sorted({r.group for r in rows})]  # type: ignore[misc]
    groups += [
        ("answerable", lambda r: r.wanted == "answered" and r.group != STRESS),
        ("no answer", lambda r: r.wanted != "answered"),
    ]
    out = []
    for name, belongs in groups:
        for split in ("dev", "test", "both"):
            here = [r for r in rows if belongs(r) and split in (r.split, "both")]
            if here:
                out.append({"group": name, "split": split, "n": len(here), **{field: _mean(getattr(r, field) for r in here) for _, field in COLUMNS}})
    return out


def table(entries: Iterable[dict[str, Any]], splits: Sequence[str] = ("dev", "test")) -> Table:
    """The summary for a terminal."""
    made = Table("group", "split", "n", *(heading for heading, _ in COLUMNS), box=None, pad_edge=False)
    for e in entries:
        if e["split"] in splits:
            made.add_row(e["group"], e["split"], str(e["n"]), *("" if e[field] is None else f"{e[field]:.3f}" for _, field in COLUMNS))
    return made


def latency(rows: Sequence[Row]) -> dict[str, float]:
    """Milliseconds a question: median and 95th percentile."""
    taken = sorted(r.milliseconds for r in rows)
    return {"p50": round(median(taken), 1), "p95": round(taken[int(0.95 * (len(taken) - 1))], 1)}


def _mean(values: Iterable[float | None]) -> float | None:
    """The mean of what applies."""
    told = [v for v in values if v is not None]
    return fmean(told) if told else None
