"""What a run was made with: code, settings, versions, index, commit and machine, so that two runs can be told apart."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rag.assistant import Assistant
from rag.settings import Settings

PROJECT = Path(__file__).resolve().parent.parent
#: The packages whose version can change an answer.
PACKAGES = ("chromadb", "llama-index-core", "openai", "onnxruntime", "tokenizers", "numpy", "bm25s", "PyStemmer", "nupunkt", "pylatexenc")


def settings_of(settings: Settings) -> dict[str, Any]:
    """The settings that can change an answer: no secret, and of the server's address the host alone."""
    kept = settings.model_dump(mode="json", exclude={"openai_api_key", "openai_base_url", "home", "mode"})
    return kept | {"mode": settings.effective_mode, "host": settings.llm_host if settings.effective_mode == "llm" else None}


def index_of(assistant: Assistant) -> dict[str, Any]:
    """What the collection holds: its stamp, the number of papers, and a digest of their ids (an id is a digest of the abstract)."""
    ids = [p.id for p in assistant.papers()]
    return {**assistant.stamp(), "papers": len(ids), "digest": digest("\n".join(ids).encode())}


def code() -> str:
    """A digest of what makes a measurement: the modules and weights of `rag/`, and what asks and measures here."""
    patterns = ("rag/*.py", "rag/weights/*", "eval/runner.py", "eval/*_metrics.py", "eval/claims.py", "eval/baselines.py", "eval/suites.py")
    files = sorted(p for pattern in patterns for p in PROJECT.glob(pattern))
    return digest(b"".join(p.name.encode() + p.read_bytes() for p in files))


def digest(content: bytes) -> str:
    """The first 12 hex digits of the SHA-256."""
    return hashlib.sha256(content).hexdigest()[:12]


def commit() -> str | None:
    """The commit that is checked out, "+" if files differ from it; None outside a repository or without git."""
    try:
        told = subprocess.run(["git", "describe", "--always", "--dirty=+", "--abbrev=12"], cwd=PROJECT, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return told.stdout.strip() or None


def machine() -> dict[str, Any]:
    """The machine and the Python, as far as they can change a time or a last digit."""
    return {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()}


def versions() -> dict[str, str]:
    """The versions of this project and of the packages that can change an answer."""
    return {name: version(name) for name in ("ask-abstracts", *PACKAGES)}
