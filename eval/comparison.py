"""Two runs of the same questions beside each other: what changed by how much, how surely, and in which questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eval.measures import MEASURES, Measure
from eval.runs import Run
from eval.significance import Paired, paired

Values = Mapping[str, Mapping[str, float | None]]
#: The support check on labelled claims, as one more measure.
VERDICT = Measure("verdict", "claims", "the support check is right about a labelled claim")


@dataclass(frozen=True, slots=True)
class Change:
    """How one measure changed, over the questions that have it in both runs, and the ids of those that lost and won."""

    measure: Measure
    before: float
    after: float
    paired: Paired
    lost: tuple[str, ...]
    won: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs: the names, the changes in the order of the measures, and the questions that only one of them has."""

    before: str
    after: str
    changes: tuple[Change, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]


def values(run: Run) -> dict[str, dict[str, float | None]]:
    """What a run measured, by id of the question or claim and name of the measure."""
    questions: dict[str, dict[str, float | None]] = {r.id: dict(r.measures) for r in run.rows}
    return questions | {c.id: {VERDICT.name: float(c.supported == c.wanted)} for c in run.claims}


def groups(run: Run) -> dict[str, str]:
    """The paper that each question or claim is about, by its id: those of one paper stand or fall together."""
    return {r.id: r.papers[0] if r.papers else r.id for r in run.rows} | {c.id: c.paper or c.id for c in run.claims}


def compare(before: Values, after: Values, names: tuple[str, str] = ("before", "after"), groups: Mapping[str, str] | None = None) -> Comparison:
    """Every measure that both sides have, in pairs of the same question.

    Args:
        groups: by id of a question, what it stands or falls with; without it each stands by itself.
    """
    common = [i for i in after if i in before]
    changes = []
    for measure in (*MEASURES, VERDICT):
        pairs = [(i, b, a) for i in common if (b := before[i].get(measure.name)) is not None and (a := after[i].get(measure.name)) is not None]
        if not pairs:
            continue
        _, old, new = zip(*pairs, strict=True)
        # Where neither way is better, "won" is what rose.
        sign = measure.better or 1
        changes.append(
            Change(
                measure,
                sum(old) / len(old),
                sum(new) / len(new),
                paired(old, new, [groups.get(i, i) for i, _, _ in pairs] if groups else None),
                tuple(i for i, b, a in pairs if sign * (a - b) < 0),
                tuple(i for i, b, a in pairs if sign * (a - b) > 0),
            )
        )
    return Comparison(*names, tuple(changes), tuple(i for i in before if i not in after), tuple(i for i in after if i not in before))
