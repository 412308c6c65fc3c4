"""Signs that a claim turns round what a text says: a negation on one side only, an opposite, or a comparison with its sides exchanged."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rag.markup import words
from rag.opposites import MORE_POLES, POLES, opposed
from rag.text import stems
from rag.wording import LIGHT, Wording

#: `denies`, `denied`: the root of how many words, 4 at most, stand under a negation in the claim only, in the text only; `denies_all`: and the
#: best sentence has no negation at all. `opposite`: words of the claim, 3 at most, whose opposite stands in its two best sentences and they do
#: not; `opposite_top`: in the very best; `opposite_beside`: how alike what stands beside the two is, over the whole text. `exchanged`: how
#: much better a comparison fits with its sides exchanged.
SIGNALS = ("denies", "denies_all", "denied", "opposite", "opposite_top", "opposite_beside", "exchanged")
_NEGATORS = frozenset(words("not no never cannot neither nor without none nothing unable fails fail failed lacks lack"))
#: What may take the place of a negation: where one of these stands, its absence is not missed.
_NEGATING = _NEGATORS | frozenset(
    words(
        "lacking hardly barely impossible avoids avoid eliminates eliminate eliminating unlike instead rather free ignore ignores ignoring overlook neglect "
        "absent absence despite except prevents prevent failing missing few little limited insufficient marginal negligible minimal "
        "purely solely too scratch poorly difficult struggle struggles disregard unlike only short obviates hinders agnostic"
    )
)
#: A word that denies by its prefix.
_UN = re.compile(r"(?:un(?!i|der|til|less|cover|veil|lock|learn)|non)[a-z]{4}")
#: After "no" or "not", these make it no negation; "nothing beyond" is "only".
_NO_NEGATION = frozenset(words("less more fewer only just merely beyond but longer matter"))
#: Words after a negation that it bears on; before it, in the text; and cosine from which two words are taken for one. What ends its reach;
#: and negations of a noun, which bear on no more than that.
_REACH, _REACH_BACK, _SAME = 5, 3, 0.6
_ENDS = frozenset(words("and but while whereas that which because so yet"))
_NO = frozenset(words("no without none neither nor lack lacks lacking free absent absence"))
#: Cosine from which a neighbour counts for an opposite, and the most that one opposite counts.
_NEIGHBOUR, _MOST_BESIDE = 0.55, 1.5
_PREFIXES = words("un in non dis im mis pre post over under sub super intra inter homo hetero uni multi semi self hyper hypo macro micro a anti")
_OPPOSITES = opposed(POLES + MORE_POLES)
_LEAST_ROOT = 5
#: What parts the sides of a comparison, and which words say that the first is less; words of a side, in the claim and in the text.
_PARTS = frozenset(
    words(
        "than over against whereas while versus vs instead rather compared outperform outperforms outperformed outperforming surpass surpasses surpassing "
        "exceeds exceed beats beat underperforms behind replace replaces unlike but"
    )
)
_LESS = frozenset(
    stems(words("underperform underperforms lag lags worse lower less fewer weaker slower smaller inferior harder shallower shorter narrower trail"))
)
_SIDE, _SIDE_THERE, _SIGN, _MOST_EXCHANGED = 8, 11, 5, 0.8

Wrong = tuple[str, str, bool]


def weigh(w: Wording) -> tuple[dict[str, float], list[Wrong]]:
    """The signals by name; and what is wrong: the signal, the reason in words, and that it does not decide alone."""
    values, wrong = _negations(w)
    turned, opposite = _opposites(w)
    exchanged = _exchanged(w)
    if exchanged > 0:
        wrong.append(("exchanged", "the cited abstract compares them the other way round", False))
    return values | turned | {"exchanged": exchanged}, wrong + opposite


def against(stem: str) -> frozenset[str]:
    """The stems that speak against a stem: of the table, and its root with another prefix or none."""
    roots = {stem} | {stem.removeprefix(p) for p in _PREFIXES if stem.startswith(p) and len(stem) >= len(p) + _LEAST_ROOT}
    made = {p + root for p in _PREFIXES for root in roots if len(root) >= _LEAST_ROOT} | roots
    return _OPPOSITES.get(stem, frozenset()) | (made - {stem})


def _negations(w: Wording) -> tuple[dict[str, float], list[Wrong]]:
    ours, theirs = _under(w.asked, _NEGATING), _under(w.said, _NEGATING, w.owner)
    ours_plainly, theirs_plainly = _under(w.asked, _NEGATORS), _under(w.said, _NEGATORS, w.owner)
    denies = denied = 0
    wrong: list[Wrong] = []
    for i in (i for i in w.content if w.asked[i] not in _NEGATING):
        j = int(np.where(w.pool, w.alike[i], -1.0).argmax())
        if w.alike[i, j] < _SAME:
            continue
        denies += bool(ours_plainly[i] and not theirs[j])
        denied += bool(theirs_plainly[j] and not ours[i])
    if denies:
        wrong.append(("denies", "it denies what the cited abstract says", False))
    elif denied:
        wrong.append(("denied", "the cited abstract denies this", False))
    flat = denies and not any(w.said[p] in _NEGATING or _UN.match(w.said[p]) for p in np.flatnonzero(w.top))
    return {"denies": math.sqrt(min(denies, 4)), "denies_all": float(flat), "denied": math.sqrt(min(denied, 4))}, wrong


def _under(said: Sequence[str], negators: frozenset[str], owner: NDArray[np.intp] | None = None) -> NDArray[np.bool_]:
    """Which words stand under a negation in their sentence; "no less than" and "not only" are none."""
    under = np.zeros(len(said), dtype=bool)
    for k, (x, after) in enumerate(zip(said, (*said[1:], ""), strict=True)):
        if x not in negators or after in _NO_NEGATION:
            continue
        for n in range(k + 1, min(len(said), k + 1 + _REACH)):
            if said[n] in _ENDS or (owner is not None and owner[n] != owner[k]):
                break
            under[n] = True
            if x in _NO and said[n] not in LIGHT:
                break
        if owner is not None and x not in _NO:  # "is not needed": in the text it may come after
            before = slice(max(0, k - _REACH_BACK), k)
            under[before] |= owner[before] == owner[k]
    return under


def _opposites(w: Wording) -> tuple[dict[str, float], list[Wrong]]:
    near = np.flatnonzero(w.pool)
    told, top = {w.said_stems[p] for p in near}, {w.said_stems[p] for p in np.flatnonzero(w.top)}
    asked, everything = set(w.asked_stems), set(w.said_stems)
    count, at_top, most = 0, 0.0, 0.0
    wrong: list[Wrong] = []
    spared, spared_there = _beside_no(w.asked), _beside_no(w.said)
    for i, stem in enumerate(w.asked_stems):
        facing = (against(stem) & everything) - asked if stem not in told and not spared[i] else frozenset()
        facing = frozenset(s for s, no in zip(w.said_stems, spared_there, strict=True) if s in facing and not no)
        if not facing:
            continue
        count += bool(facing & told)
        at_top = max(at_top, float(bool(facing & top)))
        k = int(np.searchsorted(w.content, i))
        beside = [j for j in w.content[max(0, k - 2) : k + 4] if j != i and w.asked_stems[j] not in facing][:4]
        for p in (p for p, said in enumerate(w.said_stems) if said in facing and not spared_there[p]):
            found = w.beside[beside, p]
            fit = float((found * (found > _NEIGHBOUR)).sum() / 2) if beside else 0.0
            if fit > most:
                most = fit
                wrong[:] = [("opposite_beside", f"the cited abstract says it the other way round: “{w.said[p]}”, not “{w.asked[i]}”", False)]
    return {"opposite": min(count, 3.0), "opposite_top": at_top, "opposite_beside": min(most, _MOST_BESIDE)}, wrong


def _beside_no(said: Sequence[str]) -> list[bool]:
    """Which words have "no" or "not" right before or after them ("needs no", "not faster"): such an opposite speaks for the claim."""
    plain_no = [x in _NEGATORS and x != "without" for x in said]
    return [any(plain_no[max(0, k - 2) : k]) or any(plain_no[k + 1 : k + 2]) for k in range(len(said))]


def _exchanged(w: Wording) -> float:
    """How much better the sides of a comparison in the claim fit those of one in the text when they change places, where that is clearest."""
    best = 0.0
    bearing = set(w.content.tolist())
    parts = [(k, _sign(w.asked_stems, k)) for k, x in enumerate(w.asked) if x in _PARTS]
    there = [(k, _sign(w.said_stems, k)) for k in np.flatnonzero(w.pool).tolist() if w.said[k] in _PARTS]
    for k, sign in parts:
        before = [i for i in range(max(0, k - _SIDE - 1), k) if i in bearing and w.share[i] > 0]
        after = [i for i in range(k + 1, min(len(w.asked), k + _SIDE + 1)) if i in bearing and w.share[i] > 0]
        for m, said_sign in there:
            left = [j for j in range(max(0, m - _SIDE_THERE - 1), m) if w.owner[j] == w.owner[m]]
            right = [j for j in range(m + 1, min(len(w.said), m + _SIDE_THERE + 1)) if w.owner[j] == w.owner[m]]
            if before and after and left and right:
                straight = _fit(w, before, left) + _fit(w, after, right) - _fit(w, before, right) - _fit(w, after, left)
                straight *= sign * said_sign
                best = -straight if abs(straight) > abs(best) else best
    return min(max(best, 0.0), _MOST_EXCHANGED)


def _fit(w: Wording, side: list[int], there: list[int]) -> float:
    return float(np.average(w.alike[side][:, there].max(axis=1), weights=w.share[side]))


def _sign(said: Sequence[str], at: int) -> int:
    """-1 where the first side of a comparison is said to be less, else 1."""
    return -1 if any(s in _LESS for s in said[max(0, at - _SIGN) : at + 1]) else 1
