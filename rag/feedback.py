"""What people thought of answers: thumbs up or down and a word, in one small SQLite file, and as candidate gold questions.

The file holds questions, so only its owner may read it. Nothing of it leaves the machine by itself.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from rag.errors import StoreError, UsageError
from rag.files import sound
from rag.records import Answer, Kind

Verdict = Literal["up", "down"]
#: Characters of a word that are kept; it is a word, not a letter.
MAX_WORD_CHARS = 500
#: Seconds to wait for another process that writes; a row takes milliseconds.
LOCK_WAIT_S = 10.0
_TABLE = """CREATE TABLE IF NOT EXISTS feedback (
    ballot TEXT PRIMARY KEY, time TEXT NOT NULL, verdict TEXT NOT NULL, word TEXT NOT NULL, question TEXT NOT NULL, kind TEXT NOT NULL,
    outcome TEXT NOT NULL, answer TEXT NOT NULL, sources TEXT NOT NULL)"""
#: Our kinds that the gold questions call by another name.
_GOLD_KIND: dict[Kind, str] = {"keywords": "list", "paper": "fact", "metadata": "fact"}


@dataclass(frozen=True, slots=True)
class Opinion:
    """One row: what was asked and answered, from which sources (file, position, quotes), what somebody thought of it, and when (UTC, ISO 8601)."""

    ballot: str
    time: str
    verdict: Verdict
    word: str
    question: str
    kind: Kind
    outcome: str
    answer: str
    sources: tuple[tuple[str, int, tuple[str, ...]], ...]


class Feedback:
    """The opinions kept in one file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def keep(self, ballot: str, verdict: Verdict, answer: Answer, *, word: str = "", follow_up: bool = False) -> None:
        """Keeps an opinion; a later one under the same ballot takes its place.

        Args:
            ballot: names the answer within the conversation it was given in.
            word: why, in the reader's words; cut after 500 characters.
            follow_up: whether the question needs what was asked before it; then its stand-alone form is kept.

        Raises:
            UsageError: the verdict is none.
            StoreError: the file cannot be written.
        """
        if verdict not in ("up", "down"):
            raise UsageError(f"{verdict!r} is no verdict.", "Give up or down.")
        sources = [(s.paper.origins[0].file, s.paper.origins[0].position, [q.text for q in s.quotes]) for s in answer.sources]
        question = answer.standalone_question if follow_up else answer.question
        row: tuple[str, ...] = (
            ballot,
            datetime.now(UTC).isoformat(timespec="seconds"),
            verdict,
            word.strip()[:MAX_WORD_CHARS],
            question,
            answer.kind,
            answer.outcome,
        )
        with self._open() as base:
            base.execute(f"INSERT OR REPLACE INTO feedback VALUES ({','.join('?' * 9)})", [sound(text) for text in (*row, answer.text, json.dumps(sources))])

    def opinions(self) -> list[Opinion]:
        """All that was kept, oldest first.

        Raises:
            StoreError: the file cannot be read.
        """
        if not self._file.exists():
            return []
        with self._open() as base:
            rows = base.execute("SELECT * FROM feedback ORDER BY time, ballot").fetchall()
        try:
            return [Opinion(**dict(row) | {"sources": tuple((f, n, tuple(quotes)) for f, n, quotes in json.loads(row["sources"]))}) for row in rows]
        except (ValueError, TypeError) as error:
            raise StoreError(f"The feedback in {self._file} is damaged.", "Move the file away.") from error

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """The table, made where there is none; what is done in between is done whole or not at all."""
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self._file, os.O_CREAT | os.O_RDWR, 0o600))  # before SQLite makes it for all to read
            with closing(sqlite3.connect(self._file, timeout=LOCK_WAIT_S)) as base, base:
                base.row_factory = sqlite3.Row
                base.execute(_TABLE)
                yield base
        except (OSError, sqlite3.Error) as error:
            reason = getattr(error, "strerror", None) or error
            raise StoreError(f"The feedback in {self._file} cannot be read or written: {reason}.", "Check ASK_HOME, its permissions and its space.") from error


def gold(opinions: list[Opinion], verdict: Verdict = "up") -> list[dict[str, Any]]:
    """Candidate gold questions, one for each question that last got this verdict, in the form of eval/gold.py.

    Those of thumbs up are whole, and `eval lint` takes them: the answer's quotes stand for what a right answer says. Those of thumbs down leave open what
    is not known of them: `outcome`, `papers`, `answers` and `evidence` are to be filled in, and until then are refused. `note` is for the one who does.
    """
    last = {" ".join(o.question.casefold().split()): o for o in opinions}
    chosen = [o for o in last.values() if o.verdict == verdict]
    return [_candidate(o, n) if verdict == "up" else _open_question(o, n) for n, o in enumerate(chosen, start=1)]


def _candidate(opinion: Opinion, n: int) -> dict[str, Any]:
    """A question whose answer somebody found right."""
    quotes = list(dict.fromkeys(quote for *_, quotes in opinion.sources for quote in quotes))
    papers = [[file, position] for file, position, _ in opinion.sources]
    answered = opinion.outcome == "answered"
    kind = _GOLD_KIND.get(opinion.kind, opinion.kind)
    item = {"id": f"feedback-up-{n}", "question": opinion.question, "kind": kind, "style": "paraphrase", "outcome": opinion.outcome, "papers": papers}
    item |= {"answers": quotes if answered else [], "evidence": quotes}
    item |= {} if answered else {"unanswerable": "near_topic" if opinion.outcome == "no_paper" else "missing_detail"}
    return item | ({"count": len(papers)} if kind == "count" else {}) | {"note": opinion.word}


def _open_question(opinion: Opinion, n: int) -> dict[str, Any]:
    """A question whose answer somebody found wrong: what would be right is not known."""
    kind = _GOLD_KIND.get(opinion.kind, opinion.kind)
    item: dict[str, Any] = {"id": f"feedback-down-{n}", "question": opinion.question, "kind": kind, "style": "paraphrase", "outcome": ""}
    return item | {"papers": [], "answers": [], "evidence": [], "note": opinion.word, "was": {"outcome": opinion.outcome, "answer": opinion.answer}}
