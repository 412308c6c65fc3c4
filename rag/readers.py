"""Files to papers: one function a format, chosen by the file's suffix.

Text (`.txt`): a first line that names venue and year ("ICML 2024 Papers"), then one abstract a paragraph. A side file `papers.csv`
beside it names its papers by (file, position). JSON lines (`.jsonl`, `.ndjson`): one object a line. Each also gzipped (`.gz`).

What is wrong with a part of a file is a notice, and the rest is read; a file that is wrong as a whole is an InputError.
"""

from __future__ import annotations

import csv
import io
import json
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rag.errors import InputError
from rag.files import decode, shown, sound, unreadable
from rag.markup import plain
from rag.records import Origin, Paper
from rag.text import paper_id

SIDE_FILE = "papers.csv"
SIDE_COLUMNS = ("file", "position", "title", "authors", "venue", "year", "url")
#: The longest text of four collections (14,000 abstracts) has 10,000 characters; one of twice that is no abstract.
MAX_ABSTRACT_CHARS = 20_000
#: Below this many characters a paragraph is a heading, a page number or a stray word; the shortest abstract there has 174.
MIN_ABSTRACT_CHARS = 60
#: Editors wrap lines at 72 to 120 characters; in a paragraph of longer lines only, each line is an abstract of its own.
MIN_UNWRAPPED_CHARS = 170
#: A file of another kind that ends in .jsonl would otherwise print a notice a line.
MAX_NOTICES = 20
_VENUE_LINE = re.compile(r"(?P<venue>\S.{0,60}?)[\s,:]{1,9}(?P<year>(?:19|20)[0-9]{2})(?:\s{1,9}(?:papers|abstracts|proceedings))?", re.IGNORECASE)
_YEAR = re.compile(r"((?:19|20)[0-9]{2})(?:\.0)?")
_URL = re.compile(r"https?://[^\s<>\"\x00-\x1f\x7f-\x9f]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read: the papers in file order, and what was left out or guessed, in words."""

    papers: tuple[Paper, ...]
    notices: tuple[str, ...] = ()


def read(path: Path) -> Reading:
    """Reads a file, or every readable file under a folder in the order of their names.

    Raises:
        InputError: the path is missing, unreadable, of no known format, binary, or holds no paper.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return _read_folder(path)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    if not stat.S_ISREG(mode):
        raise InputError(f"{shown(path)} is no file.", "Give a file or a folder.")
    if path.name == SIDE_FILE:
        raise InputError(f"{shown(path)} names papers but holds none.", "Give the folder or the text files that it describes.")
    reader = _READERS.get(_suffix(path))
    if reader is None:
        raise InputError(f"{shown(path)} is of no known format.", KNOWN_FORMATS)
    reading = reader(path)
    if not reading.papers:
        why = f" ({reading.notices[0].removesuffix('.')})" if reading.notices else ""
        raise InputError(f"{shown(path)} holds no abstract{why}.", "A text file needs one abstract a paragraph, a JSON line a field text or abstract.")
    more = len(reading.notices) - MAX_NOTICES
    return reading if more < 1 else Reading(reading.papers, (*reading.notices[:MAX_NOTICES], f"{shown(path.name)}: {more:,} more notices like these."))


def _read_folder(folder: Path) -> Reading:
    """Every file of a known format; one that cannot be read is a notice."""
    inside = sorted(p for p in folder.rglob("*") if not any(part.startswith(".") for part in p.relative_to(folder).parts))
    files = [p for p in inside if p.is_file() and p.name != SIDE_FILE]
    known = [p for p in files if _suffix(p) in _READERS]
    if not known:
        raise InputError(f"{shown(folder)} holds no file of a known format.", KNOWN_FORMATS)
    papers: list[Paper] = []
    notices = [f"{shown(p.name)} left out: of no known format." for p in files if p not in known]
    for file in known:
        try:
            reading = read(file)
        except InputError as error:
            notices.append(f"{shown(file.name)} left out: {error.message}")
            continue
        papers += reading.papers
        notices += reading.notices
    if not papers:
        raise InputError(f"No file in {shown(folder)} could be read.", notices[-1])
    return Reading(tuple(papers), tuple(dict.fromkeys(notices)))


def read_text(path: Path) -> Reading:
    """One abstract a paragraph, after a line that names the venue; `papers.csv` beside it names the papers."""
    content, notices = decode(path)
    paragraphs, split = _paragraphs(content)
    file = sound(path.name)
    name = shown(file)
    if split:
        notices.append(f"{name}: a paragraph of {split} long lines was read as {split} abstracts.")
    venue, year = _heading(paragraphs[0]) if paragraphs else (None, None)
    if venue:
        paragraphs = paragraphs[1:]
    papers = []
    for position, text in enumerate(paragraphs, start=1):
        problem = "too short for an abstract" if len(text) < MIN_ABSTRACT_CHARS else _problem(text)
        if problem:
            notices.append(f"{name}, paragraph {position}, left out: {problem}.")
        else:
            papers.append(Paper(paper_id(text), text, (Origin(file, position),), venue=venue, year=year))
    if papers and not venue:
        notices.append(f"{name}: the first line names no venue and year, so its papers carry none.")
    side = path.with_name(SIDE_FILE)
    if side.is_file():
        papers, more = _name_papers(papers, file, side)
        notices += more
    return Reading(tuple(papers), tuple(notices))


def read_jsonl(path: Path) -> Reading:
    """One JSON object a line: `text` or `abstract`, and if there, `id`, `title`, `authors`, `venue`, `year`, `url`."""
    content, notices = decode(path)
    papers = []
    for position, line in enumerate(io.StringIO(content), start=1):
        if not line.strip():
            continue
        paper, problems = _from_json(line, Origin(sound(path.name), position))
        if paper:
            papers.append(paper)
        notices += [f"{shown(path.name)}, line {position}{'' if paper else ', left out'}: {problem}." for problem in problems]
    return Reading(tuple(papers), tuple(notices))


_READERS = {".txt": read_text, ".jsonl": read_jsonl, ".ndjson": read_jsonl}
KNOWN_FORMATS = f"Known are {', '.join(_READERS)}, each also gzipped (.gz)."


def _suffix(path: Path) -> str:
    """The suffix in lower case, `.gz` aside."""
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def _paragraphs(content: str) -> tuple[list[str], int]:
    """The heading and the paragraphs in order, and how many of them were lines of one block, each an abstract of its own."""
    out: list[str] = []
    split = 0
    for block in (b.strip() for b in re.split(r"\n[^\S\n]*\n", content)):
        if not out and _heading(block.partition("\n")[0])[0]:
            heading, _, block = block.partition("\n")
            out.append(heading)
        lines = [line.strip() for line in block.split("\n") if line.strip()]
        if len(lines) > 1 and all(len(line) >= MIN_UNWRAPPED_CHARS for line in lines):
            split += len(lines)
            out += lines
        elif lines:
            out.append(block.strip())
    return out, split


def _heading(line: str) -> tuple[str, int] | tuple[None, None]:
    """Venue and year of a line that says nothing else."""
    found = _VENUE_LINE.fullmatch(line.strip())
    return (found["venue"], int(found["year"])) if found else (None, None)


def _problem(text: str) -> str:
    """Why a text cannot be indexed, or nothing."""
    if len(text) > MAX_ABSTRACT_CHARS:
        return f"{len(text):,} characters are too long for an abstract"
    return "" if any(c.isalnum() for c in plain(text)) else "it holds no words"


def _name_papers(papers: Iterable[Paper], file: str, side: Path) -> tuple[list[Paper], list[str]]:
    """Gives the papers of a file the titles, authors and the rest of the side file; reports each row that is wrong."""
    named = {p.origins[0].position: p for p in papers}
    unnamed = set(named)
    notices: list[str] = []
    rows = csv.DictReader(io.StringIO(), strict=True)
    try:
        content, notices = decode(side)
        rows = csv.DictReader(io.StringIO(content), strict=True)
        missing = [c for c in SIDE_COLUMNS if c not in (rows.fieldnames or ())]
        if missing:
            raise InputError(f"{shown(side)} lacks the column {missing[0]}.")
        beside = {sound(p.name) for p in side.parent.iterdir()}
        for row in rows:
            problem = _apply_row(row, file, beside, named, unnamed)
            if problem:
                notices.append(f"{SIDE_FILE}, line {rows.reader.line_num}: {problem}.")
    except InputError as error:
        notices.append(f"{error.message} It names no paper of {shown(file)}.")
    except csv.Error as error:
        notices.append(f"{SIDE_FILE}, line {rows.reader.line_num}: {error}; the rows from there on were not read.")
    if unnamed:
        notices.append(f"{SIDE_FILE} does not name {shown(file)} {shown(', '.join(map(str, sorted(unnamed))))}.")
    return list(named.values()), notices


def _apply_row(row: Mapping[str, Any], file: str, beside: set[str], named: dict[int, Paper], unnamed: set[int]) -> str:
    """Names one paper by one row; the problem in words if the row is wrong, nothing if it is right or another file's."""
    target = (row["file"] or "").strip()
    if target != file:
        return "" if target in beside else f"there is no file {shown(target)!r} beside it"
    if None in row or None in row.values():
        return f"it has {'more' if None in row else 'fewer'} fields than the heading; put quotes around what holds a comma"
    position = int(row["position"]) if re.fullmatch(r"\s*[0-9]{1,9}\s*", row["position"]) else 0
    if position not in named:
        return f"{shown(file)} has no abstract {shown(row['position'])!r}"
    if position not in unnamed:
        return f"{shown(file)} {position} is named twice; the first holds"
    unnamed.remove(position)
    facts, problems = _facts(row)
    before = named[position]
    after = named[position] = replace(before, **facts)
    if before.venue and (after.venue, after.year) != (before.venue, before.year):
        problems.append(f"says {shown(after.venue)} {after.year}, the first line of {shown(file)} {before.venue} {before.year}; the row holds")
    return "; ".join(problems)


def _from_json(line: str, origin: Origin) -> tuple[Paper | None, list[str]]:
    """One paper from one line, and what is wrong with the line in words."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None, ["not JSON"]
    if not isinstance(row, dict):
        return None, ["not an object"]
    text = next((sound(row[k]).strip() for k in ("text", "abstract") if isinstance(row.get(k), str) and row[k].strip()), "")
    problem = _problem(text) if text else "no text or abstract"
    if problem:
        return None, [problem]
    facts, problems = _facts(row)
    given = row.get("id")
    source_id = sound(str(given)).strip() if isinstance(given, str | int) else ""
    return Paper(paper_id(text), text, (replace(origin, source_id=source_id or None),), **facts), problems


def _facts(row: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What a row knows, by field of `Paper`, and in words what it holds that is no such thing and was dropped."""
    given = {k: v for k in ("title", "authors", "venue", "year", "url") if not _is_missing(v := row.get(k))}
    facts: dict[str, Any] = {k: " ".join(sound(v).split()) for k in ("title", "venue") if isinstance(v := given.get(k), str)}
    facts["authors"] = _authors(given.get("authors"))
    if isinstance(v := given.get("year"), str | int | float) and (year := _YEAR.fullmatch(str(v).strip())):
        facts["year"] = int(year[1])
    if isinstance(v := given.get("url"), str) and _URL.fullmatch(v.strip()):
        facts["url"] = v.strip()
    venue, in_venue = _heading(facts.get("venue", ""))
    if venue and facts.get("year", in_venue) == in_venue:
        facts |= {"venue": venue, "year": in_venue}
    facts = {k: v for k, v in facts.items() if v}
    dropped = [(k, f" {shown(v)!r}" if isinstance(v, str | int | float) else "") for k, v in given.items() if k not in facts]
    return facts, [f"its {k}{shown} is no {_NOUNS[k]} and was dropped" for k, shown in dropped]


def _is_missing(value: object) -> bool:
    """Nothing, blank, or NaN, which pandas writes for nothing and which alone differs from itself."""
    return value is None or value != value or value == [] or (isinstance(value, str) and not value.strip())


_NOUNS = {"title": "text", "authors": "list of names", "venue": "text", "year": "year", "url": "web address"}


def _authors(value: object) -> tuple[str, ...]:
    """Author names from a list of names, or from one string.

    In a string `;` or "and" stands between names, and a comma where full names stand on both sides of it ("Doe, Jane" is one name).
    """
    if isinstance(value, str):
        value = [n for part in re.split(r";|,?\s+and\s+", value) for n in _at_commas(part)]
    names = value if isinstance(value, list) else []
    return tuple(name for n in names if isinstance(n, str) and (name := " ".join(sound(n).split())))


def _at_commas(names: str) -> list[str]:
    parts = names.split(",")
    return parts if all(len(p.split()) > 1 for p in parts) else [names]
