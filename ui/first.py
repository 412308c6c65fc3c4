"""What a first visit is shown: what this collection holds, and how to begin. Pure, as `render`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rag.records import Paper
from ui.markup import Html, element

WELCOME = "Each sentence of an answer carries a number that opens the exact words behind it. Ask in your own words, or begin with one of these:"
#: Bars of the plot: more would push the questions off the screen of a phone.
BARS = 6


def welcome(papers: Sequence[Paper]) -> Html:
    """What a first question needs to know."""
    return element("div", _plot(papers), element("p", WELCOME), class_="welcome")


def _plot(papers: Sequence[Paper]) -> Html | None:
    """Papers by venue and year, newest first: a bar each, with its number in words; nothing where all papers are of one kind."""
    held = Counter((paper.year or 0, paper.venue or "") for paper in papers)
    if len(held) < 2:
        return None
    most = max(held.values())
    rows = sorted(held.items(), key=lambda row: (-row[0][0], row[0][1]))
    bars = [
        element(
            "li",
            element("span", " ".join(x for x in (venue, str(year or "")) if x) or "no venue", class_="place"),
            element("svg", element("rect", width=f"{100 * count / most:.1f}%", height="100%"), aria_hidden="true"),
            element("span", f"{count:,}", element("span", " paper" if count == 1 else " papers", class_="spoken")),
        )
        for (year, venue), count in rows[:BARS]
    ]
    rest = sum(count for _, count in rows[BARS:])
    more = element("li", element("span", "others", class_="place"), element("span"), f"{rest:,}") if rest else None
    return element("ul", *bars, more, class_="plot", aria_label="Papers by venue and year")
