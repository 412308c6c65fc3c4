"""The summary of a run: means with intervals, by group of questions and by half."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from statistics import fmean
from typing import Any

from eval.measures import MEASURES, Measure
from eval.runs import Row
from eval.significance import interval

#: Plain-language wording ("a picture generator" for a diffusion model) is a stress set: shown, and kept out of the totals.
STRESS = "lay"
ANSWERABLE, NO_ANSWER = "answerable", "no answer"
SPLITS = ("dev", "test", "both")
#: What became of a question, beside what is measured of its answer. A hedged answer is neither a plain one nor a decline.
FATES = (
    Measure("hedged", "hedged", "answered, with the warning that it may be no answer"),
    Measure("held_back", "declined or hedged", "not answered, or with that warning"),
    Measure("plain", "answered plainly", "answered without a warning"),
)
SHOWN = {m.name: m for m in (*MEASURES, *FATES)}

Entry = dict[str, Any]
Estimate = dict[str, float]


def summary(rows: Sequence[Row]) -> list[Entry]:
    """One entry a group and half: the number of questions, and of each measure the mean with its 95 % interval. Totals follow their groups."""
    made: list[Entry] = []
    for total, answerable in ((ANSWERABLE, True), (NO_ANSWER, False)):
        here = [r for r in rows if (r.wanted == "answered") == answerable]
        made += entries(here, lambda r: r.group)
        made += entries(answers(here), lambda _, total=total: total)  # type: ignore[misc]
    return made


def answers(rows: Iterable[Row]) -> list[Row]:
    """The questions of the totals: those that were asked, not only searched for, without the stress set."""
    return [r for r in rows if "declined" in r.measures and r.group != STRESS]


def sure_of(row: Row) -> bool:
    """What a confidence is the probability of: that an abstract answers the question, and is the one found first (`eval.fit_answerable`)."""
    return row.wanted == "answered" and bool(row.ranked) and row.ranked[0] in row.gold


def entries(rows: Iterable[Row], group_of: Callable[[Row], str]) -> list[Entry]:
    """The entries of some rows by group, the stress set last, each for both halves and for all."""
    by: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by[group_of(row)].append(row)
    made = []
    for group in sorted(by, key=lambda g: (g == STRESS, g)):
        for split in SPLITS:
            here = [r for r in by[group] if split in (r.split, "both")]
            if here:
                told = {name: [(v, r) for r in here if (v := _measured(r).get(name)) is not None] for name in SHOWN}
                made.append({"group": group, "split": split, "n": len(here), "measures": {name: estimate(t) for name, t in told.items() if t}})
    return made


def estimate(told: Sequence[tuple[float, Row]]) -> Estimate:
    """The mean with its interval; questions on one paper are not independent."""
    values = tuple(v for v, _ in told)
    low, high = _interval(values, tuple(r.papers[0] if r.papers else r.id for _, r in told))
    return {"mean": round(fmean(values), 6), "low": round(low, 6), "high": round(high, 6)}


def _measured(row: Row) -> Mapping[str, float | None]:
    """What is measured of a question, and what became of it."""
    declined, hedged = row.measures.get("declined"), float(row.outcome == "answered" and row.hedged)
    return row.measures if declined is None else {**row.measures, "hedged": hedged, "held_back": declined + hedged, "plain": 1 - declined - hedged}


@cache
def _interval(values: tuple[float, ...], groups: tuple[str, ...]) -> tuple[float, float]:
    """Kept, because the summary, the terminal and both reports ask for the same."""
    return interval(values, groups)
