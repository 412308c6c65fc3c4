"""The numbers of a claim beside those of a text: whether they are there, in the same unit, and said of the same thing."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import numpy as np

from rag.quantities import Quantity, quantities, same_unit, same_value
from rag.wording import Floats, Wording

#: `number_wrong`: how many numbers are not there, or in another unit, or bounded on the other side. `number_apart`: how far what stands
#: around a number in the claim is from what stands around it in the text; `number_both`: no more than what comes right after it is.
SIGNALS = ("number_wrong", "number_apart", "number_both")
#: Words around a number that belong to it: in the claim, in the text; and right after it.
_AROUND, _AROUND_THERE, _AFTER = 6, 8, 5
_AT_LEAST = re.compile(r"\b(?:at least|more than|over|above|no fewer than|no less than|exceeding)\s*(?:\w+\s*)?$", re.IGNORECASE)
_AT_MOST = re.compile(r"\b(?:at most|up to|less than|under|below|fewer than|no more than|within|within just|only)\s*(?:\w+\s*)?$", re.IGNORECASE)
#: "Two" and "three" in letters are often counted by whoever writes ("two objectives: …"); they count this much where the text has them not.
_FEW, _INFERRED = 3, 0.6
#: Of another thing altogether: then that is the reason.
_APART = 0.5

Wrong = tuple[str, str, bool]


def weigh(claim: str, title: str, w: Wording) -> tuple[dict[str, float], list[Wrong]]:
    """The signals by name; and what is wrong: the signal, the reason in words, and whether it decides alone.

    Args:
        claim: in plain words.
        title: of the text, in plain words; its numbers are there too.
        w: the claim beside the text.
    """
    told = " ".join(w.sentences)
    theirs, known = quantities(told), quantities(title)
    ours_at, theirs_at = _places(w.asked, claim), _places(w.said, told)
    wrong: list[Wrong] = []
    count, apart, after = 0.0, 0.0, 0.0
    for q in quantities(claim):
        same = [t for t in theirs if same_value(q, t)]
        kin = [t for t in same if same_unit(q, t)]
        if not same:
            if not any(same_value(q, t) for t in known):
                count += _INFERRED if q.spelt and q.value <= _FEW else 1
                wrong.append(("number_wrong", f"the number {q.written} is not in the cited abstract", not q.spelt))
        elif not kin:
            count += 1
            wrong.append(("number_wrong", f"the number {q.written} has another unit in the cited abstract", False))
        else:
            if any(_bound(claim, q) * _bound(told, t) < 0 for t in kin):
                count += 1
                wrong.append(("number_wrong", f"the cited abstract bounds {q.written} from the other side", False))
            far, far_after = _apart(q, kin, ours_at, theirs_at, w)
            apart, after = max(apart, far), max(after, far_after)
            if min(far, far_after) > _APART:
                wrong.append(("number_both", f"the cited abstract says {q.written} of something else", False))
    return {"number_wrong": min(count, 3.0), "number_apart": apart, "number_both": min(apart, after)}, wrong


def _apart(q: Quantity, kin: Sequence[Quantity], ours_at: Floats, theirs_at: Floats, w: Wording) -> tuple[float, float]:
    """How far what stands around a number, and right after it, is from what does so in the text, where it is nearest."""
    first, last = (int(np.searchsorted(ours_at, at)) for at in (q.start, q.start + len(q.written)))
    around = [i for i in w.content if first - _AROUND <= i < last + _AROUND and not first <= i < last]
    following = [i for i in around if last <= i < last + _AFTER][:2]
    near, near_after = 0.0, 0.0
    for t in kin:
        begin, end = (min(int(np.searchsorted(theirs_at, at)), len(w.said)) for at in (t.start, t.start + len(t.written)))
        begin = min(begin, len(w.said) - 1)
        window = [j for j in range(max(0, begin - _AROUND_THERE), min(len(w.said), end + _AROUND_THERE)) if w.owner[j] == w.owner[begin]]
        there = [j for j in window if not begin <= j < end]
        ahead = [j for j in there if end <= j < end + _AFTER]
        fit = float(np.average(w.alike[np.ix_(around, there)].max(axis=1), weights=w.share[around] + 1e-6)) if around and there else 0.5
        fit_after = float(w.alike[np.ix_(following, ahead)].max(axis=1).mean()) if following and ahead else 0.5 if following else 1.0
        near, near_after = max(near, fit), max(near_after, fit_after)
    return 1 - near, 1 - near_after


def _bound(told: str, q: Quantity) -> int:
    """Which side a number is bounded on: -1 from above, 1 from below, 0 not at all."""
    before = told[max(0, q.start - 24) : q.start]
    return -1 if _AT_MOST.search(before) else 1 if _AT_LEAST.search(before) else 0


def _places(listed: Sequence[str], told: str) -> Floats:
    """Where each word starts in the text that it is from; where one cannot be found, where the one before it ended."""
    folded = "".join(unicodedata.normalize("NFD", c)[0] for c in told).lower()
    at, out = 0, []
    for word in listed:
        found = folded.find(word, at, at + 60 + len(word))
        out.append(max(found, at))
        at = found + len(word) if found >= 0 else at
    return np.array(out, dtype=np.float64)
