"""A claim checked against the abstracts: supported, contradicted, or not addressed, with the sentence that decides.

The sentences nearest to the claim are looked at for clear signs that they say the opposite: "not" before the very thing that the claim says,
a word and its opposite said of the same thing, or another number of the same thing. Without such a sign, the checker of written answers
(`citations.verify`) says whether an abstract supports the claim. What is neither is shown as the nearest, and as no more.

SciFact's training claims against their own abstract (370 supported, 194 contradicted), on which the numbers below were chosen: of 16 that
were called contradicted 14 are, of 132 called supported 109 are; called supported whenever the checker accepts them, 232 of 366 would be.
`python -m eval.tuning claims FOLDER` prints the table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rag.citations import verify
from rag.evidence import EvidenceFinder
from rag.markup import plain, words
from rag.records import Evidence, Hit
from rag.text import STOPWORDS, content_stems, numbers, stems, tokens

Standing = Literal["supported", "contradicted", "near"]

#: Papers weighed: more would be read for nothing, since the retriever ranks the right one first for 0.95 of the gold questions.
PAPERS_WEIGHED = 3
#: Sentences of each that may contradict, and that may support; least share of the claim's words, weighted by rarity, that such a sentence
#: holds, and least nearness of its words for a support. At a share of 0.3, 0.4, 0.5, 0.6 are truly contradicted 16 of 19, 13 of 15, 12 of 13,
#: 8 of 8; by one, two, three sentences are truly supported 81 of 95, 104 of 122, 114 of 136.
MAY_CONTRADICT, MAY_SUPPORT = 3, 2
CONTRADICTS_FROM, SUPPORTS_FROM = 0.5, 0.4
CLOSE_FROM = 0.6
#: Words between a "not" or a turned word and what it is said of.
REACH = 5

_NEGATORS = frozenset(stems(words("not no never cannot neither nor without nt fails failed unable lacks hardly barely eliminating avoids obviates")))
#: "Whether …", "to assess …": the sentence asks what the claim says and does not answer it. A sentence on what happens when the thing is
#: taken away turns every direction round.
_ASKS = re.compile(
    r"\b(?:whether|aim(?:s|ed)? to|objective|purpose|hypothes\w+|to (?:assess|test|determine|evaluate|investigate|examine|study)"
    r"|unclear|unknown|remains? to)\b",
    re.IGNORECASE,
)
_TAKEN_AWAY = re.compile(
    r"\b(?:delet|deplet|deficien|knock|loss of|lack|absence|inhibit|block|silenc|mutant|mutat|ablat|remov|without|prevent|overexpress"
    r"|except|rather than|instead of)\w*",
    re.IGNORECASE,
)
#: Opposites: a claim with a word of one side is turned round by a sentence with a word of the other, said of the same thing.
_OPPOSITES = (
    (
        "increase increases increased increasing higher raise raises raised greater more enhance enhances enhanced elevates elevated gain",
        "decrease decreases decreased decreasing lower lowers reduce reduces reduced reducing reduction less fewer diminish diminishes"
        " diminished drop drops cut",
    ),
    (
        "improve improves improved improving better boost boosts boosted help helps benefit benefits",
        "hurt hurts harm harms worse worsen worsens degrade degrades degraded deteriorate deteriorates impair impairs impaired hinders",
    ),
    (
        "promote promotes promoted activate activates activated induce induces induced stimulates",
        "inhibit inhibits inhibited suppress suppresses suppressed block blocks",
    ),
    ("faster quicker speeds accelerates", "slower slows"),
    ("outperforms outperform outperformed beats surpasses exceeds", "underperforms underperform underperformed"),
    ("large larger longer substantial", "small smaller shorter negligible minimal marginal"),
    ("sufficient", "insufficient"),
    ("effective", "ineffective"),
    ("necessary required", "unnecessary dispensable"),
    ("positive positively", "negative negatively"),
    ("stable", "unstable"),
    ("possible", "impossible"),
)
_SIDES = tuple((frozenset(stems(words(one))), frozenset(stems(words(other)))) for one, other in _OPPOSITES)


@dataclass(frozen=True, slots=True)
class Weighed:
    """How a claim stands to a paper, and by which sentence."""

    standing: Standing
    hit: Hit
    evidence: Evidence


def weigh(claim: str, hits: Sequence[Hit], finder: EvidenceFinder) -> list[Weighed]:
    """How a claim stands to the first papers: all that decide it, those that contradict it first; else the nearest alone."""
    found = [w for w in (_weighed(claim, h, finder) for h in hits[:PAPERS_WEIGHED]) if w]
    decided = [w for w in found if w.standing != "near"]
    return sorted(decided, key=lambda w: w.standing) or found[:1]


def _weighed(claim: str, hit: Hit, finder: EvidenceFinder) -> Weighed | None:
    ranked = finder.rank(claim, hit.paper.text, hit.paper.id)
    if not ranked:
        return None
    wanted, whole, stated = content_stems(claim), plain(hit.paper.text), plain(claim)
    nearest = [(e, plain(e.passage.text), finder.coverage(wanted, content_stems(plain(e.passage.text)))) for e in ranked[:MAY_CONTRADICT]]
    against = next((e for e, said, share in nearest if share >= CONTRADICTS_FROM and opposes(stated, said, whole)), None)
    if against:
        return Weighed("contradicted", hit, against)
    agreeing = (
        e for e, said, share in nearest[:MAY_SUPPORT] if share >= SUPPORTS_FROM and agrees(stated, said) and finder.closeness(claim, said)[0] >= CLOSE_FROM
    )
    in_favour = next(agreeing, None)
    if in_favour and verify(claim, [hit.paper], finder).supported:
        return Weighed("supported", hit, in_favour)
    return Weighed("near", hit, ranked[0])


def opposes(claim: str, sentence: str, abstract: str = "") -> str:
    """What in a sentence says the opposite of a claim: "negation", "opposite" or "number"; empty where nothing clearly does.

    Args:
        claim: in plain words.
        sentence: of an abstract, in plain words; one that is about the same thing.
        abstract: the whole of it: a number of the claim that stands anywhere in it is not contradicted.
    """
    if _ASKS.search(sentence):
        return ""
    ours, theirs = _words(claim), _words(sentence)
    if _spared(claim, sentence) or _spared(sentence, claim):
        return "negation"
    if bool(_TAKEN_AWAY.search(claim)) == bool(_TAKEN_AWAY.search(sentence)):
        # One word of what is done without ("needs no training") denies nothing of a text that says no need ("up-trained baselines").
        if (_denies(ours, theirs) and _may_deny(claim, sentence)) or (_denies(theirs, ours) and _may_deny(sentence, claim)):
            return "negation"
        if not (_negated(ours) or _negated(theirs)) and _turns(ours, theirs):
            return "opposite"
    return "number" if _other_number(claim, sentence, abstract or sentence) else ""


_NEEDS = r"(?:requir(?:e|es|ing)|need(?:s|ing)?|rel(?:y|ies) on|depends? on|demands?)"
_SPARES = re.compile(
    rf"\b(?:without|{_NEEDS} (?:no|neither)|(?:no|(?:eliminat|remov|avoid|obviat)\w* (?:the )?) ?need (?:for|of)|(?:not"
    rf"|n['’]t) {_NEEDS})\s+(?P<what>[^.;]{{2,80}})",
    re.IGNORECASE,
)
_WANTS = re.compile(rf"\b{_NEEDS}\s+(?P<what>[^.;]{{2,80}})", re.IGNORECASE)


def _spared(one: str, other: str) -> bool:
    """Whether one text says that the very thing is needed which the other says is done without: the first words of the need stand there."""
    spared = [set(content_stems(m["what"])[:6]) for m in _SPARES.finditer(other)]
    needs = [set(content_stems(m["what"])[:2]) for m in _WANTS.finditer(_SPARES.sub(" ", one))]
    return any(need and need <= done for need in needs for done in spared)


def _may_deny(plainly: str, denied: str) -> bool:
    """Whether a text that says what is done without can be the opposite of another: only of one that says what is needed."""
    return not _SPARES.search(denied) or bool(_WANTS.search(plainly))


def agrees(claim: str, sentence: str) -> bool:
    """Whether a sentence points the same way as a claim: as denied, and with the claim's directions, not their opposites."""
    ours, theirs = _words(claim), _words(sentence)
    if _ASKS.search(sentence) or _negated(ours) != _negated(theirs) or bool(_TAKEN_AWAY.search(claim)) != bool(_TAKEN_AWAY.search(sentence)):
        return False
    if _other_thing_denied(claim, sentence) or _sides_swapped(claim, sentence) or _other_thing_counted(claim, sentence) or _other_time(ours, theirs):
        return False
    mine, its = set(ours), set(theirs)
    turned = ((a, b) for one, other in _SIDES for a, b in ((one, other), (other, one)) if mine & a and not mine & b)
    return all(its & a and not its & b for a, b in turned)


