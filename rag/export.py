"""Answers in forms for other programs: JSON (the contract of the command line) and BibTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from rag.records import Answer, Hit, Paper, Source
from rag.text import plain, tokens

_SPECIAL = re.compile(r"(?<!\\)([&%#_])")


def answer_object(answer: Answer) -> dict[str, Any]:
    """An answer as the JSON object of the contract."""
    return {
        "question": answer.question,
        "standalone_question": answer.standalone_question,
        "mode": answer.mode,
        "model": answer.model,
        "kind": answer.kind,
        "outcome": answer.outcome,
        "confidence": round(answer.confidence, 4),
        "hedged": answer.hedged,
        "lead": answer.lead,
        "answer": answer.text,
        "sentences": [{"text": s.text, "citations": list(s.citations), "support": s.support, "score": s.score, "reason": s.reason} for s in answer.sentences],
        "sources": [_source_object(s) for s in answer.sources],
        "nearest": [{"paper_id": h.paper.id, "label": h.paper.label, "title": h.paper.title, "score": round(h.score, 4)} for h in answer.nearest],
        "filters": answer.filters.as_dict(),
        "notices": list(answer.notices),
        "timings_ms": {k: round(v, 1) for k, v in answer.timings_ms.items()},
        "usage": {"prompt_tokens": answer.usage.prompt_tokens, "completion_tokens": answer.usage.completion_tokens} if answer.usage else None,
    }


def search_object(query: str, hits: Sequence[Hit]) -> dict[str, Any]:
    """Ranked papers as the JSON object of the contract."""
    rows = [
        {"rank": n, "paper_id": h.paper.id, "source_id": h.paper.source_id, "title": h.paper.title, "score": round(h.score, 4)}
        for n, h in enumerate(hits, start=1)
    ]
    return {"query": query, "results": rows}


def bibtex(papers: Iterable[Paper]) -> str:
    """One entry a paper, keys made of surname, year and first long title word, unique within the list."""
    entries, used = [], set[str]()
    for paper in papers:
        surname = tokens(paper.authors[0].split()[-1])[:1] if paper.authors and paper.authors[0].split() else []
        word = next((t for t in tokens(paper.title or "") if len(t) > 3 and t.isalnum()), "")
        base = "".join((*surname, str(paper.year or ""), word)) or paper.id
        key = next(k for k in (base, *(f"{base}{c}" for c in "bcdefghijklmnopqrstuvwxyz"), f"{base}{paper.id}") if k not in used)
        used.add(key)
        fields = {
            "title": f"{{{_latex(paper.title)}}}" if paper.title else None,
            "author": " and ".join(_latex(a) for a in paper.authors) or None,
            "booktitle": _latex(paper.venue) if paper.venue else None,
            "year": str(paper.year) if paper.year else None,
            "url": paper.url,
        }
        body = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items() if value)
        entries.append(f"@{'inproceedings' if paper.venue else 'misc'}{{{key},\n{body}}}\n")
    return "\n".join(entries)


def _source_object(source: Source) -> dict[str, Any]:
    p = source.paper
    return {
        "n": source.n,
        "paper_id": p.id,
        "source_id": p.source_id,
        "label": p.label,
        "title": p.title,
        "authors": list(p.authors),
        "venue": p.venue,
        "year": p.year,
        "url": p.url,
        "file": p.origins[0].file,
        "position": p.origins[0].position,
        "text": p.text,
        "quotes": [{"text": q.text, "start": q.start, "end": q.end} for q in source.quotes],
        "score": round(source.score, 4),
    }


def _latex(text: str) -> str:
    """A text safe inside BibTeX braces: special characters escaped, braces balanced or gone, LaTeX that is there kept."""
    line = " ".join(text.split())
    balanced = line if line.count("{") == line.count("}") else plain(line).replace("{", "").replace("}", "")
    return _SPECIAL.sub(r"\\\1", balanced)
