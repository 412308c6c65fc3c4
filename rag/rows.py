"""Papers as rows of the index, and rows as papers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rag.records import Origin, Paper


def passage_id(paper_id: str, ordinal: int) -> str:
    """The id of a passage's row."""
    return f"{paper_id}:{ordinal}"


def to_metadata(paper: Paper, passages: int) -> dict[str, str | int]:
    """What the row of a paper holds. Chroma keeps flat values only, so lists travel as JSON."""
    flat = {"title": paper.title, "venue": paper.venue, "year": paper.year, "url": paper.url}
    return {
        **{k: v for k, v in flat.items() if v is not None},
        "authors": json.dumps(paper.authors, ensure_ascii=False),
        "origins": json.dumps([(o.file, o.position, o.source_id) for o in paper.origins], ensure_ascii=False),
        "passages": passages,
        "text": paper.text,
    }


def from_metadata(paper_id: str, metadata: Mapping[str, Any]) -> tuple[Paper, int]:
    """The paper of a row, and the number of its passages."""
    paper = Paper(
        paper_id,
        metadata["text"],
        tuple(Origin(*o) for o in json.loads(metadata["origins"])),
        title=metadata.get("title"),
        authors=tuple(json.loads(metadata["authors"])),
        venue=metadata.get("venue"),
        year=metadata.get("year"),
        url=metadata.get("url"),
    )
    return paper, int(metadata["passages"])