def _other_thing_denied(claim: str, sentence: str) -> bool:
    """Whether a claim says what is done without, and the sentence says that of other things alone: "without training", "without extra weights"."""
    ours = [set(content_stems(m["what"])[:2]) for m in _SPARES.finditer(claim)]
    theirs = [set(content_stems(m["what"])[:6]) for m in _SPARES.finditer(sentence)]
    return bool(ours and theirs) and not any(what & done for what in ours for done in theirs)


_THAN = re.compile(r"\bthan\b|\bcompared (?:to|with)\b|\brelative to\b|\bover that of\b", re.IGNORECASE)


def _sides_swapped(claim: str, sentence: str) -> bool:
    """Whether both compare two things, and what the claim puts before "than" the sentence puts after it, and the other way round."""
    ours, theirs = _THAN.search(claim), _THAN.search(sentence)
    if not ours or not theirs:
        return False
    first, second = set(content_stems(claim[: ours.start()])), set(content_stems(claim[ours.end() :]))
    before, after = set(content_stems(sentence[: theirs.start()])), set(content_stems(sentence[theirs.end() :]))
    # Words on both sides of a "than" ("correct generations", "incorrect generations") tell no side.
    second, after = second - first, after - before
    return bool(second & before) and not second & after


def _other_thing_counted(claim: str, sentence: str) -> bool:
    """Whether the claim's number counts another thing in the sentence, or its thing has another number there: "9 games", "6 games, 9 levels"."""
    said = [(value[0], set(content_stems(m["rest"]))) for m in _NUMBERED.finditer(sentence) if (value := numbers(m["value"]))]
    for given, what in _counted(claim):
        things, others = [told for its, told in said if its == given and told], [its for its, told in said if what in told]
        if what not in ("%", "°", "×") and ((things and not any(what in told for told in things)) or (others and given not in others)):
            return True
    return False


