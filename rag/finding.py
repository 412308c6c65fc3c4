"""What is found for a question that was read: its papers, which kind of answer they allow, and whether they answer it.

The kind is settled here, since it hangs on what is found: words that compare are a comparison only if two papers are told, and a question
that names two papers is one whatever its words. A side that is not here is said to be missing, never left out silently.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rag.absent import absent_names
from rag.answerable import judge
from rag.evidence import EvidenceFinder
from rag.filters import matches, unmet
from rag.kinds import is_foreign, kind_of, names_in
from rag.markup import plain
from rag.metadata import asked_for, subject_of, told
from rag.names import named_papers
from rag.reading import Reading
from rag.records import BY_PAPER, Hit, Judgement, Kind, Paper
from rag.retrieval import HybridRetriever
from rag.sides import sides_in, two_of
from rag.text import content_stems, together, tokens
from rag.topics import COMPARED, candidates, holds, on_topic, telling

#: The confidence is at most this where a name that is asked for is nowhere here.
AMISS = 0.5
#: A side told by a description ("the 1-bit scheme for LLMs") is the nearest paper if its words are at least this near: of 8 descriptions of
#: papers here 7 are, of 20 of methods that are not here 3 (at 0.5: 7 and 12).
SIDE_FROM = 0.65


@dataclass(slots=True)
class Found:
    """What is found: the kind as settled, what was looked for, papers best first, and how they answer.

    `frame` introduces an answer whose words are known before its quotes are (authors, a paper that was pointed at), `searched` is the number of
    papers that met the filters.
    """

    kind: Kind
    topic: str
    hits: list[Hit]
    judgement: Judgement
    searched: int
    frame: str = ""
    notices: list[str] = field(default_factory=list)


class Search:
    """Finds papers for readings in one collection.

    Args:
        papers: by id.
        retriever: ranks them.
        finder: for the words.
    """

    def __init__(self, papers: Mapping[str, Paper], retriever: HybridRetriever, finder: EvidenceFinder) -> None:
        self._papers, self._retriever, self._finder = papers, retriever, finder

    def find(self, reading: Reading, most: int, *, extractive: bool) -> Found:
        """The papers for a question, at most so many where it does not ask for a list.

        Args:
            reading: the question, read.
            most: papers wanted.
            extractive: no language model will read the question, so one in another language can only be matched by its names.
        """
        allowed = [p for p in self._papers.values() if matches(p, reading.filters)]
        if not allowed and self._papers:
            return Found(reading.kind, reading.topic, [], Judgement("no_paper", 0.0, False), 0, unmet(reading.filters, self._papers.values()))
        if reading.within:
            return self._among(reading, self.find(reading.within, most, extractive=extractive))
        if reading.kind == "paper":
            return self._pointed(reading, len(allowed))
        if reading.kind in BY_PAPER and not reading.topic:
            hits = [Hit(p, 1.0) for p in sorted(allowed, key=lambda p: (p.venue or "", -(p.year or 0), p.origins[0].file, p.origins[0].position))]
            return Found(reading.kind, "", hits, Judgement("answered" if hits else "no_paper", 1.0 if hits else 0.0, False), len(allowed))
        if reading.kind == "metadata" and (known := self._known(reading, len(allowed))):
            return known
        foreign = extractive and is_foreign(reading.question)
        names = names_in(reading.topic) if foreign else ()
        topic = " ".join(names) or reading.topic
        listed = reading.kind in BY_PAPER
        only = reading.link.papers if reading.link else ()
        hits = [Hit(p, 1.0, {"abstract": 1.0, "sentence": 1.0, "lexical": 1.0}) for p in only] or self._retriever.search(
            topic, COMPARED if listed else most, reading.filters
        )
        found = Found("fact" if reading.kind in ("paper", "metadata") else reading.kind, topic, hits, self._judged(topic, hits, reading), len(allowed))
        if only and found.judgement.outcome == "no_paper":
            found.judgement = replace(found.judgement, outcome="answered", hedged=True)
        if reading.link and not only:
            found.notices.append(f"No paper here has the link “{reading.link.text}”; it was left out.")
        if listed:
            self._list(found)
            if reading.filters.venue or reading.filters.year:
                self._as_everywhere(found, reading)
        else:
            self._set_sides(found, reading, allowed)
        if foreign:
            self._by_names(found, names)
        elif not only:
            self._miss_names(found, named=bool(reading.pointed))
        return found

    def _judged(self, topic: str, hits: Sequence[Hit], reading: Reading) -> Judgement:
        """Whether the hits answer; a paper that the question names is here, whatever its abstract says."""
        named = len(reading.pointed) == 1 and bool(hits) and reading.pointed[0].id == hits[0].paper.id
        return judge(topic, hits, self._finder, named=named)

    def _among(self, reading: Reading, listed: Found) -> Found:
        """Those papers of a list that meet what is asked of them."""
        kept = {h.paper.id for h in listed.hits if matches(h.paper, reading.filters)}
        # The quote shows what was asked for last.
        topic = reading.topic or ("" if reading.filters.code else listed.topic)
        found = replace(listed, kind=reading.kind, topic=topic, hits=[h for h in listed.hits if h.paper.id in kept], searched=len(listed.hits))
        if reading.topic and kept:
            found.hits = [h for h in self._retriever.search(topic, len(self._papers), reading.filters) if h.paper.id in kept]
            found.judgement = judge(topic, found.hits, self._finder)
            self._list(found)
        if not found.hits or found.judgement.outcome == "no_paper":
            found.judgement = Judgement("no_paper", 0.0, False)
            found.frame = f"None of the {len(listed.hits)} abstracts of that list fits this."
        return found

    def _pointed(self, reading: Reading, searched: int) -> Found:
        """A paper that was pointed at by its title, a link or its name alone."""
        hits = [Hit(p, 1.0) for p in reading.pointed]
        if not hits:
            text = reading.link.text if reading.link else reading.question
            return Found("paper", "", [], Judgement("no_paper", 0.0, False), searched, f"No paper here has the link “{text}”.")
        first = hits[0].paper
        frame = f"“{plain(first.title)}”, {first.label}:" if first.title else f"{first.label}:"
        return Found("paper", plain(first.title or ""), hits, Judgement("answered", 1.0, False), searched, frame)

    def _known(self, reading: Reading, searched: int) -> Found | None:
        """A question that the metadata of one paper answer; nothing where no paper is told, so that it is answered like any other."""
        subject = subject_of(reading.topic)
        named = reading.pointed or tuple(named_papers(subject, self._papers.values()))
        hits = [Hit(named[0], 1.0)] if len(named) == 1 else []
        if not hits:
            near = self._retriever.search(subject, 1, reading.filters)
            clear = near and content_stems(subject) and judge(subject, near, self._finder).outcome == "answered"
            hits = near if clear and self._finder.coverage(content_stems(subject), content_stems(near[0].paper.title or "")) == 1.0 else []
        if not hits:
            return None
        asked = asked_for(reading.topic)
        frame = told(hits[0].paper, asked)
        if not frame:
            name = f"“{plain(hits[0].paper.title)}”" if hits[0].paper.title else hits[0].paper.label
            frame = f"{name} is here, but nothing is listed of its {asked}. It is about this:"
            return Found("metadata", subject, hits, Judgement("not_in_abstract", 0.0, False), searched, frame)
        return Found("metadata", subject, hits, Judgement("answered", 1.0, False), searched, frame)

    def _list(self, found: Found) -> None:
        """Keeps the papers that are on the topic; where all its telling words stand together in one, that one is about it."""
        found_ = candidates(found.topic, found.hits, self._finder)
        if not found_.hits or not found_.rest:
            # Set phrases ("survey papers") are there or not.
            found.judgement = Judgement("answered", 1.0, False) if found_.hits else replace(found.judgement, outcome="no_paper", hedged=False)
        elif found.judgement.outcome != "answered":
            if not found_.exact:
                return
            found.judgement = replace(found.judgement, outcome="answered", hedged=True)
        elif found_.partial:
            found.judgement = replace(found.judgement, hedged=True)
        found.hits = on_topic(found_, self._finder) or found.hits[:1]

    def _as_everywhere(self, found: Found, reading: Reading) -> None:
        """Leaves out what is on the topic only beside the other papers of a venue or a year, and not beside those of all."""
        every = self._retriever.search(found.topic, COMPARED, replace(reading.filters, venue=None, year=None))
        on = {h.paper.id for h in on_topic(candidates(found.topic, every, self._finder), self._finder)}
        off = {h.paper.id for h in every} - on
        kept = [h for h in found.hits if h.paper.id not in off]
        if not kept and found.judgement.outcome == "answered":
            found.judgement = replace(found.judgement, hedged=True)
        found.hits = kept or found.hits

    def _set_sides(self, found: Found, reading: Reading, allowed: Sequence[Paper]) -> None:
        """Makes a question that names or describes several papers a comparison of these, each of them read."""
        if found.kind not in ("claim", "compare") and len(reading.pointed) < 2 and kind_of(reading.topic) != "compare":
            return
        sides = list(reading.pointed) if len(reading.pointed) > 1 else []
        missing: list[str] = []
        if not sides and found.kind == "compare":
            sides, missing = self._described(found.topic, reading, allowed)
        if len(sides) < 2 and not (sides and missing):
            found.kind = "fact" if found.kind == "compare" else found.kind
            return
        scores = {h.paper.id: h for h in found.hits}
        found.kind = "compare"
        found.hits = [scores.get(p.id, Hit(p, 0.0)) for p in sides]
        found.notices += [f"No abstract here is about “{side}”." for side in missing]
        if found.judgement.outcome != "answered":
            found.judgement = replace(found.judgement, outcome="answered", hedged=True)

    def _described(self, topic: str, reading: Reading, allowed: Sequence[Paper]) -> tuple[list[Paper], list[str]]:
        """The papers of sides that the question describes, and the names that no paper here bears."""
        if what := two_of(topic):
            both = on_topic(candidates(what, self._retriever.search(what, COMPARED, reading.filters), self._finder), self._finder)
            return [h.paper for h in both[:2]] if len(both) > 1 else [], []
        sides: list[Paper] = []
        missing: list[str] = []
        for side in sides_in(topic):
            named = named_papers(side, allowed)
            hits = [Hit(named[0], 1.0)] if named else self._retriever.search(side, 3, reading.filters)
            free = [h.paper for h in hits if h.paper not in sides]
            if named or (free and self._is_side(side, free[0])):
                sides.append(named[0] if named else free[0])
            elif any(not any(holds(p, n) for p in allowed) for n in names_in(side)):
                missing.append(side)
            else:
                return [], []
        return list({p.id: p for p in sides}.values()), missing

    def _is_side(self, side: str, paper: Paper) -> bool:
        """Whether a description fits a paper; a name in it must be there."""
        return all(holds(paper, n) for n in names_in(side)) and self._finder.closeness(side, paper.text)[0] >= SIDE_FROM

    def _miss_names(self, found: Found, *, named: bool) -> None:
        """Says which names of the question nothing here holds, and declines where it is about one of them and names nothing that is here."""
        missing = absent_names(found.topic, self._papers.values(), found.hits, self._retriever.words)
        if missing.passing and found.judgement.outcome == "answered":
            found.judgement = Judgement("answered", min(found.judgement.confidence, AMISS), True)
            found.notices.append(f"Only in a row of names do the abstracts here mention {together(f'“{name}”' for name in missing.passing)}.")
        told_ = " ".join(found.notices)
        new = [f"“{name}”" for name in missing.names if name not in told_]
        if not new:
            return
        said = f"No abstract here mentions {together(new)}."
        known = named or missing.others or found.kind == "compare"
        alone = missing.subject or (found.kind in BY_PAPER and not _beside(found.topic, missing.names))
        if found.judgement.outcome == "answered" and alone and not known:
            found.judgement = Judgement("no_paper", min(found.judgement.confidence, AMISS), False)
        elif found.judgement.outcome == "answered" and (alone or not known):
            found.judgement = Judgement("answered", min(found.judgement.confidence, AMISS), True)
        if found.judgement.outcome == "no_paper" and not known:
            found.frame = said
        else:
            found.notices.append(said)

    def _by_names(self, found: Found, names: Sequence[str]) -> None:
        """Hedges what was found for the names of a question in another language, if the first paper holds at least half of them."""
        found.notices.append("Without a language model only English is understood; of this question nothing but its names could be matched.")
        told_ = set(tokens(f"{found.hits[0].paper.title or ''} {found.hits[0].paper.text}")) if found.hits else set()
        fits = bool(names) and 2 * sum(set(tokens(name)) <= told_ for name in names) >= len(names)
        # Names that match say little of what was asked, however near they are.
        confidence = min(found.judgement.confidence, 0.5)
        found.judgement = Judgement("answered" if fits else "no_paper", confidence, hedged=fits)


def _beside(topic: str, names: Sequence[str]) -> bool:
    """Whether a topic tells more than some names."""
    return bool(set(telling(topic)) - {s for name in names for s in content_stems(name)})
