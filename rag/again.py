"""Follow-ups that ask the last question again: elsewhere ("What about ICML?"), under other circumstances ("On images?"), for others ("Another one?"),
for a number ("How many of them release code?")."""

from __future__ import annotations

import re

from rag.calling import place_in, subject_of
from rag.pointing import points_back
from rag.reading import FOUND_FOR
from rag.talk import Talk
from rag.text import together

#: What a question for another paper leaves out, as a person reads it and may take it away.
LEFT_OUT = re.compile(r"\s*(\(other than “.*?”\))")
_YEAR = r"(?:19|20)\d\d"
_OPENS = r"^\W*(?:(?:and|or|but|also|only|just|then|what about|how about)\s+)*"
_CORRECTS = re.compile(
    r"^\W*(?:(?:no|nope|sorry|actually|wait|not that(?: one)?)\b\W*)*\bi (?:mean|meant|was (?:asking|talking|thinking) (?:about|of))\s+(?P<meant>.+)$"
    r"|^\W*(?:no|nope|sorry|not that(?: one)?)\s*[,;:.–—-]\s*(?P<rather>.+)$",
    re.IGNORECASE,
)
_VERB = re.compile(r"\b(?:is|are|was|were|do|does|did|has|have|can|could|will|would|should)\b", re.IGNORECASE)
_ASKS = re.compile(rf"{_VERB.pattern}|\b(?:how|which|what|who|whose|why|where|when)\b", re.IGNORECASE)
_PREPOSITIONS = "for|on|in|with|at|without|under|from|against|over|of|to|than|by"
_CIRCUMSTANCE = re.compile(rf"{_OPENS}(?P<how>(?P<preposition>{_PREPOSITIONS})\s+[^?,;:.]+?)\W*$", re.IGNORECASE)
#: "In creative writing" gives way to "for agent planning".
_ALIKE = "(?:for|on|in|at)"
#: Words of a circumstance at the end of a question, its preposition included.
_CIRCUMSTANCE_WORDS = 5
_THINGS = r"(?:papers?|abstracts?|articles?|publications?|stud(?:y|ies)|works?|ones?)"
#: "Does it beat other methods?" looks for no paper, and "the other paper" is one that was spoken of.
_ANOTHER = re.compile(
    r"^\W*(?:(?:and|also|ok|so|but|is|are|there|any|do|does|did|you|have|know|of|show|find|give|name|me|which|what|some|one)\W+)*"
    rf"(?:(?:another|others?|more|further)\s+{_THINGS}\b|(?:anything|something) else(?=\s+(?:on|about)\b)|(?:others|another|any more)(?=\W*$))",
    re.IGNORECASE,
)
_ON_THIS = re.compile(
    r"^\s*(?:here\s*)?(?:(?:on|about|like|of|for|in|with|related to|similar to)\s+"
    r"(?:this|that|it|them|these|those|the same|the)(?:\s+(?:one|topic|subject|problem|thing|area|question|paper)s?)?)?\s*(?:here|too|as well)?\W*$",
    re.IGNORECASE,
)
#: "How many layers does it have?" counts no papers, and "How many papers release code?" those of the collection: without "of them", only what can be
#: said of papers is asked of the list.
_HOW_MANY = re.compile(
    rf"^\W*(?:(?:and|so|but|ok)\W+)*how many(?P<of> of (?:them|these|those|the)(?: {_THINGS})?)?(?P<things> {_THINGS})?\b"
    r"(?P<all>(?: (?:are (?:there|they|these|those|that|listed)|is that|were found|did you find|do you have|in total|altogether|here))*\W*$)?"
    r"(?P<what>\s+(?:(?:are |were |is )?(?:not )?(?:from|at|in|by|on|about|with|without)|releas|publish|shar|provid|giv|com|have|has|do not|don['’]t)\w*\b.*)?"
    r"(?P<more>\s.*)?",
    re.IGNORECASE,
)
_BARE = re.compile(r"^\W*(?:and\s+|also\s+|ok\W+|so\s+|but\s+)*(?=(?P<one>another\b)|(?:other|others|more|further)\b)", re.IGNORECASE)


def meant_instead(question: str) -> str:
    """A correction as the question that it stands for: "No, I meant the ICML one" asks what about that."""
    found = _CORRECTS.match(question)
    if not found:
        return question
    meant = (found["meant"] or found["rather"]).strip()
    return meant if _ASKS.search(meant) else f"What about {meant.rstrip('.?! ')}?"


