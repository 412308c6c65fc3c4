"""The thing a question asks for ("what batch size", "how many qubits", "which licence"), and whether an abstract holds such a thing.

Parsed by pattern from the wh-phrase. A number must stand beside words near to what is counted, or with a unit of the kind that is asked
for; a name must stand in the sentences that the rest of the question is nearest to; some attributes (authors, hardware,
hyperparameters, cost) count as absent where none of their words is in the abstract.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag.alignment import Alignment
from rag.markup import words
from rag.text import STOPWORDS, stems

#: What ends the words for a thing.
_STOPS = frozenset(
    words(
        "is are was were be been do does did can could has have had will would should must may might for in on to that with when which than from by at and or "
        "it you we there per if used using of over into under between"
    )
)
_LIGHT = frozenset(words("exactly average mean the a an on in at its their your any many much total other actual same first"))
#: Things that are told by a number.
_MEASURES = (
    "size|rate|resolution|value|threshold|dimension|dimensionality|temperature|accuracy|score|speed-?up|factor|cost|price|step|count|length|width|depth|rank|"
    "perplexity|throughput|latency|budget|ratio|z-score|bit-?width|sparsity|memory|norm|date|year"
)
_MANY = re.compile(r"\bhow (?:many|few)\b", re.IGNORECASE)
_PART_OF = re.compile(r"\b(?:what|which) (?:[\w-]+ ){0,2}?(?:number|share|fraction|proportion|percentage|percent|amount)(?: of)?\b", re.IGNORECASE)
_MEASURE = re.compile(
    r"\b(?:what(?:'s| is| was| are)?|which)(?: the)? "
    rf"(?P<measure>(?:(?!(?:the|a|an|do|does|did|is|are|was|can|sets?|of)\b)[\w-]+ ){{0,3}}?(?:{_MEASURES})s?)\b(?! at which)",
    re.IGNORECASE,
)
#: "A theory of how much X helps" asks for no number; "by how much", "for how long", "tell me how much" do.
_HOW = re.compile(
    r"(?:^\W*|[,;:.]\s*|\b(?:and|on|in|by|for|into|at|to|with|than|over|after|within|from|tell me|know)\s+)(?:exactly )?"
    r"how (?P<adjective>long|fast|slow|quickly|much|large|big|far|often|high|wide|deep|small|accurate|expensive|old)\b(?: (?P<more>\w+er|more|less)\b)?",
    re.IGNORECASE,
)
_WHICH = re.compile(r"\b(?:which|what|whose)\b", re.IGNORECASE)
_NAMES_OF = re.compile(r"\bwhat (?:is|are|was|were) the names? of (?:the )?", re.IGNORECASE)
_KIND_OF = re.compile(r"\b(?:what|which) (?:kinds?|types?|sorts?|class(?:es)?|famil(?:y|ies)) of\b", re.IGNORECASE)
#: Things that are told by their name.
_NAMED = re.compile(
    r"\b(?:data ?sets?|corpus|corpora|models?|m?llms?|vlms?|gpus?|tpus?|cpus?|backbones?|names?|knowledge (?:base|graph)|optimi[sz]ers?|frameworks?"
    r"|librar(?:y|ies)|universit(?:y|ies)|institut\w+|compan(?:y|ies)|licen[cs]es?|hardware|cluster|antigens?|proteins?|genes?|cit(?:y|ies)|countr(?:y|ies)|tokenizers?"
    r"|simulators?|journals?|conferences?)\b",
    re.IGNORECASE,
)
_TIME = frozenset(
    words("second seconds minute minutes hour hours day days week weeks month months year years ms millisecond milliseconds s min h epochs steps")
)
_RATIO = frozenset(words("times x percent order orders fold points magnitude half twice double"))
_SPELLED = frozenset(
    words(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fifteen twenty fifty hundred hundreds thousand thousands "
        "million millions billion billions once twice half double triple dozen dozens single both"
    )
)
#: Words before and after a number among which stand those for what it counts.
_BEFORE, _AFTER = 3, 6
#: How well a number fits what is asked, where its unit or its place tells, on the scale of the cosines of "6 different games" (0.85).
_UNIT_FITS, _UNIT_FAILS, _BEST_SENTENCE, _OTHER_SENTENCE = 0.8, 0.3, 0.7, 0.4
#: A capital or digit after the first letter, or a capital that opens no sentence.
_NAME = re.compile(r"(?<![\w-])(?:[A-Za-z]+[-_^]?[A-Z0-9][\w.+-]*|(?<=[a-z,] )[A-Z][a-z]{2,}(?:-[A-Z]?\w+)*)")
_NO_NAME = re.compile(r"[A-Z]?LLMs?|AI|ML|RL|GPUs?|SOTA|NLP|VLMs?|DNNs?")
#: An abbreviation that an abstract introduces for its own: "Convolution Injector (CoIn)".
_INTRODUCED = re.compile(r"\(\W*([A-Za-z][\w-]*)\W*\)")
_URL = re.compile(r"https?://\S+")
_EITHER = re.compile(
    r"\b(?:is|are|was|were|does|do|did)\b[^?]*?\b(?P<one>[\w+-]+) or (?:in |on |by |with |plain |an? )*(?P<other>[\w+-]+)",
    re.IGNORECASE,
)
_ASKS = re.compile(r"\b(?:how|which|what|who|whose|when|where|why)\b", re.IGNORECASE)
#: Who asks for advice ("How do I choose a learning rate?") asks for no detail of a paper.
_OWN_NEED = re.compile(r"\b(?:I|we|my|our|us)\b")
_HYPER = r"\blearning rate|\bstep size|\btime step|\bweight decay|\bmomentum\b|\bwarm-?up|\bdropout|\btemperature"
_BYTES = r"\b(?:mega|giga|kilo)?bytes?\b|\b[MG]i?B\b"
_COST = r"\belectricity|\bkwh\b|\bcarbon|\bemissions?\b|\bdollars?\b|\bprice\b|\bAPI calls\b"
_PEOPLE = r"\bannotators?\b|\bparticipants?\b|\braters?\b|\bvolunteers?\b"
_SPEED = r"\bframes per second\b|\bfps\b|\blatency\b|\bmilliseconds\b"
#: Attributes that abstracts seldom give: how they are asked for, and what would tell them.
_ATTRIBUTES = tuple(
    (re.compile(asks, re.IGNORECASE), re.compile(tells, re.IGNORECASE))
    for asks, tells in (
        (
            r"\bwho (?:wrote|is the|are the|funded|paid|supervised|developed|proposed)\b|\b(?:first|last|corresponding|senior) author|\bfunded\b|\bsponsor",
            r"\bfunded\b|\bsponsor",
        ),
        (r"\buniversit|\binstitution|\baffiliat|\bwhich (?:company|lab|country|institute)", r"\buniversit|\bcompany|\bLab\b"),
        (r"\blicen[cs]e|\bcommercial", r"\blicen[cs]e|\bcommercial"),
        (r"\b(?:batch|bag) size", r"\b(?:batch|bag) size"),
        (_HYPER, _HYPER),
        (r"\boptimi[sz]er\b|\badamw?\b", r"\badamw?\b"),
        (r"\bepochs?\b|\bseeds?\b|\b(?:training|search|optimi[sz]ation|gradient) (?:steps|runs|iterations)\b", r"\b(?:epochs?|seeds?|steps|runs|iterations)\b"),
        (r"\b[gt]pus?\b|\bhardware\b|\bgraphics card", r"\b[gt]pus?\b|\b[AHV]100\b|\bhardware\b|\bRTX\b"),
        (r"\b(?:gpu|compute|training|wall-clock) (?:hours|days|time)\b|\bhow long does\b", r"\b(?:hours?|days?|minutes?|seconds?)\b"),
        (rf"{_BYTES}|\bvram\b", _BYTES),
        (_COST, _COST),
        (rf"{_PEOPLE}|\bhow many (?:people|persons|users|subjects)\b", _PEOPLE),
        (r"\bpytorch\b|\bjax\b|\btensorflow\b|\bprogramming language\b", r"\bpytorch\b|\bjax\b|\btensorflow\b"),
        (
            r"\b(?:number of|many|much|what|which) (?:trainable |learnable |extra )?(?:parameters|layers|neurons|heads)\b"
            r"|\b(?:hidden|embedding) (?:size|dimension)",
            r"\b(?:parameters|layers|neurons|heads)\b|\b(?:hidden|embedding) (?:size|dimension)",
        ),
        (_SPEED, _SPEED),
    )
)
SIGNALS = ("number_gap", "name_gap", "thing_gap", "either_gap", "attribute_absent")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for: its form (`number`, `name`, `thing`; `open` where no such thing can be told), the words for it, units that would do."""

    form: str
    words: tuple[str, ...] = ()
    units: frozenset[str] = frozenset()


