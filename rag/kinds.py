"""What kind of answer a question wants, and what it is about once the words that ask for papers are taken off."""

from __future__ import annotations

import re

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
