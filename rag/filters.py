"""Restrictions on the papers asked: venue, year, author."""

from __future__ import annotations

from rag.records import Filters, Paper


def matches(paper: Paper, filters: Filters) -> bool:
    """Whether a paper meets every restriction that is set; an author matches by any part of a name, case aside."""
    return (
        (filters.venue is None or (paper.venue or "").casefold() == filters.venue.casefold())
        and (filters.year is None or paper.year == filters.year)
        and (filters.author is None or any(filters.author.casefold() in a.casefold() for a in paper.authors))
    )