def elsewhere(question: str, talk: Talk) -> str | None:
    """The last question of another venue or year: in the place of its own, or added to it."""
    venues = "|".join(sorted({re.escape(p.venue) for p in talk.papers.values() if p.venue}))
    what = rf"(?:(?:for|in|at|from)\s+)?(?:the\s+)?(?:(?P<venue>{venues or '(?!)'})(?:\s+(?P<of>{_YEAR}))?|(?P<year>{_YEAR}))"
    found = re.match(rf"{_OPENS}{what}(?P<one>\s+(?:one|paper|abstract)(?P<s>s)?)?\W*$", question, re.IGNORECASE)
    if not found:
        return None
    kind, new = (f"(?:{venues})", found["venue"]) if found["venue"] else (_YEAR, found["year"])
    again, changed = re.subn(rf"\b{kind}\b", lambda _: new, talk.before, count=1, flags=re.IGNORECASE)
    if changed:
        return again
    if found["one"] and not found["s"] and found["venue"]:
        told = [p for t in reversed(talk.told) for p in t.papers if (p.venue or "").casefold() == new.casefold()]
        if told and (said := talk.instead(talk.name(told[0]))):
            return said
    return ended(talk.before, f"at {new} {found['of'] or ''}".rstrip() if found["venue"] else f"in {new}")


def otherwise(question: str, talk: Talk) -> str | None:
    """The last question under another circumstance ("And for images?"), which takes the place of the one that it had."""
    found = _CIRCUMSTANCE.match(question)
    if not found or _VERB.search(found["how"]):
        return None
    if _ASKS.search(found["how"]):
        return ended(question, f"in {talk.name(talk.topic)}")
    preposition = _ALIKE if re.fullmatch(_ALIKE, found["preposition"], re.IGNORECASE) else found["preposition"]
    ends = re.finditer(rf"\b{preposition}(?=(?:\s+[^\s?.!,;:]+){{1,{_CIRCUMSTANCE_WORDS - 1}}}\W*$)", talk.before, re.IGNORECASE)
    own = max((m.start() for m in ends), default=None)
    place = place_in(talk.before, talk.topic, talk.papers)
    if own is not None and not (place and place[1] > own):
        return f"{talk.before[:own]}{found['how']}?"
    return ended(talk.before, found["how"] if place or talk.told[-1].several else f"{found['how']} in {talk.name(talk.topic)}")


def another(question: str, talk: Talk) -> str | None:
    """A question for another paper, with those left out that were cited; its topic is the last list's, or the last paper's title."""
    found = _ANOTHER.match(question)
    if not found:
        return None
    others = left_out(talk)
    rest = question[found.end() :]
    on_this = _ON_THIS.match(rest)
    if on_this:
        listed = next((t for t in reversed(talk.told) if t.several and talk.topic in t.papers), None)
        if listed:
            return ended(LEFT_OUT.sub("", listed.question), others)
        rest = f" on {subject_of(talk.topic)}?"
    elif points := points_back(rest):
        rest = rest[: points.start()] + talk.name(talk.topic) + rest[points.end() :]
    asked = found[0].strip()
    bare = _BARE.match(asked)
    if not re.search(rf"\b{_THINGS}$", asked):
        asked = "Is there another paper"
    elif bare and (on_this or re.match(r"\s+(?:on|about|with|that|which|like|for)\b", rest)):
        asked = f"{'Is' if bare['one'] else 'Are'} there {asked[bare.end() :]}"
    return f"{asked} {others}{rest}"


def counted(question: str, talk: Talk) -> str | None:
    """How many papers of the last list there are, or are as the follow-up asks; they are told by the question that they answer."""
    found = _HOW_MANY.match(question)
    told = next((t for t in reversed(talk.told) if t.several), None)
    if not found or not told:
        return None
    if not found["of"] and (talk.told[-1] is not told or (found["all"] is None and (found["things"] or not found["what"]))):
        return None
    # What was counted before is counted of the list itself, so that a chain of these does not grow.
    before = FOUND_FOR.search(told.question)
    listed = before["list"] if before else told.question
    asked = (found["what"] or found["more"] or "").strip(" ?.!")
    return f"How many of the papers found for “{listed}” {asked}?" if asked else f"How many papers are found for “{listed}”?"


def left_out(talk: Talk) -> str:
    """The papers that another one is not, as a person reads them and may take them away."""
    return f"(other than {together('“' + talk.name(p).strip('“”') + '”' for p in talk.seen)})"


def ended(question: str, words: str) -> str:
    """A question with more words before its mark."""
    body = question.rstrip("?.! ")
    return f"{body} {words}{question[len(body) :].strip() or '?'}"
