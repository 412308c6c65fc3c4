"""Venue and year in a question's words: "at ICLR 2024", "ICML papers … in 2023", "(NeurIPS 2023)", "since 2022".

Whatever the order and the words, one is never left without the other: the venue goes first, a year beside it is marked, and the years are read after it.
What no filter can hold, such as several years of which only some are here, is said in a notice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from rag.kinds import THINGS, kind_of
from rag.markup import words
from rag.records import Paper

#: Later ones are more often numbers ("2048 tokens").
_YEAR = r"(?:(?:19\d\d|20[0-3]\d)(?![\w-]))"
#: No question holds it. It stands before a year that stood beside a venue.
_MARK = "\0"
_SAID = r"(?:(?:were |was |are |is )?(?:accepted|published|presented|appeared|appearing|shown|held|written|released|dated|out))"
_IN = rf"(?:{_SAID} )?(?:at|in|from|of|to|for|by)"
#: Venues of machine learning and beside it; one that no paper here is of is told by its name alone.
_KNOWN_VENUES = words(
    "NeurIPS NIPS ICLR ICML AISTATS UAI COLT CoLLAs COLM ALT TMLR JMLR MLSys CVPR ICCV ECCV WACV BMVC MICCAI ACL EMNLP NAACL EACL AACL TACL COLING CoNLL "
    "Interspeech ICASSP AAAI IJCAI ECAI KDD CIKM WSDM SIGIR RecSys ECML CoRL ICRA IROS RSS SIGGRAPH STOC FOCS SODA Nature Science PNAS TPAMI IJCV"
)
_DATED = re.compile(rf"\b(?:at|from|in)\s+(?:the\s+)?([A-Z][A-Za-z]*[A-Z][A-Za-z]*)(?=[\s'’]*{_YEAR})")
_END = r"(?=\s*(?:[,;:.?!)]|$))"
_AFTER = r"(?:after|later than|newer than)"
_TO = r"\s*(?:-|–|/|,|,? (?:and|or)|to|through|until|till)\s*"
#: Several years: both ends are told, or one.
_TWO_YEARS = re.compile(
    rf"[,;(]?\s*(?:\b(?:(?:{_SAID} )?(?:between|in|from|of|during)(?: the years?)? )|{_MARK} |\b)(?P<first>(?:19|20)\d\d){_TO}(?P<last>{_YEAR})\)?",
    re.IGNORECASE,
)
_ONWARDS = rf"(?:onwards?|on(?:wards?)?{_END}|(?:or|and) (?:later|newer|after))"
_SINCE = re.compile(
    rf"[,;(]?\s*(?:\b(?:{_SAID} )?(?:(?P<past>{_AFTER})|since|(?:in|from)(?= \d+ {_ONWARDS})) |{_MARK} (?=\d+ {_ONWARDS}))"
    rf"(?P<year>{_YEAR})(?: {_ONWARDS})?\)?",
    re.IGNORECASE,
)
_UNTIL = re.compile(
    rf"[,;(]?\s*(?:\b(?:{_SAID} )?(?:(?P<past>before|prior to|earlier than|older than)|until|up to|(?:in|from)(?= \d+ (?:or|and) (?:earlier|older|before))) )"
    rf"(?P<year>{_YEAR})(?: (?:or|and) (?:earlier|older|before))?\)?",
    re.IGNORECASE,
)
#: One year, in a question that asks for papers, and in any other, where a fact may turn on it.
_YEAR_OF_PAPERS = (
    re.compile(rf"[,;(]?\s*(?:{_MARK} |\b(?:{_SAID} )?(?:in|from|of|during)(?: the)?(?: year)? |\b{_SAID} )(?P<year>{_YEAR})\)?", re.IGNORECASE),
    re.compile(rf"\b(?P<year>{_YEAR})(?=(?:\s+conference)?\s+{THINGS}\b)"),
    re.compile(rf"\s*\(\s*(?P<year>{_YEAR})\s*\)|[,;?.!]\s*(?P<year2>{_YEAR}){_END}"),
)
_YEAR_OF_FACT = (
    re.compile(rf"[,;(]?\s*{_MARK} (?P<year>{_YEAR})\)?"),
    re.compile(rf"\b(?P<year>{_YEAR})(?=(?:\s+conference)?\s+{THINGS}\b)"),
    re.compile(rf"(?:(?<=paper)|(?<=papers)|(?<=abstract)|(?<=article)),? (?:{_SAID} )?(?:in|from|of) (?P<year>{_YEAR})"),
)
#: Bare words: "kv cache 2023"; after a capital it is a data set's ("COCO 2017").
_YEAR_OF_WORDS = re.compile(rf"(?<=[a-z])\s+(?P<year>{_YEAR})\W*$")
_LEFT = re.compile(rf"\b(?:{_YEAR}|(?:last|this|previous) year)\b", re.IGNORECASE)
_FRONT = re.compile(
    r"^\W*(?P<place>(?:in|at|from|of|for|among|during|since|before|after|until|between) [^,.;:?!]{2,50}), (?P<rest>.+?)(?P<end>[\s.?!]*)$", re.IGNORECASE
)
_ASKING = re.compile(rf"(?:which|what|how many|are there|is there|list|show|find|name|give)\b.*?\b{THINGS}\b|which\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Place:
    """A question without its venue and year, these, and notices about what they could not hold."""

    rest: str
    venue: str | None = None
    year: int | None = None
    notices: tuple[str, ...] = ()


def fronted(question: str, papers: Collection[Paper]) -> str:
    """A question that opens with a venue or a year ("In 2023, which papers …") with these at its end, so that it opens with what it asks."""
    found = _FRONT.match(question)
    if not found or not _ASKING.match(found["rest"]) or kind_of(question) in ("list", "count"):
        return question
    named = re.search(_YEAR, found["place"]) or any(re.search(rf"\b{re.escape(v)}\b", found["place"], re.IGNORECASE) for v in _all_venues(papers))
    rest = found["rest"]
    return f"{rest[:1].upper()}{rest[1:]} {found['place'][:1].lower()}{found['place'][1:]}{found['end']}" if named else question


def place_in(question: str, papers: Collection[Paper], *, of_papers: bool, bare: bool) -> Place:
    """The venue and the year to which a question restricts itself.

    Args:
        question: in its own words.
        papers: of the collection.
        of_papers: whether it asks for papers; others turn on years and unknown venues more often than they restrict themselves to them.
        bare: whether it is words without a question around them.
    """
    venues = sorted({p.venue for p in papers if p.venue}, key=lambda v: (-len(v), v))
    found = [(v, m) for v in venues if (m := _venue(v, question, end=bare))]
    if of_papers and not found:
        # One of which nothing is here: its name is no topic, and without it papers of other venues would be listed as its.
        found = [(v, m) for v in _elsewhere(question, papers) if (m := _venue(v, question, end=False))]
    rest, venue, notices = question, None, []
    if len(found) == 1:
        venue, match = found[0]
        year = match["year"] or next((y for name in ("before", "short") if (y := match.groupdict().get(name))), "")
        beside = f" {_MARK} {year if len(year) == 4 else f'20{year}'} " if year else " "
        rest = re.sub(r"\bpapers only\b", "papers", f"{question[: match.start()]}{beside}{question[match.end() :]}")
    elif len(found) > 1 and any(p.venue not in dict(found) for p in papers):
        notices.append(f"Only one venue at a time can be a filter; {' and '.join(f'“{v}”' for v, _ in found)} were looked for as words.")
    rest, year_found, about = _years(rest, papers, of_papers=of_papers, bare=bare)
    rest = rest.replace(_MARK, "in")
    left = [m[0] for m in _LEFT.finditer(rest) if of_papers or not any(m[0] in p.text or m[0] in (p.title or "") for p in papers)]
    if of_papers and not found:
        left += [v for v in venues if sum(map(str.isupper, v)) > 1 and re.search(rf"(?<![\w-]){re.escape(v)}(?![\w-])", rest, re.IGNORECASE)]
    notices += [*about, *(f"“{word}” was looked for as a word, not taken for when or where a paper was published." for word in dict.fromkeys(left))]
    return Place(rest, venue, year_found, tuple(notices))


def _years(question: str, papers: Collection[Paper], *, of_papers: bool, bare: bool) -> tuple[str, int | None, tuple[str, ...]]:
    """The question without its year, the year, and notices. Of several years, those that all papers here or none are of need no filter or allow nothing."""
    if of_papers:
        for form, within in ((_TWO_YEARS, _between), (_SINCE, _since), (_UNTIL, _until)):
            if found := form.search(question):
                return _several(question, found, within(found), papers)
    forms = (*(_YEAR_OF_PAPERS if of_papers else _YEAR_OF_FACT), *([_YEAR_OF_WORDS] if bare else []))
    for form in forms:
        if found := form.search(question):
            year = next(y for y in found.groups() if y)
            return f"{question[: found.start()]} {question[found.end() :]}", int(year), ()
    return question, None, ()


def _several(question: str, found: re.Match[str], within: Callable[[int], bool], papers: Collection[Paper]) -> tuple[str, int | None, tuple[str, ...]]:
    rest = f"{question[: found.start()]} {question[found.end() :]}"
    said = " ".join(re.sub(rf"^[\s,;({_MARK}]+|\)$", "", found[0]).split())
    here = {p.year for p in papers}
    fitting = {y for y in here if y and within(y)}
    if fitting == here:
        return rest, None, ()
    if len(fitting) == 1:
        return rest, fitting.pop(), ()
    if not fitting:
        # Nothing is of any of these years, so one of them stands for all.
        year = next(int(y) + n for y in re.findall(r"\d{4}", found[0]) for n in (0, 1, -1) if within(int(y) + n))
        return rest, year, (f"No paper here is of the years that “{said}” means.",)
    return rest, None, (f"Only one year at a time can be a filter; “{said}” means several that are here, and was left out.",)


def _between(found: re.Match[str]) -> Callable[[int], bool]:
    first, last = sorted((int(found["first"]), int(found["last"])))
    either = re.search(r"\bor\b|/", found[0]) is not None
    return lambda year: year in (first, last) if either else first <= year <= last


def _since(found: re.Match[str]) -> Callable[[int], bool]:
    first = int(found["year"]) + bool(found["past"])
    return lambda year: year >= first


def _until(found: re.Match[str]) -> Callable[[int], bool]:
    last = int(found["year"]) - bool(found["past"])
    return lambda year: year <= last


def _venue(venue: str, question: str, *, end: bool) -> re.Match[str] | None:
    """Where a question restricts itself to a venue; a year right before or after it is told, too."""
    if venue.casefold() not in question.casefold():
        return None  # most are not named, and the patterns for each would have to be compiled
    # A venue that is written like a word ("Nature") is one only with a capital; an acronym however it is typed.
    acronym = sum(c.isupper() for c in venue) > 1
    dated = rf"(?:[\s'’,(-]*(?P<year>{_YEAR})|[\s'’]*(?P<short>\d\d)(?![\w-]))\)?"
    one = rf"(?!{_TO}(?:19|20)\d\d)"
    named = rf"(?<![\w-]){re.escape(venue)}(?:['’]s(?=\s))?(?:{dated}{one})?(?![\w])(?!-[a-z])(?: (?:conference|proceedings)\b)?"
    places = [
        rf"\s*\(?\b{_IN} (?:the )?(?:(?P<before>{_YEAR}) )?{named}",
        rf"{named}(?: only)?(?=:?\s+(?:[\w-]+\s+){{0,2}}{THINGS}\b)",
        rf"(?<=\bin ){named}",
        rf"\b(?:did|has|does) {named} (?:publish|accept|print)\w*\b",
    ]
    if acronym:
        # Set off by punctuation, or last with a year.
        places += [rf"\s*[,;(?.!–—]\s*{named}(?: only)?{_END}\)?", rf"\s+{named}(?<=\d){_END}", *([rf"\s+{named}(?=\W*$)"] if end else [])]
    return next((m for place in places for m in re.finditer(place, question, re.IGNORECASE if acronym else re.NOFLAG)), None)


def _all_venues(papers: Collection[Paper]) -> set[str]:
    return {*_KNOWN_VENUES, *(p.venue for p in papers if p.venue)}


def _elsewhere(question: str, papers: Collection[Paper]) -> tuple[str, ...]:
    """Names of venues that no paper here is of: well-known ones, and acronyms in no abstract with a year behind them ("at XYZ 2023")."""
    dated = (v for v in _DATED.findall(question) if not any(v in p.text or v in (p.title or "") for p in papers))
    return tuple(dict.fromkeys((*_KNOWN_VENUES, *dated)))
