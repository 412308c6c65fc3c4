"""A follow-up made a question that stands alone, by rules.

What it points at is the paper cited first in the last turn that cited one, unless it says otherwise ("the other one", "back to the
pairwise one", "the two", "how many of them"). Its name takes the pronoun's place, or is added where the question has no subject of its own ("And the code?").
A follow-up that is no question ("What about ICML?", "No, I meant LESS") asks the last one again. "Another paper on this" leaves out what
was cited, in words that a person can take away again. A question that stands alone is left as it is, and so is one that holds what its
pronoun means ("Why do LLMs hallucinate, and when do they stop?").

Gold conversations, answerable turns, right paper cited and answer matched (all 55 conversations; filters read out of the question; dev 98,
test 76 turns): 0.95 0.91 and 0.92 0.84; before papers were ranked word by word 0.97 0.93 and 0.92 0.84, and by pronouns and missing subjects
alone 0.93 0.89 and 0.83 0.75. Of the gold questions that stand alone, asked after a question on the paper nearest to them, 0 of 249 (dev) and 8
of 308 (test) are changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from rag.again import another, counted, elsewhere, ended, meant_instead, otherwise
from rag.calling import head_of, place_in
from rag.kinds import kind_of, names_in
from rag.markup import plain, words
from rag.placing import NAMED_TOGETHER, back_to, placed, several, stems_of
from rag.pointing import CIRCUMSTANCE, goes_on, own_words, points_back
from rag.records import Paper, Turn
from rag.talk import Talk, is_courtesy, talk_of
from rag.text import content_stems, tokens

#: A name that more abstracts hold is spoken of in passing ("ImageNet") and tells no paper.
NAMED_IN = 3
_NAME_ALONE = re.compile(r"^\W*(?:and|or|what about|how about)\s+(?:(?:for|with|in|from)\s+)?(?P<name>[^?:,;]+?)\W*$", re.IGNORECASE)
_MORE = frozenset(words("more else elaborate continue expand detail details further explain"))
_MORE_FRAME = frozenset(
    words("can could would you please say tell me us give a bit little some about this that it what anything is there go on and ok so in the")
)
_ABOUT = re.compile(
    r"^\W*(?:and |but |so )*what(?:'s|’s| is| are| was| were) (?:(?P<several>they|these|those|the (?:two|three|papers))|it|this|that)(?: papers?)? about\W*$",
    re.IGNORECASE,
)
_OF_WHAT_WAS_SAID = re.compile(
    r"^\W*(?:and |but |so )*(?:(?:is|was) (?:it|that|this)|are they|(?:does|do|did|would|will) (?:that|this|these|the same))\s+"
    r"(?:also |still |even |then |really |generally )*(?:true|hold|apply|valid|the case|so)\b(?!\s+(?:that|to|whether|up)\b)",
    re.IGNORECASE,
)
_HOW = re.compile(r"^\W*(?:and |but |so )*(?P<how>how (?:fast|big|large|good|slow|small|expensive|costly|accurate|robust|much \w+er))\W*$", re.IGNORECASE)

_Rule = Callable[[str, Talk], "str | None"]


def stand_alone(question: str, turns: Sequence[Turn], papers: Mapping[str, Paper]) -> str:
    """The question with what it points at put into words; the question itself where it stands alone or nothing was said before.

    Args:
        question: as asked.
        turns: the conversation so far, oldest first.
        papers: of the collection, by id.
    """
    talk = talk_of(turns, papers)
    if talk is None or is_courtesy(question):
        return question
    asked = meant_instead(question)
    said = _put(asked, talk)
    return question if said == asked else said[:1].upper() + said[1:]


def _put(question: str, talk: Talk) -> str:
    """The question as the first rule that knows it puts it."""
    rules: tuple[_Rule, ...] = (_back, counted, elsewhere, another, placed, several, _more, _named, _of_what_was_said, _pronoun, otherwise, _leaning)
    return next((said for rule in rules if (said := rule(question, talk)) is not None), question)


def _back(question: str, talk: Talk) -> str | None:
    """What is asked after "Back to the pairwise one: …", with that paper as the topic."""
    found = back_to(question, talk)
    if not found:
        return None
    paper, rest = found
    if not content_stems(rest):
        return f"Tell me more about {talk.name(paper)}."
    said = _put(rest, talk.at(paper))
    return said if said != rest or place_in(said, paper, talk.papers) else ended(said, f"in {talk.name(paper)}")


def _more(question: str, talk: Talk) -> str | None:
    """More of the paper spoken of: "Can you say more?", "What are they about?"."""
    said = set(tokens(question))
    if about := _ABOUT.match(question):
        told = talk.told[-1].papers[: NAMED_TOGETHER if about["several"] else 1]
        return f"Tell me more about {talk.names(told)}." if len(told) > 1 else f"What is {talk.names(told)} about?"
    return f"Tell me more about {talk.name(talk.topic)}." if said & _MORE and said <= _MORE | _MORE_FRAME else None


def _named(question: str, talk: Talk) -> str | None:
    """A question that names its paper, which stands alone; a name by itself ("And BiLLM?") is the last question, asked of that."""
    if place_in(question, talk.topic, talk.papers):
        return question
    if not _names_another(question, talk):
        return None
    alone = _NAME_ALONE.match(question)
    if alone and not points_back(alone["name"]) and (again := talk.instead(alone["name"])):
        return again
    return None if points_back(question) else question


def _names_another(question: str, talk: Talk) -> bool:
    """Whether a question names another paper than the topic: by its name, or by a name that hardly any other abstract holds."""
    if CIRCUMSTANCE.search(question):
        return False
    asked, papers = plain(question), talk.papers.values()
    for word in names_in(asked):
        holders = [p for p in papers if word in p.text or word in (p.title or "")]
        if 0 < len(holders) <= NAMED_IN and talk.topic not in holders:
            return True
    # A head of one word may be a plain one ("Position"), so it counts only as it is written.
    heads = (head_of(p) for p in papers if p.id != talk.topic.id)
    return any(head and (head in asked if " " not in head else head.casefold() in asked.casefold()) for head in heads)


def _of_what_was_said(question: str, talk: Talk) -> str | None:
    """The last question and this one after it: "Why?", "Is that also true for images?"."""
    if content_stems(question) and not _OF_WHAT_WAS_SAID.match(question):
        return None
    return talk.before if talk.before.endswith(question) else f"{talk.before} {question[:1].upper()}{question[1:]}"


def _pronoun(question: str, talk: Talk) -> str | None:
    """The name in the place of the pronoun."""
    points = points_back(question)
    if points is None:
        return None
    together = points[0].lower() in ("they", "them", "their") and talk.told[-1].several
    told = talk.told[-1].papers[: NAMED_TOGETHER if together else 1]
    name = talk.names(told)
    people = points["who"] or (points[0].lower() == "they" and len(told) == 1)
    said = f"{name}'s" if points["whose"] else f"in {name}" if points["where"] else f"the authors of {name}" if people else name
    return question[: points.start()] + said + question[points.end() :]


def _leaning(question: str, talk: Talk) -> str | None:
    """The name added to a question that has no subject of its own, or whose words are all the paper's."""
    if how := _HOW.match(question):
        return f"{how['how']} is {talk.name(talk.topic)}?"
    if kind_of(question) == "list":
        return None
    return ended(question, f"in {talk.name(talk.topic)}") if goes_on(question) or own_words(question) <= stems_of(talk.topic) else None
