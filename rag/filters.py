"""Restrictions on the papers asked: venue, year, author."""

from __future__ import annotations

import re
from dataclasses import replace

from rag.records import Filters, Paper
from rag.text import tokens


def matches(paper: Paper, filters: Filters) -> bool:
    """Whether a paper meets every restriction that is set; an author by whole words of the name, case and accents aside."""
    return (
        (filters.venue is None or (paper.venue or "").casefold() == filters.venue.casefold())
        and (filters.year is None or paper.year == filters.year)
        and (filters.author is None or any(_is_named(a, filters.author) for a in paper.authors))
    )


def parted(filters: Filters) -> Filters:
    """The filters with a year that was given together with the venue ("ICML 2024") taken as the year."""
    found = re.fullmatch(r"(?P<venue>.*\S)[\s,]+(?P<year>(?:19|20)\d\d)", filters.venue or "")
    if found is None or filters.year not in (None, int(found["year"])):
        return filters
    return replace(filters, venue=found["venue"], year=int(found["year"]))


def _is_named(author: str, wanted: str) -> bool:
    """Whether an author's name holds every word of a wanted one: "Han" is no part of "Zhang"."""
    return bool(tokens(wanted)) and set(tokens(wanted)) <= set(tokens(author))
