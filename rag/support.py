"""Whether a text supports a claim: signals of how its words, numbers and names stand in the text, a probability, and the reason against it.

    claim, text -> words aligned (wording) -> signals and faults -> logistic model -> Supported

Two faults decide alone: a number in digits, or a name told by its shape, that the text has not. A claim that is a sentence of the text word for
word is supported. All else is weighed by a logistic model, fit by `python -m eval.fit_support`, which prints this table. The strongest of its
signals is that of a model that reads both (`rag/entailment.py`); what words alone tell still adds to it.

Share marked, each claim by a model that saw none on its paper; the bar is set where 0.07 of the faithful ones are marked. Fresh: 60 claims by
another hand. With the bar at 0.05, 0.10 and 0.20 of the faithful ones, 0.83, 0.91 and 0.95 of the false ones are marked.

                            AUC   faithful  number  entity  negation  direction  citation  general   false
    by cross-validation     0.962     0.07    0.85    0.80      0.92       0.74      1.00     0.99    0.88
    fit on dev, test half   0.935     0.16    0.92    0.81      0.94       0.81      1.00     1.00    0.91
    fresh                   0.973     0.03    0.83    0.83      1.00       1.00      1.00     1.00    0.93
    without `entails`       0.893     0.07    0.67    0.52      0.59       0.34      0.97     0.92    0.67

Weak are two things of one abstract in each other's place.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from rag import counted, turned
from rag.entailment import ENTAILMENT, SENTENCES
from rag.evidence import EvidenceFinder
from rag.kinds import names_in
from rag.markup import plain
from rag.text import STOPWORDS, stems, tokens
from rag.wording import NEIGHBOURS, Flags, Floats, Wording, around, compare

#: What the model sees. `covered`: the share of the claim's words, by rarity, in its two best sentences. `worst`: the mean cosine of its
#: worst quarter of words to those sentences, `worst_alike` the same where one stem counts 1. `unbacked`: the most that one word lacks,
#: by rarity. `aliens`: words that nothing in the text is near to; `alien`: there is one that is not near; `copied_alien`: the same the
#: more suspicious the more of the rest is copied. `context`: the least cosine of a word to itself in the text, which falls where it is
#: said of something else. `attached`: how alike the neighbours of its words are to those in the text; `displaced`: the most that another
#: place would fit better; `slot`: how well the place of a word fits that is not there. `compounds`: how far words side by side stand apart.
#: `entails`: what a model that reads both makes of it (`rag/entailment.py`).
SIGNALS = (
    *("covered", "worst", "worst_alike", "unbacked", "aliens", "alien", "copied_alien", "context"),
    *("attached", "displaced", "slot", "compounds", "name_gap"),
    *turned.SIGNALS,
    *counted.SIGNALS,
    "entails",
)
#: The signal `entails` at its most.
MOST = 4.0
#: Cosines below which a word of the claim is near none of the text, and near none by far.
NEAR, FAR = 0.5, 0.4
#: Words of the claim to either side that a word is held to by, among those with meaning.
HELD_BY = 3
#: What is left of the probability where a fault decides alone, so that such claims still have an order.
AFTER_FAULT = 0.1
#: Share of the claim's words, by rarity, below which too few of them are there, whatever else is wrong.
FEW = 0.5
_CAPITAL = re.compile(r"[A-Za-z][A-Za-z0-9'+]*(?:-[A-Za-z0-9]+)*")
#: What is hung on a name: "CLIP-style".
_HUNG_ON = re.compile(r"(?:-[a-z]+)+$")
_TITLED = re.compile(r"(?:[A-Z][a-z]+[\s-]+){1,4}[A-Z][a-z]+")
_LEAST_PREFIX = 5


@dataclass(frozen=True, slots=True)
class Supported:
    """Whether a text supports a claim, how likely that is, and why not."""

    supported: bool
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with a claim, in words; `alone`: it decides whatever else is right."""

    signal: str
    reason: str
    alone: bool = False


def judge(claim: str, text: str, finder: EvidenceFinder, title: str = "", least: float = 0.0) -> Supported:
    """Whether a text supports a claim.

    Args:
        claim: one sentence.
        text: what it is held against, an abstract.
        finder: for the words.
        title: of the text; names in it are known too.
        least: the score below which the caller has no use for a support, so that none needs to be found.
    """
    if quoted(claim, [p.text for p in finder.passages(text)], title):
        return Supported(True, 1.0, "")
    values, faults = examine(claim, text, finder, title)
    weights = _weights()
    alone = next((f for f in faults if f.alone), None)
    at_best = probability(values | {"entails": MOST}, weights["model"])
    if alone:
        return Supported(False, at_best * AFTER_FAULT, alone.reason)
    if at_best >= max(weights["bar"], least):  # else nothing that is read can help it
        values["entails"] = entails(claim, text, finder, title)
        if (likely := probability(values, weights["model"])) >= weights["bar"]:
            return Supported(True, likely, "")
    return Supported(False, probability(values, weights["model"]), _reason(values, faults, weights["model"]))


