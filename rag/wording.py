"""A claim beside a text, word by word: which words bear on it, where each of them stands in the text, and what stands around it there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag.evidence import EvidenceFinder
from rag.markup import words
from rag.text import STOPWORDS, stems

#: Words that frame a sentence about a paper and say nothing of its subject.
LIGHT = STOPWORDS | frozenset(
    words(
        "author authors study work works article research approach approaches method methods propose proposes proposed proposing introduce introduces "
        "introduced present presents presented show shows showed shown demonstrate demonstrates demonstrated find finds found finding findings "
        "use uses used using result results several well one two via thus hence therefore moreover furthermore however yet although though "
        "according called named based make makes made take takes taken get give gives given let lets come comes become becomes "
        "describe describes described report reports reported novel new proposal way ways kind kinds even still already often also much "
        "many like without within beyond rather instead whatever among amongst upon onto per whereas unless despite able"
    )
)
#: Words of a text to either side of one of its words that count as its neighbours, among those with meaning; and among all.
NEIGHBOURS, BESIDE = 5, 4

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Wording:
    """The words of a claim (rows) and of a text (columns), small letters.

    `asked`, `said` and their stems; `owner`: the sentence of each word said. `cosines` of the words in context, from 0; `exact`: one stem;
    `alike`: the cosine, or 1 for one stem. `content`, `meaning`: which words of the claim and of the text have meaning of their own;
    `share`: the weight of each word of the claim by rarity, 1 in all. `pool`: the words of the best sentence (`top`) and of the one that
    best completes it; `beside` (claim, text): how alike the best of the words around each word said is.
    """

    asked: tuple[str, ...]
    said: tuple[str, ...]
    asked_stems: tuple[str, ...]
    said_stems: tuple[str, ...]
    sentences: tuple[str, ...]
    owner: NDArray[np.intp]
    cosines: Floats
    exact: Flags
    alike: Floats
    content: NDArray[np.intp]
    meaning: NDArray[np.intp]
    share: Floats
    top: Flags
    pool: Flags
    beside: Floats


def compare(claim: str, text: str, finder: EvidenceFinder) -> Wording | None:
    """The words of a claim beside those of a text; nothing where either has none."""
    a = finder.align(claim, text)
    if not a.asked:
        return None
    asked, said = tuple(stems(a.asked)), tuple(stems(a.said))
    ids = {stem: n for n, stem in enumerate(dict.fromkeys(asked + said))}
    exact = np.array([ids[s] for s in asked])[:, None] == np.array([ids[s] for s in said])[None, :]
    cosines = a.cosines.clip(0, 1).astype(np.float64)
    alike = np.where(exact, 1.0, cosines)
    bearing = np.array([_bears(w) for w in a.asked])
    bearing |= not bearing.any()
    weights = np.array([finder.rarity(s) for s in asked]) * bearing
    share = weights / (weights.sum() or 1.0)
    best = np.zeros((len(asked), len(a.sentences)))
    for sentence in np.unique(a.owner):
        best[:, sentence] = alike[:, a.owner == sentence].max(axis=1)
    top = int((share @ best).argmax())
    second = int((share @ np.maximum(best, best[:, [top]])).argmax())
    return Wording(
        a.asked,
        a.said,
        asked,
        said,
        a.sentences,
        a.owner,
        cosines,
        exact,
        alike,
        np.flatnonzero(bearing),
        np.flatnonzero([_bears(w) for w in a.said]),
        share,
        a.owner == top,
        np.isin(a.owner, (top, second)),
        around(alike, a.owner, BESIDE),
    )


def around(alike: Floats, owner: NDArray[np.intp], reach: int) -> Floats:
    """For each word of the claim and place in the text: how alike the best word within reach of that place is, itself left out."""
    best = np.zeros_like(alike)
    for step in range(1, min(reach, alike.shape[1] - 1) + 1):
        same = owner[step:] == owner[:-step]
        best[:, :-step] = np.maximum(best[:, :-step], alike[:, step:] * same)
        best[:, step:] = np.maximum(best[:, step:], alike[:, :-step] * same)
    return best


def _bears(word: str) -> bool:
    return word not in LIGHT and (len(word) > 1 or word.isdigit())
