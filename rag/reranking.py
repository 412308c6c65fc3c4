"""The first candidates put in a better order by what is too dear to look at in every paper.

Word by word: each word of the question is compared with its nearest word in the paper, in context (late interaction, after ColBERT, arXiv 2004.12832).
Names: a paper that uses the very name that a question does, written the same, comes before one on the same topic. Titles: a paper whose title the
question quotes comes first.

nDCG@10 on SciTLDR's peer summaries (dev, 1,090) and SciFact's claims (809); share of single-paper gold questions whose paper is first, and among
the first five, with 4,871 abstracts of machine learning in the index (test). All but the last row by exact search, with axes fitted on SciTLDR:

                                          SciTLDR  SciFact   first  of five
    hybrid of three scores                 0.825    0.736    0.801   0.925
    and the title in the paper's vector    0.833    0.738    0.817   0.930
    and word by word                       0.852    0.751    0.839   0.952
    and names and quoted titles            0.849    0.757    0.855   0.952
    this, with the index as it is          0.846    0.751    0.855   0.957

The last row's axes are fitted on the seeds alone, so that they can be made again from what is here; on half of SciTLDR that cost 0.002.

Tried and left out: weights of words all alike (SciTLDR 0.835 against 0.840 with roots, 0.839 with the plain inverse document frequency); the best
sentence's words alone (0.830); vectors of word pieces without context, which cost no storage (0.835); a projection learnt on 1,900 summaries (0.839);
32 axes (0.833); linear weights learnt on gold questions (0.837); the title in BM25 two to five times (0.002 better here, no better on gold); acronyms
expanded from "(ABC)", compounds joined and split, character n-grams in BM25 (each within 0.001); the share of title words that a question holds (worse
on paraphrases by 0.02 to 0.04); pooling by rarity (names worse); a model that reads the question and three sentences together, as
`rag/entailment.py` does, trained on 7,092 questions of `eval/gold/others` beside their own abstract and two near ones, over the first five papers: the
right one first for 0.856 of 381 gold questions instead of 0.837 (paraphrases 0.61, 0.56) for some 80 ms.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rag.embeddings import PaperVectors
from rag.fusion import standardise
from rag.lexical import LexicalIndex
from rag.text import content_stems
from rag.words import Words, names_of

#: Papers reordered. The right one is among the first 50 in 97 of 100 of SciTLDR's summaries, among 100 in 98; of questions with typos, 0.96 and 0.99
#: have it in the first five.
RERANKED = 100
#: Weight of closeness beside the first order, both standardised; from 0.5 to 1.5 nDCG@10 is within 0.003.
CLOSENESS = 1.0
#: Weight of the names that a paper shares, and the most that several count. With 3, SciTLDR loses 0.002 and a question with a typo in it 0.07.
NAME, MOST_NAMES = 2.0, 1.2
#: Weight of a quoted title, which is one if this share of its words, by rarity, stands in the question; one of fewer words than these counts less.
TITLE, QUOTED_FROM, TITLE_WORDS = 3.0, 0.9, 4
#: Vectors are kept as whole numbers up to this.
_SCALE = 127


def rerank(question: str, asked: PaperVectors, ids: Sequence[str], fused: NDArray[np.float64], words: Words, lexical: LexicalIndex) -> dict[str, list[float]]:
    """The new scores of candidates as `score`, with what they were made from by name: `words` (0 to 1), `names`,
    `title`, and `alike`, the score without these last two.

    Args:
        question: in plain text.
        asked: its vectors.
        ids, fused: the candidates, and the scores by which they were found.
        words: of the collection.
        lexical: for the rarity of stems.
    """
    names = names_of(question)
    rarity = {name: words.name_rarity(name) ** 2 for name in names}
    shared = [min(MOST_NAMES, sum(rarity[n] for n in names if n in words.known[i].names)) for i in ids]
    stems = set(content_stems(question))
    titles = [_quoted(words.known[i].title_stems, stems, lexical) for i in ids]
    near = closeness(asked, words.vectors(ids), words)
    alike = standardise(fused) + CLOSENESS * standardise(near)
    score = alike + NAME * np.array(shared) + TITLE * np.array(titles)
    return {"score": score.tolist(), "alike": alike.tolist(), "words": near.tolist(), "names": shared, "title": titles}


def closeness(asked: PaperVectors, papers: Sequence[NDArray[np.int8]], words: Words) -> NDArray[np.float64]:
    """The mean cosine of a question's words to their nearest words in each paper, each word by its weight; 0 for a paper without a word."""
    weights = words.weights(asked.pieces)
    near = np.zeros(len(papers))
    full = [n for n, p in enumerate(papers) if len(p)]
    if not full or not weights.sum() > 0:
        return near
    starts = np.cumsum([0, *(len(papers[n]) for n in full[:-1])])
    cosines = asked.words.astype(np.float32) @ np.concatenate([papers[n] for n in full]).astype(np.float32).T / _SCALE**2
    near[full] = weights @ np.maximum.reduceat(cosines, starts, axis=1) / weights.sum()
    return near


def _quoted(title: Sequence[str], stems: set[str], lexical: LexicalIndex) -> float:
    """1 for a title that a question holds, less for one of few words, else 0."""
    # Looked at first, since it is seen at once.
    if not title or stems.isdisjoint(title):
        return 0.0
    return min(1.0, len(set(title)) / TITLE_WORDS) if lexical.coverage(title, stems) > QUOTED_FROM else 0.0