def entails(claim: str, text: str, finder: EvidenceFinder, title: str = "") -> float:
    """The signal of that name: the logarithm of the odds that the best sentences of a text entail a claim, from -MOST to MOST."""
    best = sorted(e.passage.ordinal for e in finder.rank(claim, text)[:SENTENCES])
    said = finder.passages(text)
    return max(-MOST, min(MOST, ENTAILMENT.logit(plain(claim), plain(title), [plain(said[n].text) for n in best])))


def quoted(claim: str, sentences: Sequence[str], title: str = "") -> bool:
    """Whether a claim is made of whole sentences of a text, and its title, word for word.

    A part of a sentence may say the opposite of the whole ("it is not known if …"), so it is judged like any other claim.
    """
    said = rest = f"{_bare(claim)} "
    whole = sorted({f"{bare} " for bare in map(_bare, (title, *sentences)) if bare}, key=len, reverse=True)
    while found := next((one for one in whole if rest.startswith(one)), None):
        rest = rest.removeprefix(found)
    return not rest and said != rest


def examine(claim: str, text: str, finder: EvidenceFinder, title: str = "") -> tuple[dict[str, float], list[Fault]]:
    """The signals of a claim and a text by name, all zero where one has no words, `entails` at its least; and what is wrong, in words."""
    w = compare(claim, text, finder)
    if w is None:
        return dict.fromkeys(SIGNALS, 0.0), [Fault("covered", "no sentence of the cited abstract says this", alone=True)]
    stated, named = plain(claim), f"{plain(title)} {' '.join(w.sentences)}"
    values = _words(w) | {"entails": -MOST}
    faults: list[Fault] = []
    foreign = [n for n in _names(stated) if not _stands(n, named)]
    strange = foreign or _strange_capitals(stated, named, w)
    values["name_gap"] = float(bool(strange))
    faults += [Fault("name_gap", f"the name {n} is not in the cited abstract", alone=n in foreign) for n in strange[:1]]
    for found, wrong in (counted.weigh(stated, plain(title), w), turned.weigh(w)):
        values |= found
        faults += [Fault(*x) for x in wrong]
    ids = w.content
    lacking = ids[(w.share[ids] * (1 - w.alike[ids].max(axis=1))).argmax()]
    if w.cosines[lacking].max() < NEAR and not w.exact[lacking].any():
        faults.append(Fault("unbacked", f"nothing in the cited abstract stands for “{w.asked[lacking]}”"))
    return values, faults


def probability(values: Mapping[str, float], model: Mapping[str, float]) -> float:
    """Logistic regression by hand: one sum is not worth a library at run time."""
    strength = model["intercept"] + sum(weight * values[name] for name, weight in model.items() if name != "intercept")
    return 1 / (1 + math.exp(-max(-500.0, min(500.0, strength))))


