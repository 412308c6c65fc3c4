"""Answers in forms for other programs: JSON (the contract of the command line), BibTeX and Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import chain, count
from typing import Any

from rag.markup import draws_only, plain
from rag.records import Answer, Hit, Paper, Sentence, Source
from rag.text import tokens

#: Inline mathematics after Pandoc's rule, so that "$5 and $10" stays money.
_FORMULA = re.compile(r"(?<!\\)\$(?=\S)(?:\\.|[^$\\])+(?<!\s)\$(?!\d)")
_ESCAPES = str.maketrans(
    {
        **{c: f"\\{c}" for c in "&%$#_"},
        "\\": r"\textbackslash{}",
        "{": r"\textbraceleft{}",
        "}": r"\textbraceright{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
    }
)
#: Braces would end the field, whatever the style does with addresses.
_IN_URL = str.maketrans({"{": "%7B", "}": "%7D", "\\": "%5C"})
#: What Markdown or the HTML in it would act on, so that a title loads no picture and a quote stays verbatim.
_ACTIVE = re.compile(r"[\\`*_{}\[\]<>#|~$&!]|(?m:^\s*(?:[-+=]|\d+(?=[.)])))")
_NO_KEY = re.compile(r"[^a-z0-9]")


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
        "sentences": [_sentence_object(s) for s in answer.sentences],
        "sources": [_source_object(s) for s in answer.sources],
        "nearest": [{"paper_id": h.paper.id, "label": h.paper.label, "title": h.paper.title, "score": round(h.score, 4)} for h in answer.nearest],
        "filters": answer.filters.as_dict(),
        "searched": answer.searched,
        "notices": list(answer.notices),
        "timings_ms": {k: round(v, 1) for k, v in answer.timings_ms.items()},
        "repairs": asdict(answer.repairs),
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
    """One entry a paper, in the order given, with keys unique within the list: surname, year, first long word of the title."""
    entries, used = [], set[str]()
    for paper in papers:
        base = _key(paper)
        key = next(k for k in chain((base,), (f"{base}-{n}" for n in count(2))) if k not in used)
        used.add(key)
        fields = {
            "title": f"{{{_latex(paper.title)}}}" if paper.title else "",  # the second pair of braces keeps its capitals
            "author": " and ".join(_name(a) for a in paper.authors),
            "booktitle": _latex(paper.venue or ""),
            "year": str(paper.year or ""),
            "url": (paper.url or "").translate(_IN_URL),
        }
        body = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items() if value)
        entries.append(f"@{'inproceedings' if paper.venue else 'misc'}{{{key},\n{body}}}\n")
    return "\n".join(entries)


def markdown(answers: Iterable[Answer]) -> str:
    """A conversation to read elsewhere: each question, its answer, and the sources with their verbatim quotes."""
    return "\n".join(_section(answer) for answer in answers)


def _section(answer: Answer) -> str:
    """One question as Markdown; whatever stands in a paper or an answer is text there."""
    lines = [f"## {_inert(answer.question)}", ""]
    lines += [f"*Asked as: {_inert(answer.standalone_question)}*", ""] if answer.standalone_question != answer.question else []
    lines += [_inert(answer.lead), ""] if answer.lead else []
    said = [f"{_inert(s.text)}{_marks(s.citations)}{_doubt(s)}" for s in answer.sentences]
    lines += [f"- {words}" for words in said] if answer.bulleted else [" ".join(said)] if said else []
    if answer.nearest:
        lines += [*([""] if said else []), "Nearest in the collection:", "", *(f"- {_known(hit.paper, hit.paper.label)}" for hit in answer.nearest)]
    lines += ["", *(line for source in answer.sources for line in _cited(source))] if answer.sources else []
    lines += ["", f"*{'Extractive' if answer.mode == 'extractive' else _inert(answer.model or 'LLM')}, {answer.status}.*", ""]
    return "\n".join(lines)


def _cited(source: Source) -> Iterator[str]:
    """A source with its quotes, as an item of a list."""
    where = " ".join(str(x) for x in (source.paper.venue, source.paper.year) if x)
    yield f"{source.n}. {_known(source.paper, ', '.join(source.paper.authors), where)}"
    yield from (f"   > {_inert(quote.text)}" for quote in source.quotes)


def _known(paper: Paper, *more: str) -> str:
    """A paper in a line: its title, what else is to be told of it, and its address."""
    told = dict.fromkeys(part for part in (plain(paper.title or paper.label), *more) if part)
    return f"{'. '.join(_inert(part) for part in told)}{f'. <{_web(paper.url)}>' if _web(paper.url) else ''}"


def _doubt(sentence: Sentence) -> str:
    return "" if sentence.support == "supported" else f" ({'not supported' if sentence.support == 'unsupported' else 'no source'})"


def _marks(citations: Iterable[int]) -> str:
    return "".join(f" \\[{n}\\]" for n in citations)


def _inert(text: str) -> str:
    """Text on one line that Markdown shows as it is."""
    return _ACTIVE.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}" if not found[0].strip().isdigit() else f"{found[0]}\\", " ".join(text.split()))


def _web(url: str | None) -> str:
    """An address that can stand between angle brackets; nothing for any other."""
    return url if url and re.fullmatch(r"https?://[^\s<>]+", url) else ""


def _sentence_object(sentence: Sentence) -> dict[str, Any]:
    return {
        "text": sentence.text,
        "citations": list(sentence.citations),
        "quotes": [asdict(q) for q in sentence.quotes],
        "support": sentence.support,
        "score": sentence.score,
        "reason": sentence.reason,
    }


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
        "quotes": [asdict(q) for q in source.quotes],
        "score": round(source.score, 4),
    }


def _key(paper: Paper) -> str:
    """What a reader would call the paper, in the letters that every BibTeX takes; its id where nothing of that is known."""
    surname = paper.authors[0].partition(",")[0].split()[-1:] if paper.authors else []
    words = [w for t in tokens(paper.title or "") if len(w := _NO_KEY.sub("", t)) > 3]
    return "".join((*(_NO_KEY.sub("", "".join(tokens(s))) for s in surname), str(paper.year or ""), *words[:1])) or paper.id


def _name(author: str) -> str:
    """A name as BibTeX takes names apart; one that it would take apart wrongly (an "and", three commas) is kept whole in braces."""
    name = _latex(author)
    return f"{{{name}}}" if re.search(r"\band\b", name, re.IGNORECASE) or name.count(",") > 2 else name


def _latex(text: str) -> str:
    """A text safe inside BibTeX braces: formulas as they are if they only draw and their braces match, all else plain, special characters escaped."""
    line, parts, at = " ".join(text.split()), [], 0
    for formula in _FORMULA.finditer(line):
        if _is_balanced(formula[0]) and draws_only(formula[0]):
            parts += [_escaped(line[at : formula.start()]), formula[0]]
            at = formula.end()
    return "".join((*parts, _escaped(line[at:])))


def _escaped(text: str) -> str:
    """Plain text with BibTeX's special characters escaped, and the space around it kept."""
    inner = plain(text).translate(_ESCAPES)
    return f"{' ' * text.startswith(' ')}{inner}{' ' * (bool(inner) and text.endswith(' '))}"


def _is_balanced(formula: str) -> bool:
    """Whether every brace has its partner; BibTeX counts them without regard to backslashes."""
    depth = 0
    for brace in re.findall(r"[{}]", formula):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return False
    return depth == 0
