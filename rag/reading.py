"""A question read: what kind of answer it wants, what it is about, which papers it may be answered from, and which papers it points at."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from rag.filters import matches, merged, overruled
from rag.kinds import is_foreign, kind_of, topic_of
from rag.links import Link, link_in, titled
from rag.markup import plain
from rag.names import named_in, named_papers
from rag.records import BY_PAPER, Filters, Kind, Paper
from rag.restrictions import taken
from rag.text import content_stems
from rag.venues import fronted

#: Words that are left of "Which ICLR papers are there?" once its filters are taken out; they are no topic.
_NO_TOPIC = frozenset(
    content_stems("which what papers paper abstracts abstract articles publications list show name give find all any many number collection publish written")
)


_COMPARING = re.compile(
    r"\b(?:versus|vs|both|than|each|unlike|differ\w*|compar\w*|contrast\w*|beats?|outperform\w*|surpass\w*|better|worse|instead)\b", re.IGNORECASE
)
_JOINING = re.compile(r"\b(?:and|or|nor)\b|[,/]")
#: The papers of a list, told by the question that they answer, as a follow-up that counts them does.
FOUND_FOR = re.compile(r"\b(?:of the )?papers (?:are )?found for “(?P<list>.+)”")


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read out of a question.

    `topic` is what is looked for: the question without its frame, filters and links, empty where only filters are left. `pointed` are the
    papers that it means by title, link or name alone; `link` is a link that it holds, which may lead to no paper. `within` is the question whose papers
    alone are asked of. `notices` say what of its restrictions could not hold.
    """

    question: str
    kind: Kind
    topic: str
    filters: Filters
    pointed: tuple[Paper, ...] = ()
    link: Link | None = None
    within: Reading | None = None
    notices: tuple[str, ...] = ()


def read(question: str, papers: Collection[Paper], given: Filters, *, infer: bool = True, dropped: Collection[Filters] = ()) -> Reading:
    """Reads a stand-alone question.

    Args:
        question: as asked, its spelling repaired.
        papers: of the collection.
        given: filters that the caller gave; each of them goes before what the question's words say.
        infer: whether filters are taken out of the words at all.
        dropped: those that are taken out of the words, but do not hold.
    """
    if listed := FOUND_FOR.search(question):
        inner = read(listed["list"], papers, given, infer=infer, dropped=dropped)
        outer = read(f"{question[: listed.start()]}papers{question[listed.end() :]}", papers, given, infer=infer, dropped=dropped)
        if inner.kind in BY_PAPER:
            return replace(outer, question=question, filters=merged(outer.filters, inner.filters), within=inner, notices=(*inner.notices, *outer.notices))
    link = link_in(question, papers)
    asked = link.rest if link else question
    if link and not content_stems(asked):
        return Reading(question, "paper", "", given, link.papers, link)
    title = titled(asked, papers)
    if title:
        return Reading(question, "paper", asked, given, (title,), link)
    notices: tuple[str, ...] = ()
    rest, filters = asked, given
    if infer and not is_foreign(asked):
        asked = fronted(asked, papers)
        rest, found, notices = taken(asked, papers)
        found = found.less(dropped)
        filters, notices = merged(given, found), (*overruled(given, found), *notices)
    kind = kind_of(asked)
    topic = topic_of(rest)
    if kind in BY_PAPER and not set(content_stems(topic)) - _NO_TOPIC:
        topic = ""
    named: tuple[Paper, ...] = ()
    if topic and kind not in ("list", "count"):
        meant = [p for p in (link.papers if link and link.papers else papers) if matches(p, filters)]
        named = tuple(dict.fromkeys((*named_papers(topic, meant), *_in_quotes(topic, meant))))
        if kind in ("why", "how") and len(named) > 1 and not _compares(topic, meant):
            named = named[:1]
    if kind == "keywords" and named and _only_names(topic, named):
        kind = "paper" if len(named) == 1 else "list"
    if kind == "keywords" and (filters.author or filters.venue or filters.year or filters.code or filters.exclude or filters.not_by):
        kind = "list"
    return Reading(question, kind, topic, filters, link.papers if link and link.papers else named, link, notices=notices)


def _compares(topic: str, papers: Collection[Paper]) -> bool:
    """Whether a question that names several papers asks of each of them: "Why does LRM use NeRF?" asks of the first."""
    folded = topic.casefold()
    places = [folded.find(name.casefold()) for name, _ in named_in(topic, papers)]
    between = folded[min(places, default=0) : max(places, default=0)]
    return _COMPARING.search(topic) is not None or _JOINING.search(between) is not None or "“" in topic


def _in_quotes(topic: str, papers: Collection[Paper]) -> list[Paper]:
    """The papers whose title, or the part of it before its colon, stands in quotation marks: a follow-up calls a long one so."""
    quoted = {q.casefold() for q in re.findall('[“"]([^”"]+)[”"]', topic)}
    if not quoted:
        return []
    titles = ((p, plain(p.title or "").casefold()) for p in papers)
    return [p for p, title in titles if title and {title, title.partition(":")[0].strip()} & quoted]


def _only_names(topic: str, named: Collection[Paper]) -> bool:
    """Whether words alone are nothing but names of papers: all of them stand in the titles or are one name."""
    return set(content_stems(topic)) <= {s for p in named for s in content_stems(p.title or "")} or len(topic.split()) == 1
