"""The sides of a comparison, as the question puts them: "LESS versus FastGen: …", "the two weather papers"."""

from __future__ import annotations

import re

_END = r"(?=\s*(?:[:,;?.]|$|\b(?:in terms of|in how|in the way|in what|with (?:respect|regard) to|when|for|at|on|do|does|each|differ|compare)\b))"
_SIDE = r"[^,:;?]{1,90}?"
_FORMS = (
    re.compile(rf"\bdifferences? (?:is there )?between (?P<a>{_SIDE}) and (?P<b>{_SIDE}){_END}", re.IGNORECASE),
    re.compile(rf"^\W*(?:please )?(?:compare|contrast) (?P<a>{_SIDE}) (?:with|to|and|against|versus|vs\.?) (?P<b>{_SIDE}){_END}", re.IGNORECASE),
    re.compile(rf"^\W*(?:(?:how|what) (?:do|does|is|are) )?(?P<a>{_SIDE}),? (?:versus|vs\.?|compared (?:with|to)) (?P<b>{_SIDE}){_END}", re.IGNORECASE),
    re.compile(
        rf"\b(?:do|does|did|are|is) (?P<a>(?!it\b|they\b|this\b){_SIDE}) (?:and|or|differ from|compare (?:with|to)) (?P<b>{_SIDE})(?: (?:each"
        rf"|differ|compare)\b|{_END})",
        re.IGNORECASE,
    ),
)
_TWO = re.compile(r"\b(?:the )?(?:two|both) (?P<what>[^,:;?]{2,60}?) (?:papers|methods|approaches|models|works|abstracts|algorithms)\b", re.IGNORECASE)
#: What one paper compares itself with is in its own abstract, and no side.
_NO_SIDE = re.compile(
    r"\b(?:baselines?|state[- ]of[- ]the[- ]art|sota|prior|previous|existing|earlier|conventional|standard|other|competing|others"
    r"|alternatives|it|them|they)\b",
    re.IGNORECASE,
)


def sides_in(question: str) -> tuple[str, ...]:
    """The two sides that a question names or describes; none where it does not tell two."""
    for form in _FORMS:
        found = form.search(question)
        if found and not any(_NO_SIDE.search(found[name]) for name in ("a", "b")):
            return found["a"].strip(), found["b"].strip()
    return ()


def two_of(question: str) -> str:
    """What "the two … papers" are about; empty where the question does not speak of them."""
    found = _TWO.search(question)
    return found["what"] if found else ""