def _words(w: Wording) -> dict[str, float]:
    """The signals of the words alone."""
    ids = w.content
    in_pool, cosine = w.alike[:, w.pool].max(axis=1), w.cosines[:, w.pool].max(axis=1)
    there, nearest = np.asarray(w.exact.any(axis=1)), w.cosines.max(axis=1)
    quarter = max(1, len(ids) // 4)
    covered = float(w.share @ w.exact[:, w.pool].any(axis=1))
    own = np.where(w.exact, w.cosines, -1.0).max(axis=1)[ids][there[ids]]
    held = _held(w, there, nearest)
    return {
        "covered": covered,
        "worst": float(np.sort(cosine[ids])[:quarter].mean()),
        "worst_alike": float(np.sort(in_pool[ids])[:quarter].mean()),
        "unbacked": float((w.share * (1 - w.alike.max(axis=1))).max()),
        "aliens": float(((nearest < FAR) & ~there)[ids].sum()),
        "alien": float(((nearest < NEAR) & ~there)[ids].any()),
        "copied_alien": covered * float(1 - in_pool[ids].min()),
        "context": float(own.min()) if len(own) else 0.5,
        "compounds": _compounds(w, there),
        **held,
    }


def _held(w: Wording, there: Flags, nearest: Floats) -> dict[str, float]:
    """How well the neighbours of each word fit those of its place in the text: `attached`, `displaced`, `slot`."""
    out = {"attached": 0.5, "displaced": 0.0, "slot": 0.0}
    if not len(w.meaning) or len(w.content) < 2:
        return out
    beside = around(w.alike[:, w.meaning], w.owner[w.meaning], NEIGHBOURS)
    fits, shares = [], []
    for k, i in enumerate(w.content):
        neighbours = [j for j in w.content[max(0, k - HELD_BY) : k + HELD_BY + 1] if j != i]
        fit = beside[neighbours].mean(axis=0)
        places = w.exact[i, w.meaning] if there[i] else w.cosines[i, w.meaning] >= nearest[i] - 0.05
        if places.any():
            own = float(fit[places].max())
            fits.append(own)
            shares.append(w.share[i] + 1e-9)
            out["displaced"] = max(out["displaced"], float(fit.max()) - own)
            if not there[i]:
                out["slot"] = max(out["slot"], own)
    return out | {"attached": float(np.average(fits, weights=shares))} if fits else out


def _compounds(w: Wording, there: Flags) -> float:
    """How far words that stand side by side in the claim are from each other in the text, on the mean."""
    apart = [
        1 - float(w.beside[one, w.exact[other]].max())
        for i, j in zip(w.content, w.content[1:], strict=False)
        if j == i + 1
        for one, other in ((i, j), (j, i))
        if there[other]
    ]
    return float(np.mean(apart)) if apart else 0.2


def _names(claim: str) -> list[str]:
    """The names of a claim that can be told by their shape, without what is hung on them ("CLIP-style")."""
    return list(dict.fromkeys(_HUNG_ON.sub("", n) for n in names_in(claim)))


def _stands(name: str, told: str) -> bool:
    """Whether a name, its singular, or the words that it stands for are in a text; "R3" is "R^3"."""
    told = told.replace("^", "").replace("_", "")
    name = name.replace("^", "").replace("_", "")
    if re.search(rf"(?<![A-Za-z0-9]){re.escape(name.removesuffix('s'))}(?![A-Za-rt-z0-9])", told):
        return True
    letters = re.sub(r"[^a-z]", "", name.removesuffix("s").lower())
    between = r"\w*[\s-]+(?:(?:of|and|the|for|in)\s+)?"
    return 2 <= len(letters) <= 6 and re.search(rf"\b{between.join(letters)}", told.lower()) is not None


def _strange_capitals(claim: str, told: str, w: Wording) -> list[str]:
    """Words with a capital inside a claim that are not in a text in any form."""
    lower, known = told.casefold(), set(w.said_stems)
    out = []
    for m in list(_CAPITAL.finditer(claim))[1:]:
        word = _HUNG_ON.sub("", m[0])
        if not word[0].isupper() or word.casefold() in lower:
            continue
        parts = re.findall(r"[a-z0-9]+", word.casefold())
        stem = stems([word.casefold()])[0]
        begun = len(stem) >= _LEAST_PREFIX and any(s.startswith(stem[:_LEAST_PREFIX]) for s in known)
        if begun or all(p in STOPWORDS or stems([p])[0] in known for p in parts) or _stands(word, told) or _abbreviated(claim, m.start(), told):
            continue
        out.append(word)
    return out


def _abbreviated(claim: str, at: int, told: str) -> bool:
    """Whether the capitals of a run of capitalised words in a claim stand in a text as one name."""
    run = next((m[0] for m in _TITLED.finditer(claim) if m.start() <= at < m.end()), "")
    capitals = "".join(c for c in run if c.isupper())
    return any(re.search(rf"\b{capitals[k:]}", told) is not None for k in range(len(capitals) - 1))


def _reason(values: Mapping[str, float], faults: Sequence[Fault], model: Mapping[str, float]) -> str:
    """Why a claim is not supported: too few words, or else the fault that weighs most."""
    if values["covered"] < FEW and values["attached"] < FEW:
        return "too few of its words are in the cited abstract"
    weighed = sorted((model[f.signal] * values[f.signal], n) for n, f in enumerate(faults))
    return faults[weighed[0][1]].reason if weighed and weighed[0][0] < 0 else "no sentence of the cited abstract says this"


def _bare(text: str) -> str:
    return " ".join(tokens(text))


@cache
def _weights() -> Mapping[str, Any]:
    weights: Mapping[str, Any] = json.loads(files("rag.weights").joinpath("support.json").read_text(encoding="utf-8"))
    return weights
