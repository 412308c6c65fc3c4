"""The questions of a run that went wrong, the worst first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from eval.runs import Row, Run
from eval.summary import answers

#: At most so many are shown, as many of each way to fail.
MOST = 40


@dataclass(frozen=True, slots=True)
class Failure:
    """A question that went wrong: what was expected, the papers that were found, each with whether it is right, and the right ones that were not."""

    row: Row
    expected: str
    found: Sequence[tuple[str, bool]]
    missed: Sequence[str]


@dataclass(frozen=True, slots=True)
class Way:
    """A way to fail: in words, how many questions did, and the worst of them."""

    what: str
    n: int
    worst: Sequence[Failure]


def failures(run: Run) -> list[Way]:
    """The ways to fail that occurred, each with its surest answers first; without the stress set."""
    asked = answers(run.rows)
    given = [r for r in asked if r.outcome == "answered"]
    misled = [r for r in given if r.measures.get("right_paper_cited") == 0]
    ways: list[tuple[str, list[Row], Callable[[Row], float]]] = [
        ("Answered, but no abstract answers it", [r for r in given if r.wanted != "answered"], _unsure),
        ("Answered from wrong papers alone", misled, _unsure),
        ("Answered without an accepted string", [r for r in given if r.measures.get("answer_match") == 0 and r not in misled], _unsure),
        ("Declined, but an abstract answers it", [r for r in asked if r.wanted == "answered" and r.outcome != "answered"], lambda r: r.confidence),
        ("Not found", [r for r in run.rows if "declined" not in r.measures and not r.measures.get("recall_10")], lambda _: 0),
    ]
    ways = [way for way in ways if way[1]]
    made = []
    for what, here, order in ways:
        worst = sorted(here, key=lambda r: (order(r), r.id))[: MOST // len(ways)]
        made.append(Way(what, len(here), [_failure(run, r) for r in worst]))
    return made


def known(run: Run, paper: str) -> Mapping[str, str]:
    """What a run says of a paper: name, label, title."""
    told: Mapping[str, str] = run.about.get("papers", {}).get(paper, {})
    return told


def title(run: Run, paper: str) -> str:
    """A paper's title, or else its label, or else its id."""
    return known(run, paper).get("title") or known(run, paper).get("label") or paper


def _failure(run: Run, row: Row) -> Failure:
    expected = " / ".join(row.expected) or ("no answer" if row.wanted != "answered" else "")
    return Failure(row, expected, [(title(run, i), i in row.gold) for i in row.ranked], [title(run, i) for i in row.gold if i not in row.ranked])


def _unsure(row: Row) -> float:
    """Lowest for the surest answer; hedged ones come after all plain ones."""
    return row.hedged - row.confidence
