"""Which of the papers found for a list are on its topic: each is compared with the best one, in three ways that fail differently.

Fused score, late interaction of the topic's words, and the share of its rarer words that one sentence (or the title) holds, each as a share of
the best paper's; a paper is on the topic if their mean reaches a threshold. Names and set phrases that a topic has must be there besides: "test on
Meta-World" is not answered by another benchmark, however near.

Precision and recall of the papers listed (45 gold questions with a topic, dev 15 and test 30; filters taken out in every row):

    fused score within 45% of the best, the 12 best      0.84 0.84 / 0.83 0.87
    the same, names and set phrases required             0.92 0.96 / 0.85 0.88
    mean of the three shares at 0.66, and these (here)   0.93 1.00 / 0.91 0.88

With papers reranked, and 51 such questions by now (dev 16, test 35), the last row is 0.97 0.93 / 0.91 0.88 at 0.68.

Logistic regression over four such shares, cross-validated, came to 0.92 and 0.83 on both: no better, and weights to keep.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rag.evidence import EvidenceFinder, cut
from rag.facets import Facet, facet_in, has_facet
from rag.kinds import names_in
from rag.markup import plain
from rag.records import Hit, Paper
from rag.text import content_stems

#: Papers compared; the longest gold list has 20.
COMPARED = 60
#: Precision and recall on dev at 0.66, here and 0.7: 0.94 0.96, 0.97 0.93, 0.97 0.93; on test 0.89 0.88, 0.91 0.88, 0.92 0.83 (`eval.tuning lists`).
ON_TOPIC_FROM = 0.68
_SHARES = 3
#: Of a topic of so few telling words, the best paper surely holds this share, by rarity, together; of more it may say some in other words. No list of
#: the gold that is right falls below; "watermark audio" has 0.46 and "protein folding" 0.53, which nothing here is about.
FEW, SURE_FROM = 3, 0.6
#: Words of a question for papers that say nothing of their topic. Precision on dev is 0.93 with these left out of the words, 0.87 with them.
_SAYS_LITTLE = (
    "use propose study explain improve introduce develop present report result test experiment run evaluate appear play role work method approach new novel "
    "build base want make let have show prove paper give take get better exploit analyse analyze investigate train something model way deal problem look try "
    "provide"
)
#: Acronyms so common that abstracts use or spell them out as they please, often without saying that the two are one.
COMMON = frozenset(("LLM", "LLMs", "AI", "ML", "NLP", "GPU", "GPUs"))
#: A word with a capital in the middle of a sentence is a name ("Minecraft", "Bayesian").
_CAPITALISED = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+\w*")


@dataclass(frozen=True, slots=True)
class Candidates:
    """Papers that have the names and set phrases of a topic, best first, each with the share of the telling words that it holds together.

    `rest` is the topic without its set phrases, empty where nothing else is left of it; `telling` are its stems that tell it.
    """

    rest: str
    hits: tuple[Hit, ...]
    covered: tuple[float, ...]
    telling: tuple[str, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether all telling words stand in one sentence, or the title, of one paper."""
        return any(c > 0.999 for c in self.covered)

    @property
    def partial(self) -> bool:
        """Whether a topic of few words is met in part at best: "watermark audio", among papers that watermark text."""
        return len(self.telling) <= FEW and max(self.covered, default=0.0) < SURE_FROM


def candidates(topic: str, hits: Sequence[Hit], finder: EvidenceFinder) -> Candidates:
    """The hits that can be on a topic.

    Args:
        topic: what the papers are to be about, without the words that ask for papers.
        hits: retrieved for it, best first.
        finder: for the words.
    """
    facet, rest = facet_in(topic) or (None, topic)
    kept = [h for h in hits[:COMPARED] if _shows(h.paper, facet)]
    if facet and not content_stems(rest):
        return Candidates("", tuple(kept), (1.0,) * len(kept))
    wanted = telling(rest)
    forms = [_forms(n, kept) for n in named(rest)]
    asked = [f for f in forms if any(_holds(h.paper, f) for h in kept)]
    kept = [h for h in kept if not asked or any(_holds(h.paper, f) for f in asked)]
    return Candidates(rest, tuple(kept), tuple(_covered(wanted, h.paper, finder) for h in kept), tuple(wanted))


