"""Lightly edited sentences of abstracts, as a model writes that keeps close to what it is given: still supported, if not word for word."""

from __future__ import annotations

import re
from random import Random

from rag.markup import words

#: Words that may stand for each other in an abstract without a change of what is said.
_SWAPS = dict(
    pair.split(":")
    for pair in words(
        "propose:introduce proposes:introduces proposed:suggested introduce:present present:propose demonstrate:show demonstrates:shows "
        "significantly:substantially substantially:considerably outperforms:surpasses outperform:beat outperforming:surpassing utilize:use utilizes:uses "
        "achieves:reaches achieve:attain novel:new reduce:lower reduces:lowers reducing:lowering improve:enhance improves:enhances improving:enhancing "
        "large:big address:tackle leverage:use leverages:uses leveraging:using enables:allows enable:allow provide:offer provides:offers obtain:get "
        "numerous:many various:different crucial:essential effective:successful efficient:economical existing:current often:frequently typically:usually "
        "remarkable:impressive method:approach methods:approaches approach:method approaches:methods framework:scheme performance:results "
        "challenging:difficult ability:capability show:find prove:show establish:derive allows:lets requires:needs require:need investigate:study "
        "study:investigate explore:examine extensive:thorough superior:better recent:latest important:key previous:earlier prior:earlier employ:use "
        "employs:uses empirically:experimentally generate:produce generates:produces generated:produced create:build develop:design called:named "
        "termed:called limited:restricted complex:complicated quickly:fast rapidly:quickly accurately:precisely demonstrated:shown enhance:improve "
        "enhancing:improving enhances:improves understanding:insight gap:difference task:problem tasks:problems"
    )
)
_LEAD = re.compile(
    r"^(?:In this (?:paper|work|study|article)|Specifically|Moreover|Furthermore|Additionally|Notably|However|In addition|To this end|Finally"
    r"|In particular|As a result),?\s*"
)
_SAY = re.compile(
    r"\b(?:we|our (?:results|experiments|findings)|(?:experimental )?results|experiments) (?:also |further |empirically |theoretically )?"
    r"(?:show|demonstrate|find|prove|observe|indicate|suggest) that\s+",
    re.IGNORECASE,
)
_TAIL = re.compile(r",\s+(?:which|including|such as|e\.g\.|while|thereby|thus|where|especially|without)\b[^.]*\.?$")
_EDITS = ("lead", "authors", "tail", "swap", "swap", "join", "brackets")
#: Characters that must be left when a part is cut off, and that a joined sentence may have.
_LEAST, _MOST = 50, 330


def edited(sentence: str, following: str, chance: Random) -> str:
    """A sentence with three random edits: its lead, end or brackets left out, words swapped, "we" told of, or joined to the next.

    Args:
        sentence: in plain words.
        following: the sentence after it, in plain words; empty for none.
        chance: draws the edits.
    """
    edits, told = chance.sample(_EDITS, 3), sentence
    if {"lead", "authors"} & set(edits):
        told = _LEAD.sub("", told)
    said = _SAY.search(told) if "lead" in edits else None
    told = told[said.end() :] if said and len(told) - said.end() > _LEAST else told
    if "brackets" in edits:
        told = re.sub(r"\s*\([^()]{1,60}\)", "", told)
    if "authors" in edits:
        for word, other in (("we", "the authors"), ("our", "their"), ("us", "them")):
            told = re.sub(rf"\b{word}\b", other, told, flags=re.IGNORECASE)
    tail = _TAIL.search(told) if "tail" in edits else None
    told = told[: tail.start()] + "." if tail and tail.start() > _LEAST else told
    for _ in range(edits.count("swap")):
        swappable = [m for m in re.finditer(r"[A-Za-z]+", told) if m[0].lower() in _SWAPS]
        for m in sorted(chance.sample(swappable, min(2, len(swappable))), key=lambda m: -m.start()):
            told = told[: m.start()] + _SWAPS[m[0].lower()] + told[m.end() :]
    if "join" in edits and following and len(told) + len(following) < _MOST:
        told = f"{told.rstrip('. ')}, and {following[0].lower()}{following[1:]}"
    return told[:1].upper() + told[1:].strip()
