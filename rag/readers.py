"""Files to papers: one function a format, chosen by the file's suffix.

Text (`.txt`, `.md`): a first line that names venue and year ("ICML 2024 Papers"), then one abstract a paragraph. A side file
`papers.csv` beside it names its papers by (file, position). JSON lines (`.jsonl`, `.jsonl.gz`, `.ndjson`): one object a line.

What is wrong with a part of a file is a notice, and the rest is read; a file that is wrong as a whole is an InputError.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rag.errors import InputError
from rag.records import Origin, Paper
from rag.text import paper_id, safe_for_terminal

SIDE_FILE = "papers.csv"
SIDE_COLUMNS = ("file", "position", "title", "authors", "venue", "year", "url")
#: The longest abstract of ml2024 has 3,800 characters; beyond five times that a paragraph is no abstract.
MAX_ABSTRACT_CHARS = 20_000
#: Below this many characters a paragraph is a heading, a page number or a stray word; the shortest abstract of ml2024 has 226.
MIN_ABSTRACT_CHARS = 60
#: Lines wrapped by an editor are shorter than this; in a paragraph of longer ones each line is an abstract of its own.
MIN_UNWRAPPED_CHARS = 300
#: 4,871 abstracts take 7 MB; a file of a hundred times that is not a list of abstracts, and would not fit in memory.
MAX_FILE_BYTES = 500_000_000
_VENUE_LINE = re.compile(r"^(?P<venue>\S.{0,60}?)[\s,:]+(?P<year>(?:19|20)\d\d)(?:\s+(?:papers|abstracts|proceedings))?\s*$", re.IGNORECASE)


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
    if path.is_dir():
        return _read_folder(path)
    if path.name == SIDE_FILE:
        raise InputError(f"{_shown(path)} names papers but holds none.", "Give the folder or the text files that it describes.")
    reader = _READERS.get(_suffix(path))
    if reader is None:
        raise InputError(f"{_shown(path)} is of no known format.", f"Known are {', '.join(_READERS)}.")
    reading = reader(path)
    if not reading.papers:
        why = f" ({reading.notices[0]})" if reading.notices else ""
        raise InputError(f"{_shown(path)} holds no abstract{why}.", "A text file needs one abstract a paragraph, a JSON line a field text or abstract.")
    return reading


def _read_folder(folder: Path) -> Reading:
    try:
        files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != SIDE_FILE and not p.name.startswith("."))
    except OSError as error:
        raise InputError(f"{_shown(folder)} cannot be read: {error.strerror}.", "Check the path and its permissions.") from None
    known = [p for p in files if _suffix(p) in _READERS]
    if not known:
        raise InputError(f"{_shown(folder)} holds no file of a known format.", f"Known are {', '.join(_READERS)}.")
    papers: list[Paper] = []
    notices = [f"{safe_for_terminal(p.name)} left out: of no known format." for p in files if p not in known]
    for file in known:
        try:
            reading = read(file)
        except InputError as error:
            notices.append(f"{safe_for_terminal(file.name)} left out: {error}")
            continue
        papers += reading.papers
        notices += reading.notices
    if not papers:
        raise InputError(f"No file in {_shown(folder)} could be read.", notices[-1])
    return Reading(tuple(papers), tuple(dict.fromkeys(notices)))


def read_text(path: Path) -> Reading:
    """One abstract a paragraph, after a line that names the venue; `papers.csv` beside it names the papers."""
    content, notices = _decode(path)
    paragraphs, split = _paragraphs(content)
    name = safe_for_terminal(path.name)
    if split:
        notices.append(f"{name}: {split} paragraphs hold one abstract a line and were taken apart.")
    heading = _VENUE_LINE.match(paragraphs[0]) if paragraphs else None
    venue, year = (heading["venue"], int(heading["year"])) if heading else (None, None)
    if heading:
        paragraphs = paragraphs[1:]
    elif paragraphs:
        notices.append(f"{name}: the first line names no venue and year, so its papers carry none.")
    papers = []
    for position, text in enumerate(paragraphs, start=1):
        problem = _problem(text)
        if problem:
            notices.append(f"{name}, paragraph {position}, left out: {problem}.")
        else:
            papers.append(Paper(paper_id(text), text, (Origin(path.name, position),), venue=venue, year=year))
    side = path.with_name(SIDE_FILE)
    if side.is_file():
        papers, more = _name_papers(papers, path.name, side)
        notices += more
    return Reading(tuple(papers), tuple(notices))


def read_jsonl(path: Path) -> Reading:
    """One JSON object a line: `text` or `abstract`, and if there, `id`, `title`, `authors`, `venue`, `year`, `url`."""
    content, notices = _decode(path)
    name = safe_for_terminal(path.name)
    papers = []
    for position, line in enumerate(io.StringIO(content), start=1):
        if not line.strip():
            continue
        try:
            papers.append(_from_json(json.loads(line), path.name, position))
        except (ValueError, RecursionError) as error:
            notices.append(f"{name}, line {position}, left out: {_json_problem(error)}.")
    return Reading(tuple(papers), tuple(notices))


_READERS = {".txt": read_text, ".md": read_text, ".jsonl": read_jsonl, ".ndjson": read_jsonl, ".jsonl.gz": read_jsonl}


def _suffix(path: Path) -> str:
    """The suffix in lower case, `.gz` together with the one before it."""
    suffixes = [s.lower() for s in path.suffixes[-2:]]
    return "".join(suffixes) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])


def _shown(path: Path) -> str:
    """A path as it may stand in a message."""
    return safe_for_terminal(str(path))


def _decode(path: Path) -> tuple[str, list[str]]:
    """The text of a file, and a notice if its encoding was guessed."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise InputError(f"{_shown(path)} is larger than {MAX_FILE_BYTES // 1_000_000} MB.", "Split it into smaller files.")
        data = path.read_bytes()
        if path.suffix.lower() == ".gz":
            with gzip.open(io.BytesIO(data)) as unpacked:
                data = unpacked.read(MAX_FILE_BYTES + 1)
            if len(data) > MAX_FILE_BYTES:
                raise InputError(f"{_shown(path)} unpacks to more than {MAX_FILE_BYTES // 1_000_000} MB.", "Split it into smaller files.")
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "it is damaged"
        raise InputError(f"{_shown(path)} cannot be read: {reason}.", "Check the path and its permissions.") from None
    if not data.strip():
        raise InputError(f"{_shown(path)} is empty.", "Give a file with abstracts in it.")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _clean(data.decode("utf-16", errors="replace")), []
    if b"\0" in data[:100_000]:
        raise InputError(f"{_shown(path)} is not text.", f"Known formats are {', '.join(_READERS)}.")
    try:
        return _clean(data.decode("utf-8-sig")), []
    except UnicodeDecodeError:
        return _clean(data.decode("cp1252", errors="replace")), [f"{safe_for_terminal(path.name)} is not UTF-8; it was read as Windows-1252 (Latin-1)."]


def _clean(content: str) -> str:
    """One kind of line end; spans count characters, so this happens before anything is counted."""
    return content.replace("\r\n", "\n").replace("\r", "\n")


def _paragraphs(content: str) -> tuple[list[str], int]:
    """Paragraphs in order, and how many blocks were taken apart because each of their long lines is an abstract."""
    out: list[str] = []
    split = 0
    blocks = [b.strip() for b in re.split(r"\n[^\S\n]*\n", content) if b.strip()]
    for number, block in enumerate(blocks):
        lines = [line.strip() for line in block.split("\n") if line.strip()]
        first = number == 0 and _VENUE_LINE.match(lines[0]) is not None
        body = lines[1:] if first else lines
        if first:
            out.append(lines[0])
        if len(body) > 1 and all(len(line) >= MIN_UNWRAPPED_CHARS for line in body):
            split += 1
            out += body
        elif body:
            out.append(block.split("\n", 1)[1].strip() if first else block)
    return out, split


def _problem(text: str) -> str:
    """Why a text is no abstract, or nothing."""
    if len(text) > MAX_ABSTRACT_CHARS:
        return f"{len(text):,} characters are too long for an abstract"
    return "too short for an abstract" if len(text.strip()) < MIN_ABSTRACT_CHARS else ""


def _name_papers(papers: Iterable[Paper], file: str, side: Path) -> tuple[list[Paper], list[str]]:
    """Gives the papers of a file the titles, authors and the rest of the side file; reports each row that is wrong."""
    content, notices = _decode(side)
    rows = csv.DictReader(io.StringIO(content), strict=True)
    by_position = {p.origins[0].position: p for p in papers}
    named: dict[int, Paper] = {}
    try:
        missing = [c for c in SIDE_COLUMNS if c not in (rows.fieldnames or ())]
        if missing:
            raise InputError(f"{_shown(side)} lacks the column {missing[0]}.", f"Its first line must be {','.join(SIDE_COLUMNS)}.")
        for row in rows:
            problem = _apply_row(row, file, side, by_position, named)
            if problem:
                notices.append(f"{SIDE_FILE}, line {rows.line_num}: {problem}.")
    except csv.Error as error:
        notices.append(f"{SIDE_FILE}, line {rows.line_num}: {error}; the rows after it were not read.")
    notices += [f"{SIDE_FILE} does not name {safe_for_terminal(file)} {n}." for n in by_position if n not in named]
    return [named.get(n, paper) for n, paper in by_position.items()], notices


def _apply_row(row: Mapping[str, str | None], file: str, side: Path, papers: Mapping[int, Paper], named: dict[int, Paper]) -> str:
    """Names one paper by one row; the problem in words if the row is wrong, nothing if it is right or another file's."""
    target = (row["file"] or "").strip()
    if target != file:
        is_name = target == Path(target).name and target not in ("", ".", "..")
        return "" if is_name and side.with_name(target).is_file() else f"there is no file {safe_for_terminal(target)!r} beside it"
    position = row["position"] or ""
    paper = papers.get(int(position)) if position.strip().isdecimal() else None
    if paper is None:
        return f"{safe_for_terminal(file)} has no abstract {safe_for_terminal(position)!r}"
    if int(position) in named:
        return f"{safe_for_terminal(file)} {position} is named twice; the first holds"
    year = (row["year"] or "").strip()
    if year and not re.fullmatch(r"(?:19|20)\d\d", year):
        return f"{safe_for_terminal(year)!r} is no year"
    venue = (row["venue"] or "").strip()
    named[int(position)] = replace(
        paper,
        title=(row["title"] or "").strip() or None,
        authors=_authors(row["authors"] or ""),
        venue=venue or paper.venue,
        year=int(year) if year else paper.year,
        url=_url(row["url"]),
    )
    told = (venue or paper.venue, int(year) if year else paper.year)
    return f"says {told[0]} {told[1]}, the first line of {safe_for_terminal(file)} {paper.venue} {paper.year}; the row holds" if paper.venue and told != (paper.venue, paper.year) else ""


def _authors(value: object) -> tuple[str, ...]:
    """Author names from a list of names, or from one string with ; or " and " between them."""
    names = value if isinstance(value, list) else re.split(r";|\s+and\s+", value) if isinstance(value, str) else []
    return tuple(n.strip() for n in names if isinstance(n, str) and n.strip())


def _url(value: object) -> str | None:
    """An http(s) address, or nothing: a link of another kind (javascript:, file:) is never offered for a click."""
    return value.strip() if isinstance(value, str) and re.match(r"https?://\S+$", value.strip()) else None


def _from_json(row: object, file: str, position: int) -> Paper:
    """One paper from one JSON object; ValueError says what is wrong with it."""
    if not isinstance(row, dict):
        raise ValueError("not an object")
    text = row.get("text") or row.get("abstract")
    if not isinstance(text, str):
        raise ValueError("no text or abstract")
    text = text.strip()
    problem = _problem(text)
    if problem:
        raise ValueError(problem)
    venue, year = row.get("venue"), row.get("year")
    heading = _VENUE_LINE.match(venue) if isinstance(venue, str) else None
    if heading and not year:
        venue, year = heading["venue"], heading["year"]
    title = row.get("title")
    source_id = row.get("id")
    return Paper(
        paper_id(text),
        text,
        (Origin(file, position, str(source_id) if source_id not in (None, "") else None),),
        title=title.strip() or None if isinstance(title, str) else None,
        authors=_authors(row.get("authors")),
        venue=venue.strip() or None if isinstance(venue, str) else None,
        year=int(year) if re.fullmatch(r"(?:19|20)\d\d", str(year)) else None,
        url=_url(row.get("url")),
    )


def _json_problem(error: BaseException) -> str:
    return "not JSON" if isinstance(error, json.JSONDecodeError | RecursionError) else str(error)
