"""A conversation so far, as a follow-up looks back on it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rag.calling import called, place_in, quoted
from rag.kinds import kind_of
from rag.markup import words
from rag.records import Paper, Turn
from rag.text import together, tokens

#: Turns that a follow-up may look back on.
MEMORY = 6
#: Kinds of question whose answer is about each paper that it cites; any other answer is about the first.
_OF_SEVERAL = frozenset(("list", "count", "keywords", "compare"))
#: The answer to such a text.
NOTHING_ASKED = "Nothing was asked. Ask more about these papers, or about others."
#: Words of a text that thanks or nods, and asks nothing.
_COURTESY = frozenset(
    words(
        "ok okay thanks thank you thx ty great good nice cool perfect super wonderful awesome excellent interesting very much so a lot many alright fine "
        "understood got it i see that helps helped helpful was is bye goodbye cheers hi hello hey well done sure yes no right all for now the help"
    )
)


@dataclass(frozen=True, slots=True)
class Told:
    """A stand-alone question, the papers that its answer cited, and whether it asked for papers."""

    question: str
    papers: tuple[Paper, ...]
    several: bool


@dataclass(frozen=True, slots=True)
class Talk:
    """What was said.

    `told` are the turns that cited a paper, `said` the stand-alone questions of all, both oldest first. `before` is the last question,
    without a "Why?" that was added to it, so that a chain of these does not grow.
    """

    papers: Mapping[str, Paper]
    told: tuple[Told, ...]
    said: tuple[str, ...]
    before: str

    @property
    def topic(self) -> Paper:
        """The paper spoken of last."""
        return self.told[-1].papers[0]

    @property
    def topics(self) -> tuple[Paper, ...]:
        """The paper of each turn, in order of first mention."""
        return tuple({t.papers[0].id: t.papers[0] for t in self.told}.values())

    @property
    def known(self) -> tuple[Paper, ...]:
        """Every paper that was cited, those spoken of first."""
        every = (p for t in reversed(self.told) for p in t.papers)
        return tuple({p.id: p for p in (*self.topics, *every)}.values())

    @property
    def together(self) -> tuple[Paper, ...]:
        """What "the two" are: the papers of the last list if the last paper is among them, else the last two spoken of."""
        lists = (t.papers for t in reversed(self.told) if t.several and len(t.papers) > 1 and self.topic in t.papers)
        return next(lists, self.topics[-2:])

    @property
    def seen(self) -> tuple[Paper, ...]:
        """The papers that another one is not: all of a list, the first of any other turn."""
        every = (p for t in self.told for p in (t.papers if t.several else t.papers[:1]))
        return tuple({p.id: p for p in every}.values())

    def name(self, paper: Paper) -> str:
        """What a paper is called in this conversation, as it stands in a sentence."""
        return quoted(called(paper, self.papers, self.said))

    def names(self, papers: Iterable[Paper]) -> str:
        """The names of papers in a row."""
        return together(self.name(p) for p in papers)

    def instead(self, name: str) -> str | None:
        """The last question with another name in the place of the paper's that it names; None where it names none that was spoken of."""
        for paper in dict.fromkeys((self.topic.id, *(p.id for p in self.topics))):
            if place := place_in(self.before, self.papers[paper], self.papers):
                return f"{self.before[: place[0]]}{name}{self.before[place[1] :]}"
        return None

    def at(self, paper: Paper) -> Talk:
        """The same, with another paper as the topic."""
        return replace(self, told=(*self.told, Told(self.before, (paper,), several=False)))


def talk_of(turns: Sequence[Turn], papers: Mapping[str, Paper]) -> Talk | None:
    """The last turns of a conversation; None where none of them cited a paper that is still there."""
    asked = [t for t in turns if not is_courtesy(t.question)][-MEMORY:]
    questions = tuple(t.standalone_question for t in asked)
    cited = [(q, tuple(papers[i] for i in t.paper_ids if i in papers)) for t, q in zip(asked, questions, strict=True)]
    told = tuple(Told(q, found, kind_of(q) in _OF_SEVERAL) for q, found in cited if found)
    if not told:
        return None
    before = re.sub(rf"(?<=[?.!]) {re.escape(asked[-1].question)}$", "", questions[-1], flags=re.IGNORECASE)
    return Talk(papers, told, questions, before)


def is_courtesy(question: str) -> bool:
    """Whether a text thanks or nods and asks nothing: "Thanks, that helps!"."""
    said = tokens(question)
    return bool(said) and not question.rstrip().endswith("?") and set(said) <= _COURTESY
