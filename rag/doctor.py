"""What `ask doctor` looks at, one check a function; each says what it found and, where it is not well, what to do."""

from __future__ import annotations

import errno
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from rag.embeddings import LocalEmbedding
from rag.entailment import ENTAILMENT
from rag.entailment import MODEL_NAME as ENTAILMENT_NAME
from rag.errors import AskError, LLMNotFoundError, LLMServerError
from rag.llm import ChatModel
from rag.records import Check
from rag.settings import Settings
from rag.store import Store

#: What pyproject.toml asks for, and what Chroma asks of SQLite.
MIN_PYTHON = (3, 11)
MIN_SQLITE = (3, 35, 0)
#: Sent to the language model: an answer of several tokens, so that streaming shows.
SMALL_TALK = ({"role": "user", "content": "Count from one to ten in words."},)
SMALL_TALK_TOKENS = 40
MODELS_SHOWN = 8
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
    ENTAILMENT.load()
    return Check("local model", True, f"{embedder.model_name}, {len(vector)} dimensions, and {ENTAILMENT_NAME}; checksums right")


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
    """Asks the server for its models and the model for a few words, where one is configured; nothing is sent anywhere otherwise."""
    if settings.effective_mode == "extractive":
        return Check("language model", True, "none configured; answers are quotes and nothing leaves this machine")
    chat = ChatModel.from_settings(settings)
    try:
        names = chat.models()
    except (LLMNotFoundError, LLMServerError):  # not every server lists its models; the call below tells whether it answers
        names = []
    some = ", ".join(names[:MODELS_SHOWN]) + (f" and {len(names) - MODELS_SHOWN} more" if len(names) > MODELS_SHOWN else "")
    begun = time.monotonic()
    came: list[float] = []
    try:
        with chat.stream(SMALL_TALK, max_tokens=SMALL_TALK_TOKENS) as stream:
            came += [time.monotonic() - begun for _ in stream]
    except LLMNotFoundError as error:
        if not names or chat.model in names:
            raise
        return Check("language model", False, f"{chat.host} does not offer {chat.model}: {error.message}", f"Set ASK_MODEL to one of {some}.")
    streamed = f"streamed in {len(came)} pieces" if len(came) > 1 else "in one piece, so answers appear late (it does not stream)"
    answered = f"{chat.model} at {chat.host} answers, first token after {came[0]:.1f} s, whole after {came[-1]:.1f} s, {streamed}"
    window = chat.window()
    takes = f"takes {window.tokens:,} tokens{' (assumed)' if window.assumed else ''}"
    return Check("language model", True, f"{answered}; {takes}; models there: {some or 'not told'}")
