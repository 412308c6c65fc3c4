"""What a question takes for granted ("Why does X need Y?"), and signs that an abstract says otherwise.

A question that states something and asks about it is compared, word by word, with the sentences nearest to it: opposites of its words
beside the same neighbours, words that stand under a negation on one side only, absolute words and numbers that are not there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rag.alignment import Alignment
from rag.markup import words
from rag.opposites import POLES, opposed
from rag.text import stems

#: A question that states something. One to be answered by yes or no, or by advice, states nothing.
_STATES = re.compile(
    r"^\W*(?:(?:in|for|at|by|on|to|with|under|through|into|from|since|given|because|as|if|when|after|explain|tell)\b[^?]*?\b)?"
    r"(?:why|how (?:do|does|did|is|are|was|were|many|much|long|fast|few|can an?|can the)|which|what|whose|when did|where)\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"^\W*(?:is|are|can|could|does|do|did|has|have|should|will|would|how (?:can|could|do|should) (?:I|we|you|one))\b",
    re.IGNORECASE,
)
#: A question for the reason of what it states: it takes for granted more than "how many" or "which" do.
_WHY = re.compile(
    r"\bwhy\b(?! not\b)|\bwhat (?:explains|makes|lets|causes|stops|prevents|is it about|is the reason)\b|^\W*(?:since|given that|because)\b", re.IGNORECASE
)
_NEGATIONS = frozenset(
    words(
        "no not never without cannot neither nor unable eliminate eliminates eliminating avoid avoids avoiding instead unlike rather free beyond insufficient "
        "lacks lack"
    )
)
_ABSOLUTE = frozenset(words("only always never all every same must force forces entirely alone solely ever sole single impossible"))
#: Within how many words a negation, or an opposite, bears on a word; and how far apart neighbours stand in a question.
_REACH, _BESIDE = 6, 3
#: Cosine from which a word of the abstract is taken for that of the question.
_SAME = 0.55
_LIGHT = frozenset(words("a an the of to in on for by with and or is are was were be do does did it its that this than as at from which what why how who when"))
SIGNALS = (
    *("opposite", "opposite_near", "denied", "denies", "absolute", "alien_number"),
    *("why_opposite", "why_denied", "why_denies", "why_absolute"),
)


_OPPOSITES = opposed(POLES)


def premise_signals(question: str, a: Alignment, best: NDArray[np.intp]) -> dict[str, float]:
    """Signs that what a question takes for granted is not so; all zero for one that takes nothing for granted.

    `opposite`: how many words of the question, 2 at most, have an opposite in the best sentences; `opposite_near`: one stands beside
    the same word as its counterpart ("less stable": "more efficient and stable"); `denied`: a word of the question stands under a
    negation in the abstract only; `denies`: in the question only; `absolute`: an absolute word is missing from the best sentences;
    `alien_number`: so is a number from the abstract. Those that start with `why_` are the same where a reason is asked for.

    Args:
        question: plain text.
        a: the question beside the abstract.
        best: the sentences that it is nearest to.
    """
    out = dict.fromkeys(SIGNALS, 0.0)
    places = np.flatnonzero(np.isin(a.owner, best))
    if _OPEN.search(question) or not _STATES.search(question) or not len(places):
        return out
    asked, said = stems(a.asked), stems(a.said)
    told, told_words = {said[p] for p in places}, {a.said[p] for p in places}
    nearest = places[a.cosines[:, places].argmax(axis=1)]
    same = a.cosines[np.arange(len(a.asked)), nearest] >= _SAME
    for n, word in enumerate(a.asked):
        against = _OPPOSITES.get(asked[n], frozenset()) & told - set(asked) if asked[n] not in told else frozenset()
        if against:
            out["opposite"] = min(out["opposite"] + 1, 2.0)
            beside = [m for m in range(max(0, n - _BESIDE), min(len(asked), n + _BESIDE + 1)) if m != n and a.asked[m] not in _LIGHT and same[m]]
            facing = [p for p in places if said[p] in against]
            if any(abs(p - nearest[m]) <= _REACH and a.owner[p] == a.owner[nearest[m]] for p in facing for m in beside):
                out["opposite_near"] = 1.0
        if same[n] and word not in _LIGHT and word not in _NEGATIONS:
            here, there = _negated(a.asked, n), _negated(a.said, int(nearest[n]), a.owner)
            out["denied"] = max(out["denied"], float(there and not here))
            out["denies"] = max(out["denies"], float(here and not there))
    out["absolute"] = float(bool((set(a.asked) & _ABSOLUTE) - told_words))
    out["alien_number"] = float(any(w.isdigit() and w not in a.said for w in a.asked))
    if _WHY.search(question):
        out |= {f"why_{name}": out[name] for name in ("opposite", "denied", "denies", "absolute")}
    return out


def _negated(said: Sequence[str], at: int, owner: NDArray[np.intp] | None = None) -> bool:
    """Whether a negation stands shortly before a word, in its sentence."""
    return any(said[m] in _NEGATIONS and (owner is None or owner[m] == owner[at]) for m in range(max(0, at - _REACH), at))
