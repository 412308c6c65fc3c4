"""Filters taken out of a question's own words: "at ICLR 2024", "by Willett", "with code on GitHub", "but not federated".

What is taken is removed from what is looked for, so that neither the venue nor an excluded word finds papers. Every rule leaves a
question alone where its words may be the topic: a method that "works without retraining", a paper "by attention alone".
"""

from __future__ import annotations

import re
from collections.abc import Collection

from rag.facets import facet_in
from rag.kinds import THINGS, kind_of, names_in
from rag.markup import words
from rag.people import author_in, authors_left_out
from rag.records import Filters, Kind, Paper

#: Kinds that ask for papers: only these are restricted by year, code and "without", words that a fact may turn on.
_OF_PAPERS: tuple[Kind, ...] = ("list", "count", "keywords", "metadata")
_YEAR = r"(?:19|20)\d\d"
_IN = r"(?:(?:accepted|published|presented|appeared|appearing|shown|held) )?(?:at|in|from|of|to|for|by)"
#: Venues of machine learning and beside it; one that no paper here is of is told by its name alone.
_KNOWN_VENUES = words(
    "NeurIPS NIPS ICLR ICML AISTATS UAI COLT CoLLAs COLM ALT TMLR JMLR MLSys CVPR ICCV ECCV WACV BMVC MICCAI ACL EMNLP NAACL EACL AACL TACL COLING CoNLL "
    "Interspeech ICASSP AAAI IJCAI ECAI KDD CIKM WSDM SIGIR RecSys ECML CoRL ICRA IROS RSS SIGGRAPH STOC FOCS SODA Nature Science PNAS TPAMI IJCV"
)
_DATED = re.compile(rf"\b(?:at|from|in)\s+(?:the\s+)?([A-Z][A-Za-z]*[A-Z][A-Za-z]*)(?=[\s'’]*{_YEAR}(?![\w-]))")
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
    rf"|concern|study|mention)?\s*|never (?:use|involve|need|concern|study|mention)\s*"
    rf"|(?<=\s)not\s+(?=about|on|using|in|from|at|by|involving))\s*{_THOSE}(?P<what>[^,;:()?!]{{2,60}}?){_STOP}"
    r"|\((?P<aside>[^()]{2,40}) aside\)",
    re.IGNORECASE,
)
#: "Which papers except BiLLM quantize weights?": the name is left out, and what follows it is still asked.
# Can be read in one way only, so that a row of a thousand names takes no longer than its length.
_SHAPED = r"(?=\w+[-_^]?[A-Z\d])\w[\w^+-]*"
_NAME_BEFORE_VERB = re.compile(
    rf"^\W*(?i:which|what|how many)\b[^,;:?]{{0,40}}?\b{THINGS}(?P<out>\s+(?:other than|except(?: for)?|besides|apart from)\s+(?:the )?"
    rf"(?P<what>{_SHAPED}(?:(?:, and|,| and| or) {_SHAPED})*)(?: {THINGS})?)(?=\s+(?!(?:and|or|that|which|at|in|on|by|from|with|{THINGS})\b)[a-z])"
)
#: "Papers that are not surveys on caches": what the kind of paper is on is still the topic.
_KIND_ON = re.compile(r"(?P<kind>(?:survey|review|overview|tutorial|position)s?(?: (?:papers?|articles?))?) (?P<rest>(?:on|about|of)\b.+)", re.IGNORECASE)
#: "Without code", "don't have code" mean a release; "not about code" means the topic.
_NO_CODE = re.compile(r"\b(?:without|have|with)\s+(?:any |the |an? |public )*(?:source )?(?:code|implementations?)\W*$", re.IGNORECASE)
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
        papers: of the collection; their venues and authors are recognised, and others by their shape.
    """
    of_papers = kind_of(question) in _OF_PAPERS
    rest, not_by = authors_left_out(question, papers) if of_papers else (question, ())
    rest, exclude = _excluded(rest, of_papers)
    rest, author = author_in(rest, papers, of_papers=kind_of(question) in ("list", "count"))
    rest, venue, year = _venue(rest, papers, of_papers)
    code = False
    if of_papers and (found := facet_in(rest, "code")):
        rest, code = found[1], True
    rest = re.sub(r"\s+([,;:?!.])", r"\1", re.sub(r"[,;(]\s*(?=[?!.]|$)", "", " ".join(rest.split()))).strip()
    return rest or question, Filters(venue, year, author, exclude, code, not_by)


def _excluded(question: str, of_papers: bool) -> tuple[str, tuple[str, ...]]:
    """The question without what it leaves out, and that. In a fact only a name or papers can be left out."""
    terms: list[str] = []

    def take(found: re.Match[str]) -> str:
        what = (found.groupdict().get("aside") or found["what"]).strip(" .'\"“”")
        if kind := _KIND_ON.fullmatch(what):
            terms.append(kind["kind"])
            return f" {kind['rest']}"
        if of_papers and _NO_CODE.search(found[0]):
            terms.append("released code")
            return " "
        parts = [p.strip() for p in re.split(r"\s*(?:,|\bor\b|\band\b)\s*", what) if p.strip()]
        parts = [re.sub(rf"\s*\b(?:{THINGS}|ones?|methods?|approaches|(?<!language )models|stuff)$", "", p, flags=re.IGNORECASE) or p for p in parts]
        named = all(p in names_in(p) for p in parts) or re.search(rf"\b{THINGS}\b", found[0], re.IGNORECASE)
        if not parts or any(len(p.split()) > TERM_WORDS for p in parts) or not (of_papers or named):
            return found[0]
        terms.extend(parts)
        return " "

    if by_name := _BY_NAME.search(question):
        terms.extend(re.findall("“([^”]+)”", by_name["names"]))
        question = question[: by_name.start()] + question[by_name.end() :]
    if of_papers and (by_verb := _NAME_BEFORE_VERB.match(question)):
        terms.extend(re.findall(_SHAPED, by_verb["what"]))
        question = question[: by_verb.start("out")] + question[by_verb.end("out") :]
    rest = _ALWAYS.sub(take, question if of_papers else _NAME_LEFT_OUT.sub(take, question))
    if of_papers:
        rest = _IN_LISTS.sub(take, rest)
    return rest, tuple(dict.fromkeys(terms))


def _venue(question: str, papers: Collection[Paper], of_papers: bool) -> tuple[str, str | None, int | None]:
    """The question without its venue and year, and these. Two venues are no restriction to one."""
    venues = {p.venue for p in papers if p.venue}
    found = [(v, m) for v in sorted(venues, key=lambda v: (-len(v), v)) if (m := _place_of(v, question))]
    if of_papers and not found:
        # One of which nothing is here: its name is no topic, and without it papers of other venues would be listed as its.
        found = [(v, m) for v in _elsewhere(question, papers) if (m := _place_of(v, question))]
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


def _place_of(venue: str, question: str) -> re.Match[str] | None:
    """Where a question restricts itself to a venue."""
    if venue.casefold() not in question.casefold():
        return None  # most are not named, and three patterns for each would have to be compiled
    # A venue that is written like a word ("Nature") is one only with a capital; an acronym however it is typed.
    flags = re.IGNORECASE if sum(c.isupper() for c in venue) > 1 else re.NOFLAG
    named = rf"(?<![\w-]){re.escape(venue)}(?:[\s'’]*(?P<year>{_YEAR}|\d\d(?!\d)))?(?![\w-])(?: conference)?"
    places = [rf"\s*\b{_IN} (?:the )?{named}", rf"{named}(?: only)?(?=:?\s+(?:\w+\s+){{0,2}}{THINGS}\b)", rf"(?<=\bin ){named}"]
    return next((m for place in places for m in re.finditer(place, question, flags)), None)


def _elsewhere(question: str, papers: Collection[Paper]) -> tuple[str, ...]:
    """Names of venues that no paper here is of: well-known ones, and acronyms in no abstract with a year behind them ("at XYZ 2023")."""
    dated = (v for v in _DATED.findall(question) if not any(v in p.text or v in (p.title or "") for p in papers))
    return tuple(dict.fromkeys((*_KNOWN_VENUES, *dated)))
