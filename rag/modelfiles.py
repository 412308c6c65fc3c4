"""The local models' files inside this package: each is checked before it is opened, and nothing is looked for anywhere else."""

from __future__ import annotations

import hashlib
import importlib.resources
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag.errors import ModelFileError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: The folder whose tokenizer all models share, the SHA-256 of its file as it ships, and the tokens around a text.
VOCABULARY = "all-MiniLM-L6-v2-int8"
TOKENIZER_SHA256 = "3ad857958ba886d154a5a852119fb31a0dd549d03d8a3fc20e33f2336272cc19"
CLS, SEP = 101, 102
REINSTALL = "Reinstall ask-abstracts: pip install --force-reinstall --no-deps ask-abstracts"


def shipped(name: str) -> Path:
    """Where a model's files lie in the installed package."""
    return Path(str(importlib.resources.files("rag"))) / "models" / name


def session(file: Path, sha256: str) -> Any:
    """An onnxruntime session of a model, on one thread.

    Raises:
        ModelFileError: the file is missing, or is not the one that was shipped.
    """
    model = _checked(file, sha256)
    # Official builds since 1.32 look for a host to report to and keep a device id, on Linux too; only this, set before the import, stops both.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors only
    options.intra_op_num_threads = 1  # texts run side by side instead
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer in a folder.

    Raises:
        ModelFileError: as `session`.
    """
    vocabulary = _checked(folder / "tokenizer.json", TOKENIZER_SHA256)
    from tokenizers import Tokenizer

    return Tokenizer.from_buffer(vocabulary)


def _checked(file: Path, sha256: str) -> bytes:
    """The file's bytes, if they are those that were shipped."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ModelFileError(f"The local model's file {file} cannot be read: {error.strerror}.", REINSTALL) from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ModelFileError(f"The local model's file {file} is damaged: it is not the one that was shipped.", REINSTALL)
    return content