_TIMES = frozenset(stems(words("seconds minutes hours days weeks months years")))


def _other_time(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Whether both tell a time, in units of which none is the same: "weeks", "0.5 hours"."""
    mine, its = _TIMES & set(ours), _TIMES & set(theirs)
    return bool(mine and its) and not mine & its


def _words(text: str) -> list[str]:
    """Stems in order, function words too; "n't" as a word."""
    return stems(tokens(re.sub(r"n['’]t\b", " not", text)))


def _negated(said: Sequence[str]) -> bool:
    return any(w in _NEGATORS for w in said)


def _denies(plainly: Sequence[str], denied: Sequence[str]) -> bool:
    """Whether one text says "not" right before a word that the other says without any "not"."""
    if _negated(plainly):
        return False
    at = [n for n, w in enumerate(denied) if w in ("not", "no", "never", "cannot")]
    if len(at) != 1:
        return False
    after = [w for w in denied[at[0] + 1 :] if w not in STOPWORDS and w not in _FILLERS][:2]
    return bool(after) and all(w in plainly for w in after[:1]) and len(set(after) & set(plainly)) == len(after)


_FILLERS = frozenset(stems(words("significantly statistically clearly necessarily always substantially associated known significant")))


def _turns(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Whether the claim has a word and the sentence its opposite, each before the same thing, and nothing else turned round."""
    for one, other in _SIDES:
        for a, b in ((one, other), (other, one)):
            mine, its = [n for n, w in enumerate(ours) if w in a], [n for n, w in enumerate(theirs) if w in b]
            if len(mine) == 1 and len(its) == 1 and not any(w in b for w in ours) and not any(w in a for w in theirs):
                return bool(_object(ours, mine[0]) & _object(theirs, its[0])) and bool(set(_content(ours[: mine[0]])) & set(_content(theirs)))
    return False


def _object(said: Sequence[str], at: int) -> set[str]:
    """What a word is said of: the content words within reach after it."""
    return set(_content(said[at + 1 : at + 1 + REACH]))


def _content(said: Sequence[str]) -> list[str]:
    return [w for w in said if w not in STOPWORDS and len(w) > 1]


def _other_number(claim: str, sentence: str, abstract: str) -> bool:
    """Whether the claim gives one number of a thing, and the sentence one other number of the same thing."""
    ours, theirs = _counted(claim), _counted(sentence)
    if len(ours) != 1 or numbers(claim)[0:1] != [ours[0][0]] or ours[0][0] in numbers(abstract):
        return False
    return len({value for value, what in theirs if what == ours[0][1]}) == 1


_NUMBERED = re.compile(r"(?<![\w.-])(?P<value>\d[\d,]*(?:\.\d+)?)(?P<unit>%|°|×)?[\s-]*(?P<rest>[^\d.,;()]{0,40})")


def _counted(text: str) -> list[tuple[str, str]]:
    """The numbers of a text, each with what it counts: its unit, or the content word right after it."""
    told = []
    for found in _NUMBERED.finditer(text):
        value, what = numbers(found["value"]), [found["unit"]] if found["unit"] else content_stems(found["rest"])[:1]
        if value and what:
            told.append((value[0], what[0]))
    return told
