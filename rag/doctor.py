"""What `ask doctor` looks at, one check a function; each says what it found and, where it is not well, what to do."""

from __future__ import annotations

import errno
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from rag.embeddings import LocalEmbedding
from rag.errors import AskError
from rag.llm import ChatModel
from rag.records import Check
from rag.settings import Settings
from rag.store import Store

#: What pyproject.toml asks for, and what Chroma asks of SQLite.
MIN_PYTHON = (3, 11)
MIN_SQLITE = (3, 35, 0)
#: More than a block of any file system, so that a full disk shows.
PROBE_BYTES = 65_536


def examine(settings: Settings, store: Store, embedder: LocalEmbedding) -> Iterator[Check]:
    """Runs every check in order, each by itself, so that one that fails hides no other."""
    checks: dict[str, Callable[[], Check]] = {
        "Python": _python,
        "SQLite": _sqlite,
        "home folder": lambda: _home(settings.home),
        "local model": lambda: _model(embedder),
        "index": lambda: _index(store),
        "language model": lambda: _language_model(settings),
    }
    for name, check in checks.items():
        try:
            yield check()
        except AskError as error:
            yield Check(name, False, error.message, error.hint)


def _python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    wanted = ".".join(map(str, MIN_PYTHON))
    return Check("Python", sys.version_info >= MIN_PYTHON, found, f"Install Python {wanted} or newer.")


def _sqlite() -> Check:
    wanted = ".".join(map(str, MIN_SQLITE))
    return Check("SQLite", sqlite3.sqlite_version_info >= MIN_SQLITE, sqlite3.sqlite_version, f"Use a Python built with SQLite {wanted} or newer.")


def _home(home: Path) -> Check:
    """Writes a file where the index goes, since permissions alone do not tell (a full disk, a read-only mount); makes no folder."""
    where = next(folder for folder in (home, *home.parents) if folder.exists())
    try:
        with tempfile.NamedTemporaryFile(dir=where) as file:
            file.write(b"x" * PROBE_BYTES)
            file.flush()
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return Check("home folder", False, f"the disk of {home} is full", "Free some space, or set ASK_HOME to a folder on another disk.")
        return Check("home folder", False, f"{home} cannot be written to: {error.strerror}", "Set ASK_HOME to a folder that you may write to.")
    return Check("home folder", True, f"{home} {'can be written to' if where == home else 'can be made'}")


def _model(embedder: LocalEmbedding) -> Check:
    vector = embedder.query("a test")
    return Check("local model", True, f"{embedder.model_name}, checksum right, {len(vector)} dimensions")


def _index(store: Store) -> Check:
    """Reads the papers and their words, and searches both collections once, since their vectors lie in files of their own."""
    if not store.exists:
        return Check("index", True, "none yet; the first question or `ask ingest` makes it")
    store.check_stamp()
    anywhere = np.ones(int(store.stamp["dimension"]), dtype=np.float32)
    store.nearest_papers(anywhere, 1)
    store.nearest_passages(anywhere, 1)
    store.word_vectors(list(store.known_words()))
    papers, passages = len(store.papers), sum(store.passage_counts.values())
    return Check("index", True, f"{papers:,} papers, {passages:,} sentences, made by {store.stamp['embedder']}")


def _language_model(settings: Settings) -> Check:
    """Asks the server for its models, where one is configured; nothing is sent anywhere otherwise."""
    if settings.effective_mode == "extractive":
        return Check("language model", True, "none configured; answers are quotes and nothing leaves this machine")
    chat = ChatModel.from_settings(settings)
    names = chat.models()
    if names and chat.model not in names:
        some = ", ".join(names[:8])
        return Check("language model", False, f"{chat.host} does not offer {chat.model}", f"Set ASK_MODEL to one of {some}.")
    return Check("language model", True, f"{chat.model} at {chat.host}")
