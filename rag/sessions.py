"""Conversations: kept by name in one small file each, and the follow-up made a question that stands alone.

Without a language model a follow-up ("How much faster is it?") is read by rules: what it points at is the paper cited first in
the last turn, and that paper's name takes the pronoun's place. A question that stands alone is left as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import NamedTemporaryFile

from rag.errors import SessionError, UsageError
from rag.records import Paper, Turn
from rag.settings import NAME_PATTERN
from rag.text import content_stems, plain

#: Turns that a follow-up may look back on.
MEMORY = 6
#: A question with fewer words of content than this cannot stand alone ("And why?").
MIN_CONTENT = 2
#: A title's part before its colon names the method if it is at most this many words.
NAME_WORDS = 6
_POSSESSIVE = re.compile(r"\b(?:its|their|the (?:paper|method|authors|model|approach|work)['’]s?)(?!\w)", re.IGNORECASE)
_POINTS = re.compile(
    r"\b(?:it|they|them|(?:this|that|the(?:se)?|the same) (?:paper|method|approach|model|work|framework|algorithm|technique|abstract|study|authors?))\b(?!\s+(?:possible|true|that)\b)"
    r"|\b(?:this|that)(?=\s*(?:[?.!,]|$|work|do|mean|compare|differ|help|need|use|scale|perform|achieve|cost|reduce|improve)\b|[?.!,]|$)",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"^\W*(?:and|but|also|so|then|what about|how about|why|how so|which one|the other)\b", re.IGNORECASE)


def stand_alone(question: str, turns: Sequence[Turn], papers: Mapping[str, Paper]) -> str:
    """The question with what it points at put into words; the question itself where it stands alone or nothing was said before.

    Args:
        question: as asked.
        turns: the conversation so far, oldest first.
        papers: of the collection, by id.
    """
    about = next((papers[t.paper_ids[0]] for t in reversed(turns[-MEMORY:]) if t.paper_ids and t.paper_ids[0] in papers), None)
    if about is None:
        return question
    name = _name(about)
    if _POSSESSIVE.search(question):
        return _POSSESSIVE.sub(f"{name}'s", question, count=1)
    if _POINTS.search(question):
        return _POINTS.sub(name, question, count=1)
    if _GOES_ON.search(question) or len(content_stems(question)) < MIN_CONTENT:
        return f"{question} ({name})"
    return question


def _name(paper: Paper) -> str:
    """What a paper is called in a question: the head of its title if it is short, else the title, else its first words."""
    title = plain(paper.title or " ".join(paper.text.split()[:12]))
    head = title.partition(":")[0]
    return head if len(head.split()) <= NAME_WORDS else title


class Sessions:
    """Saved conversations in one folder, a JSON file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def turns(self, name: str) -> tuple[Turn, ...]:
        """The turns saved under a name, oldest first; none if there is no such conversation.

        Raises:
            UsageError: the name is not one.
            SessionError: the file cannot be read.
        """
        path = self._path(name)
        try:
            rows = json.loads(path.read_text(encoding="utf-8"))
            return tuple(Turn(r["question"], r["standalone_question"], r["answer"], tuple(r["paper_ids"])) for r in rows)
        except FileNotFoundError:
            return ()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SessionError(f"The conversation {name!r} cannot be read: {_reason(error)}.", f"Delete it with `ask sessions --delete {name}`.") from error

    def append(self, name: str, turn: Turn) -> None:
        """Adds a turn; the file is replaced as a whole, so that a kill leaves the old one or the new.

        Raises:
            UsageError: the name is not one.
            SessionError: the file cannot be written.
        """
        rows = [asdict(t) for t in (*self.turns(name), turn)]
        path = self._path(name)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile("w", encoding="utf-8", dir=self._folder, suffix=".part", delete=False) as file:
                json.dump(rows, file, ensure_ascii=False, indent=1)
            Path(file.name).replace(path)
        except OSError as error:
            raise SessionError(f"The conversation {name!r} cannot be saved: {_reason(error)}.", "Free some space, or set ASK_HOME to a folder that you may write to.") from error

    def names(self) -> list[str]:
        """The saved conversations in order of name."""
        return sorted(p.stem for p in self._folder.glob("*.json"))

    def delete(self, name: str) -> None:
        """Removes a conversation.

        Raises:
            UsageError: there is none of that name.
        """
        try:
            self._path(name).unlink()
        except FileNotFoundError:
            raise UsageError(f"There is no conversation {name!r}.", "See `ask sessions` for those that are.") from None
        except OSError as error:
            raise SessionError(f"The conversation {name!r} cannot be deleted: {_reason(error)}.", "Check the permissions of ASK_HOME.") from error

    def _path(self, name: str) -> Path:
        if not re.fullmatch(NAME_PATTERN, name):
            raise UsageError(f"{name!r} is no name for a conversation.", "Use up to 64 letters, digits, dots, dashes and underscores.")
        return self._folder / f"{name}.json"


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or "it is damaged"
