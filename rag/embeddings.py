"""The local embedder: all-MiniLM-L6-v2 with int8 weights, run by onnxruntime from files inside this package.

It never downloads, and never calls out. Each text runs by itself, without padding, on one thread, so that the same text gives the
same vector whatever else is embedded; several texts run side by side.
"""

from __future__ import annotations

import asyncio
import importlib.resources
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from llama_index.core.embeddings import BaseEmbedding
from numpy.typing import NDArray
from pydantic import Field, PrivateAttr

from rag.modelfiles import CLS, SEP, session, shipped, tokenizer
from rag.text import STOPWORDS

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MODEL_NAME = "all-MiniLM-L6-v2-int8"
DIMENSION = 384
#: SHA-256 of the model as it ships; `eval/build_embedder.py` prints it.
MODEL_SHA256 = "dfbf82bcc384105df954f31c01354521caabd0fdc401dd85888e2b847c70440d"
#: Stamps an index: vectors of two different ids must not meet.
EMBEDDER_ID = f"{MODEL_NAME}-{MODEL_SHA256[:8]}"
#: The model has 512 positions, of which [CLS] and [SEP] take two.
WINDOW_TOKENS = 510
#: Texts embedded at once, one thread each. On two cores, seeds, abstracts a second: two texts side by side 81, one text on two threads 72;
#: and 38 against 18 while other programs kept the cores busy, as the threads of one run wait for each other. A question takes 1.3 ms either way.
MAX_WORKERS = 8
#: Weight of a title in a paper's vector. nDCG@10 of the first stage on SciTLDR's peer summaries: 0.825 without titles, 0.833 at 0.3, 0.5 and 0.8;
#: after reranking 0.847, 0.847 and 0.844; SciFact 0.755, 0.757 and 0.758. Title and abstract read as one text did no better (0.834).
TITLE_WEIGHT = 0.5
#: Papers given to each worker at a time: few enough that an interrupt is heeded in a second or two.
PAPERS_A_WORKER = 32

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class PaperVectors:
    """Unit vectors of one text: `whole` (384,), and `sentences` (number of sentences, 384) with the text as their context.

    `pieces` are the numbers of its word pieces save stopwords and punctuation, `words` their vectors in context (pieces, 64), 127 times too long: a
    projection on the axes along which words differ most (`eval.fit_projection`), as whole numbers.
    """

    whole: Vector
    sentences: Vector
    pieces: NDArray[np.uint16]
    words: NDArray[np.int8]


@dataclass(frozen=True, slots=True, eq=False)
class TokenVectors:
    """Unit vectors of a text's tokens in context: `vectors` (tokens, 384), each token's text, and the index of its sentence."""

    vectors: Vector
    tokens: tuple[str, ...]
    owner: NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """One window as the model read it: raw vectors (tokens + 2, 384) with [CLS] and [SEP], the tokens by number and text, each one's sentence."""

    vectors: Vector
    ids: list[int]
    tokens: list[str]
    owner: NDArray[np.intp]


