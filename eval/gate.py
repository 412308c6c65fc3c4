"""The gate: a run against the committed baseline. It fails on a significant loss, and says which questions were lost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import FiniteFloat, TypeAdapter

from eval.comparison import VERDICT, Change, Comparison, compare, groups, values
from eval.measures import MEASURES
from eval.runs import Run
from eval.significance import holm
from rag.errors import InputError

BASELINE = Path(__file__).parent / "baseline.json"
#: A loss fails the gate if chance alone would bring one as large, in any of the gated measures, in one of 20 changes that change nothing.
LEVEL = 0.05
GATED = tuple(m.name for m in (*MEASURES, VERDICT) if m.gated)


@dataclass(frozen=True, slots=True)
class Decision:
    """What the gate found: the comparison, the losses that fail it, and whatever else is wrong, in words."""

    comparison: Comparison
    losses: tuple[Change, ...]
    faults: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing fails."""
        return not self.losses and not self.faults


def decide(baseline: Mapping[str, Any], run: Run) -> Decision:
    """Compares a run with a baseline.

    Fails on a loss that is significant after Holm's correction over the gated measures, on a question or claim of the baseline that
    was not asked, and on any quote that is not verbatim.
    """
    comparison = compare(_values(baseline), values(run), ("baseline", run.name), groups(run))
    gated = [c for c in comparison.changes if c.measure.gated]
    corrected = holm([c.paired.p for c in gated])
    losses = tuple(c for c, p in zip(gated, corrected, strict=True) if c.measure.better * c.paired.difference < 0 and p < LEVEL)
    faults = [f"{len(comparison.only_before)} of the baseline were not asked: {_few(comparison.only_before)}."] if comparison.only_before else []
    if not gated:
        faults.append("Nothing that the gate looks at was measured in both.")
    unfaithful = [r.id for r in run.rows if r.measures.get("faithful") == 0]
    if unfaithful:
        faults.append(f"{len(unfaithful)} answers hold a quote that is not verbatim: {_few(unfaithful)}.")
    return Decision(comparison, losses, tuple(faults))


def load(path: Path = BASELINE) -> dict[str, Any]:
    """The baseline.

    Raises:
        InputError: there is none, or it cannot be read.
    """
    try:
        baseline: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        TypeAdapter(list[str]).validate_python(baseline["measures"])
        TypeAdapter(dict[str, list[FiniteFloat | None]]).validate_python(baseline["values"], strict=True)
        TypeAdapter(list[dict[str, Any]]).validate_python(baseline["history"])
        _values(baseline)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is no baseline ({type(error).__name__}).", "Write one with `python -m eval baseline RUN --why …`.") from None
    return baseline


def save(run: Run, why: str, path: Path = BASELINE) -> dict[str, Any]:
    """Makes a run the baseline, and adds to its history when, from which commit, why, and the means it had."""
    history = load(path)["history"] if path.exists() else []
    found = values(run)
    means = {name: round(sum(told) / len(told), 4) for name in GATED if (told := [v for m in found.values() if (v := m.get(name)) is not None])}
    entry = {"date": date.today().isoformat(), "commit": run.about.get("commit"), "why": why, "means": means}
    baseline = {
        "history": [*history, entry],
        "of": run.about["of"],
        "measures": GATED,
        "values": {i: [None if (v := m.get(name)) is None else int(v) if v in (0, 1) else v for name in GATED] for i, m in found.items()},
    }
    lines = ",\n".join(f" {json.dumps(i)}: {json.dumps(v)}" for i, v in baseline["values"].items())
    head = json.dumps({k: v for k, v in baseline.items() if k != "values"}, ensure_ascii=False, indent=1)
    path.write_text(f'{head[:-2]},\n "values": {{\n{lines}\n }}\n}}\n', encoding="utf-8")
    return baseline


def _values(baseline: Mapping[str, Any]) -> dict[str, dict[str, float | None]]:
    return {i: dict(zip(baseline["measures"], told, strict=True)) for i, told in baseline["values"].items()}


def _few(ids: tuple[str, ...] | list[str], most: int = 10) -> str:
    return ", ".join(ids[:most]) + (f" and {len(ids) - most} more" if len(ids) > most else "")
