"""Conversations, kept by name in one small file each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from filelock import FileLock, Timeout

from rag.errors import SessionError, UsageError
from rag.records import Turn
from rag.settings import NAME_PATTERN

#: Adding a turn takes milliseconds; whoever holds the folder for longer hangs.
LOCK_WAIT_S = 10


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
            return tuple(_turn(row) for row in json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise SessionError(f"The conversation {name!r} cannot be read: {error.strerror}.", "Check ASK_HOME and its permissions.") from error
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise SessionError(f"The conversation {name!r} is damaged.", f"Delete it with `ask sessions --delete {name}`.") from error

    def append(self, name: str, turn: Turn) -> None:
        """Adds a turn; the file is replaced as a whole, so that a kill leaves the old one or the new.

        Two processes may talk under one name: each turn is added to what the file holds at that moment, so that none is lost.

        Raises:
            UsageError: the name is not one.
            SessionError: the file cannot be written.
        """
        path = self._path(name)
        try:
            with self._held(name):
                rows = [asdict(t) for t in (*self.turns(name), turn)]
                self._replace(path, rows)
        except OSError as error:
            raise SessionError(
                f"The conversation {name!r} cannot be saved: {error.strerror}.", "Free some space, or set ASK_HOME to a folder that you may write to."
            ) from error

    def names(self) -> list[str]:
        """The saved conversations in order of name."""
        return sorted(p.stem for p in self._folder.glob("*.json"))

    def delete(self, name: str) -> None:
        """Removes a conversation.

        Raises:
            UsageError: there is none of that name.
            SessionError: it cannot be deleted.
        """
        try:
            self._path(name).unlink()
        except FileNotFoundError:
            raise UsageError(f"There is no conversation {name!r}.", "See `ask sessions` for those that are.") from None
        except OSError as error:
            raise SessionError(f"The conversation {name!r} cannot be deleted: {error.strerror}.", "Check the permissions of ASK_HOME.") from error

    @contextmanager
    def _held(self, name: str) -> Iterator[None]:
        """Keeps other processes from writing; the lock lies beside the folder, which holds conversations alone."""
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self._folder.with_name(f".{self._folder.name}.lock"), timeout=LOCK_WAIT_S):
                yield
        except Timeout:
            raise SessionError(f"The conversation {name!r} cannot be saved: another process holds it.", "Try again in a moment.") from None

    def _replace(self, path: Path, rows: list[dict[str, Any]]) -> None:
        """Puts a new file in the place of the old one."""
        with NamedTemporaryFile("w", encoding="utf-8", dir=self._folder, suffix=".part", delete=False) as file:
            try:
                json.dump(rows, file, ensure_ascii=False, indent=1)
                file.close()
                Path(file.name).replace(path)
            except OSError:
                Path(file.name).unlink(missing_ok=True)
                raise

    def _path(self, name: str) -> Path:
        if not re.fullmatch(NAME_PATTERN, name):
            raise UsageError(f"{name!r} is no name for a conversation.", "Use up to 64 letters, digits, dots, dashes and underscores.")
        return self._folder / f"{name}.json"


def _turn(row: dict[str, Any]) -> Turn:
    """A saved turn. Raises ValueError, KeyError or TypeError where it is none."""
    turn = Turn(row["question"], row["standalone_question"], row["answer"], tuple(row["paper_ids"]))
    if not all(isinstance(x, str) for x in (turn.question, turn.standalone_question, turn.answer, *turn.paper_ids)):
        raise ValueError("a turn is made of texts")
    return turn
