"""Restrictions on the papers asked: venue, year, author, code, and what is left out."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import fields, replace
from functools import lru_cache

from rag.facets import facet_in, has_facet
from rag.kinds import names_in
from rag.people import is_borne
from rag.records import Filters, Paper
from rag.text import stems, together, tokens

#: Words that may be written otherwise in an abstract than in a question; a stem on the left is excluded under each on the right.
SAME = {
    "llm": ("llms?", "large language models?"),
    "llms": ("llms?", "large language models?"),
    "gnn": ("gnns?", "graph neural networks?"),
    "gnns": ("gnns?", "graph neural networks?"),
    "rl": ("rl", "reinforcement learning"),
    "nerf": ("nerfs?", "neural radiance fields?"),
    "nerfs": ("nerfs?", "neural radiance fields?"),
    "vision": (r"visions?", r"images?", r"visual\w*", r"videos?"),
    "images": (r"images?", r"visual\w*"),
}


#: Abstracts on them often say only "LLMs".
_LANGUAGE_MODELS = frozenset(("language model", "language models"))
#: A paper that does without the excluded thing ("without resource-intensive fine-tuning") is no paper about it.
_DONE_WITHOUT = re.compile(r"\b(?:without|no|not|never|free of|avoid\w*|eliminat\w*|instead of|rather than|unlike)\b[^.,;]*$", re.IGNORECASE)
#: Characters between such a word and the thing.
REACH = 40


def matches(paper: Paper, filters: Filters) -> bool:
    """Whether a paper meets every restriction that is set; an author by whole words of the name, case and accents aside."""
    return (
        (filters.venue is None or (paper.venue or "").casefold() == filters.venue.casefold())
        and (filters.year is None or paper.year == filters.year)
        and (filters.author is None or any(is_borne(filters.author, a) for a in paper.authors))
        and not any(is_borne(name, a) for name in filters.not_by for a in paper.authors)
        and (not filters.code or has_facet(paper, "code"))
        and not any(_is_about(paper, term) for term in filters.exclude)
    )


def parted(filters: Filters) -> Filters:
    """The filters with a year that was given together with the venue ("ICML 2024") taken as the year."""
    found = re.fullmatch(r"(?P<venue>.*\S)[\s,]+(?P<year>(?:19|20)\d\d)", filters.venue or "")
    if found is None or filters.year not in (None, int(found["year"])):
        return filters
    return replace(filters, venue=found["venue"], year=int(found["year"]))


def merged(given: Filters, read: Filters) -> Filters:
    """The filters read out of a question, each given one in the place of its own; what is left out adds up."""
    held = {f.name: getattr(given, f.name) or getattr(read, f.name) for f in fields(Filters)}
    return Filters(**held | {name: tuple(dict.fromkeys(getattr(given, name) + getattr(read, name))) for name in ("exclude", "not_by")})


def overruled(given: Filters, read: Filters) -> tuple[str, ...]:
    """Where a given filter holds and not what the question says, in a sentence each."""
    pairs = ((given.venue, read.venue), (given.year, read.year), (given.author, read.author))
    return tuple(f"Searched {held} as the filter is set, not {said} as the question says." for held, said in pairs if held and said and not _agree(held, said))


def _agree(one: str | int, other: str | int) -> bool:
    """Whether two values of a filter mean the same; of a name, one may be a part of the other."""
    a, b = str(one), str(other)
    return a.casefold() == b.casefold() or is_borne(a, b) or is_borne(b, a)


def unmet(filters: Filters, papers: Collection[Paper]) -> str:
    """Why none of some papers meets the filters, in a sentence: the first filter that no paper meets by itself, else all of them."""
    told = {
        "author": f"by {filters.author}",
        "venue": f"from {filters.venue}",
        "year": f"from {filters.year}" if not filters.venue else f"from {filters.venue} {filters.year}",
        "code": "known to release code",
        "exclude": f"without {together(f'“{term}”' for term in filters.exclude)}" if filters.exclude else "",
        "not_by": f"not by {together(filters.not_by)}" if filters.not_by else "",
    }
    given = [name for name in told if getattr(filters, name)]
    alone = next((n for n in given if not any(matches(p, Filters(**{n: getattr(filters, n)})) for p in papers)), None)
    if alone is None and filters.venue and filters.year:
        # The two are said as one.
        given.remove("venue")
        alone = None if any(matches(p, Filters(filters.venue, filters.year)) for p in papers) else "year"
    return f"No paper here is {told[alone] if alone else together(told[n] for n in given)}."


@lru_cache(maxsize=16384)  # asked of every paper, several times a question
def _is_about(paper: Paper, term: str) -> bool:
    """Whether a paper's venue, title or abstract holds an excluded term: a name as it is written, other words by their stems."""
    if re.fullmatch(r"(?:19|20)\d\d", term):
        return paper.year == int(term)
    if term.casefold() in ((paper.venue or "").casefold(), f"{paper.venue} {paper.year}".casefold()):
        return True
    kind = facet_in(term, "survey", "position", "code")
    if kind and not kind[1]:
        return has_facet(paper, kind[0].name)
    if term.casefold() in _LANGUAGE_MODELS and _is_about(paper, "LLMs"):
        return True
    word = next(iter(tokens(_british(term))), "")
    # A paper without the beginning of the first word does not hold the term; that is seen a hundred times faster.
    if word not in SAME and stems([word])[0][:4].rstrip("ie") not in f"{paper.title or ''} {paper.text}".casefold():
        return False
    wanted = set(stems([w for w in tokens(_british(term)) if w not in SAME]))
    text = f"{paper.title or ''}. {paper.text}"
    found = (m for m in _pattern(term).finditer(text) if not _DONE_WITHOUT.search(text, max(0, m.start() - REACH), m.start()))
    return any(_is_name(term) or wanted <= set(stems(tokens(_british(m[0])))) for m in found)


@lru_cache(maxsize=64)
def _pattern(term: str) -> re.Pattern[str]:
    """What an excluded term looks like in a text: its words one after another, each by its stem, or one of its other names."""
    if _is_name(term):
        return re.compile(rf"(?<![A-Za-z0-9]){re.escape(term)}(?![A-Za-z0-9])")
    words: Sequence[str] = tokens(_british(term))
    forms = [rf"(?:{'|'.join(SAME[w])})" if w in SAME else rf"{_spelt(s)}\w*" for w, s in zip(words, stems(words), strict=True)]
    return re.compile(r"(?<![A-Za-z0-9])" + r"[\W_]+(?:\w+[\W_]+)?".join(forms), re.IGNORECASE)


def _spelt(stem: str) -> str:
    """A stem in British and American spelling; one in y may end in i."""
    return re.sub(r"iz(?=$|at|ing)", "i[sz]", re.escape(stem.rstrip("ie") if len(stem) > 3 else stem))


def _british(text: str) -> str:
    """A text with the z of verbs, so that both spellings have one stem."""
    return re.sub(r"(?<=[a-z]{3}i)s(?=(?:e[ds]?|ing|ation|ations|ers?)\b)", "z", text)


def _is_name(term: str) -> bool:
    """Whether an excluded term is one name, told by its shape."""
    return names_in(term) == (term,) and term.casefold() not in SAME
