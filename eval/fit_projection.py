"""Fits the axes along which the vectors of words are kept: `python -m eval.fit_projection [--write] [FILE …]`.

The first 64 principal axes of the vectors of all words, in context, of the titles and abstracts in FILES (anything that `ask ingest` reads; the seeds
if none is given), about the origin: with the mean taken away SciTLDR lost 0.001 to 0.006. Stopwords and punctuation, which are not kept, do not count.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from rag import readers
from rag.assistant import SEEDS, plain
from rag.embeddings import DIMENSION, LocalEmbedding, tells
from rag.words import WIDTH

PROJECTION = Path(__file__).resolve().parent.parent / "rag" / "weights" / "projection.npy"


def main() -> None:
    """Fits, prints how much of the vectors the axes hold, and writes them if told to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the axes into the package")
    parser.add_argument("files", nargs="*", type=Path, default=[SEEDS])
    args = parser.parse_args()
    embedder = LocalEmbedding()
    products, number = np.zeros((DIMENSION, DIMENSION)), 0
    for paper in (p for file in args.files for p in readers.read(file).papers):
        for text in (paper.title, paper.text):
            read = embedder.embed_tokens([plain(text or "")])
            kept = [n for n, token in enumerate(read.tokens) if tells(token)]
            vectors = read.vectors[kept].astype(np.float64)
            products += vectors.T @ vectors
            number += len(kept)
    strengths, axes = np.linalg.eigh(products / number)
    print(f"{number} words; {WIDTH} of {DIMENSION} axes hold {strengths[-WIDTH:].sum() / strengths.sum():.2f} of their length")  # noqa: T201
    if args.write:
        first = axes[:, ::-1][:, :WIDTH]
        # An axis may point either way; one way is as good, and gives the same file everywhere.
        first *= np.where(first[np.abs(first).argmax(axis=0), np.arange(WIDTH)] < 0, -1, 1)
        np.save(PROJECTION, first.astype(np.float32))


if __name__ == "__main__":
    main()
