"""Filters taken out of a question's own words: "at ICLR 2024", "by Willett", "with code on GitHub", "but not federated".

What is taken is removed from what is looked for, so that neither the venue nor an excluded word finds papers. Every rule leaves a
question alone where its words may be the topic: a method that "works without retraining", a paper "by attention alone".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from rag.facets import facet_in
from rag.kinds import THINGS, kind_of, names_in
from rag.records import Filters, Kind, Paper
from rag.text import tokens

#: Kinds that ask for papers: only these are restricted by year, code and "without", words that a fact may turn on.
_OF_PAPERS: tuple[Kind, ...] = ("list", "count", "keywords", "metadata")
_YEAR = r"(?:19|20)\d\d"
_IN = r"(?:(?:accepted|published|presented|appeared|appearing|shown|held) )?(?:at|in|from|of|to|for|by)"
#: "By X", "X's papers", "did X write": where an author's name stands. Names are one to four words that begin with capitals.
_PERSON = r"(?P<who>[A-ZÀ-ÞŁ][\w'’.-]+(?: (?:(?:van|von|de|der|den|di|la|le|el|bin)\s)*[A-ZÀ-ÞŁ][\w'’.-]*){0,3}?)"
_BY = (
    re.compile(
        rf"\s*\b(?:(?:co-?)?(?:written|authored|published) )?by (?:the )?(?:authors? |researchers? )?{_PERSON}(?: et al\.?|(?: and)? (?:colleagues"
        r"|coworkers|co-authors|others))?(?=\s*(?:[,?.!;:]|$)|\s+(?:on|about|that|which|at|in|from|with|and|of|are|is|do|does|deals?|have|use"
        r"|study)\b)"
    ),
    # Typed without capitals, a name is one only where papers are said to be by it.
    re.compile(
        r"(?<=papers) by (?P<who>[a-zà-þł][\w'’.-]+(?: [a-zà-þł][\w'’.-]*)?)(?=\s*(?:[,?.!;:]|$)|\s+(?:on|about|that|which|at|in|from|with|are|is"
        r"|do|deal)\b)"
    ),
    re.compile(rf"{_PERSON}['’]s? (?=(?:\w+ ){{0,2}}(?:papers?|abstracts?|articles?|publications?|work)\b)"),
    re.compile(rf"\b(?:of|from|with) (?:the )?author {_PERSON}(?=\s*(?:[,?.!;:]|$)|\s)"),
    re.compile(rf"\b(?:did|has|have) {_PERSON} (?:publish|wr[io]t|author)\w*(?: here)?"),
)
_STOP = r"(?=\s*(?:[,;:()?!]|\.(?:\s|$)|$|\b(?:and which|which|that|but|at (?:ICLR|ICML)|in \d{4})\b))"
_THOSE = (
    r"(?:(?:the|those|these|any|ones?|all|papers?|abstracts?|work)\s+){0,3}(?:(?:that (?:are|is) )?(?:about|on|using|with|in|involving"
    r"|concerning|dealing with|of|related to|for|from|at|by)\s+)?"
)
#: Words that always exclude, and words that do only in a question that asks for papers.
_ALWAYS = re.compile(
    r"[,(]?\s*\b(?:except(?:ing)?(?: for)?|excluding|exclude|other than|apart from|aside from|leaving out|not counting|but (?:no|not)|and not"
    rf"|that (?:is|are) not|rather than)\s+{_THOSE}(?P<what>[^,;:()?!]{{2,60}}?){_STOP}\)?",
    re.IGNORECASE,
)
_IN_LISTS = re.compile(
    r",?\s*\b(?:without (?:using |the use of |any )?|(?:but |and |that |which )?(?:are|is|do|does)(?:\s+not|n['’]t) (?:use|involve|need"
    rf"|concern|study)?\s*|(?<=\s)not\s+(?=about|on|using|in|from|at|by|involving))\s*{_THOSE}(?P<what>[^,;:()?!]{{2,60}}?){_STOP}"
    r"|\((?P<aside>[^()]{2,40}) aside\)",
    re.IGNORECASE,
)
#: In a fact: "Which method other than BiLLM binarizes weights?"
_NAME_LEFT_OUT = re.compile(r"\s*\b(?:other than|except(?: for)?|besides|apart from)\s+(?P<what>(?=[\w-]*[A-Z\d])\w+[-_^]?[A-Z\d][\w+-]*)(?=\s)")
#: Papers by name, as a follow-up that asks for another one leaves them out.
_BY_NAME = re.compile(r"\s*\(?\b(?:other than|except(?: for)?|apart from|besides) (?P<names>“[^”]+”(?:(?:, | and |, and )“[^”]+”)*)\)?")
#: More words than a term would have are a clause, which words cannot match.
TERM_WORDS = 4


def taken(question: str, papers: Collection[Paper]) -> tuple[str, Filters]:
    """A question without the words that restrict which papers are asked, and the filters that these make.

    Args:
        question: the stand-alone question.
        papers: of the collection; their venues and authors are the only ones that are recognised.
    """
    of_papers = kind_of(question) in _OF_PAPERS
    rest, exclude = _excluded(question, of_papers)
    rest, author = _author(rest, papers)
    rest, venue, year = _venue(rest, papers, of_papers)
    code = False
    if of_papers and (found := facet_in(rest, "code")):
        rest, code = found[1], True
    rest = re.sub(r"\s+([,;:?!.])", r"\1", re.sub(r"[,;(]\s*(?=[?!.]|$)", "", " ".join(rest.split()))).strip()
    return rest or question, Filters(venue, year, author, exclude, code)


def _excluded(question: str, of_papers: bool) -> tuple[str, tuple[str, ...]]:
    """The question without what it leaves out, and that. In a fact only a name or papers can be left out."""
    terms: list[str] = []

    def take(found: re.Match[str]) -> str:
        what = (found.groupdict().get("aside") or found["what"]).strip(" .'\"“”")
        parts = [p.strip() for p in re.split(r"\s*(?:,|\bor\b|\band\b)\s*", what) if p.strip()]
        parts = [re.sub(rf"\s*\b(?:{THINGS}|ones?|methods?|approaches|models|stuff)$", "", p, flags=re.IGNORECASE) or p for p in parts]
        named = all(p in names_in(p) for p in parts) or re.search(rf"\b{THINGS}\b", found[0], re.IGNORECASE)
        if not parts or any(len(p.split()) > TERM_WORDS for p in parts) or not (of_papers or named):
            return found[0]
        terms.extend(parts)
        return " "

    if by_name := _BY_NAME.search(question):
        terms.extend(re.findall("“([^”]+)”", by_name["names"]))
        question = question[: by_name.start()] + question[by_name.end() :]
    rest = _ALWAYS.sub(take, question if of_papers else _NAME_LEFT_OUT.sub(take, question))
    if of_papers:
        rest = _IN_LISTS.sub(take, rest)
    return rest, tuple(dict.fromkeys(terms))


def _author(question: str, papers: Iterable[Paper]) -> tuple[str, str | None]:
    """The question without an author's name, and the name; only one that an author of the collection bears."""
    for pattern in _BY:
        for found in pattern.finditer(question):
            who = re.sub(r"['’]s?$", "", found["who"])
            wanted = set(tokens(who))
            if wanted and any(wanted <= set(tokens(a)) and wanted & set(tokens(_surname(a))) for p in papers for a in p.authors):
                return f"{question[: found.start()]} {question[found.end() :]}", who
    return question, None