def on_topic(found: Candidates, finder: EvidenceFinder) -> list[Hit]:
    """The candidates that are on the topic, best first."""
    hits = found.hits
    if not found.rest or not hits or hits[0].score <= 0:
        return list(hits if not found.rest else hits[:1])
    most = max(found.covered) or 1.0
    # A name is there or not, which was seen to; that it is written the same makes a paper first, and the others no less on the topic.
    alike = [max(h.parts.get("alike", h.score), 0.0) for h in hits]
    best = max(alike) or 1.0
    cheap = [(h, near / best + covered / most) for h, near, covered in zip(hits, alike, found.covered, strict=True)]
    # Comparing words costs 40 ms a paper; one that even a full share would not bring over the threshold is not read.
    read = [(h, share, finder.closeness(found.rest, h.paper.text)[0]) for h, share in cheap if share + 1.0 >= ON_TOPIC_FROM * _SHARES]
    nearest = max((near for *_, near in read), default=0.0) or 1.0
    shares = [(h, share + near / nearest) for h, share, near in read]
    return [h for h, share in sorted(shares, key=lambda x: (-x[1], x[0].paper.id)) if share >= ON_TOPIC_FROM * _SHARES]


def telling(topic: str) -> list[str]:
    """The stems of a topic that tell it, or all if none does."""
    every = content_stems(topic)
    return [s for s in every if s not in _little()] or every


def named(topic: str) -> tuple[str, ...]:
    """The names that a topic turns on."""
    return tuple(n for n in dict.fromkeys((*names_in(topic), *_CAPITALISED.findall(topic))) if n not in COMMON)


def holds(paper: Paper, name: str) -> bool:
    """Whether a paper has a name, with or without its hyphen, in the plural or not; a short one in capitals as it is written."""
    return _holds(paper, (name,))


def _holds(paper: Paper, forms: Iterable[str]) -> bool:
    text = f"{paper.title or ''} {paper.text}"
    low = text.casefold()
    # A text without the longest part of a name does not hold it, which is seen ten times faster.
    return any(part in low and pattern.search(text) for part, pattern in map(_written, forms))


def _forms(name: str, hits: Iterable[Hit]) -> tuple[str, ...]:
    """A name, and what it is short for where one of some papers says so: "key-value (KV)"."""
    single = re.sub(r"(?<=[A-Z])s$", "", name)
    long = rf"((?:[\w]+[\s–-]+){{1,{len(single) + 1}}})\({re.escape(single)}s?\)"
    # Looked for where the bracket is: searching every abstract for each of 500 names took 45 s.
    telling_ = [text for h in hits if len(single) > 1 and f"({single}" in (text := plain(h.paper.text))]
    found = [m[1] for text in telling_ for m in re.finditer(long, text)]
    spelt = [f for full in found if (f := _initials(re.split(r"[\s–-]+", full.strip(" –-")), single))]
    return (name, *dict.fromkeys(spelt))


def _initials(words: Sequence[str], name: str) -> str:
    """The last words that a name is made of, by its first letter and their number; empty where they do not fit."""
    capitals = [c for c in name if c.isupper()]
    least = max(2, len(capitals) - 1)
    for count in range(least, len(words) + 1):
        last = words[-count:]
        if last[0][:1].casefold() == name[0].casefold() and sum(w[:1].casefold() in name.casefold() for w in last) >= len(last) - 1:
            return " ".join(last)
    return ""


@functools.lru_cache(maxsize=64)
def _written(name: str) -> tuple[str, re.Pattern[str]]:
    """The longest part of a name in small letters, and what the name looks like in a text."""
    single = re.sub(r"(?<=[A-Za-z])s$", "", name) if not name.islower() or " " in name else name
    parts = [p for p in re.split(r"[-–_^ ]|(?<=[A-Za-z])(?=\d)|(?<=[a-z])(?=[A-Z])", single) if p]
    flags = re.NOFLAG if single.isupper() and len(single) <= 5 else re.IGNORECASE
    pattern = re.compile(rf"(?<![A-Za-z0-9]){'[-–_^ $]*'.join(map(re.escape, parts))}s?(?![A-Za-z])", flags)
    return max(parts, key=len, default="").casefold(), pattern


def _shows(paper: Paper, facet: Facet | None) -> bool:
    return facet is None or has_facet(paper, facet.name)


def _covered(wanted: Iterable[str], paper: Paper, finder: EvidenceFinder) -> float:
    """The largest share of the wanted stems, weighted by rarity, in the title or in one sentence."""
    texts = [paper.title or "", *(plain(p.text) for p in cut(paper.text, ""))]
    wanted = list(wanted)
    return max(finder.coverage(wanted, content_stems(t)) for t in texts)


@functools.cache
def _little() -> frozenset[str]:
    return frozenset(content_stems(_SAYS_LITTLE))
