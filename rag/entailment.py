"""How likely some sentences entail a claim: a cross-encoder, which reads both together and so sees who does what to whom.

It is all-MiniLM-L6-v2 trained further by `eval/train_entailment.py` on claims written by hand, of abstracts that the project does not bundle.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from rag.modelfiles import CLS, SEP, VOCABULARY, session, shipped, tokenizer

MODEL_NAME = "entailment-int8"
MODEL_SHA256 = "1ff484954b0b0369722aee9bef0174d49461c4e1bb147491223e8b1c5c0d3031"
#: Best sentences of a text that the model is shown. Of the held claims three gave the same AUC (0.888) half-way through training.
SENTENCES = 2
#: Most tokens of a claim, of a title and of a whole pair; what is longer is cut, as it was in training.
CLAIM_TOKENS, TITLE_TOKENS, PAIR_TOKENS = 80, 32, 320


class Entailment:
    """The model, checked and loaded at the first use. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None

    def load(self) -> tuple[Any, Any]:
        """The session and the tokenizer.

        Raises:
            ModelFileError: a file is missing, or is not the one that was shipped.
        """
        with self._lock:
            if self._loaded is None:
                self._loaded = session(shipped(MODEL_NAME) / "model.onnx", MODEL_SHA256), tokenizer(shipped(VOCABULARY))
            return self._loaded

    def logit(self, claim: str, title: str, sentences: Sequence[str]) -> float:
        """The logarithm of the odds that sentences under a title entail a claim.

        Raises:
            ModelFileError: as `load`.
        """
        model, vocabulary = self.load()
        said = [vocabulary.encode(_clean(t), add_special_tokens=False).ids for t in (claim, title, *sentences)]
        return float(model.run(None, {"input_ids": np.array([pair(said[0], said[1], said[2:])])})[0].item())


def pair(claim: Sequence[int], title: Sequence[int], sentences: Sequence[Sequence[int]]) -> list[int]:
    """A claim, a title and sentences, as tokens, in the form that the model reads."""
    said = [CLS, *claim[:CLAIM_TOKENS], SEP, *title[:TITLE_TOKENS], SEP, *(t for s in sentences for t in s)]
    return [*said[:PAIR_TOKENS], SEP]


def _clean(text: str) -> str:
    """A lone surrogate cannot be tokenised."""
    return text.encode("utf-8", "replace").decode("utf-8")


#: The one of this process.
ENTAILMENT = Entailment()