def _surname(author: str) -> str:
    return author.partition(",")[0] if "," in author else author.split()[-1] if author.split() else ""


def _venue(question: str, papers: Iterable[Paper], of_papers: bool) -> tuple[str, str | None, int | None]:
    """The question without its venue and year, and these. Two venues are no restriction to one."""
    venues = {p.venue for p in papers if p.venue}
    found = []
    for venue in sorted(venues, key=lambda v: (-len(v), v)):
        # A venue that is written like a word ("Nature") is one only with a capital; an acronym however it is typed.
        flags = re.IGNORECASE if sum(c.isupper() for c in venue) > 1 else re.NOFLAG
        named = rf"(?<![\w-]){re.escape(venue)}(?:[\s'’]*(?P<year>{_YEAR}|\d\d(?!\d)))?(?![\w-])(?: conference)?"
        places = [rf"\s*\b{_IN} (?:the )?{named}", rf"{named}(?: only)?(?=:?\s+(?:\w+\s+){{0,2}}{THINGS}\b)", rf"(?<=\bin ){named}"]
        match = next((m for place in places for m in re.finditer(place, question, flags)), None)
        if match:
            found.append((venue, match))
    if len(found) == 1:
        venue, match = found[0]
        year = match["year"]
        rest = f"{question[: match.start()]} {question[match.end() :]}"
        if flags_only := re.search(r"\bpapers only\b", rest):
            rest = f"{rest[: flags_only.start()]}papers{rest[flags_only.end() :]}"
        return rest, venue, int(year) + (2000 if len(year) == 2 else 0) if year else None
    if of_papers and not found:
        for place in (
            r"\s*\b(?:published |written |appeared )?(?:in|from|of"
            rf"|during)(?: the year)? (?P<year>{_YEAR})(?![\w-])",
            rf"\b(?P<year>{_YEAR})(?=\s+{THINGS}\b)",
        ):
            if year_found := re.search(place, question):
                return f"{question[: year_found.start()]} {question[year_found.end() :]}", None, int(year_found["year"])
    return question, None, None