def asked_signals(question: str, a: Alignment, present: Sequence[str], rarity: Callable[[str], float]) -> dict[str, float]:
    """How far an abstract is from holding what is asked for, each from 0 (it holds it, or no such thing is asked for) to 1.

    `number_gap`: no number stands by words for what is counted; `name_gap`: no name that could answer is in the two best
    sentences (1 if in none); `thing_gap`: the rarest word for the thing is missing, and nothing near it is there; `either_gap`: neither
    of two alternatives is; `attribute_absent`: an attribute is asked for that abstracts seldom give, and no word tells it.

    Args:
        question: plain text.
        a: the question beside the abstract.
        present: stems of the abstract and its title.
        rarity: of a stem.
    """
    asked = asked_for(question)
    best = best_sentences(asked, a)
    told = " ".join(a.sentences)
    return {
        "number_gap": 1 - _number_fit(asked, a, best) if asked.form == "number" else 0.0,
        "name_gap": _name_gap(question, a, best) if asked.form == "name" else 0.0,
        "thing_gap": _thing_gap(asked, a, present, rarity) if asked.form in ("name", "thing") else 0.0,
        "either_gap": _either_gap(question, a),
        "attribute_absent": float(_attribute_absent(question, told)),
    }


def best_sentences(asked: Asked, a: Alignment) -> NDArray[np.intp]:
    """The two sentences nearest to a question but for the words of what it asks for."""
    rest = [n for n, w in enumerate(a.asked) if w not in STOPWORDS and w not in asked.words] or list(range(len(a.asked)))
    near = a.by_sentence()
    return np.argsort(-near[rest].mean(axis=0), kind="stable")[:2] if rest else np.zeros(0, dtype=np.intp)


