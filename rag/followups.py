"""A follow-up made a question that stands alone, by rules.

What it points at is the paper cited first in the last turn that cited one, unless it says otherwise ("the other one", "back to the
pairwise one"). That paper's name takes the pronoun's place, or is added where the question has no subject of its own ("And the
code?"). A question that stands alone is left as it is, and so is one that holds what its pronoun means ("Why do LLMs hallucinate, and
when do they stop?").

Gold conversations, later turns whose right paper is ranked first (dev 53, test 36 turns): 0.887 and 0.833; with each first pronoun
simply replaced 0.717 and 0.778. Of the gold questions that stand alone, asked after a question on the paper nearest to them, 0 of
267 (dev) and 9 of 326 (test) are changed; by the simple rule 77 and 84, most of them for the worse.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence

from rag.kinds import kind_of
from rag.markup import plain
from rag.records import Paper, Turn
from rag.text import content_stems

#: Turns that a follow-up may look back on.
MEMORY = 6
#: A title's part before its colon names the paper if it is at most this many words and no other paper's.
NAME_WORDS = 6
#: A longer name is put in quotes, so that the sentence around it can still be read.
BARE_WORDS = 3
#: Words of a title, or of an abstract without one, that say enough.
TITLE_WORDS = 20
#: "They" after a list means its papers; the names of more would drown the question.
NAMED_TOGETHER = 3
#: A name that more abstracts hold is spoken of in passing ("ImageNet") and tells no paper.
NAMED_IN = 3
#: Words that can be asked of any paper: a question of no others leans on what was said before ("Which data were used?").
_ASKED_OF_ANY = (
    "accuracy achieve add address advantage aim algorithm allow already alternative analysis another answer any anyone anything application approach area "
    "ask assume assumption attain author available average avoid back base baseline beat benchmark benefit best better big bring budget build call case "
    "cause challenge change cheap choose claim code combine come common compare comparison complex component compute conclude conclusion condition "
    "conference consider construct contribution corpus cost create current data dataset day deal decrease define demand depend describe design detail "
    "develop device difference different disadvantage domain drawback drop ease effect effective efficiency efficient else enable end ensure equation error "
    "evaluate evaluation even ever evidence exactly example exceed existing expensive experiment explain extra fast faster feature few field figure final "
    "find finding fine first fix focus formula function gain gap general generalize get give go goal good group grow guarantee handle happen hardware help "
    "highest hold hour human hypothesis idea implement important improve improvement include increase input insight instance instead integrate introduce "
    "intuition issue journal keep key kind know lab large larger largest last lead learn limit limitation link list long look lose loss lot low lowest "
    "machine main maintain make many margin maximum mean means measure memory mention message method metric minimum model module more motivation much name "
    "need new novel number objective obtain often ok old one open optimization optimize outperform output overall package parameter part participant people "
    "percent perform performance phase pick piece point possible power precise previous price prior problem procedure proof property propose prove public "
    "purpose quality question quick raise rate ratio reach read real really reason reduce refer relate release rely remain remove replace report repository "
    "require research resource result resulting rival robust robustness run sample save say scale scenario score second see select sentence set setting "
    "share short show simple simulation size slow small smaller software solve something special specific speed stable stage standard start state statement "
    "step still strong stronger study subject such suffer suggest summarize summary sure surpass take target task team technique tell term test thank "
    "theorem theoretical theory thing think time tool topic total traditional train training treat try tune tuning type typical understand university use "
    "useful usual validate validation value version want way weak weakness without word work world worse write yes "
)
_NOUNS = "paper|method|approach|model|work|framework|algorithm|technique|abstract|study"
#: "Is it possible to …", "does it matter whether …": the pronoun stands for what follows.
_EXPLETIVE = (
    r"possible|true|known|clear|important|necessary|useful|enough|easy|hard|likely|correct|worth|matter|make sense|take|rain"
    r"|(?:better|best) to|an? [\w\s]+?,? (?:to|that|according)"
)
_POINTS = re.compile(
    rf"(?P<whose>\b(?:(?:its|their)(?!\s+own)|(?:the|this|that|these) (?:{_NOUNS}|authors)['’]s?)(?!\w))"
    rf"|\b(?:(?<!do )it(?!\s+(?:(?:is|was|be|been)\s+)?(?:{_EXPLETIVE})\b)|they|(?<!do )them|th(?:is|at|e same) (?:{_NOUNS}|one)|these (?:{_NOUNS})s"
    # "The paper on KV caches" says itself which is meant, and "the model weights" are no model.
    r"|(?:(?P<who>the authors)|the (?:paper|method|approach))(?!\s+(?:on|of|by|about|that|which|who|with|from|for|in|called|named|where)\b)"
    rf"|the (?:{_NOUNS})(?=\s*(?:[?.,;:!]|$))"
    r"|(?<!do )(?:this|that)(?=\s*(?:[?.!,]|$)|\s+(?:work|do|mean|compare|differ|help|need|use|scale|perform|achieve|cost|reduce|improve)\b|\s+\w+ed\s*\?)"
    r"|(?P<where>there)(?=\s*\?))\b",
    re.IGNORECASE,
)
_AUXILIARY = re.compile(r"\b(?:is|was|does|did|has|are|were|do|have|can|could|will|would|should|may)\s+$", re.IGNORECASE)
_PREPOSITION = re.compile(r"\b(?:with|in|for|by|to|on|of|than|from)\s+$", re.IGNORECASE)
_BREAK = re.compile(r"[,:;]|\b(?:and|but)\b", re.IGNORECASE)
_CIRCUMSTANCE = re.compile(
    r"^\W*(?:(?:and|but|so|then|what about|how about)\W+)?(?:for|on|in|with|at|without|under|given|compared|when|if|unlike|despite|after|before)\b",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"^\W*(?:and|but|also|so|then|what about|how about|as for)\b", re.IGNORECASE)
_INSTEAD = re.compile(r"^\W*(?:and|what about|how about)\s+(?:(?:for|with|in|at|from)\s+)?(?P<new>[^?:,;]+?)\s*\?*$", re.IGNORECASE)
_ELSEWHERE = re.compile(rf"\b(?:another|any other|other) (?:{_NOUNS})s?\b", re.IGNORECASE)
_YEAR = r"(?:19|20)\d\d"
_NAME = re.compile(r"[A-Za-z][\w-]*[A-Z\d][\w-]*")
_BACK_TO = re.compile(r"\bback to (?P<which>[^:,;.?!]+)", re.IGNORECASE)
_PLACE = re.compile(
    rf"\bthe (?P<place>first|second|third|last|former|latter|other)(?: (?:{_NOUNS}|one|of (?:them|these|those))\b|(?=\s*(?:[?:,;.!]|$)))", re.IGNORECASE
)
_PLACES = {"first": 0, "former": 0, "second": 1, "latter": 1, "third": 2, "last": -1}


def stand_alone(question: str, turns: Sequence[Turn], papers: Mapping[str, Paper]) -> str:
    """The question with what it points at put into words; the question itself where it stands alone or nothing was said before.

    Args:
        question: as asked.
        turns: the conversation so far, oldest first.
        papers: of the collection, by id.
    """
    cited = [found for t in turns[-MEMORY:] if (found := [papers[i] for i in t.paper_ids if i in papers])]
    if not cited:
        return question
    if placed := _placed(question, cited):
        (start, end), paper = placed
        return question[:start] + _quoted(_name(paper, papers)) + question[end:]
    before, topic = turns[-1].standalone_question, cited[-1][0]
    name = _name(topic, papers)
    if name.casefold() in plain(question).casefold():
        return question
    another = _names_another(question, topic, papers)
    if again := _asked_again(question, before, name if another else None, papers):
        return again
    known = set(content_stems(f"{topic.title or ''} {topic.text}"))
    points = _POINTS.search(question)
    if points and (points["where"] or not _own_antecedent(question[: points.start()], possessive=points["whose"] is not None)):
        several = points[0].lower() in ("they", "them", "their") and kind_of(before) == "list"
        said = _together(_quoted(_name(p, papers)) for p in cited[-1][: NAMED_TOGETHER if several else 1])
        said = f"{said}'s" if points["whose"] else f"in {said}" if points["where"] else f"the authors of {said}" if points["who"] else said
        return question[: points.start()] + said + question[points.end() :]
    if not content_stems(question):
        return before if before.endswith(question) else f"{before} {question}"
    if another or kind_of(question) == "list" or _ELSEWHERE.search(question):
        return question
    goes_on = _GOES_ON.search(question) and not (points or _has_topic(question))
    return f"{question} ({name})" if goes_on or _own_words(question) <= known else question


def _placed(question: str, cited: Sequence[Sequence[Paper]]) -> tuple[tuple[int, int], Paper] | None:
    """Where a question says "the first one", "the other one" or "back to …", and which paper that is."""
    told = list({found[0].id: found[0] for found in cited}.values())
    back, place = _BACK_TO.search(question), _PLACE.search(question)
    if back:
        words = _own_words(back["which"])
        shared = [len(words & set(content_stems(f"{p.title or ''} {p.text}"))) for p in told]
        if any(shared):
            return back.span("which"), told[shared.index(max(shared))]
    listed = cited[-1] if len(cited[-1]) > 1 and not back else told
    if place is None or len(listed) < 2:
        return None
    at = _PLACES.get(place["place"].lower(), 1 if listed is cited[-1] else -2)
    return (place.span(), listed[at]) if at < len(listed) else None


def _asked_again(question: str, before: str, name: str | None, papers: Mapping[str, Paper]) -> str | None:
    """The last question of another venue or year ("What about ICML?"), or, where a name is to be replaced, of another paper."""
    instead = _INSTEAD.search(question)
    if not instead:
        return None
    new = instead["new"]
    venues = "|".join(sorted({re.escape(p.venue) for p in papers.values() if p.venue}))
    for kind in (f"(?:{venues})", _YEAR):
        if re.fullmatch(kind, new, re.IGNORECASE):
            again, found = re.subn(rf"\b{kind}\b", lambda _: new, before, count=1, flags=re.IGNORECASE)
            return again if found else None
    if name and name.casefold() in before.casefold():
        return re.sub(re.escape(name), lambda _: new, before, count=1, flags=re.IGNORECASE)
    return None


def _names_another(question: str, topic: Paper, papers: Mapping[str, Paper]) -> bool:
    """Whether a question names another paper than the topic: by its name, or by a name that hardly any other abstract holds."""
    if _CIRCUMSTANCE.search(question):
        return False
    asked = plain(question)
    for word in _NAME.findall(asked):
        holders = [p for p in papers.values() if word in p.text or word in (p.title or "")]
        if 0 < len(holders) <= NAMED_IN and topic not in holders:
            return True
    # A head of one word may be a plain one ("Position"), so it counts only as it is written.
    heads = ((_head(p), p) for p in papers.values() if p is not topic)
    return any(head and (head in asked if " " not in head else head.casefold() in asked.casefold()) for head, _ in heads)


def _has_topic(question: str) -> bool:
    """Whether a question begins with what it is about: "And feedback alignment: when …"."""
    head, colon, _ = question.partition(":")
    return bool(colon and _own_words(head) and not _CIRCUMSTANCE.search(head))


def _own_antecedent(before: str, *, possessive: bool) -> bool:
    """Whether a pronoun points at what the same question named before it, and not at an earlier turn.

    "How do diffusion models keep their samples diverse?" does, "What accuracy on ImageNet does it reach?" does not, and "How
    large is the loss on ImageNet with it?" does not name enough to do so.
    """
    breaks = [m.start() for m in _BREAK.finditer(before)]
    own = len(_own_words(before[: breaks[-1]] if breaks else before))
    if not breaks and not possessive and _AUXILIARY.search(before):
        return False
    apart = _CIRCUMSTANCE.search(before) if breaks else not possessive and _PREPOSITION.search(before)
    return own >= (2 if apart else 1)


def _own_words(text: str) -> set[str]:
    """Stems that not every paper could be asked about."""
    return set(content_stems(text)) - _stems_asked_of_any()


@functools.cache
def _stems_asked_of_any() -> frozenset[str]:
    return frozenset(content_stems(_ASKED_OF_ANY))


def _head(paper: Paper) -> str:
    """What stands before the colon of a title, if it is short enough to be a name."""
    head, colon, _ = plain(paper.title or "").partition(":")
    return head.strip() if colon and len(head.split()) <= NAME_WORDS else ""


def _name(paper: Paper, papers: Mapping[str, Paper]) -> str:
    """What a paper is called in a question: the head of its title if that is its own, else the title, else its first words."""
    head = _head(paper)
    if head and not any(_head(p) == head for p in papers.values() if p.id != paper.id):
        return head
    return " ".join((plain(paper.title or "") or plain(paper.text)).split()[:TITLE_WORDS]).rstrip(".") or paper.label


def _quoted(name: str) -> str:
    return name if len(name.split()) <= BARE_WORDS else f"“{name}”"


def _together(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