class LocalEmbedding(BaseEmbedding):
    """Embeds on this machine; files are checked and loaded at the first use. Safe to share between threads."""

    dimension: ClassVar[int] = DIMENSION
    model_name: str = MODEL_NAME
    folder: Path = Field(default_factory=lambda: shipped(MODEL_NAME), description="Where model.onnx and tokenizer.json are.")
    _lock: Any = PrivateAttr(default_factory=threading.Lock)
    _loaded: tuple[Any, Tokenizer] | None = PrivateAttr(default=None)

    @classmethod
    def class_name(cls) -> str:
        """The name LlamaIndex knows this class by."""
        return "LocalEmbedding"

    def load(self) -> tuple[Any, Tokenizer]:
        """The onnxruntime session and the tokenizer, read at the first call.

        Raises:
            ModelFileError: a file is missing, or is not the one that was shipped.
        """
        with self._lock:
            if self._loaded is None:
                self._loaded = session(self.folder / "model.onnx", MODEL_SHA256), tokenizer(self.folder)
            return self._loaded

    def query(self, text: str) -> Vector:
        """The unit vector (384,) of a question, or of any text by itself.

        Raises:
            ModelFileError: the model's files are missing or damaged.
        """
        return self._embed([text]).whole

    def embed_question(self, text: str) -> PaperVectors:
        """All vectors of a question, from one pass.

        Raises:
            ModelFileError: the model's files are missing or damaged.
        """
        return self._embed([text])

    def embed_papers(
        self, papers: Sequence[Sequence[str]], progress: Callable[[int], None] | None = None, titles: Sequence[str] = ()
    ) -> Iterator[PaperVectors]:
        """Vectors of papers and of their sentences, from one pass over each paper ("late chunking", arXiv 2409.04701).

        Args:
            papers: each paper as its sentences, plain text, in order.
            progress: called after each paper with the number of papers done.
            titles: of each paper, empty where it has none; they are part of `whole`, `pieces` and `words`.

        Yields:
            The vectors of each paper, in the order given.

        Raises:
            ModelFileError: the model's files are missing or damaged.
        """
        workers = min(os.cpu_count() or 1, MAX_WORKERS)
        step = workers * PAPERS_A_WORKER
        named = titles or [""] * len(papers)
        with ThreadPoolExecutor(workers) as pool:
            for at in range(0, len(papers), step):
                for done, vectors in enumerate(pool.map(self._embed, papers[at : at + step], named[at : at + step]), start=at + 1):
                    yield vectors
                    if progress:
                        progress(done)

    def embed_tokens(self, sentences: Sequence[str]) -> TokenVectors:
        """Vectors of the tokens of a text given as its sentences, for matching word by word (after ColBERT, arXiv 2004.12832).

        Raises:
            ModelFileError: the model's files are missing or damaged.
        """
        runs = list(self._run(sentences))
        vectors = np.concatenate([run.vectors[1:-1] for run in runs])
        return TokenVectors(_unit(vectors), tuple(t for run in runs for t in run.tokens), np.concatenate([run.owner for run in runs]))

    def _embed(self, sentences: Sequence[str], title: str = "") -> PaperVectors:
        """Pools the token vectors of a text over all of it, and over each sentence; a title is read by itself."""
        total, tokens = np.zeros(DIMENSION), 0
        sums, counts = np.zeros((len(sentences), DIMENSION)), np.zeros(len(sentences))
        pieces: list[NDArray[np.uint16]] = []
        words: list[NDArray[np.int8]] = []
        for run in self._run(sentences):
            total += run.vectors.sum(axis=0, dtype=np.float64)
            tokens += len(run.vectors)
            np.add.at(sums, run.owner, run.vectors[1:-1])
            np.add.at(counts, run.owner, 1)
            kept = [n for n, token in enumerate(run.tokens) if tells(token)] or list(range(len(run.tokens)))
            pieces.append(np.array(run.ids, dtype=np.uint16)[kept])
            words.append(np.round(_unit(run.vectors[1:-1][kept] @ _projection()) * 127).astype(np.int8))
        whole = _unit(total / tokens)
        sentence_vectors = np.where(counts[:, None] > 0, _unit(sums), whole)
        if title:
            named = self._embed([title])
            whole = _unit(whole + TITLE_WEIGHT * named.whole)
            pieces.insert(0, named.pieces)
            words.insert(0, named.words)
        return PaperVectors(whole, sentence_vectors, np.concatenate(pieces), np.concatenate(words))

    def _run(self, sentences: Sequence[str]) -> Iterator[_Run]:
        """Runs the sentences as one text, in windows where it is longer than the model reads."""
        session, tokenizer = self.load()
        # A lone surrogate cannot be tokenised; "?" keeps every offset.
        clean = [s.encode("utf-8", "replace").decode("utf-8") for s in sentences]
        encoding = tokenizer.encode(" ".join(clean), add_special_tokens=False)
        starts = np.cumsum([0, *(len(s) + 1 for s in clean[:-1])])
        owner = np.searchsorted(starts, [start for start, _ in encoding.offsets], side="right") - 1
        for begin, end in _windows(owner):
            ids = np.array([[CLS, *encoding.ids[begin:end], SEP]])
            (vectors,) = session.run(None, {"input_ids": ids})[0]
            yield _Run(vectors, encoding.ids[begin:end], encoding.tokens[begin:end], owner[begin:end])

    def _get_query_embedding(self, query: str) -> list[float]:
        return [float(x) for x in self.query(query)]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return [float(x) for x in self.query(text)]


def _windows(owner: NDArray[np.intp]) -> Iterator[tuple[int, int]]:
    """Token spans of at most WINDOW_TOKENS that end where a sentence ends, if one does; one empty span for no tokens."""
    begin, size = 0, len(owner)
    while size - begin > WINDOW_TOKENS:
        end = begin + WINDOW_TOKENS
        whole_sentences = int(np.searchsorted(owner, owner[end]))  # the first token of the sentence that the limit falls into
        end = whole_sentences if whole_sentences > begin else end
        yield begin, end
        begin = end
    yield begin, size


def _unit(vectors: NDArray[np.floating[Any]]) -> Vector:
    """Scaled to length 1 along the last axis; a zero vector stays zero."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return (vectors / np.where(norms > 0, norms, 1)).astype(np.float32)


def tells(token: str) -> bool:
    """Whether a word piece is neither a stopword nor punctuation."""
    return token not in STOPWORDS and any(c.isalnum() for c in token)


@cache
def _projection() -> Vector:
    """The axes of the words' vectors (384, 64)."""
    with importlib.resources.files("rag.weights").joinpath("projection.npy").open("rb") as file:
        axes: Vector = np.load(file)
    return axes
