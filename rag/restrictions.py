"""Filters taken out of a question's own words: "at ICLR 2024", "by Willett", "with code on GitHub", "but not federated".

What is taken is removed from what is looked for, so that neither the venue nor an excluded word finds papers. Every rule leaves a
question alone where its words may be the topic: a method that "works without retraining", a paper "by attention alone".
"""

from __future__ import annotations

import re
from collections.abc import Collection

from rag.facets import facet_in
from rag.kinds import THINGS, kind_of, names_in
from rag.people import author_in, authors_left_out
from rag.records import Filters, Kind, Paper
from rag.venues import place_in

#: Kinds that ask for papers: only these are restricted by year, code and "without", words that a fact may turn on.
_OF_PAPERS: tuple[Kind, ...] = ("list", "count", "keywords", "metadata")
_STOP = (
    r"(?=\s*(?:[,;:()?!]|\.(?:\s|$)|$|\b(?:and which|which|that|but|at (?:ICLR|ICML|(?-i:[A-Z]\w*[A-Z]\w*))"
    r"|(?:in|from|of|since|before|after) \d{4}|with code|(?-i:by [A-Z]\w+))\b))"
)
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


def taken(question: str, papers: Collection[Paper]) -> tuple[str, Filters, tuple[str, ...]]:
    """A question without the words that restrict which papers are asked, the filters that these make, and notices about what no filter can hold.

    Args:
        question: the stand-alone question.
        papers: of the collection; their venues and authors are recognised, and others by their shape.
    """
    kind = kind_of(question)
    of_papers = kind in _OF_PAPERS
    rest, not_by = authors_left_out(question, papers) if of_papers else (question, ())
    rest, exclude = _excluded(rest, of_papers)
    rest, author = author_in(rest, papers, of_papers=kind in ("list", "count"))
    place = place_in(rest, papers, of_papers=of_papers, bare=kind == "keywords")
    rest = place.rest
    code = False
    if of_papers and (found := facet_in(rest, "code")):
        rest, code = found[1], True
    rest = re.sub(r"\s+([,;:?!.])", r"\1", re.sub(r"[,;(]\s*(?=[?!.]|$)", "", " ".join(rest.split()))).strip()
    return rest or question, Filters(place.venue, place.year, author, exclude, code, not_by), place.notices


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