def asked_for(question: str) -> Asked:
    """What a question asks for; of several sentences the last that asks counts."""
    q = _last_asking(question)
    if many := _MANY.search(q):
        return Asked("number", _head(q[many.end() :]))
    if part := _PART_OF.search(q):
        return Asked("number", _head(q[part.end() :]), _RATIO if "percent" in part[0].lower() else frozenset())
    if how := _HOW.search(q):
        adjective, more = how["adjective"].lower(), (how["more"] or "").lower()
        if adjective == "long" and not more:
            return Asked("number", (), _TIME)
        if (adjective in ("fast", "quickly", "slow") and not more) or more in ("slower", "faster", "quicker"):
            return Asked("number", (), _TIME | _RATIO)
        return Asked("number", () if more else _head(q[how.end() :]))
    if _KIND_OF.search(q):
        return Asked("open")
    if measure := _MEASURE.search(q):
        return Asked("number", tuple(w for w in re.findall(r"[a-z0-9]+", measure["measure"].lower()) if w not in _LIGHT))
    if named := _NAMES_OF.search(q):
        return Asked("name", _head(q[named.end() :]))
    if (which := _WHICH.search(q)) and (head := _head(q[which.end() :])):
        return Asked("name" if _NAMED.search(" ".join(head)) else "thing", head)
    return Asked("open")


def _last_asking(question: str) -> str:
    asking = [part for part in re.split(r"(?<=[.?!;:])\s+", question) if _ASKS.search(part)]
    return asking[-1] if asking else question


def _head(rest: str) -> tuple[str, ...]:
    """The words for a thing: up to a verb, a preposition or a plural, four at most."""
    out: list[str] = []
    for word in re.findall(r"[\w'-]+|[,.;?!]", rest.lower())[:8]:
        if word in _LIGHT and not out:
            continue
        if not word[0].isalnum() or word in _STOPS or len(out) >= 4:
            break
        out += re.findall(r"[a-z0-9]+", word)
        if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
            break
    return tuple(out)


def _number_fit(asked: Asked, a: Alignment, best: NDArray[np.intp]) -> float:
    """How well the best number of a text, of those that the question does not hold, fits what is counted."""
    known, rows = set(a.asked), a.rows(asked.words)
    fits = [0.0]
    for n, word in enumerate(a.said):
        if not (word[0].isdigit() or word in _SPELLED) or word in known:
            continue
        beside = [m for m in range(max(0, n - _BEFORE), min(len(a.said), n + _AFTER + 1)) if m != n and a.owner[m] == a.owner[n]]
        if rows and beside:
            fits.append(float(a.cosines[np.ix_(rows, beside)].max(axis=1).mean()))
        if asked.units:
            fits.append(_UNIT_FITS if asked.units & {word, *(a.said[m] for m in beside)} else _UNIT_FAILS)
        elif not rows:
            fits.append(_BEST_SENTENCE if a.owner[n] in best else _OTHER_SENTENCE)
    if "percent" in asked.units and any("%" in a.sentences[s] for s in best):
        fits.append(_UNIT_FITS)
    return max(fits)


def _name_gap(question: str, a: Alignment, best: NDArray[np.intp]) -> float:
    own = {m.casefold() for sentence in a.sentences for m in _INTRODUCED.findall(sentence)}
    own |= {f"{m}s" for m in own} | {m.removesuffix("s") for m in own}
    folded = question.casefold()

    def names(sentence: str) -> bool:
        found = _NAME.findall(_URL.sub("", sentence))
        return any(n.casefold() not in own and n.casefold() not in folded and not _NO_NAME.fullmatch(n) for n in found)

    if any(names(a.sentences[s]) for s in best):
        return 0.0
    return 0.5 if any(map(names, a.sentences)) else 1.0


def _thing_gap(asked: Asked, a: Alignment, present: Sequence[str], rarity: Callable[[str], float]) -> float:
    have = set(present)
    gaps = [0.0]
    for n in a.rows([w for w in asked.words if w not in STOPWORDS]):
        (stem,) = stems([a.asked[n]])
        if stem not in have:
            gaps.append((1 - float(a.cosines[n].max(initial=0.0))) * rarity(stem))
    return max(gaps)


def _either_gap(question: str, a: Alignment) -> float:
    pair = _EITHER.search(question)
    rows = [a.rows(re.findall(r"[a-z0-9]+", pair[name].lower())) for name in ("one", "other")] if pair else []
    return 1 - max((float(a.cosines[r].max(axis=1).mean()) for r in rows if r), default=1.0)


def _attribute_absent(question: str, told: str) -> bool:
    asked = _last_asking(question)
    return not _OWN_NEED.search(asked) and any(asks.search(asked) and not tells.search(told) for asks, tells in _ATTRIBUTES)
