"""What kind of answer a question wants, what it is about once the words that ask for papers are taken off, and what else its words tell."""

from __future__ import annotations

import re

from rag.markup import words
from rag.records import Kind

#: "Works" and "studies" are verbs more often than not ("Which optimiser works best?").
_THINGS = r"(?:papers?|abstracts?|articles?|publications?)"
_FRAME = re.compile(
    rf"^\W*(?:(?:in |on )?(?:which|what(?! do| does| did| is| are)|how many|list|find|show|name|give|enumerate|any|are there|is there|do any|does any|who)\b"
    rf"[^.?!]{{0,40}}?\b{_THINGS}\b"
    rf"|(?:is|are) there (?:anything|something|any)\b(?: here)?|(?:list|enumerate)\b)"
    rf"(?:\s+(?:here|in (?:this|the) collection|on|about|that|which|are|is|there|do|does)\b)*",
    re.IGNORECASE,
)
#: "In the paper …", "the authors of …": a paper is spoken of, not looked for.
_ONE_PAPER = re.compile(r"\b(?:the|this|that|its|their) (?:[\w-]+ ){0,4}(?:paper|abstract|article|publication)\b|\bthe authors?\b", re.IGNORECASE)


def kind_of(question: str) -> Kind:
    """`list` if the question asks for papers ("Which papers …", "List all …"), else `fact`."""
    return "list" if _FRAME.match(question) and not _ONE_PAPER.search(question) else "fact"


def topic_of(question: str) -> str:
    """What a list question is about: "Which papers compress the KV cache?" asks of "compress the KV cache?".

    The words that ask for papers are in no abstract, so compared word by word they would count against every one. A question of
    another kind, or one that is nothing but a frame, is returned as it is.
    """
    if kind_of(question) != "list":
        return question
    rest = _FRAME.sub("", question, count=1).strip()
    return rest if any(c.isalnum() for c in rest) else question


#: Function words of German, French, Spanish, Italian and Portuguese that are no English words.
_FOREIGN = frozenset(
    words(
        "wie wird wurde werden welche welcher welches warum wo wer ist sind und oder der das dem den ein eine einer eines für mit auf von zu nicht kann "
        "quel quelle quels quelles comment pourquoi combien est sont les des une dans pour avec sur par sans du au aux et ou que qui "
        "cuál cuáles cuánto cuántos cuántas cómo qué por los las el un una para sobre según del y "
        "quale quali quanto quanti come perché il lo gli della delle nel nella con è qual quais quantos onde são os as uma em não ao"
    )
)
_ENGLISH = frozenset(words("a an the of to for with by from is are were be does do did how what which who why when where can could it its that this on"))
#: A capital or a digit after the first letter: the name of a method, a model or a data set, alike in every language.
_NAME = re.compile(r"(?<![A-Za-z0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]+[-_^]?[A-Z0-9][A-Za-z0-9+-]*")


def is_foreign(question: str) -> bool:
    """Whether a question looks as if it were not in English: another script, or more function words of other languages."""
    letters = [c for c in question if c.isalpha()]
    if sum(ord(c) > 0x24F for c in letters) > len(letters) / 3:
        return True
    asked = re.findall(r"[^\W\d_]+", question.casefold())
    return sum(w in _FOREIGN for w in asked) > sum(w in _ENGLISH for w in asked)


def names_in(question: str) -> tuple[str, ...]:
    """The names in a question that can be told by their shape ("DMC", "LLaMA2-70B"), each once, in order."""
    return tuple(dict.fromkeys(_NAME.findall(question)))
