"""What a paper is or brings, told by set phrases rather than by its topic: code, a benchmark, a data set, a survey, a position.

"Which papers release code?" is answered by the words of a release, wherever they stand and whatever the paper is about; nearness in meaning
would rank every paper alike. Each facet has the words that ask for it and the words by which an abstract or a title shows it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from rag.records import Paper

_BRINGS = r"(?:propos|introduc|present|releas|provid|develop|creat|construct|build|built|offer|contribut)\w*"
_HOSTS = r"(?:github|gitlab|bitbucket|huggingface|zenodo)"
_AVAILABLE = r"(?:is|are|be found|made|have made|has been made)\b[^.]{0,30}\b(?:available|open|released|public)"


@dataclass(frozen=True, slots=True)
class Facet:
    """A property with the words that ask for it, and the words that show it in a paper's text or its title.

    A text without any of the `hints` (small letters) does not show it; that is seen a hundred times faster.
    """

    name: str
    asked: re.Pattern[str]
    shown: re.Pattern[str]
    hints: tuple[str, ...]
    in_title: bool = False


def _facet(name: str, asked: str, shown: str, *hints: str, in_title: bool = False) -> Facet:
    return Facet(name, re.compile(asked, re.IGNORECASE), re.compile(shown, re.IGNORECASE), hints, in_title)


def _kind_of_paper(words: str) -> str:
    return rf"^\W*(?:{words})s?(?=\W*$|\s+(?:on|about|of|at|in)\b)|\b(?:{words})s? (?:papers?|articles?)\b"


FACETS: tuple[Facet, ...] = (
    # "We will release our code" is a promise, not a release.
    _facet(
        "code",
        r"(?:(?:,|that|which|who|and|also)\s+)*(?:(?:come|came|comes) with|gives?|links? to|puts?|makes?|releas\w+|publish\w*|provides?|shares?"
        r"|open-sourc\w+|with|whose|have|has|having)\s+"
        r"(?:a |an |the |its |their |any |public\w* |open |openly |available |source |released |published |open-source )*(?:links? (?:to|on) )?"
        rf"(?:(?:code|implementations?|repositor(?:y|ies)|{_HOSTS})\b(?! (?:generat|synth|model|lm|llm|complet|repair|understand)))"
        rf"(?:\s+(?:links?|repositor\w*|pages?|(?:is |are )?(?:publicly |freely |openly )?(?:available|released|public|online|open)|(?:on|at) (?:{_HOSTS})))*"
        rf"|\b(?:on|at) {_HOSTS}\b",
        rf"{_HOSTS}\.(?:com|co|org|io)/|\.github\.io|\b(?:code(?! (?:generat|synth|model|lm|complet))|implementation)\b[^.]{{0,60}}\b{_AVAILABLE}"
        r"|\bcode (?:can be found|is at)\b|open[- ]sourced? (?:\S+ )?implementation",
        *("github", "gitlab", "bitbucket", "huggingface", "zenodo", "code", "implementation"),
    ),
    _facet(
        "benchmark",
        rf"{_BRINGS} (?:a |an |the |new |novel |own )*(?:benchmarks?)(?: suites?)?(?: or (?:an |a )?(?:evaluation )?(?:framework|suite|data ?sets?))?",
        rf"\b{_BRINGS}\b[^.]{{0,80}}(?<!to )\b(?:\w+bench|\w*-?benchmarks?)\b(?! (?:datasets|results|show|tasks))|\b(?:\w+bench|meta-benchmark)\b"
        r"|: an? benchmark\b|\bevaluation framework\b",
        *("bench", "evaluation framework"),
    ),
    _facet(
        "dataset",
        rf"{_BRINGS} (?:a |an |the |new |novel |own |large |public )*(?:data ?sets?|corpus|corpora)",
        rf"\b(?:{_BRINGS}|generate)\b[^.]{{0,60}}\b(?:a|an|new|novel|first|large-scale)\b[^.]{{0,40}}\b(?:data ?set|corpus|meta-dataset)\b"
        r"|: an? (?:\w+ )?data ?set\b",
        *("dataset", "data set", "corpus"),
    ),
    # "Position embeddings" and "peer review" are topics: the word must stand alone or before "papers".
    _facet(
        "survey",
        _kind_of_paper("survey|review|overview|tutorial"),
        r"\b(?:survey|review|overview|tutorial)\b",
        "survey",
        "review",
        "overview",
        "tutorial",
        in_title=True,
    ),
    _facet("position", _kind_of_paper("position|opinion"), r"^position\b|\bposition paper\b", "position", in_title=True),
)
_BY_NAME = {f.name: f for f in FACETS}


def facet_in(phrase: str, *names: str) -> tuple[Facet, str] | None:
    """The first facet that a phrase asks for, and the phrase without the words that do; of `names` these alone if given."""
    for facet in FACETS:
        if not names or facet.name in names:
            found = facet.asked.search(phrase)
            if found and found[0].strip():
                return facet, " ".join((phrase[: found.start()] + " " + phrase[found.end() :]).split())
    return None


@lru_cache(maxsize=16384)  # asked of every paper, several times a question
def has_facet(paper: Paper, name: str) -> bool:
    """Whether a paper shows a facet."""
    facet = _BY_NAME[name]
    held = f"{paper.title or ''} {paper.text}".casefold()
    if not any(hint in held for hint in facet.hints):
        return False
    return facet.shown.search(paper.title or "" if facet.in_title else f"{paper.title or ''}. {paper.text}") is not None or (
        facet.in_title and f"{name} paper" in paper.text.casefold()
    )


#: "Is the code of X available?", "Where can I find its implementation?"; and what answers it, if only by a promise.
_CODE = r"(?:code|codebase|implementations?|repositor(?:y|ies))\b(?! (?:generat|synth|model|lm|llm|complet|repair|understand))"
_ASKS_FOR_CODE = re.compile(
    rf"\b{_CODE}[^?]*\b(?:available|released?|public(?:ly)?|open[- ]?sourced?|online|published|downloaded|found|shared)\b"
    rf"|\bwhere\b[^?]*\b{_CODE}|\b(?:release|publish|share|open[- ]?source|provide)\w*\b[^?.]{{0,30}}\b{_CODE}",
    re.IGNORECASE,
)
_GIVES_CODE = re.compile(rf"\b(?:releas|publish|shar|open[- ]?sourc|provid|mak)\w*\b[^.]{{0,60}}\b{_CODE}", re.IGNORECASE)


def asks_for_code(question: str) -> bool:
    """Whether a question asks if or where code can be had, and nothing else."""
    return _ASKS_FOR_CODE.search(question) is not None and not re.search(r"\band (?:how|what|which|why|when|is|are|do|does)\b", question, re.IGNORECASE)


def gives_code(sentence: str) -> bool:
    """Whether a sentence says where code is, or that it is or will be released."""
    return shows(sentence, "code") or _GIVES_CODE.search(sentence) is not None


def shows(sentence: str, name: str) -> bool:
    """Whether a sentence shows a facet."""
    return _BY_NAME[name].shown.search(sentence) is not None
