"""What kind of answer a question wants: a fact, or a list of papers."""

from __future__ import annotations

import re

from rag.records import Kind

_THINGS = r"(?:papers?|abstracts?|works?|articles?|studies|publications?|authors?|researchers?)"
_LIST = re.compile(
    rf"^\W*(?:which|what|how many|are there|is there|any|list|find|show|name|give)\b.{{0,40}}?\b{_THINGS}\b"
    rf"|^\W*(?:list|enumerate)\b|\b(?:all|any|which) (?:the )?{_THINGS}\b",
    re.IGNORECASE | re.DOTALL,
)
#: "In the paper …", "the authors of …": a paper is spoken of, not looked for.
_ONE_PAPER = re.compile(r"\b(?:the|this|that|its|their) (?:paper|abstract|work|article|study|authors?)\b", re.IGNORECASE)


def kind_of(question: str) -> Kind:
    """`list` if the question asks for papers ("Which papers …", "List all …"), else `fact`."""
    return "list" if _LIST.search(question) and not _ONE_PAPER.search(question) else "fact"
