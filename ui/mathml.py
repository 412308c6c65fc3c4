"""Formulas of abstracts as MathML, which browsers draw themselves; everything else as it stands.

What the converter cannot read, or reads as a command that it does not know, stays as its author wrote it: half a formula would be worse than
its LaTeX. The result is built anew with the page's own builder, of the tags of mathematics alone; no attribute comes through but the one that keeps
brackets from growing.
"""

from __future__ import annotations

import html
import re
from functools import lru_cache
from xml.etree.ElementTree import Element

from latex2mathml import exceptions
from latex2mathml.converter import convert_to_element

from rag.assistant import formulas
from ui.markup import MATHS, Html, element, join, text

#: Characters of a formula that is drawn. The 95 bundled abstracts and their titles have 62 formulas, all drawn; the longest has 64.
LONGEST = 400
#: Words in a row, outside of commands for text, are a sentence between two prices ("$5 and sells for 10$").
_PROSE = re.compile(r"[A-Za-z]{2,}\s+[A-Za-z]{2,}")
_COMMANDS = re.compile(r"\\(?:text\w*|math\w+|mbox|operatorname\*?|emph)\s*\{[^{}]*\}|\\[A-Za-z]+")
_FAILURES: tuple[type[Exception], ...] = (
    *(StopIteration, ValueError, LookupError, RecursionError),
    *(e for e in vars(exceptions).values() if isinstance(e, type) and issubclass(e, Exception)),
)


def shown(words: str) -> Html:
    """A text with its formulas drawn."""
    parts: list[Html] = []
    at = 0
    for start, end, latex in formulas(words):
        if (drawn := _drawn(latex)) is not None:
            parts += [text(words[at:start]), drawn]
            at = end
    return join([*parts, text(words[at:])])


@lru_cache(maxsize=4096)
def _drawn(latex: str) -> Html | None:
    """A formula; None where it is none, or cannot be read as a whole."""
    if len(latex) > LONGEST or _PROSE.search(_COMMANDS.sub(" ", latex)):
        return None
    try:
        return _built(convert_to_element(latex))
    except _FAILURES:
        return None


def _built(node: Element) -> Html:
    """An element of the converter's, made with ours. Raises ValueError for what is not drawn here."""
    words = html.unescape(node.text or "")
    if node.tag not in MATHS or "\\" in words:
        raise ValueError("no formula that can be drawn")
    return element(node.tag, words, *(_built(child) for child in node), stretchy=node.get("stretchy"))
