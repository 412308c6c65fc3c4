"""Gold questions: reading them, and which half each belongs to.

A gold file is JSON lines, one question (or one turn of a conversation) a line:

    id            unique string
    question      as a user would type it
    kind          fact, why, how, claim, definition, list, compare, count, filter: what kind of answer is wanted
    style         named (names the paper's method), paraphrase (in words its authors did not use), lay (in a layman's), noisy, conversation
    outcome       answered, not_in_abstract (the paper is here, its abstract does not say it), no_paper
    papers        right papers as [file, position] pairs; all of them where several are right
    answers       strings, one of which a right answer contains (plain text, case aside); empty where there is no answer
    evidence      verbatim slices of the abstracts that hold the answer, or that contradict a false premise
    unanswerable  where there is no answer, why: off_topic, near_topic, missing_detail, false_premise
    conversation, turn   for a turn of a conversation: its id, and its number from 1
    count         for a question of how many: the number of right papers
    noise         for a noisy question: keywords, typo, acronym, latex, language, injection, title, long, caps
"""

from __future__ import annotations

import gzip
import hashlib
import json
import reprlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from rag.assistant import MAX_QUESTION_CHARS
from rag.errors import InputError

FOLDER = Path(__file__).parent / "gold"
Split = Literal["dev", "test"]
Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class Item:
    """One gold question."""

    id: str
    question: str
    kind: str
    style: str
    outcome: str
    papers: tuple[tuple[str, int], ...]
    answers: tuple[str, ...]
    evidence: tuple[str, ...]
    unanswerable: str | None = None
    conversation: str | None = None
    turn: int = 1
    count: int | None = None
    noise: str | None = None

    @property
    def split(self) -> Split:
        """Half by hash of the conversation or first paper, so that two questions on one paper stay together; else of the question."""
        return split_of(self.conversation or (f"{self.papers[0][0]} {self.papers[0][1]}" if self.papers else self.id))

    @property
    def group(self) -> str:
        """How results are grouped in tables: why there is no answer, or in what style the question is put."""
        return self.unanswerable or (self.kind if self.style not in ("conversation", "noisy") and len(self.papers) > 1 else self.style)


def split_of(name: str) -> Split:
    """The half of whatever bears a name."""
    return "dev" if hashlib.sha1(name.encode(), usedforsecurity=False).digest()[0] % 2 == 0 else "test"


def load(path: Path = FOLDER) -> list[Item]:
    """Every item of a gold file, or of all gold files in a folder, in order of file and line.

    Raises:
        InputError: a line is not an item.
    """
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    items = [item for file in files for item in read_lines(file, "gold question", _item, "See eval/gold.py for the fields.")]
    if not items:
        raise InputError(f"{path} holds no gold question.", "Give a JSONL file of them, or a folder of such files.")
    return items


def spread(items: Sequence[Record], most: int | None) -> list[Record]:
    """At most so many (all if not given), in order and evenly spread: a file is often sorted by subject."""
    return list(items) if most is None or most >= len(items) else [items[n * len(items) // most] for n in range(most)]


def sample(items: Sequence[Item], most: int | None) -> list[Item]:
    """About so many items (all if not given), in order: every so-many-th that is asked by itself, so that all kinds are among them.

    Conversations are taken whole, so that there may be a few more.
    """
    if most is None or most >= len(items):
        return list(items)
    names = list(dict.fromkeys(i.conversation or i.id for i in items))
    kept = set(names[:: -(-len(names) // most)])
    return [i for i in items if (i.conversation or i.id) in kept]


def drawn(items: Sequence[Item], most: int | None) -> list[Item]:
    """At most so many items (all if not given), in order: those first by the hash of their id, conversations whole or not at all.

    The same ones are drawn however many questions are added beside them, but for those that come before them.
    """
    if most is None or most >= len(items):
        return list(items)
    units: dict[str, list[Item]] = {}
    for item in items:
        units.setdefault(item.conversation or item.id, []).append(item)
    kept: set[str] = set()
    for name in sorted(units, key=lambda n: (hashlib.sha1(n.encode(), usedforsecurity=False).digest(), n)):
        if len(kept) + len(units[name]) <= most:
            kept |= {i.id for i in units[name]}
    return [i for i in items if i.id in kept]


def read_lines(file: Path, what: str, make: Callable[[dict[str, Any]], Record], hint: str) -> Iterator[Record]:
    """What is made of each JSON object of a file (`.gz` too), one a line.

    Args:
        what: what a line should be, in words, for the message.
        make: makes a record of one object; a ValueError or the like says what is wrong with it.
        hint: what to do about a line that is none.

    Raises:
        InputError: the file cannot be read, or a line is none.
    """
    try:
        # Not by str.splitlines, which also ends a line at characters that JSON may hold as they are.
        with gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                try:
                    record = make(json.loads(line))
                except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
                    raise InputError(f"{file.name}, line {number}, is no {what}: {error!r:.200}.", hint) from None
                yield record
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {getattr(error, 'strerror', None) or 'it is damaged, or not UTF-8'}.", "Check the path.") from None


def _item(row: dict[str, Any]) -> Item:
    """The item of one line; ValueError says what is wrong with it."""
    item = Item(
        id=as_text(row["id"]),
        question=as_text(row["question"]),
        kind=as_text(row["kind"]),
        style=as_text(row["style"]),
        outcome=as_text(row["outcome"]),
        papers=tuple((as_text(f), int(n)) for f, n in row["papers"]),
        answers=_texts(row["answers"]),
        evidence=_texts(row["evidence"]),
        unanswerable=_text_if_any(row.get("unanswerable")),
        conversation=_text_if_any(row.get("conversation")),
        turn=int(row.get("turn", 1)),
        count=None if row.get("count") is None else int(row["count"]),
        noise=_text_if_any(row.get("noise")),
    )
    if item.outcome not in ("answered", "not_in_abstract", "no_paper"):
        raise ValueError(f"{item.outcome!r} is no outcome")
    if (item.outcome == "no_paper") == bool(item.papers) or (item.outcome == "answered") != bool(item.answers):
        raise ValueError("its papers or answers do not fit its outcome")
    if not any(c.isalnum() for c in item.question) or len(item.question) > MAX_QUESTION_CHARS:
        raise ValueError(f"the question asks nothing, or has more than {MAX_QUESTION_CHARS:,} characters")
    return item


def as_text(value: object) -> str:
    """A text of a line; ValueError if it is none, or could not be written again."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{reprlib.repr(value)} is no text")
    value.encode()
    return value


def _text_if_any(value: object) -> str | None:
    return None if value is None else as_text(value)


def _texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise ValueError(f"{reprlib.repr(values)} is no list")
    return tuple(as_text(v) for v in values)
