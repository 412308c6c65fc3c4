"""The row above the question box: which papers are asked, by whom the answer is written, and how many papers it cites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr

from rag.records import Filters, Paper
from rag.settings import Settings

#: Most papers an answer may be told to cite; "" is as many as the settings say.
SOURCES = (1, 3, 5, 10, 20)
#: The values of the controls where nothing is chosen.
UNSET = ("",) * 5


def row(papers: Sequence[Paper], settings: Settings) -> list[gr.components.Component]:
    """The controls: venue, year, author, mode, sources. Their values are texts, empty where nothing is chosen.

    A page that is set to call no language model offers none.
    """
    venues = sorted({p.venue for p in papers if p.venue}, key=lambda v: (v.casefold(), v))
    years = sorted({p.year for p in papers if p.year}, reverse=True)
    modes = [("Language model", ""), ("Quotes only", "extractive")]
    return [
        _choice("Venue", [("Any venue", ""), *((v, v) for v in venues)], shown=bool(venues)),
        _choice("Year", [("Any year", ""), *((str(y), str(y)) for y in years)], shown=bool(years)),
        gr.Textbox(label="Author", placeholder="Any author", max_lines=1, max_length=200, visible=any(p.authors for p in papers), **_PLAIN),
        _choice("Mode", modes, shown=settings.effective_mode == "llm"),
        _choice("Sources", [("Sources: any", ""), *((f"Sources: {n} at most", str(n)) for n in SOURCES)], shown=True),
    ]


def chosen(venue: str, year: str, author: str, mode: str, sources: str) -> dict[str, Any]:
    """What the controls say, as fields of an `Asking`."""
    filters = Filters(venue or None, int(year) if year else None, author.strip() or None)
    return {"filters": filters, "mode": mode or None, "sources": int(sources) if sources else None}


def less(venue: str, year: str, author: str, mode: str, sources: str, taken: Filters) -> tuple[str, ...]:
    """What the controls say after a filter was taken off an answer."""
    kept = chosen(venue, year, author, mode, sources)["filters"].less([taken])
    return kept.venue or "", str(kept.year or ""), kept.author or "", mode, sources


_PLAIN: dict[str, Any] = {"show_label": False, "container": False, "min_width": 90}


def _choice(label: str, choices: list[tuple[str, str]], *, shown: bool) -> gr.Dropdown:
    """A list to choose from. Gradio takes no value that is not in it."""
    return gr.Dropdown(choices, value="", label=label, filterable=False, interactive=True, visible=shown, **_PLAIN)
